"""A nest from the items of another one, put together anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.structure.common import Common
from popmodel.structure.items import ranges
from popmodel.structure.nest import Leaf, Loop, Place
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.items import Item
    from popmodel.structure.nest import Nest


class Source(NamedTuple):
    """Executions of an item, and which those of the slot are that it comes into."""

    item: Item
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
        self._places: list[Place] = []
        self._leaf = 0

    def of(self, slots: Sequence[Slot | Around]) -> Common:
        nest = self._body(slots, 1)
        common = self._common
        row = self._first[common.place] + common.execution
        return Common(nest, tuple(self._places), self._place[row], self._execution[row])

    def _body(self, slots: Sequence[Slot | Around], executions: int) -> Nest:
        body: list[Loop | Leaf] = []
        places: list[int] = []
        for slot in slots:
            if isinstance(slot, Slot) and not slot.sources[0].item.is_loop:
                places.append(self._add(slot))
                continue
            self._close(places, body)
            body.append(self._loop(slot, executions))
        self._close(places, body)
        return tuple(body)

    def _close(self, places: list[int], body: list[Loop | Leaf]) -> None:
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
        self._places.append(Place(number, like.name, self._leaf, like.is_region, like.inside))
        return number

    def _loop(self, slot: Slot | Around, executions: int) -> Loop:
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


def _loop(counts: NDArray[np.int64], body: Nest) -> Loop:
    return Loop(float(counts.mean()), tuple(counts.tolist()), body)
