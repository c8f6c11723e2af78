"""MPI calls of a trace: entries and exits paired, over all locations at once."""

from __future__ import annotations

from collections import Counter
from enum import Enum

import numpy as np
import numpy.typing as npt

from popmodel.errors import TraceError
from popmodel.trace.blocks import rows_where_type, take, walk
from popmodel.trace.names import (
    BYTES_RECEIVED,
    BYTES_SENT,
    COMMUNICATOR,
    IS_ROOT,
    MPI_TYPES,
)
from popmodel.trace.trace import Int64, Trace, TraceWarning, UInt32, part_of
from popmodel.values import dataclass

MOST_NAMES = 1 << 15
_SMALL = 1 << 16  # values up to which a table is quicker than to sort


class CallGroup(Enum):
    """What a call of MPI is about."""

    POINT_TO_POINT = "MPI point to point"
    COLLECTIVE = "MPI collective"
    OTHER = "MPI other"
    ONE_SIDED = "MPI one-sided"
    IO = "MPI I/O"


@dataclass(frozen=True, eq=False)
class CollectiveArguments:
    """What calls of collectives tell of themselves.

    Attributes
    ----------
    call : int64[c]
        Rows of `Calls`, ascending; only those of which the trace tells anything.
    sent, received : int64[c]
        Bytes that the caller sends and receives.
    communicator : int64[c]
        Its number in `Trace.communicators`; 0 where it is not told.
    is_root : bool[c]
    """

    call: Int64
    sent: Int64
    received: Int64
    communicator: Int64
    is_root: npt.NDArray[np.bool_]


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
    name : int16[n]
        Index into `names` and `group`.
    names : tuple of str
        Such as ``MPI_Send``.
    group : tuple of CallGroup
        Of each name.
    collectives : CollectiveArguments
    warnings : tuple of TraceWarning
        Entries without an exit, and exits without an entry.
    """

    offsets: Int64
    type: UInt32
    value: Int64
    entry: Int64
    exit: Int64
    row: Int64
    name: npt.NDArray[np.int16]
    names: tuple[str, ...]
    group: tuple[CallGroup, ...]
    collectives: CollectiveArguments
    warnings: tuple[TraceWarning, ...]

    def __len__(self) -> int:
        return len(self.entry)


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
    type_, value, entry = take(events.type, rows[entries]), value[entries], time[entries]
    kinds, name = _numbered(trace, type_, value)
    offsets = np.searchsorted(rows[entries], events.offsets)
    return Calls(
        offsets=offsets,
        type=type_,
        value=value,
        entry=entry,
        exit=exit_,
        row=rows[entries],
        name=name,
        names=tuple(trace.mpi_name(*kind) for kind in kinds),
        group=tuple(CallGroup(MPI_TYPES[type_]) for type_, _ in kinds),
        collectives=_arguments(trace, offsets, entry, rows[entries]),
        warnings=tuple(_warnings(unclosed, orphans)),
    )


def _numbered(
    trace: Trace, types: UInt32, value: Int64
) -> tuple[list[tuple[int, int]], npt.NDArray[np.int16]]:
    """Distinct pairs of type and value, in order, and the number of each row's pair."""
    if value.min(initial=0) >= 0 and value.max(initial=0) < _SMALL:
        values, index = np.arange(value.max(initial=0) + 1), value
    else:
        values, index = np.unique(value, return_inverse=True)
    first = min(MPI_TYPES)
    key = (types.astype(np.int64) - first) * len(values) + index
    seen = np.bincount(key, minlength=1) > 0
    if not len(key):
        return [], np.empty(0, np.int16)
    kinds = [
        (first + i // len(values), int(values[i % len(values)]))
        for i in np.flatnonzero(seen).tolist()
    ]
    if len(kinds) > MOST_NAMES:
        raise TraceError(
            trace.path,
            f"has {len(kinds)} different MPI calls, at most {MOST_NAMES} can be read",
            hint="its events of MPI are damaged: copy the trace again, or merge it again (mpi2prv)",
        )
    return kinds, (np.cumsum(seen) - 1).astype(np.int16)[key]


def _arguments(trace: Trace, offsets: Int64, entry: Int64, row: Int64) -> CollectiveArguments:
    """Arguments of collectives, by the offsets, the entries and the rows of all calls.

    They stand on the line of the entry event, after it; or, in traces of other writers, before it
    at the same time.
    """
    events = trace.events
    rows = rows_where_type(events.type, (BYTES_SENT, BYTES_RECEIVED, IS_ROOT, COMMUNICATOR))
    if not len(entry):
        rows = rows[:0]
    location, time = part_of(events.offsets, rows), take(events.time, rows)

    def belongs(call: Int64) -> npt.NDArray[np.bool_]:
        same: npt.NDArray[np.bool_] = entry[call] == time
        same &= (offsets[location] <= call) & (call < offsets[location + 1])
        return same

    before = np.maximum(np.searchsorted(row, rows, side="right") - 1, 0)
    call = np.where(belongs(before), before, np.minimum(before + 1, len(entry) - 1))
    fits = np.flatnonzero(belongs(call))
    call, rows = call[fits], rows[fits]
    type_, value = take(events.type, rows), take(events.value, rows)
    last = np.ones(len(call), bool)
    last[:-1] = call[1:] != call[:-1]
    calls = call[last]
    found = np.zeros((4, len(calls)), np.int64)
    found[type_.astype(np.int64) - BYTES_SENT, np.cumsum(last) - last] = value
    return CollectiveArguments(calls, found[0], found[1], found[3], found[2] != 0)


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
