"""The items of a nest, each with what it is like and how long it takes at each execution."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from popmodel.arrays import distinct
from popmodel.structure.nest import Leaf
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.common import Common
    from popmodel.structure.events import Events
    from popmodel.structure.nest import Nest

Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, eq=False)
class Item:
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
    body: tuple[Item, ...]

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


def items_of(events: Events, common: Common) -> tuple[Item, ...]:
    """Items of a nest, those at the top."""
    return _Items(events, common).of(common.nest, np.ones(1, np.int64))


def ranges(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... for each of some counts, one after the other."""
    first = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(first, counts)


class _Items:
    def __init__(self, events: Events, common: Common) -> None:
        sequences = max(len(events.offsets) - 1, 1)
        time = events.before + np.where(events.is_region, events.end - events.begin, 0)
        order = np.argsort(common.place, kind="stable")
        bounds = np.searchsorted(common.place[order], np.arange(len(common.places) + 1))
        self._rows = [order[a:b] for a, b in pairwise(bounds.tolist())]
        self._time = time / sequences
        self._events, self._common, self._sequence = events, common, events.sequence
        self._numbers: dict[object, int] = {}
        self._passed = 0

    def of(self, nest: Nest, turns: NDArray[np.int64]) -> tuple[Item, ...]:
        """Items of a body that is executed so often at each execution of what is around it."""
        executions = int(turns.sum())
        found = []
        for each in nest:
            if isinstance(each, Leaf):
                found += [self._place(place, executions) for place in each.places]
            else:
                found.append(self._loop(each.body, np.array(each.counts, np.int64)))
        return tuple(found)

    def _place(self, place: int, executions: int) -> Item:
        rows = self._rows[place]
        turn = self._common.execution[rows]
        time = np.bincount(turn, self._time[rows], executions).astype(np.float64)
        events = np.bincount(turn, minlength=executions)
        likeness = self._number("place", *self._alike(rows))
        return Item(self._next(), place, likeness, time, events, np.empty(0, np.int64), ())

    def _alike(self, rows: NDArray[np.int64]) -> tuple[object, ...]:
        """What the calls at a place are: with partners, where each sequence has always the same."""
        exact = distinct(self._events.exact[rows])
        if len(exact) <= len(distinct(self._sequence[rows])):
            return tuple(exact.tolist())
        return "varies", int(self._events.sized[rows].min())

    def _loop(self, nest: Nest, counts: NDArray[np.int64]) -> Item:
        number = self._next()
        body = self.of(nest, counts)
        none = np.zeros(int(counts.sum()), np.int64)
        time = _sums(sum((each.time for each in body), none.astype(np.float64)), counts)
        events = _sums(sum((each.events for each in body), none), counts)
        likeness = self._number("loop", *(each.likeness for each in body))
        return Item(number, -1, likeness, time, events, counts, body)

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
