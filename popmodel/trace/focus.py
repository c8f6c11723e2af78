"""The part of a run that is analysed: the program, without the start and the end of MPI.

What happens before MPI is initialised is the launcher's doing, and tracers disagree about it:
Extrae records it as running, others as a long call of MPI_Init. Counted, it would be most of the
useful time, or most of the loss, of a short run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.trace.losses import describe, losses
from popmodel.trace.part import PROGRAM, TracePart
from popmodel.trace.region_windows import region_windows
from popmodel.trace.runtime import state_times
from popmodel.trace.window import splice
from popmodel.units import format_time, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.trace.trace import Trace

_BEGINS = ("MPI_Init", "MPI_Init_thread", "MPI_Session_init")
_ENDS = ("MPI_Finalize", "MPI_Session_finalize")
_NS = 1e9
_APART = 0.05
"""Part of the window by which ranks may begin or end apart before it is worth a word."""
_TINY = 1e-4
"""Seconds below which a time is not written in seconds."""
_WHOLE = "the whole run is analysed"
_CUT_THERE = "; only the part before is analysed, which all threads have"


@dataclass(frozen=True)
class TraceFocus:
    """What of a run is analysed (its focus of analysis), in nanoseconds."""

    # When it begins and ends in the trace.
    begin: int
    end: int
    # What of the trace is left out before and after it.
    before: int
    after: int
    why: str  # What it is, for instance ``MPI_Init to MPI_Finalize``
    # What has to be known about it before numbers are read, a sentence each.
    caveats: tuple[str, ...] = ()
    between: int = 0  # What is left out between the occurrences of a region
    region: str | None = None  # The region whose occurrences it is
    occurrences: int = 1  # How many these are; else 1

    def to_dict(self) -> dict[str, Any]:
        """What is analysed, for JSON, in seconds."""
        left_out = {"before": self.before, "between": self.between, "after": self.after}
        return {
            "begin": self.begin / _NS,
            "end": self.end / _NS,
            "duration": (self.end - self.begin - self.between) / _NS,
            "left_out": {name: length / _NS for name, length in left_out.items()},
            "region": self.region,
            "occurrences": self.occurrences,
            "why": self.why,
        }


def focused(trace: Trace, part: TracePart = PROGRAM) -> tuple[Trace, TraceFocus]:
    """Cut a run to what is to be analysed."""
    if part.region is not None:
        return _occurrences(trace, part, part.region)
    if part.has_window:
        return _window(trace, part)
    found = find(trace)
    if not (found.before or found.after):
        return trace, found
    if part.from_start:
        lost = losses(trace)
        said = [*([describe(lost)] if lost else []), *_counted(found)]
        return trace, _all_of(trace, "the whole run", *said)
    program = trace.window(found.begin, found.end)
    if not state_times(program)[1].any() and state_times(trace)[1].any():
        empty = f"{_WHOLE}: no states from {found.why} ({_span(found.begin, found.end)})"
        return trace, _all_of(trace, "the whole run", empty)
    return program, found


def _window(trace: Trace, part: TracePart) -> tuple[Trace, TraceFocus]:
    """A window of time that was asked for."""
    window = trace.window(*_limits(trace, part)[:2])
    why = _told(part, window.begin, window.end)
    return window, _chosen(trace, window, window.begin, window.end, why)


def _occurrences(trace: Trace, part: TracePart, region: str) -> tuple[Trace, TraceFocus]:
    """The occurrences of a region that was asked for, one after the other."""
    since, until, where = _limits(trace, part)
    found = region_windows(trace, region, since, until, where)
    spliced = splice(trace, found.begin, found.end)
    begin, end = int(found.begin.min()), int(found.end.max())
    why = f"region {region}, {plural(found.occurrences, 'occurrence')}"
    hint = ""
    if part.has_window:
        why += f" in {where}"
    elif found.cut:
        why += f", {where}"
        hint = "; --from-start includes all of the region"
    focus = _chosen(trace, spliced, begin, end, why, hint)
    return spliced, replace(
        focus,
        caveats=(*focus.caveats, *found.caveats),
        region=region,
        occurrences=found.occurrences,
    )


def _limits(trace: Trace, part: TracePart) -> tuple[int, int, str]:
    """The times between which a part lies, and what they are."""
    if part.has_window or part.from_start:
        begin = trace.begin if part.begin is None else part.begin
        end = trace.end if part.end is None else part.end
        return begin, end, _told(part, begin, end)
    program = trace.derived("program", find)
    return program.begin, program.end, program.why


def _chosen(
    trace: Trace, chosen: Trace, begin: int, end: int, why: str, hint: str = ""
) -> TraceFocus:
    before, after = begin - trace.begin, trace.end - end
    between = end - begin - chosen.duration
    lost = losses(chosen)
    said = [describe(lost)] if lost else []
    said += _left_out(trace, (before, between, after), why, hint)
    return TraceFocus(begin, end, before, after, why, tuple(said), between)


def find(trace: Trace) -> TraceFocus:
    """Find the window of analysis of a run.

    It lasts from the end of MPI_Init of the last rank to the start of MPI_Finalize of the first,
    whatever thread calls them, or to the first loss of records; of several sessions of a process
    the first begins and the last ends it. Where no rank has such a record, the trace's own begin or
    end counts. A window of a trace was chosen by somebody and is taken as it is, and a run whose
    processes have no common time is taken as a whole.
    """
    if trace.whole is not None:
        lost = losses(trace)
        said = [describe(lost)] if lost else []
        return _all_of(trace, "the given part of the trace", *said)
    if not trace.timed:
        return _all_of(trace, "the whole run", "no measured times: a replay tells what MPI takes")
    begins, ends = _boundaries(trace)
    lost = losses(trace)
    begin = min(max([trace.begin, *begins.values()]), trace.end)
    end = max(min([trace.end, *ends.values()]), trace.begin)
    ends_lost = bool(lost) and lost[0].time < end
    end = max(min([end, *(each.time for each in lost)]), trace.begin)
    said = [describe(lost) + (_CUT_THERE if ends_lost and begin < end else "")] if lost else []
    if begin >= end:
        told = f"{_WHOLE}: nothing lies between MPI_Init and MPI_Finalize"
        if begins and ends:
            told = (
                f"{_WHOLE}: MPI_Init ends at {_seconds(begin)} (rank {_extreme(begins, max)}), "
                f"MPI_Finalize begins at {_seconds(end)} (rank {_extreme(ends, min)})"
            )
        return _all_of(trace, "the whole run", *said, told)
    why = _why(bool(begins), bool(ends), ends_lost)
    before, after = begin - trace.begin, trace.end - end
    caveats = [
        *said,
        *_left_out(trace, (before, 0, after), why, "; --from-start includes them"),
        *_missing(trace, begins, "MPI_Init"),
        *([] if lost else _missing(trace, ends, "MPI_Finalize")),
        *_apart(begins, {} if ends_lost else ends, end - begin),
    ]
    return TraceFocus(begin, end, before, after, why, tuple(caveats))


def _boundaries(trace: Trace) -> tuple[dict[int, int], dict[int, int]]:
    """End of MPI's start and begin of its end, ns, of each process that has a record of it."""
    begins: dict[int, tuple[int, int]] = {}
    ends: dict[int, int] = {}
    for call in trace.records.calls_named((*_BEGINS, *_ENDS)):
        process = int(np.searchsorted(trace.process_offsets, call.location, side="right")) - 1
        if call.name in _ENDS:
            ends[process] = max(call.entry, ends.get(process, call.entry))
        else:
            span = call.entry, call.exit
            begins[process] = min(span, begins.get(process, span))
    return {process: exit_ for process, (_, exit_) in begins.items()}, ends


def _why(has_begin: bool, has_end: bool, ends_lost: bool) -> str:
    if ends_lost:
        return f"{'MPI_Init' if has_begin else 'start of the trace'} to the first loss of records"
    if has_begin and has_end:
        return "MPI_Init to MPI_Finalize"
    if has_begin:
        return "MPI_Init to the end of the trace (no MPI_Finalize)"
    if has_end:
        return "start of the trace (no MPI_Init) to MPI_Finalize"
    return "the whole run (no MPI_Init, no MPI_Finalize)"


def _all_of(trace: Trace, why: str, *caveats: str) -> TraceFocus:
    return TraceFocus(trace.begin, trace.end, 0, 0, why, caveats)


def _left_out(trace: Trace, left_out: tuple[int, int, int], why: str, hint: str = "") -> list[str]:
    """What is analysed and what is not, before, between and after, where anything is left out."""
    parts = [
        f"{_seconds(length)} {where}"
        for length, where in zip(left_out, ("before", "between", "after"), strict=True)
        if length
    ]
    if not parts:
        return []
    analysed = _seconds(trace.duration - sum(left_out))
    return [
        f"analysed {analysed} of {_seconds(trace.duration)}: {why} "
        f"(left out: {', '.join(parts)}{hint})"
    ]


def _counted(found: TraceFocus) -> list[str]:
    """What the whole run has that is left out by default."""
    parts = [
        f"{_seconds(length)} {where}"
        for length, where in (
            (found.before, "up to the end of MPI_Init"),
            (found.after, "from MPI_Finalize on"),
        )
        if length
    ]
    return [f"{_WHOLE}, including {' and '.join(parts)}"] if parts else []


def _missing(trace: Trace, found: dict[int, int], name: str) -> list[str]:
    lacking = [process for process in range(trace.processes) if process not in found]
    if not found or not lacking:
        return []
    return [
        f"{plural(len(lacking), 'process has', 'processes have')} no {name} record "
        f"(first: rank {lacking[0]}): the others decide what is analysed"
    ]


def _apart(begins: dict[int, int], ends: dict[int, int], length: int) -> list[str]:
    """Say where ranks begin or end far apart: what they do meanwhile is not in the numbers."""
    told = []
    for times, what, consequence in (
        (begins, "leave MPI_Init", "what early ranks do meanwhile is left out"),
        (
            ends,
            "reach MPI_Finalize",
            "this imbalance is left out, the analysis ends with the first",
        ),
    ):
        apart = max(times.values(), default=0) - min(times.values(), default=0)
        if apart > _APART * length:
            told.append(
                f"ranks {what} up to {_seconds(apart)} apart (rank {_extreme(times, min)} first, "
                f"rank {_extreme(times, max)} last): {consequence}"
            )
    return told


def _extreme(times: dict[int, int], choose: Callable[..., int]) -> int:
    """The rank of the least or the greatest time."""
    return choose(times, key=times.__getitem__)


def _told(part: TracePart, begin: int, end: int) -> str:
    """What a window is, in words."""
    return f"{part.why} ({_span(begin, end)})" if part.why else _span(begin, end)


def _span(begin: int, end: int) -> str:
    return " to ".join(format_time(time / _NS, digits=9, trim=True) for time in (begin, end))


def _seconds(nanoseconds: int) -> str:
    # One unit for almost all, so that several runs can be told together.
    seconds = nanoseconds / _NS
    if _TINY <= seconds < 1:
        return f"{seconds:.3g} s"
    return format_time(seconds, digits=3, trim=True)
