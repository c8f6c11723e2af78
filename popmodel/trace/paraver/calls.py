"""MPI calls of a Paraver trace: entries and exits paired, over all locations at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import TraceError
from popmodel.trace.blocks import walk
from popmodel.trace.calls import Calls, CollectiveArguments
from popmodel.trace.event import Event
from popmodel.trace.paraver.events import numbered, rows_where_type, select
from popmodel.trace.paraver.numbers import (
    MPI_CALLS,
    MPI_TYPES,
    NUMBERS,
)
from popmodel.trace.records import NamedCall, by_frequency
from popmodel.trace.tables import TraceWarning, part_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from popmodel.trace.paraver.events import Selected
    from popmodel.trace.paraver.labels import Labels
    from popmodel.trace.records import Tally
    from popmodel.trace.tables import Events, Int64

__all__ = ["named_calls", "pair", "tally"]

MOST_NAMES = 1 << 15
"""Names of calls that can be told apart; MPI has less than a thousand."""


_ARGUMENTS = tuple(
    NUMBERS[event]
    for event in (Event.BYTES_SENT, Event.BYTES_RECEIVED, Event.IS_ROOT, Event.COMMUNICATOR)
)  # consecutive numbers


def pair(events: Events, labels: Labels, end: int, path: str) -> Calls:
    """Pair the entry of every MPI call with its exit.

    Calls do not nest: the event after an entry, on the same location and of any MPI type, is its
    exit. An entry that is followed by another entry ends there, one that is followed by nothing
    ends with the run; an exit that follows no entry is dropped. Both are counted.

    Parameters
    ----------
    events, labels
        Of the trace.
    end : int
        Of the run, ns.
    path : str
        Of the trace, for errors.

    Raises
    ------
    TraceError
        If there are more names of calls than can be told apart.
    """
    found = select(events, (*MPI_TYPES, *_ARGUMENTS))
    of_mpi = found.type <= max(MPI_TYPES)
    rows = np.flatnonzero(of_mpi)
    value, time = found.value[rows], found.time[rows]
    last = np.zeros(len(rows), bool)  # of its location
    edges = np.searchsorted(rows, found.offsets)
    last[edges[1:][np.diff(edges) > 0] - 1] = True

    is_entry = value != 0
    entries = np.flatnonzero(is_entry)
    following = np.minimum(entries + 1, len(rows) - 1)
    exit_ = time[following]
    exit_[last[entries]] = end
    unclosed = int(np.count_nonzero(last[entries] | is_entry[following]))
    orphans = len(rows) - len(entries) - (len(entries) - unclosed)
    rows, entry = rows[entries], time[entries]
    offsets = np.searchsorted(rows, found.offsets)
    kinds, name = numbered(found.type[rows], value[entries])
    if len(kinds) > MOST_NAMES:
        raise TraceError(
            path,
            f"has {len(kinds)} different MPI calls, at most {MOST_NAMES} can be read",
            hint="its events of MPI are damaged: copy the trace again, or merge it again (mpi2prv)",
        )
    return Calls(
        offsets=offsets,
        entry=entry,
        exit=exit_,
        name=name.astype(np.int16),
        names=tuple(labels.mpi_name(*kind) for kind in kinds),
        group=tuple(MPI_TYPES[type_] for type_, _ in kinds),
        collectives=_arguments(found, np.flatnonzero(~of_mpi), offsets, entry, rows),
        warnings=_warnings(unclosed, orphans),
    )


def _arguments(
    found: Selected, rows: Int64, offsets: Int64, entry: Int64, row: Int64
) -> CollectiveArguments:
    """Arguments of collectives.

    They stand on the line of the entry event, after it; or, in traces of other writers, before it
    at the same time.

    Parameters
    ----------
    found : Selected
        Events of calls and their arguments.
    rows : int64[n]
        Rows of it with arguments.
    offsets, entry : int64[L + 1], int64[K]
        Of the calls.
    row : int64[K]
        Rows of it with the entries of calls.
    """
    if not len(entry):
        return CollectiveArguments.none()
    location, time = part_of(found.offsets, rows), found.time[rows]

    def belongs(call: Int64) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = entry[call] == time
        same &= (offsets[location] <= call) & (call < offsets[location + 1])
        return same

    before = np.maximum(np.searchsorted(row, rows, side="right") - 1, 0)
    call = np.where(belongs(before), before, np.minimum(before + 1, len(entry) - 1))
    fits = np.flatnonzero(belongs(call))
    call, rows = call[fits], rows[fits]
    last = np.append(call[1:] != call[:-1], True)[: len(call)]
    told = np.zeros((4, np.count_nonzero(last)), np.int64)
    told[found.type[rows] - np.uint32(_ARGUMENTS[0]), np.cumsum(last) - last] = found.value[rows]
    sent, received, is_root, communicator = told
    return CollectiveArguments(call[last], sent, received, communicator, is_root != 0)


def tally(events: Events, labels: Labels) -> Tally:
    """Count the MPI calls of a trace by name, the most frequent first, without holding them."""
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
    named = ((labels.mpi_name(*kind), number) for kind, number in counts.items())
    return by_frequency(named), _warnings(entries - closed, exits - closed)


def named_calls(
    events: Events, labels: Labels, end: int, names: Collection[str]
) -> list[NamedCall]:
    """Calls of a few names, without holding all; what is still open ends at `end`, ns."""
    wanted = {
        (type_, value): name
        for type_ in MPI_TYPES
        for value in {*MPI_CALLS, *labels.event_values.get(type_, ())}
        if (name := labels.mpi_name(type_, value)) in names
    }
    values = sorted({value for _, value in wanted})
    found = []
    for block in walk(events.type, events.value):
        near = rows_where_type(events.type[block], tuple(MPI_TYPES))
        near = near[np.isin(events.value[block][near], values)] + block.start
        for row in near.tolist():
            key = int(events.type[row]), int(events.value[row])
            if key in wanted:
                location = int(np.searchsorted(events.offsets, row, side="right")) - 1
                exit_ = _next_time(events, row, int(events.offsets[location + 1]), end)
                found.append(NamedCall(location, wanted[key], int(events.time[row]), exit_))
    return found


def _next_time(events: Events, row: int, stop: int, last: int) -> int:
    """Time of a thread's next event of MPI, which is the exit of the call; else the end."""
    begin, length = row + 1, 64
    while begin < stop:
        end = min(begin + length, stop)
        found = rows_where_type(events.type[begin:end], tuple(MPI_TYPES))
        if len(found):
            return int(events.time[begin + found[0]])
        begin, length = end, 4 * length
    return last


def _warnings(unclosed: int, orphans: int) -> tuple[TraceWarning, ...]:
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
    return tuple(found)
