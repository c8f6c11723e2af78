"""The scalars that formulas of metrics use, and why one may be missing.

Names follow the POP documents: POP Standard Metrics for hybrid applications (averages weigh a
process by its threads), POP metric glossary (co-design.pop-coe.eu), DLB user guide (idle times).
`popmodel.efficiency.observables` computes them from a run, and the model from a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.values import dataclass

NO_MPI = "no MPI calls"
_NO_IDLE = "idle time of threads was not measured"

REASONS: Mapping[str, tuple[str, ...]] = {
    "ideal_runtime": ("no replay on an ideal network", NO_MPI),
    "not_in_mpi": ("the time outside MPI calls was not measured",),
    "instructions": ("no hardware counter of instructions",),
    "cycles": ("no hardware counter of cycles",),
    "idle_serial": (_NO_IDLE,),
    "idle_imbalance": (_NO_IDLE,),
    "idle_scheduling": (_NO_IDLE,),
    "openmp_imbalance": ("parallel regions were not analysed one by one",),
    "openmp_synchronisation": ("synchronisation inside parallel regions was not measured",),
    "openmp_scheduling": ("scheduling inside parallel regions was not measured",),
    "openmp_mpi": ("MPI inside parallel regions was not measured",),
    "reference": ("no reference run",),
    "reference_instructions": ("the reference run has no hardware counter of instructions",),
    "reference_cycles": ("the reference run has no hardware counter of cycles",),
}
"""Why a quantity may be missing; the first reason is the one if nothing else is known."""


@dataclass(frozen=True)
class Aggregate:
    """One scalar name that formulas may use."""

    name: str  # The name in formulas
    symbol: str  # How the name is written for people, after the notation of the POP documents
    unit: str  # ``s``, ``1`` or the thing that is counted
    meaning: str  # What the value is, as a noun phrase
    # The quantities of `Observables` without which the value is missing.
    needs: tuple[str, ...] = ()


# "weighted" below: the average over processes in which a process counts once per thread it has.
_TABLE = (
    Aggregate("processes", "P", "1", "number of processes"),
    Aggregate("threads", "T", "1", "number of threads of all processes"),
    Aggregate(
        "runtime",
        "runtime",
        "s",
        "runtime of the program; of a trace from the end of MPI_Init to the start of MPI_Finalize",
    ),
    Aggregate(
        "ideal_runtime",
        "ideal runtime",
        "s",
        "runtime of the same run replayed on an ideal network",
        ("ideal_runtime",),
    ),
    # Useful time, over threads.
    Aggregate("useful_mean", "Avg(useful)", "s", "useful time, average over all threads"),
    Aggregate("useful_max", "max(useful)", "s", "useful time of the busiest thread"),
    Aggregate("useful_sum", "sum(useful)", "s", "useful time, sum over all threads"),
    Aggregate(
        "omp_useful_mean",
        "Avg(useful in OpenMP)",
        "s",
        "useful time inside parallel regions, average over all threads",
    ),
    # The process as its master thread.
    Aggregate(
        "master_useful_mean",
        "Avg(useful of masters)",
        "s",
        "useful time of the master threads, average over processes",
    ),
    Aggregate(
        "master_useful_max",
        "max(useful of masters)",
        "s",
        "useful time of the busiest master thread",
    ),
    # Wall times of processes.
    Aggregate(
        "serial_useful_mean",
        "Avg(serial useful)",
        "s",
        "useful time of the masters outside parallel regions, weighted average",
    ),
    Aggregate(
        "in_openmp_mean",
        "Avg(in OpenMP)",
        "s",
        "wall time of the masters inside parallel regions, weighted average",
    ),
    Aggregate(
        "serial_openmp_max",
        "max(serial useful + in OpenMP)",
        "s",
        "longest time of a process in serial useful code and parallel regions together",
    ),
    Aggregate(
        "outside_mpi_mean",
        "Avg(outside MPI)",
        "s",
        "time of the processes outside MPI in the chosen reading, weighted average",
        ("not_in_mpi",),
    ),
    Aggregate(
        "outside_mpi_max",
        "max(outside MPI)",
        "s",
        "longest time of a process outside MPI in the chosen reading",
        ("not_in_mpi",),
    ),
    # Losses inside parallel regions, by kind.
    Aggregate(
        "openmp_imbalance",
        "OpenMP imbalance",
        "s",
        "busiest minus average useful time of the team, summed over region instances,"
        " weighted average",
        ("openmp_imbalance",),
    ),
    Aggregate(
        "openmp_synchronisation",
        "OpenMP synchronisation",
        "s",
        "time synchronising inside parallel regions, average over all threads",
        ("openmp_synchronisation",),
    ),
    Aggregate(
        "openmp_scheduling",
        "OpenMP scheduling",
        "s",
        "time in scheduling, fork and join of parallel regions, average over all threads",
        ("openmp_scheduling",),
    ),
    Aggregate(
        "openmp_mpi",
        "MPI in OpenMP",
        "s",
        "time in MPI calls inside parallel regions, average over all threads",
        ("openmp_mpi",),
    ),
    # MPI time of a process as the average over its threads, and idle threads, as TALP has them.
    Aggregate("mpi_mean", "Avg(MPI)", "s", "MPI time of the processes, weighted average"),
    Aggregate("mpi_min", "min(MPI)", "s", "smallest MPI time of a process"),
    Aggregate(
        "mpi_node_min",
        "min over nodes of Avg(MPI)",
        "s",
        "smallest MPI time of a node, weighted average over its processes",
    ),
    Aggregate(
        "idle_serial",
        "serial idle time",
        "s",
        "thread time idle outside the parallel region that runs, summed",
        ("idle_serial",),
    ),
    Aggregate(
        "idle_imbalance",
        "imbalance idle time",
        "s",
        "thread time idle in regions beyond the least idle thread of the team, summed",
        ("idle_imbalance",),
    ),
    Aggregate(
        "idle_scheduling",
        "scheduling idle time",
        "s",
        "thread time idle in regions that all threads of the team share, summed",
        ("idle_scheduling",),
    ),
    # Hardware counters over useful time.
    Aggregate(
        "instructions_sum",
        "sum(instructions)",
        "instructions",
        "instructions in useful time, sum over all threads",
        ("instructions",),
    ),
    Aggregate(
        "cycles_sum",
        "sum(cycles)",
        "cycles",
        "CPU cycles in useful time, sum over all threads",
        ("cycles",),
    ),
    # What a comparison with a reference run adds (popmodel.efficiency.scaling).
    Aggregate(
        "computation_scaling",
        "Computation scaling",
        "1",
        "useful time of the reference run over that of this run",
        ("reference",),
    ),
    Aggregate(
        "work_ratio",
        "work ratio",
        "1",
        "work of this run over work of the reference run (1 in strong scaling)",
        ("reference",),
    ),
    Aggregate(
        "reference_runtime", "runtime_ref", "s", "runtime of the reference run", ("reference",)
    ),
    Aggregate(
        "reference_useful_sum",
        "sum(useful)_ref",
        "s",
        "useful time of the reference run, sum over all threads",
        ("reference",),
    ),
    Aggregate(
        "reference_instructions_sum",
        "sum(instructions)_ref",
        "instructions",
        "instructions of the reference run",
        ("reference", "reference_instructions"),
    ),
    Aggregate(
        "reference_cycles_sum",
        "sum(cycles)_ref",
        "cycles",
        "CPU cycles of the reference run",
        ("reference", "reference_cycles"),
    ),
)

AGGREGATES: Mapping[str, Aggregate] = {aggregate.name: aggregate for aggregate in _TABLE}
"""Every name that a formula may use, with symbol, unit, meaning and what it needs."""
