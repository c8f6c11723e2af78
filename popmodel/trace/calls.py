"""MPI calls of a trace: entries and exits paired, over all locations at once."""

from __future__ import annotations

from collections import Counter

import numpy as np

from popmodel.trace.blocks import rows_where_type, take, walk
from popmodel.trace.names import MPI_TYPES
from popmodel.trace.trace import Int64, Trace, TraceWarning, UInt32
from popmodel.values import dataclass


@dataclass(frozen=True, eq=False)
class Calls:
    """MPI calls by location, in order of their entry.

    Attributes
    ----------
    offsets : int64[L + 1]
        Rows of location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    type : uint32[n]
        50000001 to 50000005.
    value : int64[n]
        Which call; `Trace.mpi_name` names it.
    entry, exit : int64[n]
        Nanoseconds.
    row : int64[n]
        Row of the entry in the trace's events: what else the call recorded (sizes, communicator)
        follows it at the same time.
    warnings : tuple of TraceWarning
        Entries without an exit, and exits without an entry.
    """

    offsets: Int64
    type: UInt32
    value: Int64
    entry: Int64
    exit: Int64
    row: Int64
    warnings: tuple[TraceWarning, ...]


def pair(trace: Trace) -> Calls:
    """Pair the entry of every MPI call with its exit.

    Calls do not nest: the event after an entry, on the same location and of any MPI type, is its
    exit. An entry that is followed by another entry ends there, one that is followed by nothing
    ends with the window; an exit that follows no entry is dropped. Both are counted.
    """
    events = trace.events
    rows = rows_where_type(events.type, tuple(MPI_TYPES))
    value = take(events.value, rows)
    time = take(events.time, rows)
    offsets = np.searchsorted(rows, events.offsets)
    last = np.zeros(len(rows), bool)  # of its location
    last[offsets[1:][np.diff(offsets) > 0] - 1] = True

    is_entry = value != 0
    entries = np.flatnonzero(is_entry)
    following = np.minimum(entries + 1, len(rows) - 1)
    ends_open = last[entries]
    exit_ = np.where(ends_open, trace.end, time[following])
    unclosed = int(np.count_nonzero(ends_open | is_entry[following]))
    orphans = int(np.count_nonzero(~is_entry)) - (len(entries) - unclosed)
    return Calls(
        offsets=np.searchsorted(rows[entries], events.offsets),
        type=take(events.type, rows[entries]),
        value=value[entries],
        entry=time[entries],
        exit=exit_,
        row=rows[entries],
        warnings=tuple(_warnings(unclosed, orphans)),
    )


def tally(trace: Trace) -> tuple[dict[str, int], list[TraceWarning]]:
    """Count the MPI calls of a trace by name, the most frequent first, without holding them.

    Returns
    -------
    counts : dict of str to int
    warnings : list of TraceWarning
        As `pair` gives them.
    """
    events = trace.events
    counts: Counter[tuple[int, int]] = Counter()
    entries = exits = closed = 0
    location, open_ = -1, False  # of the last event of MPI
    for block in walk(events.type, events.value):
        rows = rows_where_type(events.type[block], tuple(MPI_TYPES)) + block.start
        if not len(rows):
            continue
        value = events.value[rows]
        here = np.searchsorted(events.offsets, rows, side="right")
        is_entry = value != 0
        opened = np.append(open_, is_entry[:-1]) & (here == np.append(location, here[:-1]))
        closed += int(np.count_nonzero(~is_entry & opened))
        entries += int(np.count_nonzero(is_entry))
        exits += int(np.count_nonzero(~is_entry))
        location, open_ = int(here[-1]), bool(is_entry[-1])
        entered = rows[is_entry]
        types, values = events.type[entered], events.value[entered]
        for type_ in MPI_TYPES:
            distinct, numbers = np.unique(values[types == type_], return_counts=True)
            for each, number in zip(distinct.tolist(), numbers.tolist(), strict=True):
                counts[type_, each] += number
    names: Counter[str] = Counter()
    for (type_, each), number in counts.items():
        names[trace.mpi_name(type_, each)] += number
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered), _warnings(entries - closed, exits - closed)


def _warnings(unclosed: int, orphans: int) -> list[TraceWarning]:
    found = []
    if unclosed:
        found.append(
            TraceWarning(
                "MPI calls without an exit event (assumed to end with the next call or the trace)",
                unclosed,
            )
        )
    if orphans:
        found.append(TraceWarning("MPI exit events without an entry (ignored)", orphans))
    return found
