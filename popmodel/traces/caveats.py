"""What has to be known of a run before its numbers are read: losses, gaps, crowding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.units import format_time, plural
from popmodel.base.values import NamedTuple
from popmodel.traces.calls import call_times, mpi_io
from popmodel.traces.codes import INPUT_OUTPUT, RUNNING, Event
from popmodel.traces.intervals import Instants, alone
from popmodel.traces.regions import parallel_regions, running_time
from popmodel.traces.runtime import state_ends, state_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces.recorded_run import Trace
    from popmodel.traces.selection import TraceFocus


# Where the records of a run end before the run does: full disks, crashes, kills.
#
# The tracer's merge says so on every thread that it concerns, from which on the thread is in state
# `TRACING_DISABLED`: nothing is known of it.


FULL, KILLED, ABORTED, CUT, LIMITED = 1, 2, 3, 4, 5
REASONS: Mapping[int, str] = {
    FULL: "disk full",
    KILLED: "killed or crashed",
    ABORTED: "ended by MPI_Abort",
    CUT: "truncated files",
    LIMITED: "--max-size reached",
}
_LOSSES_SHOWN = 3
_NS = 1e9


class RecordLoss(NamedTuple):
    """Since when nothing is recorded of threads of a process, and why."""

    process: int
    threads: int  # How many of its threads
    time: int  # Of the first of them, ns
    reason: int  # A key of `REASONS`


def losses(trace: Trace) -> list[RecordLoss]:
    """Losses of a run, the earliest first."""
    lost = trace.marks(Event.LOST)
    process = trace.process_of_location()[lost.location]
    found: dict[tuple[int, int], list[int]] = {}
    for who, value, time in zip(
        process.tolist(), lost.value.tolist(), lost.time.tolist(), strict=True
    ):
        found.setdefault((who, value), []).append(time)
    made = [RecordLoss(who, len(times), min(times), value) for (who, value), times in found.items()]
    return sorted(made, key=lambda each: (each.time, each.process))


def describe_losses(found: list[RecordLoss]) -> str:
    """Losses in words, the earliest few with their ranks and times."""
    parts = []
    for each in found[:_LOSSES_SHOWN]:
        who = f"rank {each.process}"
        if each.reason in (FULL, CUT, LIMITED):
            who = f"{plural(each.threads, 'thread')} of {who}"
        begin, why = format_time(each.time / _NS, digits=3, trim=True), REASONS.get(each.reason)
        parts.append(f"{who} from {begin} on ({why or 'reason unknown'})")
    if len(found) > _LOSSES_SHOWN:
        parts.append(f"{len(found) - _LOSSES_SHOWN} more")
    return f"records lost: {', '.join(parts)}"


# Kinds of calls that a trace leaves out, as popmodel's tracer marks them in it.


KINDS: Mapping[int, str] = {
    1: "tests and probes that found nothing",
    2: "requests for loop iterations",
    3: "single constructs",
    4: "one-sided communication",
    5: "MPI I/O",
}
BY_RATE = 10
"""Added to the value where there were more records per second than the user wanted."""
LABELS: Mapping[int, str] = {
    value + by_rate: name + (" (--max-rate)" if by_rate else "")
    for by_rate in (0, BY_RATE)
    for value, name in KINDS.items()
}


def left_out(trace: Trace) -> list[str]:
    """What a trace leaves out, in a sentence each; since when, where that is not the begin."""
    whole = trace.whole or trace
    marks = whole.marks(Event.LEFT_OUT)
    process = whole.process_of_location()[marks.location]
    first: dict[int, int] = {}
    where: dict[int, set[int]] = {}
    for value, time, rank in zip(
        marks.value.tolist(), marks.time.tolist(), process.tolist(), strict=True
    ):
        first[value] = min(first.get(value, time), time)
        where.setdefault(value, set()).add(rank)
    said = []
    for value, time in sorted(first.items()):
        by_rate, kind = divmod(value, BY_RATE)
        name = KINDS.get(kind, f"calls of kind {kind}")
        since = (
            f" from {format_time(time / _NS, digits=3, trim=True)} on (--max-rate)"
            if by_rate
            else ""
        )
        who = plural(len(where[value]), "process", "processes")
        said.append(f"{name} are not recorded in {who}{since}: their time counts as useful")
    return said


# Whether threads had a processor each: what they waited for one, and how many share theirs.
#
# The tracer writes at the begin of a thread how many processors it may use and how many threads
# have no others, and at its end how long the kernel let it run and wait: of the threads that start
# and stop MPI, in between.


_NOTEWORTHY_WAITING = 0.02  # of the time of all threads
_HARMLESS = 0.005


def crowding(trace: Trace) -> list[str]:
    """Say whether threads waited for CPUs; a sentence each."""
    whole = trace.whole or trace
    cpus, sharing = (first_values(whole, mark) for mark in (Event.CPUS, Event.SHARING))
    used, waited = (whole.marks(mark).total() for mark in (Event.USED, Event.WAITED))
    return [
        said + ("; times of phases and signatures do not" if len(delays(whole)) else "")
        for said in crowded(cpus, sharing, used, waited, whole.process_offsets)
    ]


def crowded(
    cpus: NDArray[np.int64],
    sharing: NDArray[np.int64],
    used: NDArray[np.int64],
    waited: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> list[str]:
    """Say the same of what is known of each thread."""
    rows = np.flatnonzero((cpus > 0) & (sharing > cpus))
    known = used + waited > 0
    share = int(waited.sum()) / max(int((used + waited).sum()), 1)
    if len(rows) and not (known.all() and share < _HARMLESS):
        worst = int(rows[np.argmax(sharing[rows] / cpus[rows])])
        text = (
            f"more threads than CPUs: {int(sharing[worst])} threads may use only "
            f"{plural(int(cpus[worst]), 'CPU')} ({_who(offsets, worst)} is one of them"
        )
        if len(rows) < len(cpus):
            text += f"; {len(rows)} of {len(cpus)} threads share a CPU"
        text += ")"
        if known.any():
            text += (
                f"; they waited for a CPU {_percent(share)} of the time that they were ready to run"
            )
        return [text + "; the measured times include this waiting"]
    if share >= _NOTEWORTHY_WAITING:
        return [
            f"threads waited for a CPU {_percent(share)} of the time that they were ready to run "
            f"(most: {_who(offsets, int(np.argmax(waited)))}): other programs ran on the same "
            "CPUs; the measured times include this waiting"
        ]
    return []


def waiting(trace: Trace) -> float:
    """Share of the time in which threads were ready to run that they waited for a CPU.

    Of the whole run, all threads together; 0 where nothing is known.
    """
    whole = trace.whole or trace
    used, waited = (int(whole.marks(mark).total().sum()) for mark in (Event.USED, Event.WAITED))
    return waited / max(used + waited, 1)


def delays(trace: Trace, kind: Event = Event.DELAYED) -> Instants:
    """What threads waited for a CPU in the computing that ends at each instant, ns.

    Times of a program's own computing are without it: those of signatures, phases and studies.
    Metrics of a trace are of its time as it passed. `Event.WOKEN`: when their team woke them up.
    """

    def told(trace: Trace) -> Instants:
        return trace.records.counters((kind,), slice(0, trace.locations))[0]

    return trace.derived(f"delays {kind.name}", told)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _who(offsets: NDArray[np.int64], location: int) -> str:
    process = int(np.searchsorted(offsets, location, side="right")) - 1
    return f"thread {location - int(offsets[process])} of rank {process}"


def first_values(trace: Trace, mark: Event) -> NDArray[np.int64]:
    """The first value that each location tells of a kind; 0 for none."""
    marks = trace.marks(mark)
    found = np.zeros(trace.locations, np.int64)
    found[marks.location[::-1]] = marks.value[::-1]  # of equal indices the last assignment stays
    return found


# What has to be known of a run before its numbers are read, a sentence each.


MEASURABLE = 0.01
"""Seconds below which a measurement is mostly noise: a tick of the system's scheduler lasts 1 to
10 ms."""
FEW = 10
"""MPI calls and parallel regions below which one unusual one decides the numbers."""
ENOUGH = 1.0
"""Seconds from which on so few calls and regions are no matter."""

_NAMED = 3
"""Rows that are named."""
_NOTEWORTHY_TIME = 0.01  # of the runtime, or of all calls, that records contradict
_NOTEWORTHY_UNTRACED = 0.001  # of the time of the master threads
_NOTEWORTHY_WRITING = 0.001  # of the runtime


def caveats(trace: Trace, window: TraceFocus) -> tuple[str, ...]:
    """What every command says first of a run that it analyses, the most important first."""
    which = f"application {trace.application} of {trace.applications} in the trace is analysed"
    return (
        *contradictions(trace),
        *([f"{which} (--application)"] if trace.applications > 1 else []),
        *devices(trace),
        *crowding(trace),
        *window.caveats,
        *untraced(trace),
        *writing(trace),
        *_before_states(trace),
        *too_small(trace),
        *left_out(trace),
    )


_CONTRADICTORY = (
    "efficiencies may be wrong",
    "which count twice",
    "efficiencies take it for idle",
    "efficiencies are too high",
    "their time is not known as such",
    "times in MPI are uncertain",
)


def is_contradiction(caveat: str) -> bool:
    """Whether a sentence is one of `contradictions`: no advice may rest on the times then."""
    return caveat.endswith(_CONTRADICTORY)


def contradictory_runs(caveats: Sequence[tuple[str, str]]) -> list[str]:
    """Name the first run with one of `contradictions`, and how many more have; of run, caveat."""
    wrong = [(run, text) for run, text in caveats if is_contradiction(text)]
    more = len({run for run, _ in wrong}) - 1
    others = f"; so or alike in {more} more" if more > 0 else ""
    return [f"{run}: {text}{others}" for run, text in wrong[:1]]


def contradictions(trace: Trace) -> tuple[str, ...]:
    """Say where records contradict what all times are made of; found once for each trace."""
    return trace.derived("contradictions", _contradictions)


def _contradictions(trace: Trace) -> tuple[str, ...]:
    in_mpi = call_times(trace)
    covered, traced = state_times(trace)
    if not trace.timed or not covered.any():
        return _wrong_calls(trace, int(in_mpi.calls.sum()))
    least = _NOTEWORTHY_TIME * (int(traced.max()) or int(covered.max()))
    masters = trace.process_offsets[:-1]
    first, last = (ends[masters] for ends in state_ends(trace))
    gap = np.where(last > first, last - first - covered[masters], 0)
    # Calls may go on where states have ended, as in a trace that was filtered or cut.
    lacking = np.maximum(gap, (in_mpi.time - covered)[masters])
    said = []
    if lacking.max() > least:
        said.append(
            f"the states of rank {lacking.argmax()} leave {_time(lacking.max())} uncovered, which "
            "count in regions and calls but not in the runtime: efficiencies may be wrong"
        )
    if -gap.min() > least:
        said.append(
            f"the states of rank {gap.argmin()} overlap by {_time(-gap.min())}, which count twice"
        )
    running = trace.derived(
        "running",
        lambda trace: running_time(trace.records, trace.devices.calls, trace.begin).total(),
    )
    said += _never_running(trace.whole or trace, np.add.reduceat(running, masters) == 0)
    if not trace.call_warnings() and (running + in_mpi.time > covered + least).any():
        said += _running_in_calls(trace, least)
    return (*said, *_wrong_calls(trace, int(in_mpi.calls.sum())))


def _never_running(trace: Trace, idle: NDArray[np.bool_]) -> list[str]:
    """Say which of some processes are in no running state in the whole run, but do something."""
    if idle.any():  # running states are many
        masters = trace.process_offsets[:-1]
        idle &= np.add.reduceat(np.diff(trace.records.in_state(RUNNING).offsets), masters) == 0
        idle &= np.add.reduceat(np.diff(trace.records.events.offsets), masters) > 0
    if not idle.any():
        return []
    who = f"rank {idle.argmax()}" if idle.sum() == 1 else f"{int(idle.sum())} processes"
    return [f"no thread of {who} is ever running by its states: efficiencies take it for idle"]


def _running_in_calls(trace: Trace, least: float) -> list[str]:
    """Say that threads are in the running state during MPI calls, as no tracer should have them."""
    both = int(trace.records.in_state(RUNNING).within(trace.calls().intervals()).max())
    if both <= least:
        return []
    return [
        f"threads are running in MPI calls by their states, up to {_time(both)} each: it counts as "
        "useful, and efficiencies are too high"
    ]


def _wrong_calls(trace: Trace, number: int) -> tuple[str, ...]:
    """Say that messages were recorded without the calls that move them, or calls in parts."""
    if not number:
        if not (messages := len(trace.messages.size)):
            return ()
        told = plural(messages, "message is", "messages are")
        return (f"{told} recorded, but no MPI calls: their time is not known as such",)
    wrong = trace.call_warnings()
    if sum(each.count for each in wrong) <= _NOTEWORTHY_TIME * len((trace.whole or trace).calls()):
        return ()
    return tuple(
        f"{each.text}, {plural(each.count, 'time')}: times in MPI are uncertain" for each in wrong
    )


def _time(ns: int) -> str:
    return format_time(ns / _NS, digits=3, trim=True)


def devices(trace: Trace) -> list[str]:
    """Say which rows of the trace are of devices, and are no threads, and of what nothing is."""
    found = (trace.whole or trace).devices
    said = []
    if found.names:
        named = ", ".join(found.devices[:_NAMED]) + (", ..." if len(found.devices) > _NAMED else "")
        rows = plural(len(found.names), "row is a stream", "rows are streams")
        kernels = "" if len(found.kernels()) else "; no kernels are recorded"
        said.append(
            f"{rows} of {plural(len(found.devices), 'device')} ({named}), not threads{kernels}"
        )
    if found.left_out:
        rows = plural(len(found.left_out), "row", "rows")
        said.append(f"left out: {rows} of sampled counters ({found.left_out[0]})")
    if trace.timed and (silent := _silent_processes(trace.whole or trace)):
        which = "" if silent == trace.processes else f" of {plural(silent, 'process', 'processes')}"
        host = " of the host" if found.names else ""
        said.append(f"nothing is recorded of the threads{which}: efficiencies{host} mean little")
    return [*said, *([found.note] if found.note else [])]


def _silent_processes(trace: Trace) -> int:
    """How many processes have threads without any event, none of which ever runs."""
    masters = trace.process_offsets[:-1]
    silent = np.add.reduceat(np.diff(trace.records.events.offsets), masters) == 0
    if silent.any():  # running states are many
        running = np.diff(trace.records.in_state(RUNNING).offsets)
        silent &= np.add.reduceat(running, masters) == 0
    return int(silent.sum())


def untraced(trace: Trace) -> list[str]:
    """Say for how much of the time tracing was off; where records are lost, that is said instead.

    It is the time of the master threads, as processes may switch tracing off at different times.
    """
    covered, traced = (times[trace.process_offsets[:-1]].sum() for times in state_times(trace))
    share = 1 - traced / covered if covered else 0.0
    if not traced or share < _NOTEWORTHY_UNTRACED or losses(trace):
        return []
    return [f"tracing was off for {100 * share:.2g} % of the time: only the rest is in the numbers"]


def writing(trace: Trace) -> list[str]:
    """Say how long the tracer itself wrote records: state "I/O" outside of the program's I/O."""
    writes = trace.records.in_state(INPUT_OUTPUT)
    if not len(writes):
        return []
    times = alone([writes], [trace.records.file_io(), mpi_io(trace)]).total()
    worst = int(np.argmax(times))
    share = int(times[worst]) / max(int(state_times(trace)[1].max(initial=0)), 1)
    if share < _NOTEWORTHY_WRITING:
        return []
    return [
        f"the tracer wrote records for {format_time(int(times[worst]) / _NS)} "
        f"({100 * share:.2g} % of the runtime) in {_who(trace.process_offsets, worst)}, the most: "
        "this counts as loss, but is the tracer's; record fewer calls or a shorter part, or "
        "enlarge its buffer"
    ]


def _before_states(trace: Trace) -> list[str]:
    """Say for how long no thread is in any state at first, which is no part of the runtime."""
    covered, _ = state_times(trace)
    first, _ = state_ends(trace)
    late = int(first[covered > 0].min(initial=trace.end)) - trace.begin
    if not covered.any() or late < _NOTEWORTHY_UNTRACED * trace.duration:
        return []
    return [
        f"no state is recorded in the first {format_time(late / 1e9)}: that time is no part of the "
        "runtime, but counts as computing elsewhere"
    ]


_TOO_LITTLE = "too little for reliable numbers"


def is_too_little(caveat: str) -> bool:
    """Whether a sentence says that so little is analysed that nothing should be advised."""
    return caveat.endswith(_TOO_LITTLE)


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
    of_devices = len(trace.devices.activity) if calls + regions < FEW else 0
    if 0 < calls + regions + of_devices < FEW:
        numbers = (
            (calls, "MPI call"),
            (regions, "parallel region"),
            (of_devices, "kernel or copy", "kernels and copies"),
        )
        things = " and ".join(plural(number, *what) for number, *what in numbers if number)
        reasons.append(f"has only {things}")
    return [f"the analysed part {' and '.join(reasons)}: {_TOO_LITTLE}"] if reasons else []
