"""MPI calls of a trace: entries and exits paired, over all locations at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popmodel.trace.names import MPI_TYPES
from popmodel.trace.trace import Int64, Trace, TraceWarning, UInt32, location_of_row

_FIRST = min(MPI_TYPES)
_COUNT = len(MPI_TYPES)
_BLOCK = 1 << 20


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
    rows = rows_of_mpi(events.type)
    value = events.value[rows]
    time = events.time[rows]
    offsets = np.searchsorted(rows, events.offsets)
    last = np.zeros(len(rows), bool)  # of its location
    last[offsets[1:][np.diff(offsets) > 0] - 1] = True

    is_entry = value != 0
    entries = np.flatnonzero(is_entry)
    following = np.minimum(entries + 1, len(rows) - 1)
    ends_open = last[entries]
    exit_ = np.where(ends_open, trace.end, time[following])
    unclosed = int(np.count_nonzero(ends_open | is_entry[following]))
    orphans = np.count_nonzero(~is_entry) - (len(entries) - unclosed)
    warnings = []
    if unclosed:
        warnings.append(
            TraceWarning("MPI calls without an exit, ended at the next call or the end", unclosed)
        )
    if orphans:
        warnings.append(TraceWarning("exits from MPI without an entry, left out", int(orphans)))
    return Calls(
        offsets=np.searchsorted(rows[entries], events.offsets),
        type=events.type[rows[entries]],
        value=value[entries],
        entry=time[entries],
        exit=exit_,
        row=rows[entries],
        warnings=tuple(warnings),
    )


def rows_of_mpi(types: UInt32) -> Int64:
    """Rows of the events of MPI, found block by block: the column may be longer than memory."""
    blocks = [np.empty(0, np.int64)]
    for begin in range(0, len(types), _BLOCK):
        of_mpi = types[begin : begin + _BLOCK] - np.uint32(_FIRST) < _COUNT
        blocks.append(np.flatnonzero(of_mpi) + begin)
    return np.concatenate(blocks)


def location_of_call(calls: Calls) -> np.ndarray:
    """Location of each call: int32[n]."""
    return location_of_row(calls.offsets)
