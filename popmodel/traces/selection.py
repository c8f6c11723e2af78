"""Which part of a run is analysed: the program, a window of time, the occurrences of a region.

What is asked for is a `TracePart`; `focused` cuts a run to it and says, as a `TraceFocus`, what
that is and what has to be known of it. By default it is the program, without the start and the end
of MPI: what happens before MPI is initialised is the launcher's doing, and tracers disagree about
it. Extrae records it as running, others as a long call of MPI_Init. Counted, it would be most of
the useful time, or most of the loss, of a short run.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from popmodel.base.arrays import among
from popmodel.base.errors import PartError, UsageError
from popmodel.base.units import count, format_time, parse_time, plural
from popmodel.base.values import dataclass
from popmodel.traces.caveats import describe_losses, losses
from popmodel.traces.intervals import joined
from popmodel.traces.regions import function_of, parallel_regions, user_regions
from popmodel.traces.run_parts import span_text, splice
from popmodel.traces.runtime import state_times
from popmodel.traces.tables import (
    part_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces.recorded_run import Trace

Window: TypeAlias = "str | tuple[float | str | None, float | str | None]"
"""``A:B`` or a pair: times with a unit, or numbers of seconds; an end that is left out (empty, or
None) is that of the trace."""

Foa: TypeAlias = str
"""Focus of analysis: ``auto``, times as ``0.8s:1.2s``, or ``iterations=10:20``."""

_NS = 1e9
_FOA_EXAMPLES = "try --foa auto, --foa 0.8s:1.2s or --foa iterations=10:20"
_EXAMPLES = "try --window 1.5s:3s, --window :2s or --window 500ms:"
_BEGINS = ("MPI_Init", "MPI_Init_thread", "MPI_Session_init")
_ENDS = ("MPI_Finalize", "MPI_Session_finalize")
_APART = 0.05
"""Part of the window by which ranks may begin or end apart before it is worth a word."""
_INSIDE = 0.95
"""Share of the windows that processes spend in the region, below which it is worth a word."""
_NAMES_SHOWN = 12
_WHOLE = "the whole run is analysed"
_CUT_THERE = "; only the part before is analysed, which all threads have"


@dataclass(frozen=True)
class TracePart:
    """What is wanted of a run; all by default the program, from MPI_Init to MPI_Finalize."""

    # A window of time, ns; None for where the trace begins or ends.
    begin: int | None = None
    end: int | None = None
    # The occurrences of the region of this name; those inside the window where there is one, else
    # those from MPI_Init to MPI_Finalize.
    region: str | None = None
    # The whole run, or all of the region, with the start and the end of MPI.
    from_start: bool = False
    why: str = ""  # What the window is, such as some iterations; empty for times that a user gave
    # Iterations, from 1; a last one of None is that of the run. Or those that its structure
    # suggests. Only who knows the structure of a run can tell when these are.
    iterations: tuple[int, int | None] | None = None
    auto: bool = False

    @classmethod
    def of(
        cls,
        window: Window | None = None,
        region: str | None = None,
        from_start: bool = False,
        foa: Foa | None = None,
    ) -> TracePart:
        """Read what a user asks for."""
        if foa is not None:
            for given, option in ((window is not None, "--window"), (from_start, "--from-start")):
                if given:
                    problem = f"--foa cannot be combined with {option}"
                    raise UsageError(problem, "leave one of them out")
            return cls._of_foa(foa, region)
        if from_start and window is not None:
            raise UsageError(
                "--from-start cannot be combined with --window", "leave one of them out"
            )
        if window is None:
            return cls(region=region, from_start=from_start)
        ends = window.split(":") if isinstance(window, str) else window
        if not isinstance(ends, list | tuple):
            raise UsageError(f"window={window!r}: must be a text or a pair", "try window=(1.5, 3)")
        option = f"--window {':'.join('' if end is None else str(end) for end in ends)}"
        if len(ends) != 2:
            raise UsageError(f"{option}: must be BEGIN:END", _EXAMPLES)
        begin, last = (_nanoseconds(end, option) for end in ends)
        if begin is None and last is None:
            raise UsageError(f"{option}: needs a start or an end", _EXAMPLES)
        if begin is not None and last is not None and begin >= last:
            raise UsageError(f"{option}: must end after it begins", _EXAMPLES)
        return cls(begin, last, region)

    @classmethod
    def _of_foa(cls, foa: Foa, region: str | None) -> TracePart:
        text = foa.strip() if isinstance(foa, str) else ""
        if ".." in text:
            hint = f"try --foa {text.replace('..', ':')}"
            raise UsageError(f"--foa {foa}: a range is written A:B", hint)
        if text == "auto":
            return cls(region=region, auto=True)
        name, equals, numbers = text.partition("=")
        if equals and name.strip() == "iterations":
            return cls(region=region, iterations=_iterations(foa, numbers))
        begin, colon, end = text.partition(":")
        if equals or not colon:
            problem = f"--foa {foa}: must be auto, BEGIN:END or iterations=A:B"
            raise UsageError(problem, _FOA_EXAMPLES)
        try:
            return cls.of((begin, end), region)
        except UsageError as error:
            problem = error.message.partition(": ")[2]
            raise UsageError(f"--foa {foa}: {problem}", _FOA_EXAMPLES) from None

    @property
    def has_window(self) -> bool:
        return self.begin is not None or self.end is not None

    def limits(self, trace: Trace) -> tuple[int, int, str]:
        """The times of a run between which the part lies, and what they are."""
        if self.has_window or self.from_start:
            begin = trace.begin if self.begin is None else self.begin
            end = trace.end if self.end is None else self.end
            return begin, end, self.named(begin, end)
        program = trace.derived("program", program_of)
        return program.begin, program.end, program.why

    def named(self, begin: int, end: int) -> str:
        """What the window is, in words, from `begin` to `end` of a run."""
        return f"{self.why} ({span_text(begin, end)})" if self.why else span_text(begin, end)


PROGRAM = TracePart()
"""What is analysed where nothing else is asked for."""


def _iterations(foa: str, text: str) -> tuple[int, int | None]:
    """First and last of ``10:20``, ``10:``, ``:20`` or ``10``."""
    found = re.fullmatch(r"\s*([1-9]\d{0,17})?\s*(:)?\s*([1-9]\d{0,17})?\s*", text)
    example = "try --foa iterations=10:20"
    if found is None or not (found[1] or found[3]) or (found[3] and not found[2]):
        raise UsageError(f"--foa {foa}: iterations must be whole numbers from 1, as A:B", example)
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else None if found[2] else first
    if last is not None and last < first:
        raise UsageError(f"--foa {foa}: the last iteration is before the first", example)
    return first, last


def _nanoseconds(time: float | str | None, option: str) -> int | None:
    """A time of a window; a plain number is in seconds."""
    if time is None or (isinstance(time, str) and not time.strip()):
        return None
    try:
        seconds = float(time)
    except (TypeError, ValueError):
        try:
            seconds = parse_time(str(time))
        except UsageError as error:
            raise UsageError(f"{option}: {error.message}", error.hint) from None
    if not 0 <= seconds < math.inf:
        raise UsageError(f"{option}: times must be finite and not negative", _EXAMPLES)
    return round(seconds * _NS)


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
        window = trace.window(*part.limits(trace)[:2])
        why = part.named(window.begin, window.end)
        return window, _focus_on(trace, window, window.begin, window.end, why)
    program = program_of(trace)
    if not (program.before or program.after):
        return trace, program
    if part.from_start:
        left_out = [
            f"{_written(length)} {where}"
            for length, where in (
                (program.before, "up to the end of MPI_Init"),
                (program.after, "from MPI_Finalize on"),
            )
            if length
        ]
        counted = f"{_WHOLE}, including {' and '.join(left_out)}"
        return trace, _all_of(trace, "the whole run", *_lost(trace), counted)
    window = trace.window(program.begin, program.end)
    if not state_times(window)[1].any() and state_times(trace)[1].any():
        empty = f"{_WHOLE}: no states from {program.why} ({span_text(program.begin, program.end)})"
        return trace, _all_of(trace, "the whole run", empty)
    return window, program


def _focus_on(
    trace: Trace, chosen: Trace, begin: int, end: int, why: str, hint: str = ""
) -> TraceFocus:
    before, after = begin - trace.begin, trace.end - end
    between = end - begin - chosen.duration
    caveats = (*_lost(chosen), *_left_out(trace, (before, between, after), why, hint))
    return TraceFocus(begin, end, before, after, why, caveats, between)


def _all_of(trace: Trace, why: str, *caveats: str) -> TraceFocus:
    return TraceFocus(trace.begin, trace.end, 0, 0, why, caveats)


def _lost(trace: Trace) -> list[str]:
    lost = losses(trace)
    return [describe_losses(lost)] if lost else []


def _left_out(trace: Trace, left_out: tuple[int, int, int], why: str, hint: str = "") -> list[str]:
    """What is analysed and what is not, before, between and after, where anything is left out."""
    parts = [
        f"{_written(length)} {where}"
        for length, where in zip(left_out, ("before", "between", "after"), strict=True)
        if length
    ]
    if not parts:
        return []
    analysed = _written(trace.duration - sum(left_out))
    return [
        f"analysed {analysed} of {_written(trace.duration)}: {why} "
        f"(left out: {', '.join(parts)}{hint})"
    ]


def _written(nanoseconds: int) -> str:
    return format_time(nanoseconds / _NS, digits=3, trim=True)


# The program.


def program_of(trace: Trace) -> TraceFocus:
    """Find the window of analysis of a run.

    It lasts from the end of MPI_Init of the last rank to the start of MPI_Finalize of the first,
    whatever thread calls them, or to the first loss of records; of several sessions of a process
    the first begins and the last ends it. Where no rank has such a record, the trace's own begin or
    end counts. A window of a trace was chosen by somebody and is taken as it is, and a run whose
    processes have no common time is taken as a whole.
    """
    if trace.whole is not None:
        return _all_of(trace, "the given part of the trace", *_lost(trace))
    if not trace.timed:
        return _all_of(trace, "the whole run", "no measured times: a replay tells what MPI takes")
    begins, ends = _boundaries(trace)
    lost = losses(trace)
    begin = min(max([trace.begin, *begins.values()]), trace.end)
    end = max(min([trace.end, *ends.values()]), trace.begin)
    ends_lost = bool(lost) and lost[0].time < end
    end = max(min([end, *(loss.time for loss in lost)]), trace.begin)
    said = (
        [describe_losses(lost) + (_CUT_THERE if ends_lost and begin < end else "")] if lost else []
    )
    if begin >= end:
        nothing = f"{_WHOLE}: nothing lies between MPI_Init and MPI_Finalize"
        if begins and ends:
            nothing = (
                f"{_WHOLE}: MPI_Init ends at {_written(begin)} (rank {_extreme(begins, max)}), "
                f"MPI_Finalize begins at {_written(end)} (rank {_extreme(ends, min)})"
            )
        return _all_of(trace, "the whole run", *said, nothing)
    why = _bounded_by(bool(begins), bool(ends), ends_lost)
    before, after = begin - trace.begin, trace.end - end
    caveats = [
        *said,
        *_left_out(trace, (before, 0, after), why, "; --from-start includes them"),
        *_without_record(trace, begins, "MPI_Init"),
        *([] if lost else _without_record(trace, ends, "MPI_Finalize")),
        *_apart(begins, {} if ends_lost else ends, end - begin),
    ]
    return TraceFocus(begin, end, before, after, why, tuple(caveats))


def _boundaries(trace: Trace) -> tuple[dict[int, int], dict[int, int]]:
    """End of MPI's start and begin of its end, ns, of each process that has a record of it."""
    begins: dict[int, tuple[int, int]] = {}
    ends: dict[int, int] = {}
    calls = trace.calls()
    location, rows = calls.named((*_BEGINS, *_ENDS))
    processes = part_of(trace.process_offsets, location).tolist()
    spans = zip(calls.entry[rows].tolist(), calls.exit[rows].tolist(), strict=True)
    for process, code, span in zip(processes, calls.name[rows].tolist(), spans, strict=True):
        if calls.names[code] in _ENDS:
            ends[process] = max(span[0], ends.get(process, span[0]))
        else:
            begins[process] = min(span, begins.get(process, span))
    return {process: exit_ for process, (_, exit_) in begins.items()}, ends


def _bounded_by(has_begin: bool, has_end: bool, ends_lost: bool) -> str:
    if ends_lost:
        return f"{'MPI_Init' if has_begin else 'start of the trace'} to the first loss of records"
    if has_begin and has_end:
        return "MPI_Init to MPI_Finalize"
    if has_begin:
        return "MPI_Init to the end of the trace (no MPI_Finalize)"
    if has_end:
        return "start of the trace (no MPI_Init) to MPI_Finalize"
    return "the whole run (no MPI_Init, no MPI_Finalize)"


def _without_record(trace: Trace, times: dict[int, int], name: str) -> list[str]:
    lacking = [process for process in range(trace.processes) if process not in times]
    if not times or not lacking:
        return []
    return [
        f"{plural(len(lacking), 'process has', 'processes have')} no {name} record "
        f"(first: rank {lacking[0]}): the others decide what is analysed"
    ]


def _apart(begins: dict[int, int], ends: dict[int, int], length: int) -> list[str]:
    """Say where ranks begin or end far apart: what they do meanwhile is not in the numbers."""
    early = "leave MPI_Init", "what early ranks do meanwhile is left out"
    late = "reach MPI_Finalize", "this imbalance is left out, the analysis ends with the first"
    said = []
    for times, (what, consequence) in ((begins, early), (ends, late)):
        apart = max(times.values(), default=0) - min(times.values(), default=0)
        if apart > _APART * length:
            said.append(
                f"ranks {what} up to {_written(apart)} apart (rank {_extreme(times, min)} first, "
                f"rank {_extreme(times, max)} last): {consequence}"
            )
    return said


def _extreme(times: dict[int, int], choose: Callable[..., int]) -> int:
    """The rank of the least or the greatest time."""
    return choose(times, key=times.__getitem__)


# The occurrences of a region.


def _occurrences(trace: Trace, part: TracePart, name: str) -> tuple[Trace, TraceFocus]:
    """Cut a run to its windows in a region, one after the other.

    A process is in it while any of its threads is. Where all processes that enter it do so equally
    often, the k-th occurrence is one window: from the first begin to the last end, so that what
    early processes wait for late ones counts. Else a window is any time in which one is inside.
    """
    since, until, where = part.limits(trace)
    process, begin, end = _by_process(trace, *_on_threads(trace, name))
    entered = np.bincount(process, minlength=trace.processes)
    if np.all(entered[entered > 0] == entered.max()):
        begins, ends = begin.reshape(-1, entered.max()), end.reshape(-1, entered.max())
        windows = np.stack([begins.min(axis=0), ends.max(axis=0)])
    else:
        windows = np.stack(joined(begin, end))
    first, last = np.clip(windows, since, until)
    lasting = np.subtract(*reversed(joined(first, last))).sum()
    if not lasting:
        raise _takes_no_time(trace, name, windows, where)
    some = last > first
    spliced = splice(trace, first[some], last[some])
    inside = (end > since) & (begin < until)
    occurrences = int(np.bincount(process[inside]).max(initial=0))
    why = f"region {name}, {plural(occurrences, 'occurrence')}"
    hint = ""
    if part.has_window:
        why += f" in {where}"
    elif np.any((first != windows[0]) | (last != windows[1])):
        why += f", {where}"
        hint = "; --from-start includes all of the region"
    share = np.subtract(*np.clip([end, begin], since, until)).sum() / (lasting * trace.processes)
    focus = _focus_on(trace, spliced, int(first[some].min()), int(last[some].max()), why, hint)
    return spliced, dataclasses.replace(
        focus,
        caveats=(*focus.caveats, *_region_caveats(name, entered, float(share))),
        region=name,
        occurrences=occurrences,
    )


def _on_threads(
    trace: Trace, name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Location, begin and end of the occurrences of a region on all threads."""
    marked = user_regions(trace)
    if name in marked.names:
        found = marked.of(name)
        return found.location, found.begin, found.end
    parallel = parallel_regions(trace)
    regions = [i for i, known in enumerate(parallel.names) if known == name] or [
        i for i, known in enumerate(parallel.names) if function_of(known) == name
    ]
    mine = among(parallel.label, regions)
    if mine.any():
        on_master = parallel.on_master
        return on_master.location[mine], on_master.begin[mine], on_master.end[mine]
    names = tuple(dict.fromkeys(parallel.names))
    raise PartError(trace.path, f"no region '{name}'", hint=_hint(name, marked.names, names))


def _hint(name: str, marked: tuple[str, ...], parallel: tuple[str, ...]) -> str:
    if near := get_close_matches(name, (*marked, *parallel), 3):
        return f"did you mean {' or '.join(near)}?"
    if not (marked or parallel):
        return "the trace has no regions; mark them in the program (popmodel.h: popmodel_begin)"
    known = marked or parallel
    more = f" and {count(len(known) - _NAMES_SHOWN)} more" if len(known) > _NAMES_SHOWN else ""
    what = "regions" if marked else "parallel regions"
    return f"{what} in the trace: {', '.join(known[:_NAMES_SHOWN])}{more}"


def _by_process(
    trace: Trace,
    location: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Occurrences of each process, in order: those of several threads that overlap are one."""
    process = trace.process_of_location().astype(np.int64)[location]
    # The times of one process lie behind those of the others, so that one pass serves all.
    shift = process * (trace.end - trace.begin + 1)
    order = np.argsort(begin + shift, kind="stable")
    process, begin, end, shift = (column[order] for column in (process, begin, end, shift))
    reached = np.maximum.accumulate(end + shift)
    first = np.flatnonzero(np.concatenate([[True], (begin + shift)[1:] >= reached[:-1]]))
    last = np.append(first[1:] - 1, len(begin) - 1)
    return process[first], begin[first], reached[last] - shift[last]


def _takes_no_time(trace: Trace, name: str, windows: NDArray[np.int64], where: str) -> PartError:
    if not np.any(windows[1] > windows[0]):
        return PartError(trace.path, f"region {name} takes no time")
    first, last = (
        format_time(int(time) / _NS, digits=6, trim=True)
        for time in (windows[0].min(), windows[1].max())
    )
    return PartError(
        trace.path,
        f"region {name} takes no time in the analysed part ({where})",
        hint=f"it lasts from {first} to {last}: choose a --window there",
    )


def _region_caveats(name: str, entered: NDArray[np.int64], share: float) -> list[str]:
    said = []
    never = np.flatnonzero(entered == 0)
    counts = entered[entered > 0]
    if len(never):
        said.append(
            f"{plural(len(never), 'process', 'processes')} of {count(len(entered))} never "
            f"{'enters' if len(never) == 1 else 'enter'} region {name} (first: rank {never[0]})"
        )
    if counts.min() < counts.max():
        said.append(
            f"processes enter region {name} {count(int(counts.min()))} to "
            f"{count(int(counts.max()))} times: all time with a process inside is analysed"
        )
    if said or share < _INSIDE:
        said.append(
            f"processes are inside region {name} for {100 * share:.3g} % of the analysed time"
        )
    return said
