"""Cuts a trace to one window, by looking at all events for each of its edges."""

import dataclasses

import numpy as np

from popmodel.traces.paraver.event_tables import ParaverRecords
from popmodel.traces.paraver.numbers import COUNTER_RANGE, MPI_TYPES, OPENMP_TYPES
from popmodel.traces.recorded_run import Trace
from popmodel.traces.tables import (
    EventTable,
    Int64,
    MessageTable,
    States,
    UInt32,
    location_of_row,
    offsets_of,
)

_SPANNING = np.array(sorted({*MPI_TYPES, *OPENMP_TYPES}), np.uint32)


def cut(trace: Trace, begin: int, end: int) -> Trace:
    """The part of a trace between two times that lie inside it."""
    return dataclasses.replace(
        trace,
        begin=begin,
        end=end,
        records=ParaverRecords(
            _states(trace.states, begin, end),
            _some_events(trace.records.events, begin, end),
            _messages(trace.messages, begin, end),
            trace.records.labels,
            end,
            trace.path,
        ),
        _derived={},
    )


def _recount(offsets: Int64, kept: np.ndarray) -> Int64:
    """Offsets of the rows that are kept, by location."""
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    return before[offsets]


def _states(states: States, begin: int, end: int) -> States:
    kept = (states.end > begin) & (states.begin < end)
    return States(
        _recount(states.offsets, kept),
        np.clip(states.begin[kept], begin, end),
        np.clip(states.end[kept], begin, end),
        states.state[kept],
    )


def _messages(messages: MessageTable, begin: int, end: int) -> MessageTable:
    times = (
        messages.logical_send,
        messages.physical_send,
        messages.logical_receive,
        messages.physical_receive,
    )
    kept = np.zeros(len(messages.size), bool)
    for time in times:
        kept |= (time >= begin) & (time <= end)
    columns = {
        field.name: getattr(messages, field.name)[kept]
        for field in dataclasses.fields(MessageTable)
        if field.name != "offsets"
    }
    return MessageTable(_recount(messages.offsets, kept), **columns)


def _some_events(events: EventTable, begin: int, end: int) -> EventTable:
    spanning = np.isin(events.type, _SPANNING)
    counter = (events.type >= COUNTER_RANGE.start) & (events.type < COUNTER_RANGE.stop)
    lines = _Lines(events, np.flatnonzero(spanning | counter))
    value = events.value

    # Each of these has, for every location and type, one row of the events, or -1.
    before = lines.last(events.time < begin)
    until = lines.last(events.time <= end)
    after = lines.first(events.time > begin)
    beyond = lines.first(events.time > end)
    at_begin = lines.first(events.time == begin)

    # Counters over the first edge: nothing counted there yet, the next reading loses its part.
    over = counter[before] & (before >= 0) & (after >= 0) & (at_begin < 0)
    left, right = before[over], after[over]
    share = (events.time[right] - begin) / (events.time[right] - events.time[left])
    scaled = value.copy()
    scaled[right] = np.rint(value[right] * share).astype(np.int64)
    # Counters over the second edge: the next reading's part up to there.
    over_end = counter[until] & (until >= 0) & (beyond >= 0)
    over_end &= events.time[until] < end
    first, last = until[over_end], beyond[over_end]
    counted = (end - np.maximum(events.time[first], begin)) / (
        events.time[last] - events.time[first]
    )
    reading = np.rint(value[last] * counted).astype(np.int64)

    opened = before[(before >= 0) & spanning[before] & (value[before] != 0)]
    closed = until[(until >= 0) & spanning[until] & (value[until] != 0)]
    inside = np.flatnonzero((events.time >= begin) & (events.time <= end))
    entering = np.sort(np.concatenate([opened, left]))
    return _joined(
        events.offsets,
        (entering, begin, np.where(spanning[entering], value[entering], 0)),
        (inside, events.time[inside], scaled[inside]),
        (first, end, reading),
        (np.sort(closed), end, np.zeros(len(closed), np.int64)),
        types=events.type,
    )


class _Lines:
    """The events of one type on one location, for every type and location that matters."""

    def __init__(self, events: EventTable, rows: Int64) -> None:
        types, index = np.unique(events.type[rows], return_inverse=True)
        self._rows = rows
        self._line = location_of_row(events.offsets)[rows].astype(np.int64) * len(types) + index
        self._count = (len(events.offsets) - 1) * len(types)

    def last(self, which: np.ndarray) -> Int64:
        """Row of the last event of each line among those chosen, or -1."""
        chosen = which[self._rows]
        found = np.full(self._count, -1, np.int64)
        found[self._line[chosen]] = self._rows[chosen]  # of equal indices the last assignment stays
        return found

    def first(self, which: np.ndarray) -> Int64:
        """Row of the first event of each line among those chosen, or -1."""
        chosen = which[self._rows]
        found = np.full(self._count, -1, np.int64)
        found[self._line[chosen][::-1]] = self._rows[chosen][::-1]
        return found


def _joined(
    offsets: Int64,
    *parts: tuple[Int64, int | Int64, Int64],
    types: UInt32,
) -> EventTable:
    """Join groups of events, given by the rows they come from, their times and their values.

    On each location the groups follow one another in the order given.
    """
    rows = np.concatenate([part[0] for part in parts])
    location = location_of_row(offsets)[rows]
    order = np.argsort(location, kind="stable")
    time = np.concatenate([np.broadcast_to(part[1], part[0].shape) for part in parts])
    value = np.concatenate([part[2] for part in parts])
    return EventTable(
        offsets_of(np.bincount(location, minlength=len(offsets) - 1)),
        time[order],
        types[rows][order],
        value[order],
    )
