"""The work of a program as a tree of the works of its items.

Totals, causes, names in formulas and the replay all read this tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.expressions.elementary import Value, maximum, minimum, numbers, sqrt
from popmodel.base.values import dataclass
from popmodel.machines.profile import MissingQuantity
from popmodel.model.kinds import key_of
from popmodel.model.kinds.item import Item
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Placement
from popmodel.model.run.work import (
    AVERAGED,
    LARGEST,
    RunWork,
    UnevenWork,
    computation,
    with_largest,
)
from popmodel.model.signature.application import Signature, names
from popmodel.model.symbols import SPREADS
from popmodel.model.terms import imbalance, pipeline
from popmodel.model.terms.pipeline import Fronts
from popmodel.model.uncertainty import nominal


@dataclass(frozen=True)
class TreeNode:
    """An item of a program with its work."""

    item: Item  # With numbers for its formulas
    work: RunWork  # Of one execution by an average process
    # The items of its body, executed ``item.repeats`` times in one execution of it.
    inside: tuple[TreeNode, ...] = ()

    @staticmethod
    def around(item: Item, inside: tuple[TreeNode, ...]) -> TreeNode:
        """Return the node of an item with a body."""
        return TreeNode(item, total(inside).times(item.repeats), inside)

    @cached_property
    def in_turn(self) -> RunWork:
        """The work in one execution of the body around it, on average."""
        return self._in_turn(self.work)

    def _in_turn(self, work: RunWork) -> RunWork:
        every = self.item.every
        return work if bool(np.all(every == 1)) else work.times(1 / every)

    @property
    def communicates(self) -> bool:
        """Whether processes exchange messages in it."""
        return self.item.communicates or any(node.communicates for node in self.inside)

    @property
    def has_own_spread(self) -> bool:
        """Whether the work of some item in it differs between processes by a spread of its own."""
        return bool(self.item.own_spread) or any(node.has_own_spread for node in self.inside)

    def mapped(self, work: Callable[[TreeNode], RunWork]) -> TreeNode:
        if not self.inside:
            return replace(self, work=work(self))
        return TreeNode.around(self.item, tuple(node.mapped(work) for node in self.inside))

    def leaves(self) -> Iterator[tuple[Item, RunWork]]:
        """Return the items without a body, each with its work in one execution of the body around.

        Together they are the work of the node, but for the steps in which processes meet.
        """
        if not self.inside:
            yield self.item, self.in_turn
        for node in self.inside:
            for item, work in node.leaves():
                yield item, self._in_turn(work.times(self.item.repeats))


@dataclass(frozen=True)
class ItemTree:
    """The work of a whole program."""

    point: ModelPoint  # Where it was evaluated
    nodes: tuple[TreeNode, ...]  # Its items, in order

    @cached_property
    def total(self) -> RunWork:
        """What an average process does in the whole program."""
        return total(self.nodes)

    def spread(self, common: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return the spread of the computation of a process, by its kind.

        The same processes are slow in all items, in every step or in this one. So what items of a
        step have more to do adds up; and where steps differ, those of one loop and of another, the
        transient part is such that they last as long together, ``sqrt(sigma_p**2 + sigma_t**2)``
        on average (`popmodel.model.terms.imbalance.slowest_per_step`).
        """
        if LARGEST not in common:
            return self._spread(common)
        found = self._spread({name: one for name, one in common.items() if name != LARGEST})
        excess = common[LARGEST] * self._unknown
        return with_largest(found, excess, self.total, self.point.values["P"])

    @cached_property
    def _unknown(self) -> float:
        """Part of the computation of which nothing is known process by process."""
        whole = nominal(computation(self.total))
        known = sum(
            nominal(computation(work)) * part.share
            for item, work in self.leaves()
            for part in item.uneven(self.point)
            if part.ranks is not None
        )
        return 1 - known / whole if whole > 0 else 1.0

    def _spread(self, common: Mapping[str, Value]) -> Mapping[str, Value]:
        if not (self.is_uneven or any(node.has_own_spread for node in self.nodes)):
            return common
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is told elsewhere
            return self._of_uneven(common) if self.is_uneven else self._of_own(common)

    @cached_property
    def is_uneven(self) -> bool:
        """Whether more is known of the work of some item than its spread."""
        return any(leaf.item.uneven(self.point) for leaf in leaf_nodes(self.nodes))

    def _of_own(self, common: Mapping[str, Value]) -> Mapping[str, Value]:
        whole = computation(self.total)
        if not np.all(numbers(whole) > 0):
            return common
        steps = [
            [
                sum(
                    computation(work) * item.own_spread.get(name, common.get(name, 0.0))
                    for item, work in step
                )
                for name in SPREADS.values()
            ]
            for step in self._steps()
        ]
        persistent, transient = (sum(parts) / whole for parts in zip(*steps, strict=True))
        if len(steps) > 1:
            longest = sum(sqrt(lasting**2 + turns**2) for lasting, turns in steps) / whole
            transient = sqrt(maximum(longest**2 - persistent**2, 0.0))
        return dict(zip(SPREADS.values(), (persistent, transient), strict=True))

    def _of_uneven(self, common: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return the spreads that give the slowest process what is known value by value.

        That of the best estimate; what draws change of coefficients of variation comes on top,
        as a part of the variance.
        """
        processes = self.point.placement.processes
        whole = nominal(computation(self.total))
        score = nominal(imbalance.expected_maximum(processes))
        if not (math.isfinite(whole) and whole > 0 and score):
            return common
        steps = [_TreeStep.of(step, self.point, common) for step in self._steps()]
        levels = np.sum([step.levels for step in steps], axis=0)
        lasting, turns = (
            sum(one) / whole for one in zip(*((s.lasting, s.turns) for s in steps), strict=True)
        )
        count = max(nominal(self.total.steps), 1.0)
        random = math.hypot(nominal(lasting), nominal(turns) / math.sqrt(count))
        overall = imbalance.largest(levels, random) / whole - 1
        longest = max(sum(step.longest() for step in steps) / whole - 1, overall)
        transient = math.sqrt(longest**2 - overall**2) / score
        return {
            "persistent_cv": _varied(overall / score, lasting),
            "transient_cv": _varied(transient, turns),
            AVERAGED: 0.0,
        }

    def _steps(self) -> list[list[tuple[Item, RunWork]]]:
        """Return the items by the steps that they are in, with their work in the whole program.

        Those of the innermost loop in which processes meet are in its steps.
        """
        found: list[list[tuple[Item, RunWork]]] = []

        def collect(nodes: tuple[TreeNode, ...], times: Value) -> None:
            mine: list[tuple[Item, RunWork]] = []
            for node in nodes:
                if node.inside and node.communicates:
                    collect(node.inside, times * node.item.repeats / node.item.every)
                else:
                    mine += [(item, work.times(times)) for item, work in node.leaves()]
            if any(np.any(numbers(computation(work))) for _, work in mine):
                found.append(mine)

        collect(self.nodes, 1.0)
        return found

    def mapped(self, work: Callable[[TreeNode], RunWork]) -> ItemTree:
        return ItemTree(self.point, tuple(node.mapped(work) for node in self.nodes))

    def leaves(self) -> Iterator[tuple[Item, RunWork]]:
        for node in self.nodes:
            yield from node.leaves()


def leaf_nodes(nodes: tuple[TreeNode, ...]) -> Iterator[TreeNode]:
    """Return the nodes without a body."""
    for node in nodes:
        if node.inside:
            yield from leaf_nodes(node.inside)
        else:
            yield node


def _varied(found: float, cv: Value) -> Value:
    """Return a spread, of which the part that draws change of a coefficient is added."""
    if not isinstance(cv, np.ndarray):
        return found
    return sqrt(maximum(found**2 + cv**2 - nominal(cv) ** 2, 0.0))


@dataclass(frozen=True)
class _TreeStep:
    """The computation of a step, where more than spreads are known of it."""

    levels: NDArray[np.float64]  # float64[P]: Of every process on average, s
    # Seconds by which a process is slower per standard deviation: in every step, and in this one.
    lasting: Value
    turns: Value
    # tuple of (float, float64[n]): Parts whose factor in a step is one of some values, s.
    factors: tuple[tuple[float, NDArray[np.float64]], ...]

    @staticmethod
    def of(
        step: Sequence[tuple[Item, RunWork]], point: ModelPoint, common: Mapping[str, Value]
    ) -> _TreeStep:
        levels = np.zeros(point.placement.processes)
        lasting: Value = 0.0
        turns: Value = 0.0
        factors = []
        for item, work in step:
            seconds = computation(work)
            own = {**common, **item.own_spread}
            for part in item.uneven(point) or (UnevenWork(1.0),):
                mine = nominal(seconds) * part.share
                levels += mine * (1.0 if part.ranks is None else part.ranks)
                if part.ranks is None:
                    lasting = lasting + seconds * part.share * own.get("persistent_cv", 0.0)
                if part.turns is None:
                    turns = turns + seconds * part.share * own.get("transient_cv", 0.0)
                else:
                    factors.append((mine, part.turns))
        return _TreeStep(levels, lasting, turns, tuple(factors))

    def longest(self) -> float:
        """Return the computation of the slowest process, s."""
        mean = float(self.levels.mean())
        if mean <= 0:
            return 0.0
        random = math.hypot(nominal(self.lasting), nominal(self.turns)) / mean
        return imbalance.largest(
            self.levels, random, [(share / mean, values) for share, values in self.factors]
        )


def total(body: tuple[TreeNode, ...]) -> RunWork:
    """Return one execution of a body.

    What communicates side by side meets in the same step; items with a body have steps of their
    own.
    """
    sum_ = RunWork()
    looped: Value = 0.0
    for node in body:
        sum_ = sum_.plus(node.in_turn)
        if node.inside:
            looped = looped + node.in_turn.steps
    return sum_._replace(steps=maximum(sum_.steps, looped))


# Waves that follow each other without a meeting of all processes.
#
# `Item.work` is that of an item alone. A wave whose pipeline is full of an earlier one fills
# nothing anew (`popmodel.model.terms.pipeline`): what is before it, in its loop and around that,
# decides.


_Nodes: TypeAlias = tuple[TreeNode, ...]
_Execute: TypeAlias = Callable[[Fronts], tuple[_Nodes, Fronts]]
"""Executes a part once: what is paid before it -> its works then, what is paid after it."""
_Paid: TypeAlias = Mapping[int, Fronts | None]
"""Fronts of the items without a body, None if nobody meets in it, by the `id` of the node."""


def following(tree: ItemTree) -> ItemTree:
    """Return the tree with the works of waves where they stand, on average over all iterations."""
    paid = {id(node): node.item.fronts(tree.point) for node in leaf_nodes(tree.nodes)}
    if not any(paid.values()):
        return tree
    return replace(tree, nodes=_body(tree.nodes, paid, {})[0])


def _body(nodes: _Nodes, paid: _Paid, before: Fronts) -> tuple[_Nodes, Fronts]:
    """Execute the items of a body in turn."""
    done: list[TreeNode] = []
    for node in nodes:
        (executed,), before = _in_turn(node, paid, before)
        done.append(executed)
    return tuple(done), before


def _in_turn(node: TreeNode, paid: _Paid, before: Fronts) -> tuple[_Nodes, Fronts]:
    """Execute an item as often as one execution of the body around it does, on average."""

    def once(before: Fronts) -> tuple[_Nodes, Fronts]:
        if node.inside:
            inside, after = _repeated(
                lambda state: _body(node.inside, paid, state), node.item.repeats, before
            )
            same = all(map(is_, inside, node.inside))
            return (node if same else TreeNode.around(node.item, inside),), after
        mine = paid[id(node)]
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
    return replace(node, work=node.work._replace(waiting=waiting, transfer=transfer))


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
    return replace(first, work=first.work._replace(**mean))


# The performance model: a program at a point, and the tree of the works of its items.
#
# The same functions work on numbers, arrays of draws and traced numbers, so one pass over
# `Model.work` gives a prediction with its intervals, or the formulas behind it.


Known: TypeAlias = dict[int, tuple[Item, TreeNode]]
"""Items and their works, by the `id` of the item."""


@dataclass(frozen=True)
class Model:
    """A program on a machine in a placement, ready to be evaluated."""

    signature: Signature  # The program
    point: ModelPoint  # Its names, where it runs, and the machine

    def work(self, known: Known | None = None) -> ItemTree:
        """Return the works of all items for an average process.

        Items that are `known` at the point are as they are; with another overlap their numbers.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # checked part by part
            nodes = self._nodes(self.signature.program, {} if known is None else known)
            tree = ItemTree(self.point, nodes)
            if not _is_finite(tree.total):
                self._refuse_infinite(nodes)
            return following(tree)

    def memory_per_rank(self) -> Value | None:
        """Return the memory of a process, bytes; None if the signature does not say it."""
        formula = self.signature.limits.memory_per_rank
        key = key_of("limits", "memory_per_rank")
        try:
            return None if formula is None else self.point.amount(formula, key, key.name)
        except MissingQuantity as error:
            raise error.needed_by(key.name) from None

    def _nodes(self, body: tuple[Item, ...], known: Known) -> tuple[TreeNode, ...]:
        return tuple(self._node(item, known) for item in body)

    def _node(self, item: Item, known: Known) -> TreeNode:
        _, same = known.get(id(item), (item, None))
        if same is not None and self.point.overlap is None:
            return same
        inside: tuple[TreeNode, ...] = ()
        try:
            numbers = item.at(self.point, item.name) if same is None else same.item
            if item.inside:
                inside = self._nodes(item.inside, known)
                node = TreeNode.around(numbers, inside)
            else:
                node = TreeNode(numbers, numbers.work(self.point))
        except MissingQuantity as error:
            if item.inside:  # what is in it is named already
                raise
            raise error.needed_by(item.name) from None
        if not item.inside and self.point.overlap is None:
            known[id(item)] = item, node  # the item, so that no other gets its id
        return node

    def _refuse_infinite(self, nodes: tuple[TreeNode, ...]) -> None:
        for node in nodes:
            self._refuse_infinite(node.inside)
            if not _is_finite(node.in_turn):
                raise UsageError(
                    f"{self.signature.name}: the time of {node.item.name!r} at {self.point} is "
                    "too large to represent",
                    "use smaller parameters, or check its counts and sizes",
                )


def _is_finite(work: RunWork) -> bool:
    times = (work.serial, work.stretched, work.overhead, work.waiting, work.transfer)
    return all(bool(np.isfinite(np.asarray(time, float)).all()) for time in times)


def prepare(
    signature: Signature,
    placement: Placement,
    parameters: Parameters,
    params: Mapping[str, Value],
    overlap: str | None = None,
    growth: Mapping[str, Value] | None = None,
    changed: Mapping[str, Value] | None = None,
) -> Model:
    """Evaluate the names of a signature and make the model."""
    values, extent = names(signature, placement.processes, placement.threads, params)
    periodic = () if signature.grid is None else signature.grid.periodic
    where = (signature.name, placement, parameters, values, extent, periodic, overlap)
    point = ModelPoint(*where, growth or {}, signature.first_touch, changed=changed or {})
    return Model(signature, point)
