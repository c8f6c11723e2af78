"""What has to be known of a run before its numbers are read, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.trace.calls import call_times
from popmodel.trace.left_out import left_out
from popmodel.trace.losses import losses
from popmodel.trace.processors import crowding
from popmodel.trace.regions import parallel_regions
from popmodel.trace.runtime import state_ends, state_times
from popmodel.units import format_time, plural

if TYPE_CHECKING:
    from popmodel.trace.focus import TraceFocus
    from popmodel.trace.trace import Trace

MEASURABLE = 0.01
"""Seconds below which a measurement is mostly noise: a tick of the system's scheduler lasts 1 to
10 ms."""
FEW = 10
"""MPI calls and parallel regions below which one unusual one decides the numbers."""
ENOUGH = 1.0
"""Seconds from which on so few calls and regions are no matter."""

_NAMED = 3
"""Rows that are named."""
_NOTEWORTHY = 0.001  # of the time of the master threads


def caveats(trace: Trace, window: TraceFocus) -> tuple[str, ...]:
    """What every command says first of a run that it analyses, the most important first."""
    return (
        *devices(trace),
        *crowding(trace),
        *window.caveats,
        *untraced(trace),
        *_before_states(trace),
        *too_small(trace),
        *left_out(trace),
    )


def devices(trace: Trace) -> list[str]:
    """Say which rows of the trace are of devices, and not analysed."""
    if not trace.devices:
        return []
    shown = ", ".join(trace.devices[:_NAMED]) + (", ..." if len(trace.devices) > _NAMED else "")
    rows = plural(len(trace.devices), "row is", "rows are")
    return [
        f"{rows} left out, as streams of GPUs are no threads ({shown}): all else is of the host"
    ]


def untraced(trace: Trace) -> list[str]:
    """Say for how much of the time tracing was off; where records are lost, that is said instead.

    It is the time of the master threads, as processes may switch tracing off at different times.
    """
    covered, traced = (times[trace.process_offsets[:-1]].sum() for times in state_times(trace))
    share = 1 - traced / covered if covered else 0.0
    if not traced or share < _NOTEWORTHY or losses(trace):
        return []
    return [f"tracing was off for {100 * share:.2g} % of the time: only the rest is in the numbers"]


def _before_states(trace: Trace) -> list[str]:
    """Say for how long no thread is in any state at first, which is no part of the runtime."""
    covered, _ = state_times(trace)
    first, _ = state_ends(trace)
    late = int(first[covered > 0].min(initial=trace.end)) - trace.begin
    if not covered.any() or late < _NOTEWORTHY * trace.duration:
        return []
    return [
        f"no state is recorded in the first {format_time(late / 1e9)}: that time is no part of the "
        "runtime, but counts as computing elsewhere"
    ]


def too_small(trace: Trace) -> list[str]:
    """Say whether what is analysed is too short, or has too few calls, for firm numbers."""
    reasons = []
    _, traced = state_times(trace)
    duration = int(traced.max(initial=0)) or trace.duration
    if duration < MEASURABLE * 1e9:
        reasons.append(f"lasts only {format_time(duration / 1e9, digits=3)}")
    short = duration < ENOUGH * 1e9
    calls = int(call_times(trace).calls.sum()) if short else FEW
    regions = len(parallel_regions(trace).on_master) if calls < FEW else 0
    if 0 < calls + regions < FEW:
        numbers = ((calls, "MPI call"), (regions, "parallel region"))
        things = " and ".join(plural(number, what) for number, what in numbers if number)
        reasons.append(f"has only {things}")
    return (
        [f"the analysed part {' and '.join(reasons)}: too little for reliable numbers"]
        if reasons
        else []
    )
