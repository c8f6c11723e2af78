"""A summary of a trace: what ``popmodel info`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from popmodel.arrays import distinct
from popmodel.errors import TraceError
from popmodel.trace import focus
from popmodel.trace.blocks import walk
from popmodel.trace.calls import tally
from popmodel.trace.left_out import left_out
from popmodel.trace.losses import describe, losses
from popmodel.trace.names import is_counter
from popmodel.trace.processors import crowding
from popmodel.trace.regions import parallel_regions
from popmodel.trace.runtime import longest, state_times
from popmodel.trace.trace import Events, Trace, TraceWarning

NANOSECONDS = 10**9  # in a second; dividing rounds once


def info(trace: Trace) -> dict[str, Any]:
    """Summarise a trace as plain data; times in seconds.

    The runtime is that of the whole trace (`popmodel.trace.runtime`), None where the states give
    none, which is a warning then; the duration is that of the header or the window. What is
    analysed by default (`popmodel.trace.focus`) is told beside them.
    """
    calls, warnings = tally(trace)
    runtime = None
    try:
        runtime = longest(trace, *state_times(trace)) / NANOSECONDS
    except TraceError as error:
        problem = error.message.removeprefix(f"{trace.path}: ")
        warnings.append(TraceWarning(f"no runtime: {problem}"))
    types = types_of(trace.events)
    return {
        "trace": trace.path,
        "application": trace.application,
        "applications": trace.applications,
        "processes": trace.processes,
        "threads": threads_of(trace),
        "nodes": len(trace.nodes) or None,
        "runtime": runtime,
        "duration": trace.duration / NANOSECONDS,
        "window": {"begin": trace.begin / NANOSECONDS, "end": trace.end / NANOSECONDS},
        "analysed": focus.find(trace).to_dict(),
        "caveats": [
            *([describe(lost)] if (lost := losses(trace)) else []),
            *crowding(trace),
            *left_out(trace),
        ],
        "records": {
            "states": len(trace.states.begin),
            "events": len(trace.events.time),
            "messages": len(trace.messages.size),
            "communicators": len(trace.communicators),
        },
        "calls": calls,
        "regions": regions_by_name(trace),
        "counters": [trace.labels.event_type(type_) for type_ in types if is_counter(type_)],
        "warnings": as_data((*trace.warnings, *warnings)),
    }


def as_data(warnings: Iterable[TraceWarning]) -> list[dict[str, Any]]:
    """Warnings as plain data: text, count, and line or None."""
    return [{"text": each.text, "count": each.count, "line": each.first_line} for each in warnings]


def types_of(events: Events) -> list[int]:
    """Types of the events, ascending."""
    found: set[int] = set()
    for block in walk(events.type):
        found.update(distinct(events.type[block]).tolist())
    return sorted(found)


def threads_of(trace: Trace) -> int | list[int]:
    """Threads of a process; where processes differ, of each."""
    threads: list[int] = trace.threads.tolist()
    return threads[0] if len(set(threads)) == 1 else threads


def regions_by_name(trace: Trace) -> dict[str, int]:
    """How often each parallel region was entered by the master threads, the most frequent first."""
    regions = parallel_regions(trace)
    numbers = np.bincount(regions.label, minlength=len(regions.names)).tolist()
    counts: dict[str, int] = {}
    for name, number in zip(regions.names, numbers, strict=True):
        counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
