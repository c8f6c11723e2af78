"""The factors of a run that are projected one by one, and the run that they make again.

The runtime is a product of factors, from computation to transfer, and so are the aggregates that
the metrics of all families are computed from. So whatever the laws of the factors are, products and
identities between the projected metrics hold: metrics are computed from projected aggregates as
from those of a measured run. Aggregates of a run come from its trace or, of a table, from metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from popmodel.efficiency.scaling import Mode
from popmodel.fit.samples import Array
from popmodel.runs.measurement import MeasuredRow

Kind = Literal["balance", "waiting", "transfer", "regions", "amount", "steady", "runtime"]
Values = Mapping[str, "float | Array"]

_LEAST = 1e-9  # of a share that is 0 in some runs
_FLOOR = 0.003  # least deviation of a loss from run to run
_AGGREGATES = (
    "useful_sum",
    "useful_mean",
    "useful_max",
    "omp_useful_mean",
    "serial_useful_mean",
    "in_openmp_mean",
    "serial_openmp_max",
)


class EfficiencyFactor(NamedTuple):
    """One of the factors."""

    id: str  # Its name in the document of a projection
    name: str  # For people
    kind: Kind  # As of `popmodel.fit.efficiency_laws.structural`
    error: float  # What it repeats to, relative: of its loss where it has a limit, else of itself
    metrics: tuple[tuple[str, str], ...] = ()  # Family and id of the metrics that it is

    @property
    def is_limited(self) -> bool:
        """Whether it is an efficiency that is at most 1."""
        return self.kind not in ("amount", "steady", "runtime")


def _of_mpi(metric: str) -> tuple[tuple[str, str], ...]:
    """A metric of MPI by itself, and within hybrid programs."""
    return ("mpi", metric), ("hybrid-multiplicative", f"mpi_{metric}")


FACTORS: Mapping[str, EfficiencyFactor] = {
    factor.id: factor
    for factor in (
        EfficiencyFactor(
            "load_balance", "load balance", "balance", 0.05, _of_mpi("load_balance")
        ),
        EfficiencyFactor(
            "serialisation", "serialisation efficiency", "waiting", 0.05,
            _of_mpi("serialisation_efficiency"),
        ),
        EfficiencyFactor(
            "transfer", "transfer efficiency", "transfer", 0.1, _of_mpi("transfer_efficiency")
        ),
        EfficiencyFactor(
            "communication", "communication efficiency", "transfer", 0.1,
            _of_mpi("communication_efficiency"),
        ),
        EfficiencyFactor("regions", "efficiency of parallel regions", "regions", 0.1),
        EfficiencyFactor("serial_share", "parallel over serial useful time", "amount", 0.05),
        EfficiencyFactor("serial_threads", "use of threads in serial code", "steady", 0.01),
        EfficiencyFactor("team", "balance of threads in parallel regions", "steady", 0.02),
        EfficiencyFactor(
            "computation", "computation scaling", "amount", 0.02,
            (("scaling", "computation_scaling"),),
        ),
        EfficiencyFactor(
            "instructions", "instruction scaling", "amount", 0.003,
            (("scaling", "instruction_scaling"),),
        ),
        EfficiencyFactor("ipc", "IPC scaling", "amount", 0.02, (("scaling", "ipc_scaling"),)),
        EfficiencyFactor(
            "frequency", "frequency scaling", "steady", 0.01, (("scaling", "frequency_scaling"),)
        ),
        EfficiencyFactor("runtime", "relative efficiency of the runtime", "runtime", 0.02),
    )
}  # fmt: skip
"""All factors by id."""


def measured(
    aggregates: Values, reference: Values, processes: int, threads: int, mode: Mode
) -> dict[str, float]:
    """Return the factors of a measured run, by id; those that it does not tell are left out."""
    run = {name: float(value) for name, value in aggregates.items()}
    home = {name: float(value) for name, value in reference.items()}
    ratio = _work(processes * threads, home, mode)
    same = home["runtime"] * home["threads"] / (processes * threads)
    factors = {"runtime": same * ratio / run["runtime"], **_computation(run, home, ratio)}
    if "computation" not in factors:
        return factors
    outside = run["serial_useful_mean"] + run["in_openmp_mean"]
    longest = run["serial_openmp_max"]
    if outside > 0:
        factors["load_balance"] = outside / longest
    if longest > 0 and "ideal_runtime" in run:
        factors["serialisation"] = longest / run["ideal_runtime"]
        factors["transfer"] = run["ideal_runtime"] / run["runtime"]
    elif longest > 0:
        factors["communication"] = longest / run["runtime"]
    parallel = 0.0
    if run["in_openmp_mean"] > 0 and run["omp_useful_mean"] > 0:
        parallel = run["omp_useful_mean"]
        serial = max(run["useful_mean"] - parallel, _LEAST * run["useful_mean"])
        factors["regions"] = parallel / run["in_openmp_mean"]
        factors["serial_share"] = parallel / serial
    if threads > 1 or parallel > 0:
        serial, spent = run["useful_mean"] - parallel, run["serial_useful_mean"]
        some = min(serial, spent) > _LEAST * run["useful_mean"]
        factors["serial_threads"] = serial * threads / spent if some else 1.0
        even = spent + parallel
        factors["team"] = even / factors["load_balance"] / run["useful_max"]
    return factors


def _computation(
    run: Mapping[str, float], home: Mapping[str, float], ratio: float
) -> dict[str, float]:
    """Scaling of the computation, by its counters where both runs have them."""
    names = ("useful_sum", "instructions_sum", "cycles_sum")
    if "useful_sum" not in run or "useful_sum" not in home:
        return {}
    useful, instructions, cycles = ((run.get(name, 0.0), home.get(name, 0.0)) for name in names)
    scaling = {"computation": ratio * useful[1] / useful[0]}
    if min(*instructions, *cycles) > 0:
        scaling["instructions"] = ratio * instructions[1] / instructions[0]
        scaling["ipc"] = (instructions[0] / cycles[0]) / (instructions[1] / cycles[1])
        scaling["frequency"] = (cycles[0] / useful[0]) / (cycles[1] / useful[1])
    return scaling


def chosen(runs: list[dict[str, float]]) -> tuple[str, ...]:
    """Return which factors a projection of some runs is made of.

    Counters only where all runs have them, communication as a whole where none can be replayed, and
    nothing but the runtime where that is all that is known of one.
    """
    factors = [factor for factor in FACTORS if any(factor in run for run in runs)]
    if not all("computation" in run for run in runs):
        return ("runtime",)
    factors.remove("runtime")
    if all("instructions" in run for run in runs):
        factors.remove("computation")
    else:
        factors = [
            factor for factor in factors if factor not in ("instructions", "ipc", "frequency")
        ]
    if "transfer" in factors and "communication" in factors:
        factors.remove("communication")
    return tuple(factors)


def rebuilt(
    factors: Values, reference: Values, processes: int, threads: int, mode: Mode
) -> dict[str, float | Array]:
    """Return the aggregates of the run that factors make; arrays elementwise."""
    cores = processes * threads
    ratio = _work(cores, reference, mode)
    sizes: dict[str, float | Array] = {"processes": float(processes), "threads": float(cores)}
    if "runtime" in factors:
        same = reference["runtime"] * reference["threads"] / cores
        return {**sizes, "runtime": same * ratio / factors["runtime"]}
    counted: dict[str, float | Array] = {}
    if "instructions" in factors:
        instructions = ratio * reference["instructions_sum"] / factors["instructions"]
        cycles = (
            instructions
            * (reference["cycles_sum"] / reference["instructions_sum"])
            / factors["ipc"]
        )
        useful = cycles * (reference["useful_sum"] / reference["cycles_sum"]) / factors["frequency"]
        counted = {"instructions_sum": instructions, "cycles_sum": cycles}
    else:
        useful = ratio * reference["useful_sum"] / factors["computation"]
    mean = useful / cores
    parallel, in_openmp = mean * 0.0, mean * 0.0
    if "regions" in factors:
        parallel = mean * factors["serial_share"] / (1 + factors["serial_share"])
        in_openmp = parallel / factors["regions"]
    outside = (mean - parallel) * threads / factors.get("serial_threads", 1.0) + in_openmp
    balance = factors.get("load_balance", 1.0)
    longest = outside / balance
    busiest = longest
    if "team" in factors:
        busiest = np.minimum((outside - in_openmp + parallel) / balance / factors["team"], longest)
    if "transfer" in factors:
        ideal = longest / factors["serialisation"]
        timed = {"ideal_runtime": ideal, "runtime": ideal / factors["transfer"]}
    else:
        timed = {"runtime": longest / factors["communication"]}
    masters = {} if threads > 1 else {"master_useful_mean": mean, "master_useful_max": busiest}
    return {
        **sizes,
        **timed,
        **counted,
        **masters,
        "useful_sum": useful,
        "useful_mean": mean,
        "useful_max": busiest,
        "omp_useful_mean": parallel,
        "serial_useful_mean": outside - in_openmp,
        "in_openmp_mean": in_openmp,
        "serial_openmp_max": longest,
        "outside_mpi_mean": outside,
        "outside_mpi_max": longest,
    }


def point_errors(
    factor: EfficiencyFactor, value: Array, processes: Array, *, by_processes: bool
) -> Array:
    """Standard deviations of the logarithms of measured or projected factors.

    A loss repeats to a share of itself; that of the slowest of P processes moreover by chance,
    ``1/sqrt(2 P)``, and hardly any to less than .3 points.
    """
    if not factor.is_limited:
        return np.full_like(value, factor.error)
    relative = np.full_like(value, factor.error)
    if by_processes and factor.kind in ("balance", "waiting"):
        relative = np.hypot(relative, 1 / np.sqrt(2 * processes))
    errors: Array = np.hypot(_FLOOR, relative * np.maximum(1 - value, 0.0))
    return errors


def _work(cores: int, reference: Values, mode: Mode) -> float:
    return cores / float(reference["threads"]) if mode == "weak" else 1.0


def completed(run: MeasuredRow) -> dict[str, float]:
    """Return the aggregates of a run, computed from its metrics where only these are known.

    Without the parallel efficiency, and what of it is lost between processes, only sizes and the
    runtime are known. Threads of which no time in parallel regions is told count as if all code
    were serial, with a constant use of threads.
    """
    sizes = {
        "processes": float(run.processes),
        "threads": float(run.processes * run.threads),
        "runtime": run.runtime,
    }
    given = {**sizes, **run.aggregates}
    if all(name in given for name in _AGGREGATES):
        return given
    shares = _shares(run)
    if shares is None:
        return sizes
    useful, outside, longest = (share * run.runtime for share in shares[:3])
    busiest, ideal = (None if share is None else share * run.runtime for share in shares[3:])
    counted = {name: given[name] for name in ("instructions_sum", "cycles_sum") if name in given}
    busy = longest if busiest is None else busiest
    masters = {"master_useful_mean": useful, "master_useful_max": busy}
    return {
        **sizes,
        **counted,
        **(masters if run.threads == 1 else {}),
        **({} if ideal is None else {"ideal_runtime": ideal}),
        "useful_sum": useful * sizes["threads"],
        "useful_mean": useful,
        "useful_max": busy,
        "omp_useful_mean": 0.0,
        "serial_useful_mean": outside,
        "in_openmp_mean": 0.0,
        "serial_openmp_max": longest,
        "outside_mpi_mean": outside,
        "outside_mpi_max": longest,
    }


_SHARES = {
    "hybrid-multiplicative": (
        "hybrid_parallel_efficiency", "mpi_parallel_efficiency", "mpi_communication_efficiency",
        "hybrid_communication_efficiency", "mpi_transfer_efficiency",
    ),
    "hybrid-additive": (
        "parallel_efficiency", "process_efficiency", "process_communication_efficiency",
        "", "process_transfer_efficiency",
    ),
}  # fmt: skip
"""Metrics of a family that are shares of the runtime; the last two may be missing."""


def _shares(run: MeasuredRow) -> tuple[float, float, float, float | None, float | None] | None:
    """Shares of the runtime: useful time, time outside MPI and its longest, busiest, ideal."""
    for family, names in _SHARES.items():
        metrics = run.metrics.get(family, {})
        useful, outside, longest, busiest, ideal = (metrics.get(name) for name in names)
        if useful is not None and outside is not None and longest is not None:
            return useful, outside, longest, busiest, ideal
    if run.threads > 1:
        return None
    useful, balance, longest, waiting, ideal = (
        run.metrics.get("mpi", {}).get(name)
        for name in (
            "parallel_efficiency",
            "load_balance",
            "communication_efficiency",
            "serialisation_efficiency",
            "transfer_efficiency",
        )
    )
    if longest is None and waiting is not None and ideal is not None:
        longest = waiting * ideal
    if useful is None and longest is not None and balance is not None:
        useful = longest * balance
    if longest is None and useful is not None and balance:
        longest = useful / balance
    if useful is None or longest is None:
        return None
    return useful, useful, longest, longest, ideal
