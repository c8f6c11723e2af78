"""What an average process does, item by item and in order: the program of a signature, unrolled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Value
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.kinds.item import Item
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import Operations, OperationsBuilder, repetitions
from popmodel.model.run.work import RunWork, UnevenWork, computation
from popmodel.model.symbols import SPREADS
from popmodel.model.tree import ItemTree, TreeNode
from popmodel.model.uncertainty import nominal

Array = NDArray[np.float64]
Place: TypeAlias = tuple[int, ...]
"""Where a part of a program is: its position in every body around it, the outermost first."""
Counts: TypeAlias = Mapping[Place, int]
"""Iterations to carry out instead of all, by the place of the loop."""
Common: TypeAlias = Mapping[str, Value]
"""Spread of the work of items without their own, ``persistent_cv`` and ``transient_cv``."""


class ProcessLoad(NamedTuple):
    """Computation of an average process, and what it has to do with others of its memory domain."""

    seconds: float = 0.0
    # Seconds by which a process is slower per standard deviation: in every step, and in this one.
    lasting: float = 0.0
    turns: float = 0.0
    crowding: float = 0.0  # Seconds that others of the domain cost, if they have the same work
    moved: float = 0.0  # Bytes to and from memory

    def plus(self, other: ProcessLoad) -> ProcessLoad:
        return ProcessLoad(*(one + more for one, more in zip(self, other, strict=True)))

    def times(self, factor: float) -> ProcessLoad:
        return ProcessLoad(*(one * factor for one in self))


class ScriptList(NamedTuple):
    """Computation of an item that processes share unevenly, in one or some of its executions."""

    place: Place  # Of the item
    load: ProcessLoad  # All of it
    cv: tuple[float, float]  # Persistent and transient spread of what is not known value by value
    parts: tuple[UnevenWork, ...]  # How it differs
    executions: int  # Of a loop that communicates nothing: how many are in it
    overhead: float  # Beside the work of an average process, and as unequal, s

    @property
    def is_known(self) -> bool:
        """Whether some of it is known process by process."""
        return any(part.ranks is not None for part in self.parts)

    @property
    def levels(self) -> Array:
        """Work of every process over that of an average one, 1 for what is left to chance."""
        found = np.zeros(1)
        for part in self.parts:
            found = found + part.share * (1.0 if part.ranks is None else part.ranks)
        return found


class Compute(NamedTuple):
    """Computation of an average process, s."""

    overhead: float = 0.0  # What is the same for all processes
    common: ProcessLoad = ProcessLoad()  # Of items that are spread as the program is
    own: ProcessLoad = ProcessLoad()  # Of those with a spread of their own
    listed: tuple[ScriptList, ...] = ()  # Of those of which more is known than a spread


@dataclass(frozen=True)
class ScriptPart:
    """A node of the tree of works with what the replay does with it."""

    place: Place  # Where it is
    every: float  # In how many turns of its loop it is executed once
    # What it computes, communication included (packing); of a loop that communicates nothing.
    compute: Compute
    meeting: Operations | None = None  # What it communicates itself
    count: int = 1  # Of a loop that communicates, its iterations
    # Of a loop that communicates, its body; others are one computation.
    inside: tuple[ScriptPart, ...] = ()

    def operations(self, counts: Counts) -> float:
        """Count the operations of all processes in one turn of the loop around it."""
        if self.inside:
            each = sum(part.operations(counts) for part in self.inside)
            once: float = counts.get(self.place, self.count) * each
        else:
            once = 0 if self.meeting is None else self.meeting.program.operations
        return once / self.every

    def times(self, turn: int) -> int:
        return math.floor((turn + 1) / self.every + 1e-9) - math.floor(turn / self.every + 1e-9)


Event: TypeAlias = Compute | int | ScriptPart
"""A computation; a new step of a loop, by its number, in which other processes are slow; a
communication."""


@dataclass(frozen=True)
class Script:
    """The parts of a program, each worked out once; made by `Script.of`."""

    point: ModelPoint  # Where it is evaluated
    parts: tuple[ScriptPart, ...]  # In order

    @staticmethod
    def of(tree: ItemTree, common: Common) -> Script:
        """Work out every part of a program once."""
        every = (part for item, _ in tree.leaves() for part in item.uneven(tree.point))
        has_memory = any(part.ranks is not None for part in every)
        return Script(tree.point, _ScriptWriter(tree.point, common, has_memory).parts(tree.nodes))

    def operations(self, counts: Counts) -> float:
        """Count the operations of all processes."""
        return sum(part.operations(counts) for part in self.parts)

    def loops(self) -> Iterator[ScriptPart]:
        """Return the loops that communicate, an outer one before those in it."""
        waiting = list(self.parts)
        while waiting:
            part = waiting.pop(0)
            if part.inside:
                yield part
                waiting = [*part.inside, *waiting]

    def events(self, counts: Counts) -> Iterator[Event]:
        """Return what an average process does, in order; what is before all loops is step 0."""
        numbers = {loop.place: 1 + number for number, loop in enumerate(self.loops())}

        def body(parts: tuple[ScriptPart, ...], turn: int) -> Iterator[Event]:
            for part in parts:
                for _ in range(part.times(turn)):
                    yield from turns(part) if part.inside else _once(part)

        def turns(loop: ScriptPart) -> Iterator[Event]:
            meetings = [part for part in loop.inside if part.meeting is not None]
            met = bool(meetings)
            for turn in range(counts.get(loop.place, loop.count)):
                if met:
                    yield numbers[loop.place]
                yield from body(loop.inside, turn)
                # a step lasts until processes meet, as in the closed form
                met = any(part.times(turn) for part in meetings)

        yield 0
        yield from body(self.parts, 0)


def _once(part: ScriptPart) -> Iterator[Event]:
    if part.meeting is None:
        yield part.compute
        return
    whole = part.compute
    half = Compute(whole.overhead / 2, whole.common.times(0.5), whole.own.times(0.5))
    yield half  # packing before, unpacking after
    yield part
    yield half


class _ScriptWriter(NamedTuple):
    """Works out the parts of a program."""

    point: ModelPoint
    common: Common
    has_memory: bool  # Whether it matters what processes have to do with others of their domain

    def parts(self, nodes: tuple[TreeNode, ...], around: Place = ()) -> tuple[ScriptPart, ...]:
        return tuple(self._part(node, (*around, index)) for index, node in enumerate(nodes))

    def _part(self, node: TreeNode, place: Place) -> ScriptPart:
        item = node.item
        every = nominal(item.every)
        if node.inside and node.communicates:
            count = repetitions(item.repeats, item.name)
            return ScriptPart(place, every, Compute(), None, count, self.parts(node.inside, place))
        compute = self._compute(node, place)
        if not item.communicates:
            return ScriptPart(place, every, compute)
        build = OperationsBuilder(self.point.messages)
        item.operations(self.point, build)
        return ScriptPart(place, every, compute, build.build())

    def _compute(self, node: TreeNode, place: Place) -> Compute:
        """Computation in one execution of a node, by how much is known of how it differs."""
        overhead = nominal(node.work.overhead)
        common, own = ProcessLoad(), ProcessLoad()
        listed = []
        for index, (item, work, executions) in enumerate(_leaves(node)):
            parts = item.uneven(self.point)
            load, cv = self._load(item, work)
            if not parts and item.own_spread:
                own = own.plus(load)
            elif not parts:
                common = common.plus(load)
            elif not item.communicates:
                more, turns = (
                    executions * nominal(item.measured_overhead),
                    max(round(executions), 1),
                )
                listed.append(ScriptList((*place, index), load, cv, parts, turns, more))
                overhead -= more
        if node.item.computes_between:
            common = ProcessLoad()
        return Compute(overhead, common, own, tuple(listed))

    def _load(self, item: Item, work: RunWork) -> tuple[ProcessLoad, tuple[float, float]]:
        """Computation in some executions of an item, and its persistent and transient spread."""
        seconds = nominal(computation(work))
        spread = {**self.common, **item.own_spread}
        lasting, turns = (nominal(spread.get(name, 0.0)) for name in SPREADS.values())
        load, cv = ProcessLoad(seconds, lasting * seconds, turns * seconds), (lasting, turns)
        crowding = nominal(item.crowding(self.point)) if self.has_memory else 0.0
        if not crowding:
            return load, cv
        executions = seconds / nominal(computation(item.work(self.point)))
        moved = nominal(work.memory_bytes)
        return load._replace(crowding=crowding * executions, moved=moved), cv


def _leaves(node: TreeNode) -> Iterator[tuple[Item, RunWork, float]]:
    """Return the items without a body in a node: their work and executions in one of it."""
    if not node.inside:
        yield node.item, node.work, 1.0
    for inner in node.inside:
        times = node.item.repeats / inner.item.every
        for item, work, executions in _leaves(inner):
            yield item, work.times(times), executions * nominal(times)
