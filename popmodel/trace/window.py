"""Cuts a trace to a window of time."""

from __future__ import annotations

import dataclasses

import numpy as np

from popmodel.errors import UsageError
from popmodel.trace.columns import offsets_of
from popmodel.trace.names import COUNTER_RANGE, MPI_TYPES, OPENMP_TYPES
from popmodel.trace.trace import (
    Events,
    Int64,
    Messages,
    States,
    Trace,
    UInt32,
    location_of_row,
)

_SPANNING = np.array(sorted({*MPI_TYPES, *OPENMP_TYPES}), np.uint32)


def cut(trace: Trace, begin: int, end: int) -> Trace:
    """Return the part of a trace between two times.

    States are clipped; those that would be empty are left out. Events inside are kept, both edges
    included. A call, a region or another thing of MPI or OpenMP that is open at `begin` is opened
    there, and one that is open at `end` is closed there. The first reading of a counter after
    `begin` counts since a reading before it: it is scaled by the part of that time which lies
    inside, as if the count had risen evenly. Messages are kept when one of their times lies
    inside.

    Cutting twice gives the same as cutting once to the common part, apart from the rounding of
    counters.

    Parameters
    ----------
    begin, end : int
        Nanoseconds, within the window that the trace has.

    Raises
    ------
    UsageError
        `end` is not after `begin`, or nothing of the window lies in the trace.
    """
    if not begin < end:
        raise UsageError(
            f"a window must end after it begins, not from {begin} ns to {end} ns",
            "give the earlier time first",
        )
    if end <= trace.begin or begin >= trace.end:
        raise UsageError(
            f"{trace.path}: nothing lies between {begin} ns and {end} ns",
            f"the trace covers {trace.begin} ns to {trace.end} ns",
        )
    begin, end = max(begin, trace.begin), min(end, trace.end)
    return dataclasses.replace(
        trace,
        begin=begin,
        end=end,
        states=_states(trace.states, begin, end),
        events=_events(trace, begin, end),
        messages=_messages(trace.messages, begin, end),
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


def _messages(messages: Messages, begin: int, end: int) -> Messages:
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
        for field in dataclasses.fields(Messages)
        if field.name != "offsets"
    }
    return Messages(_recount(messages.offsets, kept), **columns)


def _events(trace: Trace, begin: int, end: int) -> Events:
    events = trace.events
    location = location_of_row(events.offsets)
    inside = (events.time >= begin) & (events.time <= end)
    value = _scaled_counters(events, location, inside, begin)

    opened = _open_after(events, location, events.time < begin)
    closed = _open_after(events, location, events.time <= end)
    row_location = np.concatenate([opened.location, location[inside], closed.location])
    order = np.argsort(row_location, kind="stable")
    return Events(
        offsets_of(np.bincount(row_location, minlength=trace.locations)),
        np.concatenate(
            [
                np.full(len(opened.type), begin, np.int64),
                events.time[inside],
                np.full(len(closed.type), end, np.int64),
            ]
        )[order],
        np.concatenate([opened.type, events.type[inside], closed.type])[order],
        np.concatenate([opened.value, value[inside], np.zeros(len(closed.type), np.int64)])[order],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Open:
    """What is open on some locations, in the order in which it was opened."""

    location: np.ndarray
    type: UInt32
    value: Int64


def _open_after(events: Events, location: np.ndarray, passed: np.ndarray) -> _Open:
    """Find the types whose latest value, among the events passed, is not 0."""
    rows = np.flatnonzero(passed & np.isin(events.type, _SPANNING))
    # The last row of each location and type: sort by both, keeping the order of the rows.
    order = np.lexsort((events.type[rows], location[rows]))
    rows = rows[order]
    last = np.ones(len(rows), bool)
    last[:-1] = (np.diff(location[rows]) != 0) | (np.diff(events.type[rows].astype(np.int64)) != 0)
    rows = np.sort(rows[last & (events.value[rows] != 0)])
    return _Open(location[rows], events.type[rows], events.value[rows])


def _scaled_counters(events: Events, location: np.ndarray, inside: np.ndarray, begin: int) -> Int64:
    """Values of all events, the first reading inside of each counter scaled to its part inside."""
    counter = (events.type >= COUNTER_RANGE.start) & (events.type < COUNTER_RANGE.stop)
    rows = np.flatnonzero(counter)
    order = np.lexsort((events.type[rows], location[rows]))
    rows = rows[order]
    if not len(rows):
        return events.value
    same = (np.diff(location[rows]) == 0) & (np.diff(events.type[rows].astype(np.int64)) == 0)
    before, after = rows[:-1][same], rows[1:][same]
    straddles = (events.time[before] < begin) & (events.time[after] > begin)
    before, after = before[straddles], after[straddles]
    share = (events.time[after] - begin) / (events.time[after] - events.time[before])
    value = events.value.copy()
    value[after] = np.rint(value[after] * share).astype(np.int64)
    return value
