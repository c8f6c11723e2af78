"""The quantities that every efficiency is computed from.

A run, however it was obtained (a trace, a replay, a hand-made example), is described by one
`Observables`: times per thread and per process. The formulas of the metric families see only
scalars, the *aggregates* of `popmodel.efficiency.family`: means, maxima and sums of those
times. A prediction that knows the scalars but no single thread builds the same names directly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.units import format_time, team
from popmodel.base.values import dataclass
from popmodel.efficiency.family import NO_MPI, REASONS, FamilyEvaluation
from popmodel.efficiency.hierarchy import load_families

if TYPE_CHECKING:
    from popmodel.efficiency.device_times import DeviceTimes
    from popmodel.efficiency.io_times import IOTimes
    from popmodel.efficiency.vector_counts import VectorCounts
    from popmodel.simulator import Execution


Times = NDArray[np.float64]
OutsideMPI = Literal["everywhere", "not-in-mpi"]

COUNTER_COVERAGE = 0.999
"""Share of the useful time whose threads must have counted something for a counter to be used.

A thread that ran for a few microseconds may end without a single counter reading; a thread that
worked for a noticeable time without one would bias every scaling metric.
"""


@dataclass(frozen=True)
class RegionObservables:
    """One OpenMP parallel region of the source, over all its instances and processes."""

    name: str  # The outlined function or the line, as the trace names it
    count: int  # Instances, summed over processes
    wall: float  # Wall time of the masters inside the region, summed over processes, in seconds
    parallel_efficiency: float  # Useful share of the thread time inside the region
    load_balance: float  # Average over busiest useful time of the team
    cost: float  # Thread time inside the region that is not useful, in thread-seconds
    locks: float = 0.0  # The part of it in which threads wait for locks and critical sections
    # What the average thread lacks to the busiest of its team; time in MPI calls; time in barriers.
    # Thread-seconds; imbalance overlaps with the others.
    imbalance: float = 0.0
    mpi: float = 0.0
    barriers: float = 0.0


@dataclass(frozen=True, eq=False)
class Observables:
    """Everything measured of a run, in seconds.

    Arrays "per thread" run over the threads of process 0, then of process 1, and so on; the first
    thread of a process is its master. P is the number of processes, T that of all threads.
    """

    # Longest time of a thread in the window, without time in which tracing was disabled.
    runtime: float
    threads: NDArray[np.int64]  # Threads of each process
    node: NDArray[np.int32]  # Node of each process, counted from 0
    useful: Times  # Time in user code, outside MPI and outside the OpenMP runtime
    omp_useful: Times  # The part of `useful` inside parallel regions
    in_mpi: Times  # Time in MPI calls
    serial_useful: Times  # Useful time of the master outside parallel regions
    # Wall time of the master inside parallel regions; fork, join and MPI inside are included.
    in_openmp: Times
    serial_mpi: Times  # Time of the master in MPI outside parallel regions
    # Whether the run calls MPI at all, or has any parallel region.
    has_mpi: bool
    has_openmp: bool
    # Wall time of the master outside MPI calls up to its own end (BSC's reading of "outside MPI").
    not_in_mpi: Times | None = None
    # Runtime of the same run replayed on an ideal network. Not used without MPI calls.
    ideal_runtime: float | None = None
    # Hardware counters summed over useful time.
    instructions: Times | None = None
    cycles: Times | None = None
    # Idle thread time as TALP divides it, summed over threads.
    idle_serial: float | None = None
    idle_imbalance: float | None = None
    idle_scheduling: float | None = None
    # Busiest minus average useful time of the team, summed over the region instances of a process;
    # average over processes weighted by their threads.
    openmp_imbalance: float | None = None
    # Time inside parallel regions spent synchronising, in scheduling with fork and join, and in MPI
    # calls; average over all threads.
    openmp_synchronisation: float | None = None
    openmp_scheduling: float | None = None
    openmp_mpi: float | None = None
    regions: tuple[RegionObservables, ...] = ()  # The parallel regions one by one
    io: IOTimes | None = None  # Time in I/O, where there is any
    devices: DeviceTimes | None = None  # Devices such as GPUs, and threads that use them
    # Floating-point instructions by width, in useful time of all threads.
    vector_counts: VectorCounts | None = None
    # For each missing quantity the reason. Reasons that the other arguments imply (no MPI calls,
    # counters that did not count) are added.
    absent: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threads = np.asarray(self.threads, dtype=np.int64)
        if threads.ndim != 1 or threads.size == 0 or threads.min() < 1:
            raise ValueError("threads must give one positive number per process")
        object.__setattr__(self, "threads", threads)
        object.__setattr__(self, "node", np.asarray(self.node, dtype=np.int32))
        if self.node.shape != threads.shape:
            raise ValueError(f"node has shape {self.node.shape}, expected {threads.shape}")
        for names, size in ((_PER_THREAD, int(threads.sum())), (_PER_PROCESS, threads.size)):
            for name in names:
                if getattr(self, name) is not None:
                    object.__setattr__(self, name, _column(name, getattr(self, name), size))
        if not (np.isfinite(self.runtime) and self.runtime > 0):
            raise PopmodelError(
                f"the runtime is {self.runtime:g} s: there is no time to analyse",
                "choose a window in which the application runs",
            )
        for name in _SCALARS:
            if getattr(self, name) is not None:
                _check_not_negative(name, np.asarray(getattr(self, name), dtype=np.float64))
        missing = {
            name: reasons[0]
            for name, reasons in REASONS.items()
            if name not in _SELDOM and hasattr(self, name) and getattr(self, name) is None
        }
        object.__setattr__(self, "absent", {**missing, **self.absent, **_unusable(self)})

    def __repr__(self) -> str:
        return f"<Observables: {self.summary}>"

    @property
    def summary(self) -> str:
        """Size, runtime and share of useful time in a few words."""
        useful = 100 * float(self.useful.mean()) / self.runtime
        return f"{team(self.threads)}, runtime {format_time(self.runtime)}, {useful:.1f} % useful"

    @property
    def outside_mpi(self) -> Times:
        """Serial useful time plus wall time in parallel regions of each process, shape (P,)."""
        return self.serial_useful + self.in_openmp

    @property
    def masters(self) -> NDArray[np.int64]:
        """Index of each process's master among the threads, shape (P,)."""
        return np.cumsum(self.threads) - self.threads

    def aggregates(self, outside_mpi: OutsideMPI = "everywhere") -> dict[str, float]:
        """The scalars that the formulas of the metric families use."""
        if outside_mpi not in ("everywhere", "not-in-mpi"):
            raise UsageError(
                f"outside_mpi: unknown value {outside_mpi!r}", "choose everywhere or not-in-mpi"
            )
        total = float(self.threads.sum())

        def weighted(per_process: Times) -> float:
            return float(self.threads @ per_process) / total

        master_useful = self.useful[self.masters]
        serial_openmp = self.outside_mpi
        mpi = np.add.reduceat(self.in_mpi, self.masters) / self.threads
        values = {
            "processes": float(self.threads.size),
            "threads": total,
            "runtime": float(self.runtime),
            "useful_mean": float(self.useful.sum()) / total,
            "useful_max": float(self.useful.max()),
            "useful_sum": float(self.useful.sum()),
            "omp_useful_mean": float(self.omp_useful.sum()) / total,
            "master_useful_mean": float(master_useful.mean()),
            "master_useful_max": float(master_useful.max()),
            "serial_useful_mean": weighted(self.serial_useful),
            "in_openmp_mean": weighted(self.in_openmp),
            "serial_openmp_max": float(serial_openmp.max()),
            "mpi_mean": weighted(mpi),
            "mpi_min": float(mpi.min()),
            "mpi_node_min": _least_node_mean(mpi, self.threads, self.node),
        }
        chosen = serial_openmp if outside_mpi == "everywhere" else self.not_in_mpi
        if chosen is not None:
            values["outside_mpi_mean"] = weighted(chosen)
            values["outside_mpi_max"] = float(chosen.max())
        for counter in ("instructions", "cycles"):
            counts = getattr(self, counter)
            if counts is not None and counter not in self.absent:
                values[f"{counter}_sum"] = float(counts.sum())
        for name in _SCALARS:
            value = getattr(self, name)
            if value is not None and name not in self.absent:
                values[name] = float(value)
        if self.vector_counts and "vector_counts" not in self.absent:
            values |= self.vector_counts.aggregates()
        if self.io:
            values |= self.io.aggregates(self.masters)
        if self.devices is not None and self.has_kernels:
            values |= self.devices.aggregates(self.threads)
        return values

    @property
    def has_kernels(self) -> bool:
        """Whether the run has devices, of which kernels are recorded."""
        return self.devices is not None and "devices" not in self.absent

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, numbers and text, for JSON; times in seconds, None where absent."""
        arrays = ("threads", "node", *_PER_THREAD, *_PER_PROCESS)
        columns = {name: getattr(self, name) for name in arrays}
        return {
            "runtime": float(self.runtime),
            **{name: None if array is None else array.tolist() for name, array in columns.items()},
            **{name: getattr(self, name) for name in _SCALARS},
            "has_mpi": self.has_mpi,
            "has_openmp": self.has_openmp,
            "regions": [vars(region) for region in self.regions],
            "absent": dict(self.absent),
            **(self.devices.of_threads() if self.devices else {}),
            **(self.io.to_dict(self.masters) if self.io else {}),
            **({"vector_counts": vars(self.vector_counts)} if self.vector_counts else {}),
        }


_SELDOM = ("devices", "io", "vector_counts")
"""Quantities that few runs have: that one lacks them is no remark."""
_PER_THREAD = ("useful", "omp_useful", "in_mpi", "instructions", "cycles")
_PER_PROCESS = ("serial_useful", "in_openmp", "serial_mpi", "not_in_mpi")
_SCALARS = (
    "ideal_runtime",
    "idle_serial",
    "idle_imbalance",
    "idle_scheduling",
    "openmp_imbalance",
    "openmp_synchronisation",
    "openmp_scheduling",
    "openmp_mpi",
)


def _column(name: str, values: Any, size: int) -> Times:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (size,):
        raise ValueError(f"{name} has shape {column.shape}, expected ({size},)")
    _check_not_negative(name, column)
    return column


def _check_not_negative(name: str, values: Times) -> None:
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        where = f" of entry {wrong[0]}" if values.ndim else ""
        raise PopmodelError(
            f"{name}{where} is {values.flat[wrong[0]]:g}: times and counts must be finite"
            " and not negative",
            "check the trace or the numbers that the run was described with",
        )


def _unusable(run: Observables) -> dict[str, str]:
    """Reasons against quantities that were given but mean nothing."""
    reasons = {}
    if not run.has_mpi:
        # A replay of nothing reproduces the run: transfer would read as a flawless 1.
        reasons["ideal_runtime"] = NO_MPI
    for name in ("instructions", "cycles"):
        counts = getattr(run, name)
        if counts is None:
            continue
        if not counts.any():
            reasons[name] = f"the hardware counter of {name} is zero on all threads"
            continue
        silent = (counts == 0) & (run.useful > 0)
        if run.useful[silent].sum() > (1 - COUNTER_COVERAGE) * run.useful.sum():
            reasons[name] = (
                f"the hardware counter of {name} is missing on {int(silent.sum())}"
                f" of {counts.size} threads"
            )
    return reasons


def _least_node_mean(mpi: Times, threads: NDArray[np.int64], node: NDArray[np.int32]) -> float:
    _, member = np.unique(node, return_inverse=True)
    return float((np.bincount(member, threads * mpi) / np.bincount(member, threads)).min())


# Observables of a run that was replayed.


OTHER_SPEEDS = "ranks have other CPU speeds than in the trace"
NO_REGIONS = "no OpenMP parallel regions"
FAMILIES = ("mpi", "hybrid-additive")
"""Families whose quantities a replay gives."""


def of_execution(measured: Observables, execution: Execution, ideal: Execution) -> Observables:
    """Return what was measured of a run as it would be on another network.

    Time outside MPI is as measured, divided by the CPU speed; the time in MPI, the runtime and the
    ideal runtime are those of the replays. Workers of a team wait while their master is in MPI.
    """
    speed = execution.network.cpu(len(measured.threads))
    of_thread = np.repeat(speed, measured.threads)
    outside = {
        **{name: getattr(measured, name) / of_thread for name in ("useful", "omp_useful")},
        **{name: getattr(measured, name) / speed for name in ("serial_useful", "in_openmp")},
    }
    # What is known of all processes together says nothing of those that become faster.
    alike = bool((speed == speed[0]).all())
    inside_regions: dict[str, Any] = {
        name: getattr(measured, name) / speed[0] if alike else None
        for name in ("openmp_imbalance", "openmp_synchronisation", "openmp_scheduling")
        if getattr(measured, name) is not None
    }
    in_mpi = np.maximum(execution.end - execution.compute, 0.0)
    of_threads = np.zeros(measured.in_mpi.shape)
    of_threads[measured.masters] = in_mpi
    kept = {key: why for key, why in measured.absent.items() if key != "ideal_runtime"}
    kept |= {name: OTHER_SPEEDS for name, value in inside_regions.items() if value is None}
    return replace(
        measured,
        runtime=execution.runtime,
        in_mpi=of_threads,
        serial_mpi=in_mpi,
        not_in_mpi=execution.compute,
        ideal_runtime=ideal.runtime,
        # how idle time is divided is known of the measured run only
        idle_serial=None,
        idle_imbalance=None,
        idle_scheduling=None,
        regions=(),
        devices=None,  # they are not replayed, nor is I/O
        io=None,
        absent=kept,
        **outside,
        **inside_regions,
    )


def unknown_families(measured: Observables) -> dict[str, str]:
    """Families that a replay of a run does not give, each with the reason."""
    if not measured.has_openmp:
        return {"hybrid-additive": NO_REGIONS}
    if measured.openmp_mpi:
        return {
            "hybrid-additive": "MPI is called inside parallel regions, whose time on another "
            "network is not known"
        }
    return {}


def evaluate_replay(run: Observables, unknown: Collection[str]) -> dict[str, FamilyEvaluation]:
    """Evaluate the families that replays give, but for those that are unknown here."""
    families, aggregates = load_families(), run.aggregates()
    return {
        name: families[name].evaluate(aggregates, run.absent)
        for name in FAMILIES
        if name not in unknown
    }
