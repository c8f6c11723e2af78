"""Runs whose efficiencies follow known laws, made without the package's own."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr

from popmodel.runs.measurement import MeasuredRow

Truth = Callable[[int], Mapping[str, float]]
"""By processes: 1/load balance, 1/serialisation, 1/transfer, and core seconds of the work."""

_X = np.linspace(-10, 10, 20001)


def largest(count: int) -> float:
    """Expected maximum of standard normal values, by its distribution function."""
    if count == 1:
        return 0.0
    density = np.gradient(ndtr(_X) ** count, _X)
    return float(np.trapezoid(_X * density, _X))


def measured(truth: Truth, processes: int, noise: np.random.Generator | None = None) -> MeasuredRow:
    """A run of one thread per process, losses off by 15 % and work by 1 % at random."""

    def off(by: float) -> float:
        return 1.0 if noise is None else math.exp(by * float(noise.standard_normal()))

    found = truth(processes)
    balance, waiting, transfer = (
        1 + (found[name] - 1) * off(0.15) for name in ("balance", "waiting", "transfer")
    )
    mean = found["work"] * off(0.01) / processes
    busiest = mean * balance
    ideal = busiest * waiting
    return of_times(processes, mean, busiest, ideal, ideal * transfer)


def of_times(
    processes: int, mean: float, busiest: float, ideal: float, runtime: float
) -> MeasuredRow:
    """A run of given times, s."""
    useful = {"useful_mean": mean, "useful_max": busiest, "useful_sum": mean * processes}
    masters = {"master_useful_mean": mean, "master_useful_max": busiest}
    serial = {"serial_useful_mean": mean, "in_openmp_mean": 0.0, "omp_useful_mean": 0.0}
    outside = {"outside_mpi_mean": mean, "outside_mpi_max": busiest, "serial_openmp_max": busiest}
    sizes = {"processes": float(processes), "threads": float(processes)}
    times = {"runtime": runtime, "ideal_runtime": ideal}
    aggregates = {**sizes, **times, **useful, **masters, **serial, **outside}
    return MeasuredRow(f"run.{processes}", processes, 1, runtime, {}, aggregates=aggregates)


def drawn(seed: int) -> Truth:
    """Laws of physical forms with random constants: imbalance, waiting, messages, replication."""
    random = np.random.default_rng(seed)

    def loss(low: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(0.1))))

    balance, waiting, transfer, replicated = loss(0.005), loss(0.003), loss(0.003), loss(1e-3) / 4
    growth = float(random.choice([0.0, 0.25, 0.5]))
    kind = int(random.integers(3))

    def truth(processes: int) -> dict[str, float]:
        ratio = processes / 8
        spread = largest(processes) * ratio**growth
        messages = (ratio ** (1 / 3), ratio**0.5, ratio)[kind]
        return {
            "balance": 1 + balance * spread,
            "waiting": 1 + waiting * (spread, largest(processes), (processes - 1) / 8)[kind],
            "transfer": 1 + transfer * messages,
            "work": 100 * (1 + replicated * ratio),
        }

    return truth


def powers(seed: int) -> Truth:
    """Losses that grow as any power of the processes, which no law here is."""
    random = np.random.default_rng(seed)
    losses = np.exp(random.uniform(np.log(0.004), np.log(0.08), 3))
    exponents = random.uniform(0, 1, 3)

    def truth(processes: int) -> dict[str, float]:
        grown = 1 + losses * (processes / 8) ** exponents
        names = ("balance", "waiting", "transfer")
        return {**dict(zip(names, grown.tolist(), strict=True)), "work": 100.0}

    return truth
