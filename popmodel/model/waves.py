"""Waves that follow each other without a meeting of all processes.

`Item.work` is that of an item alone. A wave whose pipeline is full of an earlier one fills nothing
anew (`popmodel.model.terms.pipeline`): what is before it, in its loop and around that, decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import TypeAlias

from popmodel.expressions.elementary import Value, maximum, minimum, numbers
from popmodel.model.run.point import ModelPoint
from popmodel.model.terms import pipeline
from popmodel.model.terms.pipeline import Fronts
from popmodel.model.tree import ItemTree, TreeNode
from popmodel.values import dataclass

_Nodes: TypeAlias = tuple[TreeNode, ...]
_Execute: TypeAlias = Callable[[Fronts], tuple[_Nodes, Fronts]]
"""Executes a part once: what is paid before it -> its works then, what is paid after it."""


@dataclass(frozen=True)
class _Stage:
    """A node with its fronts, None if nobody meets in it; stages of its body."""

    node: TreeNode
    fronts: Fronts | None
    inside: tuple[_Stage, ...]

    @property
    def has_waves(self) -> bool:
        return bool(self.fronts) or any(stage.has_waves for stage in self.inside)


def following(tree: ItemTree) -> ItemTree:
    """Return the tree with the works of waves where they stand, on average over all iterations."""
    stages = _stages(tree.nodes, tree.point)
    if not any(stage.has_waves for stage in stages):
        return tree
    return replace(tree, nodes=_body(stages, {})[0])


def _stages(nodes: _Nodes, point: ModelPoint) -> tuple[_Stage, ...]:
    return tuple(
        _Stage(node, None if node.inside else node.item.fronts(point), _stages(node.inside, point))
        for node in nodes
    )


def _body(stages: tuple[_Stage, ...], before: Fronts) -> tuple[_Nodes, Fronts]:
    """Execute the items of a body in turn."""
    done: list[TreeNode] = []
    for stage in stages:
        (found,), before = _in_turn(stage, before)
        done.append(found)
    return tuple(done), before


def _in_turn(stage: _Stage, before: Fronts) -> tuple[_Nodes, Fronts]:
    """Execute an item as often as one execution of the body around it does, on average."""
    node, mine = stage.node, stage.fronts

    def once(before: Fronts) -> tuple[_Nodes, Fronts]:
        if stage.inside:
            inside, after = _repeated(
                lambda state: _body(stage.inside, state), node.item.repeats, before
            )
            same = all(map(is_, inside, node.inside))
            return (node if same else TreeNode.around(node.item, inside),), after
        if not mine:  # all meet, or nobody does
            return (node,), before if mine is not None else {}
        return (_after(node, mine, before),), pipeline.after(mine, before)

    times = 1 / node.item.every
    done, after = _repeated(once, times, before)
    if numbers(times).min() < 1:
        after = pipeline.sometimes(minimum(times, 1.0), after, before)
    return done, after


def _after(node: TreeNode, mine: Fronts, before: Fronts) -> TreeNode:
    """Return a wave with others before it."""
    if not mine.keys() & before.keys():
        return node
    waiting, transfer = pipeline.waiting(mine, before), pipeline.transfer(mine, before)
    return replace(node, work=replace(node.work, waiting=waiting, transfer=transfer))


def _repeated(execute: _Execute, times: Value, before: Fronts) -> tuple[_Nodes, Fronts]:
    """Execute something several times: the first time after other things, then after itself."""
    first, state = execute(before)
    if numbers(times).max() <= 1:
        return first, state
    again, state = execute(state)
    share = 1 / maximum(times, 1.0)
    return tuple(_mixed(share, *pair) for pair in zip(first, again, strict=True)), state


def _mixed(share: Value, first: TreeNode, again: TreeNode) -> TreeNode:
    """Return a node that is ``first`` in a share of its executions."""
    if first is again:
        return first
    if first.inside:
        pairs = zip(first.inside, again.inside, strict=True)
        return TreeNode.around(first.item, tuple(_mixed(share, *pair) for pair in pairs))
    mean = {
        name: share * getattr(first.work, name) + (1 - share) * getattr(again.work, name)
        for name in ("waiting", "transfer")
    }
    return replace(first, work=replace(first.work, **mean))
