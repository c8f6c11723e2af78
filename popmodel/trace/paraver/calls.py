"""MPI calls of a Paraver trace: entries and exits paired, over all locations at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.trace.blocks import walk, walk_locations
from popmodel.trace.calls import CallTable, CollectiveArguments
from popmodel.trace.event import Event
from popmodel.trace.paraver.events import rows_where_type, rows_where_value
from popmodel.trace.paraver.numbers import (
    MPI_CALLS,
    MPI_TYPES,
    NUMBERS,
    SENT_TO_ONE,
)
from popmodel.trace.records import NamedCall, by_frequency
from popmodel.trace.tables import TraceWarning

if TYPE_CHECKING:
    from collections.abc import Collection

    from popmodel.trace.paraver.labels import Labels
    from popmodel.trace.records import Tally
    from popmodel.trace.tables import EventTable

MOST_NAMES = 1 << 15
"""Names of calls that can be told apart; MPI has less than a thousand."""


_FIRST_ARGUMENT = NUMBERS[Event.BYTES_SENT]
"""Of four consecutive event types: bytes sent and received, whether root, communicator."""
_ROWS = 1 << 18  # events that are paired together


def pair(events: EventTable, labels: Labels, end: int, path: str) -> CallTable:
    """Pair the entry of every MPI call with its exit, and with what it tells of itself.

    Calls do not nest: the event after an entry, on the same location and of any MPI type, is its
    exit. An entry that is followed by another entry ends there, one that is followed by nothing
    ends with the run; an exit that follows no entry is dropped. Both are counted. Arguments of a
    collective stand on the line of the entry event, after it; or, in traces of other writers,
    before it at the same time.
    """
    pairer = _kernel.CallPairer(
        min(MPI_TYPES), max(MPI_TYPES), _FIRST_ARGUMENT, end, len(events.time)
    )
    for locations in walk_locations(
        events.offsets, events.time, events.type, events.value, rows=_ROWS
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
    return CallTable(
        offsets=found["offsets"],
        entry=found["entry"],
        exit=found["exit"],
        name=found["name"],
        names=names,
        group=tuple(MPI_TYPES[type_] for type_, _ in kinds),
        collectives=CollectiveArguments(found["call"], sent, received, communicator, is_root != 0),
        warnings=_warnings(found["unclosed"], found["orphans"]),
    )


def tally(events: EventTable, labels: Labels) -> Tally:
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
    events: EventTable, labels: Labels, end: int, names: Collection[str]
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
    for row in rows_where_value(events, tuple(MPI_TYPES), values).tolist():
        key = int(events.type[row]), int(events.value[row])
        if key in wanted:
            location = int(np.searchsorted(events.offsets, row, side="right")) - 1
            exit_ = _next_time(events, row, int(events.offsets[location + 1]), end)
            found.append(NamedCall(location, wanted[key], int(events.time[row]), exit_))
    return found


def _next_time(events: EventTable, row: int, stop: int, last: int) -> int:
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
