"""A summary of a trace: what ``popmodel inspect --show info`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from popmodel.base.arrays import distinct
from popmodel.base.errors import TraceError
from popmodel.traces.calls import calls_made
from popmodel.traces.caveats import (
    contradictions,
    crowding,
    describe_losses,
    devices,
    left_out,
    losses,
    untraced,
)
from popmodel.traces.recorded_run import Trace
from popmodel.traces.regions import parallel_regions, user_regions
from popmodel.traces.runtime import longest, state_times
from popmodel.traces.selection import PROGRAM, TracePart, focused
from popmodel.traces.tables import Int64, TraceWarning

NANOSECONDS = 10**9  # in a second; dividing rounds once


def info(trace: Trace, part: TracePart = PROGRAM) -> dict[str, Any]:
    """Summarise a trace as plain data; times in seconds.

    The runtime is that of the states (`popmodel.traces.runtime`), None where they give none, which
    is a warning then, and where no times were measured; the duration is that of the header or the
    part, of a trace without measured times the longest computation of a process.
    """
    chosen, analysed = focused(trace, part)
    if part == PROGRAM:
        said = tuple(describe_losses(lost) for lost in [losses(trace)] if lost)
    else:
        trace, said = chosen, analysed.caveats
    calls = sorted(calls_made(trace).items(), key=lambda item: (-item[1], item[0]))
    warnings = trace.call_warnings()
    runtime = None
    try:
        if trace.timed:
            runtime = longest(trace, *state_times(trace)) / NANOSECONDS
    except TraceError as error:
        problem = error.message.removeprefix(f"{trace.path}: ")
        warnings = (*warnings, TraceWarning(f"no runtime: {problem}"))
    sizes, threads = _sent(trace), trace.threads.tolist()
    return {
        "trace": trace.path,
        "application": trace.application,
        "applications": trace.applications,
        "processes": trace.processes,
        "threads": threads[0] if len(set(threads)) == 1 else threads,
        "nodes": len(trace.nodes) or None,
        "timed": trace.timed,
        "runtime": runtime,
        "duration": trace.duration / NANOSECONDS,
        "origin": trace.origin,
        "window": {"begin": trace.begin / NANOSECONDS, "end": trace.end / NANOSECONDS},
        "analysed": analysed.to_dict(),
        "caveats": [
            *contradictions(chosen),
            *devices(trace),
            *said,
            *crowding(trace),
            *untraced(trace),
            *left_out(trace),
        ],
        "records": {
            "states": len(trace.states.begin),
            "events": len(trace.records.events.time),
            "messages": len(sizes),
            "communicators": len(trace.communicators),
        },
        "message_sizes": message_sizes(sizes),
        "calls": dict(calls),
        "regions": regions_by_name(trace),
        "user_regions": marked_regions(trace),
        "counters": trace.records.counter_names(),
        **({"devices": trace.devices.contents()} if trace.devices.names else {}),
        "warnings": as_data((*warnings, *trace.warnings)),
    }


def as_data(warnings: Iterable[TraceWarning]) -> list[dict[str, Any]]:
    """Warnings as plain data: text, count, and line or None."""
    return [{"text": each.text, "count": each.count, "line": each.first_line} for each in warnings]


def _sent(trace: Trace) -> Int64:
    """Bytes of each point-to-point message: of the records, or of the calls that send."""
    calls = trace.calls() if not trace.timed else None
    if calls is None or calls.bytes is None:
        return trace.messages.size
    sends = [number for number, name in enumerate(calls.names) if name.endswith("send")]
    sent: Int64 = calls.bytes[np.isin(calls.name, sends)]
    return sent


def message_sizes(sizes: Int64) -> dict[str, float] | None:
    """Least, mean, most and all bytes of point-to-point messages; None without any."""
    if not len(sizes):
        return None
    total = int(sizes.sum(dtype=np.float64))
    return {
        "min": int(sizes.min()),
        "mean": total / len(sizes),
        "max": int(sizes.max()),
        "total": total,
    }


def regions_by_name(trace: Trace) -> dict[str, int]:
    """How often each parallel region was entered by the master threads, the most frequent first."""
    regions = parallel_regions(trace)
    numbers = np.bincount(regions.label, minlength=len(regions.names)).tolist()
    counts: dict[str, int] = {}
    for name, number in zip(regions.names, numbers, strict=True):
        counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def marked_regions(trace: Trace) -> dict[str, dict[str, Any]]:
    """Regions that the user has marked, those with most time first."""
    found = user_regions(trace)
    process = trace.process_of_location()
    regions: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(found.names):
        mine = found.label == number
        location, length = found.location[mine], (found.end - found.begin)[mine]
        if not len(location):
            continue  # not in this part of the run
        entered = distinct(process[location])
        times = np.bincount(process[location], length)[entered] / NANOSECONDS
        regions[name] = {
            "occurrences": len(location),
            "processes": len(entered),
            "threads": len(distinct(location)),
            "time": int(length.sum()) / NANOSECONDS,
            "time_per_process": {"min": float(times.min()), "max": float(times.max())},
        }
    return dict(sorted(regions.items(), key=lambda item: (-item[1]["time"], item[0])))
