"""How things stand in events: rows of some types, what their values open and close, MPI calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import alike, among, distinct
from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces.calls import CallTable, CollectiveArguments
from popmodel.traces.codes import Event
from popmodel.traces.intervals import Instants, Intervals
from popmodel.traces.paraver.numbers import MPI_TYPES, NUMBERS, SENT_TO_ONE
from popmodel.traces.tables import EventTable, TraceWarning, offsets_of, take, walk, walk_locations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.paraver.labels import Labels

MOST_NAMES = 1 << 15
"""Names of calls that can be told apart; MPI has less than a thousand."""
_ROWS = 1 << 17
"""Events that are selected together."""
_PAIRED_ROWS = 1 << 18
"""Events of which the calls are paired together."""


def rows_where_type(column: NDArray[np.uint32], types: Sequence[int]) -> NDArray[np.int64]:
    """Rows whose type is one of a few, ascending."""
    low, high = _runs(types)
    found = [_kernel.rows_of_types(column[block], low, high, block.start) for block in walk(column)]
    return np.concatenate([np.empty(0, np.int64), *found])


def types_of(events: EventTable) -> set[int]:
    found: set[int] = set()
    for block in walk(events.type):
        found.update(_kernel.distinct_types(events.type[block]).tolist())
    return found


def _runs(types: Sequence[int]) -> NDArray[np.uint32]:
    """First and last of consecutive numbers: uint32[2, runs]."""
    numbers = distinct(np.array(types, np.int64))
    begins = np.diff(numbers, prepend=-2) > 1
    return np.stack([numbers[begins], numbers[np.roll(begins, -1)]]).astype(np.uint32)


class Selected(NamedTuple):
    """Events of some types, by location and in order."""

    offsets: NDArray[np.int64]  # int64[L + 1]
    row: NDArray[np.int64]  # int64[n]: Among all events
    type: NDArray[np.uint32]  # uint32[n]
    # int64[n]
    time: NDArray[np.int64]
    value: NDArray[np.int64]


def select(events: EventTable, types: Sequence[int]) -> Selected:
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
    runs = [_runs(some) for some in types]
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


def pair(events: EventTable, labels: Labels, end: int, path: str) -> CallTable:
    """Pair the entry of every MPI call with its exit, and with what it tells of itself.

    Calls do not nest: the event after an entry, on the same location and of any MPI type, is its
    exit. An entry that is followed by another entry ends there, one that is followed by nothing
    ends with the run; an exit that follows no entry is dropped. Both are counted. Arguments of a
    collective stand on the line of the entry event, after it; or, in traces of other writers,
    before it at the same time.
    """
    pairer = _kernel.CallPairer(
        min(MPI_TYPES), max(MPI_TYPES), NUMBERS[Event.BYTES_SENT], end, len(events.time)
    )
    for locations in walk_locations(
        events.offsets, events.time, events.type, events.value, rows=_PAIRED_ROWS
    ):
        mine = events.at(locations)
        pairer.feed(mine.offsets, mine.time, mine.type, mine.value)
    found = pairer.finish()
    kinds = found["kinds"]
    if len(kinds) > MOST_NAMES:
        raise TraceError(
            path,
            f"has {len(kinds)} different MPI calls, at most {MOST_NAMES} can be read",
            hint="its events of MPI are damaged: copy the trace again, or merge it again (mpi2prv)",
        )
    sent, received, is_root, communicator = found["arguments"]
    names = tuple(labels.mpi_name(*kind) for kind in kinds)
    to_one = np.isin(names, SENT_TO_ONE)[found["name"][found["call"]]]
    # As much goes to all as comes from all, also in place, where what is sent may be recorded as 0.
    sent = np.where(to_one, np.maximum(sent, received), sent)
    unpaired = (
        (
            "MPI calls without an exit event (assumed to end with the next call or the trace)",
            found["unclosed"],
        ),
        ("MPI exit events without an entry (ignored)", found["orphans"]),
    )
    return CallTable(
        offsets=found["offsets"],
        entry=found["entry"],
        exit=found["exit"],
        name=found["name"],
        names=names,
        group=tuple(MPI_TYPES[type_] for type_, _ in kinds),
        collectives=CollectiveArguments(found["call"], sent, received, communicator, is_root != 0),
        warnings=tuple(TraceWarning(text, number) for text, number in unpaired if number),
    )
