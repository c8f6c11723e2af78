"""Waves that follow each other without a meeting of all processes.

`Item.work` is that of an item alone. A wave whose pipeline is full of an earlier one fills nothing
anew (`popmodel.model.terms.pipeline`): what is before it, in its loop and around that, decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import TypeAlias

from popmodel.expressions.elementary import Value, maximum, minimum, numbers
from popmodel.model.kinds.item import Item
from popmodel.model.terms import pipeline
from popmodel.model.terms.pipeline import Fronts
from popmodel.model.tree import Node, Tree

_Nodes: TypeAlias = tuple[Node, ...]
_Execute: TypeAlias = Callable[[Fronts], tuple[_Nodes, Fronts]]
"""Executes a part once: what is paid before it -> its works then, what is paid after it."""


def following(tree: Tree) -> Tree:
    """Return the tree with the works of waves where they stand, on average over all iterations."""
    fronts = {id(item): item.fronts(tree.point) for item in _leaves(tree.nodes)}
    if not any(fronts.values()):
        return tree
    return replace(tree, nodes=_body(tree.nodes, fronts, {})[0])


def _leaves(nodes: _Nodes) -> Iterator[Item]:
    for node in nodes:
        if node.inside:
            yield from _leaves(node.inside)
        else:
            yield node.item


def _body(
    nodes: _Nodes, fronts: Mapping[int, Fronts | None], before: Fronts
) -> tuple[_Nodes, Fronts]:
    """Execute the items of a body in turn."""
    done: list[Node] = []
    for node in nodes:
        (found,), after = _in_turn(node, fronts, before)
        done.append(found)
        before = after
    return tuple(done), before


def _in_turn(
    node: Node, fronts: Mapping[int, Fronts | None], before: Fronts
) -> tuple[_Nodes, Fronts]:
    """Execute an item as often as one execution of the body around it does, on average."""

    def once(before: Fronts) -> tuple[_Nodes, Fronts]:
        if node.inside:
            inside, after = _repeated(
                lambda state: _body(node.inside, fronts, state), node.item.repeats, before
            )
            same = all(map(is_, inside, node.inside))
            return (node if same else Node.around(node.item, inside),), after
        mine = fronts[id(node.item)]
        if not mine:  # all meet, or nobody does
            return (node,), before if mine is not None else {}
        return (_after(node, mine, before),), pipeline.after(mine, before)

    times = 1 / node.item.every
    done, after = _repeated(once, times, before)
    if numbers(times).min() < 1:
        after = pipeline.sometimes(minimum(times, 1.0), after, before)
    return done, after


def _after(node: Node, mine: Fronts, before: Fronts) -> Node:
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


def _mixed(share: Value, first: Node, again: Node) -> Node:
    """Return a node that is ``first`` in a share of its executions."""
    if first is again:
        return first
    if first.inside:
        pairs = zip(first.inside, again.inside, strict=True)
        return Node.around(first.item, tuple(_mixed(share, *pair) for pair in pairs))
    mean = {
        name: share * getattr(first.work, name) + (1 - share) * getattr(again.work, name)
        for name in ("waiting", "transfer")
    }
    return replace(first, work=replace(first.work, **mean))
