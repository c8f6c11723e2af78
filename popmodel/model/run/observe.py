"""From the work of an average process and the course of the run to what the metric formulas use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from popmodel.efficiency.family import AGGREGATES, NO_MPI
from popmodel.errors import UsageError
from popmodel.expressions.elementary import Value
from popmodel.model.run.course import RunCourse, computation
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import RunWork
from popmodel.values import dataclass

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
