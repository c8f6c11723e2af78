"""How things stand in events: rows of some types, and what their values open and close."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import alike, among, distinct
from popmodel.kernel import _kernel
from popmodel.trace.blocks import take, walk
from popmodel.trace.instants import Instants
from popmodel.trace.intervals import Intervals
from popmodel.trace.tables import EventTable, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


_ROWS = 1 << 17
"""Events that are selected together."""


def rows_where_type(column: NDArray[np.uint32], types: Sequence[int]) -> NDArray[np.int64]:
    """Rows whose type is one of a few, ascending."""
    low, high = _runs(types)
    found = [_kernel.rows_of_types(column[block], low, high, block.start) for block in walk(column)]
    return np.concatenate([np.empty(0, np.int64), *found])


def rows_where_value(
    events: EventTable, types: Sequence[int], values: Sequence[int]
) -> NDArray[np.int64]:
    """Rows, ascending, whose type is one of some and whose value is one of a few."""
    low, high = _runs(types)
    wanted = np.array(values, np.int64)
    found = [
        _kernel.rows_of_values(
            events.type[block], events.value[block], low, high, wanted, block.start
        )
        for block in walk(events.type, events.value)
    ]
    return np.concatenate([np.empty(0, np.int64), *found])


def types_of(events: EventTable) -> set[int]:
    """Types that occur."""
    found: set[int] = set()
    for block in walk(events.type):
        found.update(_kernel.distinct_types(events.type[block]).tolist())
    return found


def _runs(types: Sequence[int]) -> NDArray[np.uint32]:
    """First and last of consecutive numbers: uint32[2, runs]."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(types)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return np.ascontiguousarray(np.array(runs, np.uint32).T)


class Selected(NamedTuple):
    """Events of some types, by location and in order."""

    offsets: NDArray[np.int64]  # int64[L + 1]
    row: NDArray[np.int64]  # int64[n]: Among all events
    type: NDArray[np.uint32]  # uint32[n]
    # int64[n]
    time: NDArray[np.int64]
    value: NDArray[np.int64]

    def of(self, types: Sequence[int]) -> Selected:
        """Those of some of the types."""
        mine = np.flatnonzero(among(self.type, types))
        return Selected(
            np.searchsorted(mine, self.offsets),
            self.row[mine],
            self.type[mine],
            self.time[mine],
            self.value[mine],
        )


def select(events: EventTable, types: Sequence[int]) -> Selected:
    """Select the events of some types."""
    rows = rows_where_type(events.type, types)
    return Selected(
        np.searchsorted(rows, events.offsets),
        rows,
        take(events.type, rows),
        take(events.time, rows),
        take(events.value, rows),
    )


def select_by_lines(events: EventTable, types: Sequence[int]) -> Iterator[Selected]:
    """Select events a block after the other; what stands at one time is in one block."""
    begin, count = 0, len(events.time)
    while begin < count:
        end = min(begin + _ROWS, count)
        while end < count and events.time[end] == events.time[end - 1]:
            end += 1
        rows = slice(begin, end)
        offsets = np.clip(events.offsets, begin, end) - begin
        yield select(
            EventTable(offsets, events.time[rows], events.type[rows], events.value[rows]), types
        )
        begin = end


def instants(events: EventTable, *types: Sequence[int]) -> list[Instants]:
    """Times and values of the events of some types, for each of some sets of types."""
    runs = [_runs(each) for each in types]
    numbers = np.repeat(np.arange(len(runs), dtype=np.uint32), [run.shape[1] for run in runs])
    low, high = np.concatenate([np.empty((2, 0), np.uint32), *runs], axis=1)
    readings = _kernel.Readings(
        locations=len(events.offsets) - 1,
        events=len(events.time),
        low=low,
        high=high,
        table=numbers,
        tables=len(runs),
    )
    for block in walk(events.time, events.type, events.value):
        offsets = np.clip(events.offsets, block.start, block.stop) - block.start
        readings.feed(offsets, events.time[block], events.type[block], events.value[block])
    return [Instants(offsets_of(count), time, value) for count, time, value in readings.finish()]


def kinds_of(
    types: NDArray[np.uint32], values: NDArray[np.int64]
) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Distinct pairs of type and value, in order, and the number of each row's pair."""
    known = distinct(types)
    found, number = alike(np.searchsorted(known, types), values)
    return [(int(known[type_]), value) for type_, value in found.tolist()], number


def where_nonzero(
    found: Selected, types: Sequence[int], end: int
) -> tuple[Intervals, NDArray[np.int64]]:
    """Intervals in which the last event of `types` had a value other than 0."""
    rows = np.flatnonzero(among(found.type, types))
    offsets = np.searchsorted(rows, found.offsets)
    time, on = found.time[rows], found.value[rows] != 0
    before = np.zeros(len(on), dtype=bool)
    before[1:] = on[:-1]
    before[offsets[:-1][offsets[:-1] < len(on)]] = False
    opening = np.flatnonzero(on & ~before)
    closing = np.flatnonzero(~on & before)
    ends = np.full(len(opening), end, dtype=np.int64)
    following = np.searchsorted(closing, opening)
    closed = following < len(closing)
    # The next closing event has to be of the same location as the opening one.
    location = np.searchsorted(offsets, opening, side="right")
    closed[closed] = closing[following[closed]] < offsets[location[closed]]
    ends[closed] = time[closing[following[closed]]]
    spans = Intervals.of(np.searchsorted(opening, offsets), time[opening], ends)
    return spans, rows[opening]
