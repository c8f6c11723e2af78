"""The items of a nest, each with what it is like and how long it takes at each execution."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from popmodel.arrays import distinct
from popmodel.structure.common import Common
from popmodel.structure.nest import FoundLoop, Leaf, LoopPlace
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.nest import Nest

Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, eq=False)
class StructureItem:
    """A place or a loop of a nest."""

    number: int  # Among all items, depth first
    place: int  # Its number, or -1 of a loop
    # The same of items that do the same: calls of equal partners, tags and sizes, loops around
    # such.
    likeness: int
    # float64[n]: Computing in it at each of its executions, the mean of all sequences, ns.
    time: NDArray[np.float64]
    events: NDArray[np.int64]  # int64[n]: Events in it at each of them, of all sequences
    # int64[n]: How often a loop is repeated at each of them; empty of a place.
    counts: NDArray[np.int64]
    body: tuple[StructureItem, ...]

    @property
    def is_loop(self) -> bool:
        """Whether it has a body."""
        return self.place < 0

    @property
    def places(self) -> list[int]:
        """Numbers of the places in it."""
        return [place for item in self.body for place in item.places] or [self.place]

    @property
    def size(self) -> int:
        """Number of places in it."""
        return len(self.places)


def items_of(events: ProgramEvents, common: Common) -> tuple[StructureItem, ...]:
    """Items of a nest, those at the top."""
    return _Items(events, common).of(common.nest, np.ones(1, np.int64))


def ranges(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... for each of some counts, one after the other."""
    first = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(first, counts)


class _Items:
    def __init__(self, events: ProgramEvents, common: Common) -> None:
        sequences = max(len(events.offsets) - 1, 1)
        time = events.before + np.where(events.is_region, events.end - events.begin, 0)
        order = np.argsort(common.place, kind="stable")
        bounds = np.searchsorted(common.place[order], np.arange(len(common.places) + 1))
        self._rows = [order[a:b] for a, b in pairwise(bounds.tolist())]
        self._time = time / sequences
        self._events, self._common, self._sequence = events, common, events.sequence
        self._numbers: dict[object, int] = {}
        self._passed = 0

    def of(self, nest: Nest, turns: NDArray[np.int64]) -> tuple[StructureItem, ...]:
        """Items of a body that is executed so often at each execution of what is around it."""
        executions = int(turns.sum())
        found = []
        for each in nest:
            if isinstance(each, Leaf):
                found += [self._place(place, executions) for place in each.places]
            else:
                found.append(self._loop(each.body, np.array(each.counts, np.int64)))
        return tuple(found)

    def _place(self, place: int, executions: int) -> StructureItem:
        rows = self._rows[place]
        turn = self._common.execution[rows]
        time = np.bincount(turn, self._time[rows], executions).astype(np.float64)
        events = np.bincount(turn, minlength=executions)
        likeness = self._number("place", *self._alike(rows))
        return StructureItem(self._next(), place, likeness, time, events, np.empty(0, np.int64), ())

    def _alike(self, rows: NDArray[np.int64]) -> tuple[object, ...]:
        """What the calls at a place are: with partners, where each sequence has always the same."""
        exact = distinct(self._events.exact[rows])
        if len(exact) <= len(distinct(self._sequence[rows])):
            return tuple(exact.tolist())
        return "varies", int(self._events.sized[rows].min())

    def _loop(self, nest: Nest, counts: NDArray[np.int64]) -> StructureItem:
        number = self._next()
        body = self.of(nest, counts)
        none = np.zeros(int(counts.sum()), np.int64)
        time = _sums(sum((each.time for each in body), none.astype(np.float64)), counts)
        events = _sums(sum((each.events for each in body), none), counts)
        likeness = self._number("loop", *(each.likeness for each in body))
        return StructureItem(number, -1, likeness, time, events, counts, body)

    def _next(self) -> int:
        self._passed += 1
        return self._passed - 1

    def _number(self, *what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


def _sums(values: NDArray[Number], counts: NDArray[np.int64]) -> NDArray[Number]:
    """Sums of so many values after the other."""
    passed = np.concatenate([values[:0], [values.dtype.type(0)], np.cumsum(values)])
    until = np.cumsum(counts)
    sums: NDArray[Number] = passed[until] - passed[until - counts]
    return sums


# A nest from the items of another one, put together anew.


class Source(NamedTuple):
    """Executions of an item, and which those of the slot are that it comes into."""

    item: StructureItem
    old: NDArray[np.int64]
    new: NDArray[np.int64]

    def inside(self, before: NDArray[np.int64]) -> list[Source]:
        """What is in the body of a loop, where its executions begin with these iterations."""
        counts = self.item.counts[self.old]
        old_first = (np.cumsum(self.item.counts) - self.item.counts)[self.old]
        turn = ranges(counts)
        old = np.repeat(old_first, counts) + turn
        new = np.repeat(before[self.new], counts) + turn
        found = []
        for each in self.item.body:
            there = each.events[old] > 0
            found.append(Source(each, old[there], new[there]))
        return found


@dataclass(frozen=True, eq=False)
class Slot:
    """Where items that are alike come together: a place, or a loop like theirs."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, eq=False)
class Around:
    """A new loop around slots, executed once."""

    count: int
    body: tuple[Slot, ...]


def rewritten(common: Common, slots: Sequence[Slot | Around]) -> Common:
    """The nest of some slots; each execution of each place of the old nest is in one of them."""
    return _Writer(common).of(slots)


class _Writer:
    def __init__(self, common: Common) -> None:
        self._common = common
        executions = np.zeros(len(common.places), np.int64)
        np.maximum.at(executions, common.place, common.execution.astype(np.int64) + 1)
        self._first = np.cumsum(executions) - executions
        self._place = np.zeros(int(executions.sum()), np.int32)
        self._execution = np.zeros(int(executions.sum()), np.int32)
        self._executions = executions
        self._places: list[LoopPlace] = []
        self._leaf = 0

    def of(self, slots: Sequence[Slot | Around]) -> Common:
        nest = self._body(slots, 1)
        common = self._common
        row = self._first[common.place] + common.execution
        return Common(nest, tuple(self._places), self._place[row], self._execution[row])

    def _body(self, slots: Sequence[Slot | Around], executions: int) -> Nest:
        body: list[FoundLoop | Leaf] = []
        places: list[int] = []
        for slot in slots:
            if isinstance(slot, Slot) and not slot.sources[0].item.is_loop:
                places.append(self._add(slot))
                continue
            self._close(places, body)
            body.append(self._loop(slot, executions))
        self._close(places, body)
        return tuple(body)

    def _close(self, places: list[int], body: list[FoundLoop | Leaf]) -> None:
        if places:
            body.append(Leaf(tuple(places)))
            places.clear()
            self._leaf += 1

    def _add(self, slot: Slot) -> int:
        number = len(self._places)
        for item, old, new in slot.sources:
            known = old < self._executions[item.place]
            rows = self._first[item.place] + old[known]
            self._place[rows] = number
            self._execution[rows] = new[known]
        like = self._common.places[slot.sources[0].item.place]
        self._places.append(LoopPlace(number, like.name, self._leaf, like.is_region, like.inside))
        return number

    def _loop(self, slot: Slot | Around, executions: int) -> FoundLoop:
        if isinstance(slot, Around):
            counts = np.array([slot.count], np.int64)
            return _loop(counts, self._body(slot.body, slot.count))
        counts = np.zeros(executions, np.int64)
        for item, old, new in slot.sources:
            counts[new] = item.counts[old]
        before = np.cumsum(counts) - counts
        inner = []
        for sources in zip(*(source.inside(before) for source in slot.sources), strict=True):
            some = tuple(source for source in sources if len(source.old))
            if some:  # else no sequence has an event there
                inner.append(Slot(some))
        return _loop(counts, self._body(inner, int(counts.sum())))


def _loop(counts: NDArray[np.int64], body: Nest) -> FoundLoop:
    return FoundLoop(float(counts.mean()), tuple(counts.tolist()), body)
