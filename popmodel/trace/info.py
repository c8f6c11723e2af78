"""A summary of a trace: what ``popmodel info`` prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from popmodel.trace.calls import Calls
from popmodel.trace.names import is_counter
from popmodel.trace.regions import parallel_regions
from popmodel.trace.trace import Events, Trace

_BLOCK = 1 << 20
NANOSECONDS = 10**9  # in a second; dividing rounds once


def info(trace: Trace) -> dict[str, Any]:
    """Summarise a trace as plain data; times in seconds."""
    calls = trace.calls()
    types = types_of(trace.events)
    return {
        "trace": trace.path,
        "application": trace.application,
        "applications": trace.applications,
        "processes": trace.processes,
        "threads": threads_of(trace),
        "nodes": len(trace.nodes) or None,
        "runtime": trace.duration / NANOSECONDS,
        "window": {"begin": trace.begin / NANOSECONDS, "end": trace.end / NANOSECONDS},
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


def types_of(events: Events) -> list[int]:
    """Types of the events, ascending, found block by block: the column may be long."""
    found: set[int] = set()
    for begin in range(0, len(events.type), _BLOCK):
        found.update(np.unique(events.type[begin : begin + _BLOCK]).tolist())
    return sorted(found)


def threads_of(trace: Trace) -> int | list[int]:
    """Threads of a process; where processes differ, of each."""
    threads: list[int] = trace.threads.tolist()
    return threads[0] if len(set(threads)) == 1 else threads


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
    """How often each parallel region was entered by the master threads, the most frequent first."""
    regions = parallel_regions(trace)
    numbers = np.bincount(regions.label, minlength=len(regions.names)).tolist()
    counts: dict[str, int] = {}
    for name, number in zip(regions.names, numbers, strict=True):
        counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
