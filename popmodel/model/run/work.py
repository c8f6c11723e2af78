"""What an average process does in a part of its program: the vector that a region tree adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.expressions.elementary import Value, maximum, numbers, sqrt
from popmodel.base.values import NamedTuple, dataclass
from popmodel.efficiency.family import AGGREGATES, NO_MPI
from popmodel.model.run.process_placement import Placement
from popmodel.model.terms import imbalance
from popmodel.model.uncertainty import nominal

WORK: Mapping[str, tuple[str, str, str]] = {
    "serial": ("t_serial", "s", "code of the master outside parallel regions"),
    "stated": ("t_stated", "s", "code of the master whose time the signature states"),
    "share": ("t_share", "s", "useful time in parallel regions, average thread"),
    "stretched": ("t_busiest", "s", "useful time in parallel regions, busiest thread"),
    "overhead": ("t_overhead", "s", "OpenMP constructs"),
    "synchronising": ("t_sync", "s", "OpenMP constructs in which threads wait"),
    "awaiting": ("t_await", "s", "waiting for the busiest thread in barriers and locks"),
    "single_thread": ("t_single", "s", "parallel loops with one thread"),
    "waiting": ("t_waiting", "s", "waiting that no network removes"),
    "transfer": ("t_transfer", "s", "messages and collectives"),
    "measured": ("t_measured", "s", "collectives by their measured times"),
    "steps": ("n_meet", "1", "how often processes meet"),
    "serial_cycles": ("c_serial", "cycle", "cycles of the master outside parallel regions"),
    "region_cycles": ("c_region", "cycle", "cycles of a thread in parallel regions"),
    "flops": ("n_flop", "1", "floating-point operations"),
    "memory_bytes": ("n_bytes", "B", "traffic to memory"),
    "instructions": ("n_instr", "instructions", "instructions of all threads in useful time"),
}
"""Parts of the work of a process: name in formulas, unit, meaning."""


class RunWork(NamedTuple):
    """Times and amounts of one process, by the names of `WORK`."""

    serial: Value = 0.0
    stated: Value = 0.0  # Part of ``serial``: no counts, and no law of them
    share: Value = 0.0
    stretched: Value = 0.0
    overhead: Value = 0.0
    synchronising: Value = 0.0  # Part of ``overhead``
    awaiting: Value = 0.0  # Part of ``stretched`` beyond ``share``; an average over the threads
    single_thread: Value = 0.0  # And without OpenMP
    waiting: Value = 0.0  # Such as the start of a pipeline
    transfer: Value = 0.0  # No waiting included
    measured: Value = 0.0  # Part of ``transfer``, not from times of messages
    steps: Value = 0.0
    serial_cycles: Value = 0.0
    region_cycles: Value = 0.0
    flops: Value = 0.0  # As traffic, of all threads
    memory_bytes: Value = 0.0
    instructions: Value | None = 0.0  # None if some part does not count them

    def plus(self, other: RunWork) -> RunWork:
        """Return one part after the other in the same step, whose meetings are counted once."""
        # what one part does not know, the whole does not know
        sums: list[Any] = [
            None if mine is None or others is None else mine + others
            for mine, others in zip(self, other, strict=True)
        ]
        return RunWork(*sums)._replace(steps=maximum(self.steps, other.steps))

    def times(self, count: Value) -> RunWork:
        """Return the part executed ``count`` times."""
        scaled: list[Any] = [None if mine is None else mine * count for mine in self]
        return RunWork(*scaled)

    def computed(self, factor: Value) -> RunWork:
        """Return the part with all that its threads compute taking ``factor`` times as long.

        One thread would take as much longer.
        """
        times = ("serial", "stated", "share", "stretched", "awaiting", "single_thread")
        changed: dict[str, Any] = {
            name: getattr(self, name) * factor
            for name in (*times, "serial_cycles", "region_cycles")
        }
        return self._replace(**changed)

    @property
    def parallel(self) -> Value:
        """Wall time in parallel regions."""
        return self.stretched + self.overhead


# Work whose differences between processes, or between steps, are known one by one.


Array = NDArray[np.float64]


class UnevenWork(NamedTuple):
    """A part of the work of an item, and how it differs."""

    share: float  # Its part of the work of an average process
    # float64[P] or None: Work of every process over that of an average one; None where it is not
    # known, and processes differ by a persistent coefficient of variation.
    ranks: Array | None = None
    # float64[n] or None: Values, each as likely as the others, of the factor by which a process has
    # more to do in a step; None where it is normal.
    turns: Array | None = None
    # float64[P, n] or None: That factor of each process in each of n executions, one after the
    # other, where these were recorded: a replay takes them in place of `turns`.
    sequence: Array | None = None


def relative(values: Sequence[float] | Array, factor: float = 1.0) -> Array:
    """Return values over their mean, their differences from it times a factor; none below 0."""
    found = np.asarray(values, dtype=np.float64)
    mean = found.mean()
    whole: Array = np.maximum(1 + factor * (found / mean - 1), 0.0)
    return whole


AVERAGED = "averaged"
"""Of a spread: whether transient differences average out over the steps, 1 if nothing is said.

Where it is 0, the persistent part has all by which the slowest process is slower in the end.
"""
LARGEST = "largest"
"""Of a spread: by how much one process exceeds the average, because its work cannot be divided."""
_NOTHING = 1e-12  # of the time of a process: a delay that is less cannot be scaled
_SAME = 1e-9  # of the same: a difference that is less is rounding


class RunCourse(NamedTuple):
    """Times of a run, s."""

    computing: Value  # Computation of the process that has the most of it
    ideal: Value  # Runtime on a network that costs nothing
    runtime: Value  # Runtime

    def nominal(self) -> RunCourse:
        return RunCourse(nominal(self.computing), nominal(self.ideal), nominal(self.runtime))


class Delays(NamedTuple):
    """By what a run is longer than the work of an average process, s."""

    # Computation of the process that has the most of it, above that of an average one.
    unequal: Value
    waiting: Value  # Waiting that no network removes
    transfer: Value  # What the network adds


def computation(work: RunWork) -> Value:
    """Return the part of an average process's time that grows with its work, s."""
    return work.serial + work.stretched


def closed_form(
    work: RunWork, processes: int, spread: Mapping[str, Value], *, has_mpi: bool
) -> RunCourse:
    """Return the course of a run in which all processes wait for the slowest in every step."""
    overall, per_step = _slowest(work, processes, spread, has_mpi=has_mpi)
    computing = computation(work)
    ideal = computing * (1 + per_step) + work.overhead + work.waiting
    return RunCourse(computing * (1 + overall), ideal, ideal + work.transfer)


def closed_delays(work: RunWork, processes: int, spread: Mapping[str, Value]) -> Delays:
    """Return the delays of `closed_form` for a program that communicates, as short formulas."""
    overall, per_step = _slowest(work, processes, spread, has_mpi=True)
    computing = computation(work)
    return Delays(
        computing * overall, computing * (per_step - overall) + work.waiting, work.transfer
    )


def with_largest(
    spread: Mapping[str, Value], excess: Value, work: RunWork, processes: Value
) -> Mapping[str, Value]:
    """Return the spread of a run in which one process exceeds the average by so much or more."""
    score = imbalance.expected_maximum(processes)
    if not (np.any(numbers(excess) > 0) and np.all(numbers(score) > 0)):
        return spread
    overall, longest = _slowest(work, processes, spread, has_mpi=True)
    overall = maximum(overall, excess)
    longest = maximum(longest, overall)
    return {
        "persistent_cv": overall / score,
        "transient_cv": sqrt(maximum(longest**2 - overall**2, 0.0)) / score,
        AVERAGED: 0.0,
    }


def _slowest(
    work: RunWork, processes: Value, spread: Mapping[str, Value], *, has_mpi: bool
) -> tuple[Value, Value]:
    """By what part the slowest process computes longer: over the run, and summed over its steps."""
    persistent = spread.get("persistent_cv", 0.0)
    transient = spread.get("transient_cv", 0.0)
    steps = maximum(work.steps, 1.0)
    lasting = transient if AVERAGED not in spread else transient * spread[AVERAGED]
    overall = imbalance.slowest_overall(persistent, lasting, steps, processes)
    # without communication nobody waits before the end
    if not has_mpi:
        return overall, overall
    return overall, imbalance.slowest_per_step(persistent, transient, processes)


def delays(work: RunWork, course: RunCourse) -> Delays:
    """Return the time by which a run is longer than the work of an average process."""
    return Delays(
        course.computing - computation(work),
        course.ideal - course.computing - work.overhead,
        course.runtime - course.ideal,
    )


class Change(NamedTuple):
    """How a delay of the closed form is changed: times a factor, plus seconds, at least 0."""

    factor: Value = 1.0
    seconds: Value = 0.0


class Correction(NamedTuple):
    """How a replay changes the closed form; made by `correction`."""

    # Of the delays. Unequal work is changed by no message, but by processes that leave their memory
    # domain to others.
    unequal: Change = Change()
    waiting: Change = Change()
    transfer: Change = Change()
    computation: Value = 1.0  # Factor of the computation of an average process, by the same reason


def correction(
    work: RunWork, closed: Delays, replayed: Delays, computation_factor: float = 1.0
) -> Correction:
    """Return the change of every delay from the closed form to the replay."""
    time = nominal(computation(work)) + nominal(work.overhead)

    def change(before: float, after: float) -> Change:
        if abs(after - before) <= _SAME * time:
            return Change()
        if before <= _NOTHING * time:
            return Change(seconds=after - before)
        return Change(after / before)

    return Correction(
        change(nominal(closed.unequal), nominal(replayed.unequal)),
        change(nominal(closed.waiting), nominal(replayed.waiting)),
        change(nominal(closed.transfer), nominal(replayed.transfer)),
        computation_factor,
    )


def corrected(work: RunWork, found: Delays, correction: Correction) -> tuple[RunWork, RunCourse]:
    """Return the work and the course of an evaluation as a replay of the best estimate says them.

    What the replay finds for each of the delays relative to the closed form holds for every
    evaluation of the same split: for other draws, and for a machine that is changed a little.
    """
    if not isinstance(correction.computation, float) or correction.computation != 1:
        work = work.computed(correction.computation)
    computing = computation(work) + _changed(found.unequal, correction.unequal)
    ideal = computing + work.overhead + _changed(found.waiting, correction.waiting)
    return work, RunCourse(computing, ideal, ideal + _changed(found.transfer, correction.transfer))


def _changed(delay: Value, change: Change) -> Value:
    changed = delay * change.factor
    if isinstance(change.seconds, float) and change.seconds == 0:
        return changed
    return maximum(changed + change.seconds, 0.0)


# From the work of an average process and the course of the run to what the metric formulas use.


INSTRUCTIONS_ABSENT = "the signature does not count all instructions (key instructions)"
NODE_UNKNOWN = "the model does not say which node has the slower processes"
NO_REFERENCE = "a single prediction has no reference run"

# how the parts of the runtime are named, in display order
PARTS = ("parallel loops", "imbalance and waiting", "serial code", "messages", "OpenMP overhead")


@dataclass(frozen=True)
class ModelledObservables:
    """A modelled run."""

    aggregates: dict[str, Value]  # Names of `popmodel.efficiency.family.AGGREGATES`
    absent: dict[str, str]  # Reasons for the names that are missing
    # Parts of the runtime of an average process, by the names in `PARTS`; they add up to it.
    time: dict[str, Value]

    @property
    def runtime(self) -> Value:
        """Runtime, s."""
        return self.aggregates["runtime"]


@np.errstate(over="ignore", invalid="ignore")  # the end looks at what came of it
def observe(
    work: RunWork, placement: Placement, course: RunCourse, *, has_mpi: bool
) -> ModelledObservables:
    """Return the aggregates of a run."""
    # P and T may be traced numbers, which float() would turn into plain ones
    processes, threads = 1.0 * placement.processes, 1.0 * placement.threads
    computing = computation(work)
    outside = computing + work.overhead
    outside_max = course.computing + work.overhead
    ideal, runtime = course.ideal, course.runtime
    uneven = work.stretched - work.share
    synchronising = work.synchronising + work.awaiting
    all_threads = processes * threads
    aggregates: dict[str, Value] = {
        "processes": processes,
        "threads": all_threads,
        "runtime": runtime,
        "useful_mean": work.share + work.serial / threads,
        "useful_max": course.computing,
        "useful_sum": all_threads * work.share + processes * work.serial,
        "omp_useful_mean": work.share,
        # under a static schedule the master has the largest share
        "master_useful_mean": computing,
        "master_useful_max": course.computing,
        "serial_useful_mean": work.serial,
        "in_openmp_mean": work.parallel,
        "serial_openmp_max": outside_max,
        "outside_mpi_mean": outside,
        "outside_mpi_max": outside_max,
        "openmp_imbalance": uneven,
        "openmp_synchronisation": synchronising,
        "openmp_scheduling": work.overhead + uneven - synchronising,
        "openmp_mpi": 0.0 * runtime,
        "mpi_mean": (runtime - outside) / threads,
        "mpi_min": (runtime - outside_max) / threads,
        "idle_serial": processes * (threads - 1) * (runtime - work.parallel),
        "idle_imbalance": all_threads * uneven,
        "idle_scheduling": all_threads * work.overhead,
        "cycles_sum": processes * work.serial_cycles + all_threads * work.region_cycles,
    }
    absent = {"reference": NO_REFERENCE}
    if work.instructions is None:
        absent["instructions"] = INSTRUCTIONS_ABSENT
    else:
        aggregates["instructions_sum"] = processes * work.instructions
    _refuse_infinite(aggregates)
    if has_mpi:
        aggregates["ideal_runtime"] = ideal
    else:
        absent["ideal_runtime"] = NO_MPI
    if placement.nodes == 1 or not np.any(aggregates["mpi_mean"] - aggregates["mpi_min"]):
        aggregates["mpi_node_min"] = aggregates["mpi_mean"]
    else:
        absent["mpi_node_min"] = NODE_UNKNOWN
    waiting = ideal - outside
    parts = (work.share, uneven + waiting, work.serial, runtime - ideal, work.overhead)
    return ModelledObservables(aggregates, absent, dict(zip(PARTS, parts, strict=True)))


def _refuse_infinite(aggregates: Mapping[str, Value]) -> None:
    for name, value in aggregates.items():
        if isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
            raise UsageError(
                f"the run is too large to be computed: {AGGREGATES[name].meaning} is beyond "
                "1.8e308",
                "check for a parameter that is too large (--set) or a formula in the wrong unit",
            )
