"""A summary of a trace: what ``popmodel info`` prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from popmodel.trace.calls import Calls
from popmodel.trace.names import OUTLINED, PARALLEL, is_counter
from popmodel.trace.trace import Trace, location_of_row

NANOSECOND = 1e-9


def info(trace: Trace) -> dict[str, Any]:
    """Summarise a trace as plain data; times in seconds."""
    calls = trace.calls()
    types = np.unique(trace.events.type).tolist()
    return {
        "trace": trace.path,
        "application": trace.application,
        "applications": trace.applications,
        "processes": trace.processes,
        "threads": trace.threads.tolist(),
        "nodes": len(trace.nodes) or None,
        "runtime": trace.duration * NANOSECOND,
        "window": {"begin": trace.begin * NANOSECOND, "end": trace.end * NANOSECOND},
        "records": {
            "states": len(trace.states.begin),
            "events": len(trace.events.time),
            "messages": len(trace.messages.size),
            "communicators": len(trace.communicators),
        },
        "calls": calls_by_name(trace, calls),
        "regions": regions_by_name(trace),
        "counters": [trace.labels.event_type(type_) for type_ in types if is_counter(type_)],
        "warnings": [
            {"text": each.text, "count": each.count, "line": each.first_line}
            for each in (*trace.warnings, *calls.warnings)
        ],
    }


def calls_by_name(trace: Trace, calls: Calls) -> dict[str, int]:
    """How often each MPI call was made, the most frequent first."""
    counts: dict[str, int] = {}
    for type_ in np.unique(calls.type).tolist():
        values, numbers = np.unique(calls.value[calls.type == type_], return_counts=True)
        for value, number in zip(values.tolist(), numbers.tolist(), strict=True):
            name = trace.mpi_name(type_, value)
            counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def regions_by_name(trace: Trace) -> dict[str, int]:
    """How often each parallel region was entered by the master threads, by its function's name.

    The function is the outlined one that the master executes inside the region; a region in which
    it executes none counts under the name of its construct.
    """
    events = trace.events
    rows = np.flatnonzero((events.type == PARALLEL) | (events.type == OUTLINED))
    master = np.zeros(trace.locations, bool)
    master[trace.process_offsets[:-1]] = True
    location = location_of_row(events.offsets)[rows]
    rows, location = rows[master[location]], location[master[location]]
    type_, value = events.type[rows], events.value[rows]
    opens = (type_ == PARALLEL) & (value != 0)
    entries = np.flatnonzero(opens)
    after = np.minimum(entries + 1, max(len(rows) - 1, 0))
    named = (
        (type_[after] == OUTLINED)
        & (value[after] != 0)
        & (location[after] == location[entries])
        & (after != entries)
    )
    counts: dict[str, int] = {}
    for types, values in (
        (OUTLINED, value[after[named]]),
        (PARALLEL, value[entries[~named]]),
    ):
        found, numbers = np.unique(values, return_counts=True)
        for each, number in zip(found.tolist(), numbers.tolist(), strict=True):
            name = trace.labels.event_value(types, each)
            counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
