"""From a trace to what efficiencies are computed from: times, counters, the ideal replay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.errors import PartError, PopmodelError, ReplayError, TraceError
from popmodel.base.units import format_time, plural
from popmodel.base.values import cut, dataclass
from popmodel.efficiency import region_efficiencies as workers
from popmodel.efficiency.device_times import measure_devices
from popmodel.efficiency.evidence import (
    CallSite,
    Evidence,
    SerialCode,
    credited_to_probes,
    gather,
    measure_call_sites,
    serial_code,
)
from popmodel.efficiency.io_times import measure_io
from popmodel.efficiency.observables import Observables, RegionObservables
from popmodel.efficiency.region_efficiencies import COLUMNS, measure_regions
from popmodel.efficiency.vector_counts import (
    NO_COUNTERS,
    VectorCounts,
    vector_counters,
    vector_counts,
)
from popmodel.kernel import _kernel
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import unmodelled_calls
from popmodel.traces.calls import call_times
from popmodel.traces.caveats import caveats, contradictions, untraced
from popmodel.traces.codes import Event
from popmodel.traces.info import marked_regions
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.regions import ParallelRegions, WithoutWaits, parallel_regions, running_time
from popmodel.traces.runtime import longest, state_times
from popmodel.traces.selection import PROGRAM, TraceFocus, TracePart, focused
from popmodel.traces.tables import walk_locations
from popmodel.traces.workers import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator import Execution, Program
    from popmodel.traces import Trace


# When threads do useful work, and which of it lies in parallel regions.


@dataclass(frozen=True)
class UsefulTimes:
    """Useful time of all threads of a run."""

    # When threads run user code; waits for locks of which there are only sums are taken off.
    running: WithoutWaits
    regions: ParallelRegions  # The parallel regions
    # int64[L]: Useful time of each location in parallel regions, ns: of a master while it is in a
    # construct, of a worker while it executes an outlined function.
    in_regions: NDArray[np.int64]
    # Running time of workers outside of all outlined functions, whatever their master does.
    apart: Intervals


def useful_times(trace: Trace) -> UsefulTimes:
    """Find the useful time of a run, or of a part of one."""
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    is_master = np.zeros(bounds[-1], dtype=bool)
    is_master[bounds[:-1]] = True
    running = running_time(trace.records, trace.devices.calls, trace.begin)
    regions = parallel_regions(trace)
    outlined = regions.in_function
    inside = np.where(is_master, running.within(regions.on_master), running.within(outlined))
    some = np.flatnonzero(~is_master & (running.total() > inside))
    return UsefulTimes(running, regions, inside, alone([running.at(some)], [outlined]))


# From a traced run to its observables.
#
# The rules are those of PyPOP's statistics, which they reproduce to the nanosecond
# (``tests/efficiency/test_pypop.py``): useful time is state 1 (running); time in MPI comes from the
# MPI events; a parallel region lasts from a nonzero value of the parallel-construct event on the
# master to the next zero; a worker takes part in regions inside its outlined functions, and what it
# runs outside of them is useful, but in no region; a counter read at time t belongs to the running
# record with begin < t <= end, and only the first read at that t counts.


_NS = 1e9
_time = partial(format_time, digits=3, trim=True)
_ROWS = 1 << 15  # useful times of the threads whose counters are read together
_LARGEST = 2**63
_COUNTERS: Mapping[Event | str, str] = {
    Event.INSTRUCTIONS: "instructions",
    Event.CYCLES: "cycles",
}
_UNCOVERED = "useful, MPI and region times exceed the time covered by states"
_QUICK = 0.95  # transfer efficiency from which on nobody asks what the network does
_SHOWN = 5e-4  # share of all thread time that changes the digits of an efficiency as it is printed


@dataclass(frozen=True)
class MeasuredRun:
    """A measured run."""

    trace: str  # Path of the trace
    observables: Observables  # The measured and replayed quantities
    notes: tuple[str, ...]  # What the replay treated as computation or omitted, one line each
    # What limits the numbers, the most important first, one sentence each; shown above them.
    caveats: tuple[str, ...] = ()
    window: TraceFocus | None = None  # The analysed window; None if the run is not from a trace
    call_sites: tuple[CallSite, ...] = ()  # Call sites of MPI, by descending time
    evidence: Evidence = Evidence()  # Further evidence about the causes of losses

    def __repr__(self) -> str:
        return cut(f"<Run {self.trace}: {self.observables.summary}>")


def analyse(
    trace: Trace, network: Network = PRESETS["ideal"], *, part: TracePart = PROGRAM
) -> MeasuredRun:
    """Measure a run, and replay it on an ideal network for its ideal runtime.

    By default from the end of MPI_Init on the last rank to the start of MPI_Finalize on the first;
    all times and counts are those of this part of the run.
    """
    refuse_untimed(trace)
    trace, window = focused(trace, part)
    total = longest(trace, *state_times(trace))
    # What is held of every running state and call goes before the replay needs memory of its own.
    measured, broken, serial = _measured(trace, total)
    calls = measure_call_sites(trace)
    replayed, absent, omitted, notes, ideal = _replayed(trace, network, total / _NS)
    run = Observables(**measured, **replayed, absent=absent | broken)
    first = [
        *contradictions(trace),
        *untraced(trace),
        *omitted,
        *caveats(trace, window),
    ]
    first, said = [*dict.fromkeys(first)], [*notes, *_unaccounted(run)]
    (first if workers.apart(run) else said).extend(workers.remarks(run))
    sites = calls.sites(total * trace.locations, ideal)
    transferred = ideal is not None and ideal[1].runtime < _QUICK * run.runtime
    evidence = gather(trace, serial, ideal[0] if ideal and transferred else None)
    return MeasuredRun(trace.path, run, tuple(said), tuple(first), window, sites, evidence)


def refuse_untimed(trace: Trace) -> None:
    """Refuse a run without measured times."""
    if not trace.timed:
        raise TraceError(
            trace.path,
            "has no measured times, only what processes compute and call",
            hint="popmodel whatif simulates the run on a network",
        )


def before_replay(trace: Trace) -> Observables:
    """Return what is known of a run without measured times, whose MPI takes none.

    Its replays give the rest (`popmodel.efficiency.observables.of_execution`).
    """
    measured, broken, _ = _measured(trace, max(longest(trace, *state_times(trace)), 1))
    return Observables(**measured, absent=broken)


def _measured(
    trace: Trace, total: int
) -> tuple[dict[str, Any], dict[str, str], tuple[SerialCode, ...]]:
    """Observables that take no replay, reasons for those that lack, and the code between regions.

    `total` is the runtime, ns.
    """
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    masters = bounds[:-1]
    times = useful_times(trace)
    running, parallel = times.running, times.regions.on_master
    calls, in_mpi = call_times(trace)
    in_calls = trace.calls().intervals() if len(parallel) else Intervals.none(trace.locations)
    useful = trace.derived("running", lambda _: running.total())  # what `contradictions` asks for
    omp_useful = times.in_regions
    lost = dict.fromkeys(COLUMNS, 0.0)
    regions: tuple[RegionObservables, ...] = ()
    if len(parallel):
        lost, regions = measure_regions(
            trace, running, in_calls, times.regions, times.apart, running.waits
        )
    counters, broken = _counters(trace, running, _COUNTERS)
    vectors, why = _vector_counts(trace, running)
    # Idle thread time of the teams as TALP divides it; the rest is serial. Where the states do not
    # cover the regions there is less idle time than the regions have.
    idle = {name: round(lost[name]) for name in ("idle_imbalance", "idle_scheduling")}
    devices = measure_devices(trace, times.regions)
    serial = int(total * bounds[-1] - useful.sum() - in_mpi.sum()) - sum(idle.values())
    serial -= 0 if devices is None else round(float(devices.in_serial_calls.sum()) * _NS)
    idle["idle_serial"] = serial
    covered = serial >= 0
    impossible = {} if covered else dict.fromkeys(idle, _UNCOVERED)
    if devices is not None and not devices.kernels.any():
        why = {**why, "devices": "no kernels of devices are recorded"}
    all_threads = float(trace.locations) * _NS
    quantities = {
        "runtime": total / _NS,
        "threads": np.diff(bounds),
        "node": np.asarray(trace.node_of_location)[masters],
        "useful": useful / _NS,
        "omp_useful": omp_useful / _NS,
        "in_mpi": in_mpi / _NS,
        "serial_useful": (useful - omp_useful)[masters] / _NS,
        "in_openmp": parallel.total()[masters] / _NS,
        "serial_mpi": (in_mpi - in_calls.within(parallel))[masters] / _NS,
        "has_mpi": bool(calls.any()),
        "has_openmp": bool(len(parallel)),
        "instructions": counters.get("instructions"),
        "cycles": counters.get("cycles"),
        "openmp_imbalance": lost["imbalance"] / all_threads,
        "openmp_synchronisation": lost["synchronisation"] / all_threads,
        "openmp_scheduling": lost["scheduling"] / all_threads,
        "openmp_mpi": lost["mpi"] / all_threads,
        "regions": regions,
        "devices": devices,
        "io": measure_io(trace),
        "vector_counts": vectors,
        **({name: time / _NS for name, time in idle.items()} if covered else {}),
    }
    return quantities, broken | impossible | why, serial_code(trace, running, times.regions)


def runtime(trace: Trace) -> float:
    """Runtime of a traced run, s: the longest time of a thread, tracing-disabled time left out."""
    return longest(trace, *state_times(trace)) / _NS


_THREADS = (
    "not only masters call MPI: waiting for threads of the team and for other ranks cannot be told "
    "apart (popmodel whatif shows the runtime on other networks)"
)


def _replayed(
    trace: Trace, network: Network, measured: float
) -> tuple[
    dict[str, Any],
    dict[str, str],
    list[str],
    tuple[str, ...],
    tuple[Program, Execution] | None,
]:
    """Observables from the replay, reasons for those that it cannot give, and itself.

    In between: what of the run it does not contain, if anything rests on it, and its notes.
    """
    _kernel.trim()
    try:
        program = from_trace(trace)
    except ReplayError as error:
        reason = error.message
        return {}, {"ideal_runtime": reason, "not_in_mpi": reason}, [], (), None
    if len(program.threads):
        absent = dict.fromkeys(("ideal_runtime", "not_in_mpi"), _THREADS)
        return {}, absent, [], program.notes, None
    places = trace.sites().site
    program = credited_to_probes(program, (trace.whole or trace).calls())
    trace.release_calls()
    _kernel.trim()
    outside = program.compute() / _NS
    try:
        execution = replay(program, network, places=places)
    except ReplayError as error:
        return {"not_in_mpi": outside}, {"ideal_runtime": error.message}, [], program.notes, None
    notes = program.notes
    if execution.runtime > measured:
        notes = (*notes, _why_longer(program, network, execution.runtime, measured))
    observables = {"not_in_mpi": outside, "ideal_runtime": execution.runtime}
    return observables, {}, unmodelled_calls(program.unmodelled), notes, (program, execution)


def _why_longer(program: Program, network: Network, ideal: float, measured: float) -> str:
    """Name the assumption of the replay without which the ideal runtime is not the longer one."""
    rooted = {"collectives": "rooted"}
    never = {"eager_threshold": math.inf}
    beyond = _time(ideal - measured)
    exceeds = f"the ideal runtime exceeds the measured one by {beyond}: "
    for changes, reason in (
        (rooted, "roots left collectives early (--collectives rooted)"),
        (never, "blocking sends at or above the eager threshold did not wait for their receives"),
        (
            rooted | never,
            "roots left collectives early, and blocking sends at or above the eager threshold did "
            "not wait for their receives",
        ),
    ):
        if replay(program, network.with_(**changes)).runtime <= measured:
            return exceeds + reason
    return exceeds + (
        "neither early roots of collectives nor blocking sends explain it; other collectives may "
        "not have synchronised"
    )


def _vector_counts(trace: Trace, running: Intervals) -> tuple[VectorCounts | None, dict[str, str]]:
    """Floating-point instructions by width in useful time, or why there are none."""
    names, why = vector_counters([name.split()[0] for name in trace.records.counter_names()])
    if not names:
        return None, {} if why == NO_COUNTERS else {"vector_counts": why}
    sums, broken = _counters(trace, running, dict(zip(names, names, strict=True)))
    if broken or len(sums) < len(names):
        missing = (f"no reading of {name} in the analysed part" for name in names)
        return None, {"vector_counts": next(iter([*broken.values(), *missing]))}
    return vector_counts(sums), {}


def _counters(
    trace: Trace, running: Intervals, counters: Mapping[Event | str, str]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """Sums of hardware counters over useful time by location, and why one read is not there."""
    by_location = np.zeros((len(counters), trace.locations), np.int64)
    readings, negative, total = np.zeros((3, len(counters)))

    def summed(mine: slice) -> list[tuple[int, NDArray[np.int64], int, float]]:
        within = running.offsets[mine.start : mine.stop + 1]
        useful = slice(int(within[0]), int(within[-1]))
        return [
            # Of several readings at one time the first counts.
            (
                len(counts),
                *_kernel.sum_inside(
                    offsets=counts.offsets,
                    time=counts.time,
                    value=counts.value,
                    within_offsets=within - within[0],
                    begin=running.begin[useful],
                    end=running.end[useful],
                ),
            )
            for counts in trace.records.counters(tuple(counters), mine)
        ]

    parts = list(walk_locations(running.offsets, rows=_ROWS))
    for mine, sums_of in zip(parts, in_threads(summed, [(mine,) for mine in parts]), strict=True):
        for row, (count, counted, below_0, added) in enumerate(sums_of):
            by_location[row, mine] = counted
            readings[row] += count
            negative[row] += below_0
            total[row] += added
    sums, broken = {}, {}
    for row, name in enumerate(counters.values()):
        if not readings[row]:
            continue
        if negative[row]:
            number = plural(int(negative[row]), "reading")
            broken[name] = f"the hardware counter of {name} is negative in {number}"
        elif total[row] >= _LARGEST:
            broken[name] = f"the hardware counter of {name} overflows 64 bits"
        else:
            sums[name] = by_location[row].astype(np.float64)
    return sums, broken


def _unaccounted(run: Observables) -> list[str]:
    """Say where the costs of the regions do not add up to the loss of their efficiency."""
    lost = float(run.threads @ run.in_openmp - run.omp_useful.sum())
    costs = sum(region.cost for region in run.regions)
    if abs(costs - lost) <= _SHOWN * float(run.threads.sum()) * run.runtime:
        return []
    return [
        f"parallel regions lose {_time(costs)} one by one, {_time(lost)} by their efficiency: "
        f"worker threads run outlined functions for {_time(costs - lost)} outside their "
        "masters' parallel regions, so the efficiency may exceed 1"
    ]


# The regions that a program marks, each analysed by itself.


MARK_REGIONS = "mark regions in the program (popmodel.h: popmodel_begin, popmodel_end)"


@dataclass(frozen=True)
class RegionRun:
    """One region of a run."""

    name: str
    run: MeasuredRun | None  # What was measured in its occurrences; None where that is not possible
    problem: str = ""  # Why not


def by_region(trace: Trace, part: TracePart) -> tuple[RegionRun, ...]:
    """Analyse the regions that the user has marked, those with most time first."""
    window = focused(trace, TracePart(part.begin, part.end))[0] if part.has_window else trace
    names = list(marked_regions(window))
    if not names:
        raise PartError(trace.path, "no regions marked by the user", hint=MARK_REGIONS)
    return tuple(_analysed(trace, replace(part, region=name)) for name in names)


def _analysed(trace: Trace, part: TracePart) -> RegionRun:
    name = str(part.region)
    try:
        return RegionRun(name, analyse(trace, part=part))
    except PopmodelError as error:
        return RegionRun(name, None, error.message.removeprefix(f"{trace.path}: "))


# What each process of a run does with its time: where to look when the load is not balanced.


UNITS = {
    "useful": "s",  # average over the threads of a process
    # Of its master thread; in parallel regions it is wall time.
    "mpi": "s",
    "in_openmp": "s",
    "serial_useful": "s",
    "instructions": "instructions",  # sum over its threads
    "ipc": "1",  # instructions per cycle in useful time
}
"""Quantities of a process, with their units."""


def by_process(run: Observables) -> list[dict[str, Any]]:
    """A row for each process, by the names of `UNITS`; None for what it does not have."""
    masters = run.masters

    def total(per_thread: NDArray[np.float64]) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = np.add.reduceat(per_thread, masters)
        return summed

    values = {"useful": total(run.useful) / run.threads}
    if run.has_mpi:
        values["mpi"] = run.in_mpi[masters]
    if run.has_openmp:
        values |= {"in_openmp": run.in_openmp, "serial_useful": run.serial_useful}
    if run.instructions is not None and "instructions" not in run.absent:
        values["instructions"] = total(run.instructions)
        if run.cycles is not None and "cycles" not in run.absent:
            cycles = total(run.cycles)
            nothing = np.full(len(cycles), np.nan)
            values["ipc"] = np.divide(values["instructions"], cycles, out=nothing, where=cycles > 0)
    absent = np.full(len(masters), np.nan)
    columns: list[NDArray[Any]] = [np.arange(len(masters)), run.node, run.threads]
    columns += [values.get(name, absent) for name in UNITS]
    names = ("process", "node", "threads", *UNITS)
    return [
        {name: None if value != value else value for name, value in zip(names, row, strict=True)}
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]
