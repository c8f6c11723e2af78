"""What is measured of a run: times of all processes and threads, and every metric from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truth.simulation import Happened, Size, Step, Times


@dataclass(frozen=True)
class TruthRun:
    """A run as a trace of it would show it; times in s."""

    # P, T and parameters of the problem.
    processes: int
    threads: int
    parameters: Mapping[str, float]
    # With the network, and with one that costs nothing.
    runtime: float
    ideal_runtime: float
    node: Times  # Node of each process
    # User code of each thread, and the part of it in parallel regions.
    useful: Times
    omp_useful: Times
    # User code of the master outside of regions, regions, MPI calls.
    serial_useful: Times
    in_openmp: Times
    in_mpi: Times
    imbalance: float  # Busiest less average thread of each region, summed, mean over processes

    @cached_property
    def aggregates(self) -> dict[str, float]:
        """Scalars by the names that formulas of metrics use, rounded as a tool prints them."""
        outside = self.serial_useful + self.in_openmp
        values = {
            "runtime": self.runtime,
            "useful_mean": self.useful.mean(),
            "useful_max": self.useful.max(),
            "omp_useful_mean": self.omp_useful.mean(),
            "serial_useful_mean": self.serial_useful.mean(),
            "in_openmp_mean": self.in_openmp.mean(),
            "outside_mpi_max": outside.max(),
            "openmp_imbalance": self.imbalance,
            "mpi_mean": self.in_mpi.mean() / self.threads,
        }
        if self.processes > 1:
            values["ideal_runtime"] = self.ideal_runtime
        grain = 10.0 ** (math.floor(math.log10(self.runtime)) - 4)
        rounded = {name: round(float(value) / grain) * grain for name, value in values.items()}
        rounded["outside_mpi_mean"] = rounded["serial_useful_mean"] + rounded["in_openmp_mean"]
        return rounded

    @cached_property
    def metrics(self) -> dict[str, dict[str, float]]:
        """Every POP metric, by family."""
        a = self.aggregates
        run, mean, out, most = (
            a["runtime"],
            a["useful_mean"],
            a["outside_mpi_mean"],
            a["outside_mpi_max"],
        )
        serial_thread = a["useful_mean"] - a["omp_useful_mean"]
        additive = {
            "parallel_efficiency": mean / run,
            "process_efficiency": out / run,
            "process_load_balance": 1 - (most - out) / run,
            "process_communication_efficiency": most / run,
            "thread_efficiency": 1 - (a["in_openmp_mean"] + a["serial_useful_mean"] - mean) / run,
            "openmp_region_efficiency": 1 - (a["in_openmp_mean"] - a["omp_useful_mean"]) / run,
            "serial_region_efficiency": 1 - (a["serial_useful_mean"] - serial_thread) / run,
            "openmp_load_balance": 1 - a["openmp_imbalance"] / run,
        }
        multiplicative = {
            "hybrid_parallel_efficiency": mean / run,
            "hybrid_load_balance": mean / a["useful_max"],
            "hybrid_communication_efficiency": a["useful_max"] / run,
            "mpi_parallel_efficiency": out / run,
            "mpi_load_balance": out / most,
            "mpi_communication_efficiency": most / run,
        }
        if "ideal_runtime" in a:
            ideal = a["ideal_runtime"]
            additive["process_transfer_efficiency"] = ideal / run
            additive["process_serialisation_efficiency"] = 1 - (ideal - most) / run
            multiplicative["mpi_transfer_efficiency"] = ideal / run
            multiplicative["mpi_serialisation_efficiency"] = most / ideal
        return {"hybrid-additive": additive, "hybrid-multiplicative": multiplicative}

    def slowed(self, factor: float) -> TruthRun:
        """Return the run as if its threads had had to share cores: all times longer."""
        names = ("runtime", "ideal_runtime", "useful", "omp_useful", "serial_useful", "in_openmp")
        changed = {name: factor * getattr(self, name) for name in (*names, "in_mpi", "imbalance")}
        return TruthRun(self.processes, self.threads, self.parameters, node=self.node, **changed)


def observe(
    one: Step, happened: Happened, size: Size, per_node: int, computing: float, cells: int
) -> TruthRun:
    """Return what is measured of a run; `computing` is the factor on the times of this run."""
    factors = happened.factors * computing
    in_regions = factors[:, None] * one.useful.sum(axis=0)
    serial = factors * one.serial + happened.paused
    useful = in_regions.copy()
    useful[:, 0] += serial
    in_openmp = factors * one.busiest + one.overhead * size.steps * computing
    spread = one.useful.max(axis=1) - one.useful.mean(axis=1)
    return TruthRun(
        size.processes,
        size.threads,
        {"N": float(cells), "steps": float(size.steps)},
        happened.runtime,
        happened.ideal,
        np.arange(size.processes) // per_node,
        useful,
        in_regions,
        serial,
        in_openmp,
        np.maximum(happened.runtime - serial - in_openmp, 0.0)
        if size.processes > 1
        else np.zeros(1),
        float(factors.mean() * spread.sum()),
    )
