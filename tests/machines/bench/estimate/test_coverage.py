"""Intervals of 90 % hold the truth in about 90 % of many synthetic measurements.

The truth of a latency is the 10 % quantile of its batches without outliers. Machines differ in what
varies between launches, so every subject is measured in three ways: three launches in which every
job varies on its own, three in which a launch is slow or fast as a whole, and ten of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from machines.bench.estimate.synthetic import Job, Noise, core, launches, memory, messages, openmp

from popmodel.machines.bench.estimate.measured_results import MeasuredResults

KIB = 1024
Quantity = Mapping[str, Any]
Measure = Callable[[MeasuredResults], Mapping[str, Quantity]]

APART, TOGETHER = Noise(), Noise(launch=0.015, together=0.03)
# launches, what varies between them, draws: enough to tell, few enough to take seconds
WAYS = ((3, APART, 150), (3, TOGETHER, 150), (10, TOGETHER, 60))


def held(
    jobs: Callable[[np.random.Generator], tuple[Sequence[Job], Mapping[str, float]]],
    measure: Measure,
) -> dict[str, list[list[bool]]]:
    """Tell, by quantity, way and draw, whether the interval holds the truth.

    Parameters
    ----------
    jobs : callable
        Gives what is measured in a draw, and the truth of every quantity.
    measure : callable
        Gives the quantities.
    """
    found: dict[str, list[list[bool]]] = {}
    for way, (count, noise, draws) in enumerate(WAYS):
        for seed in range(draws):
            rng = np.random.default_rng([way, seed])
            asked, truths = jobs(rng)
            quantities = measure(MeasuredResults(launches(asked, count, rng, noise)))
            for name, truth in truths.items():
                quantity = quantities[name]
                assert quantity["low"] <= quantity["value"] <= quantity["high"]
                shares = found.setdefault(name, [[] for _ in WAYS])
                shares[way].append(quantity["low"] <= truth <= quantity["high"])
    return found


def assert_nominal(found: Mapping[str, list[list[bool]]]) -> None:
    """Between 85 and 95 %: every quantity over all ways, and every way over all quantities.

    With room for one standard error of so many draws.
    """
    by_quantity = {name: np.concatenate(ways) for name, ways in found.items()}
    by_way = {i: np.concatenate([ways[i] for ways in found.values()]) for i in range(len(WAYS))}
    for name, values in (by_quantity | by_way).items():
        room = math.sqrt(0.9 * 0.1 / values.size)
        assert 0.85 - room <= values.mean() <= 0.95 + room, (name, values.mean(), found.keys())


@pytest.mark.long
def test_messages_and_the_switch_of_the_protocol() -> None:
    sizes = (
        0,
        8,
        64,
        512,
        *(n * KIB for n in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 256, 1024)),
    )
    alpha, beta, beta_2, jump, gap = 4e-7, 2e-10, 5e-11, 9e-7, 6e-11

    def jobs(rng: np.random.Generator) -> tuple[Sequence[Job], Mapping[str, float]]:
        switch = math.exp(rng.uniform(math.log(3 * KIB), math.log(20 * KIB)))
        alpha_2 = alpha + jump + (beta - beta_2) * switch

        def seconds(size: int) -> float:
            return alpha + beta * size if size <= switch else alpha_2 + beta_2 * size

        def job(name: str, seconds: float, quantile: float = 0.1, **params: Any) -> Job:
            return Job(name, {"tier": "node", **params}, seconds, quantile=quantile)

        asked = [job("ping_pong", seconds(n), bytes=n) for n in sizes]
        asked += [
            job("late_receiver", 3e-7 if n <= switch else 5.2e-4, 0.5, bytes=n, delay=5e-4)
            for n in (KIB << power for power in range(6))
        ]
        asked += [job("train", 6e-7 + 2e-7 * n, bytes=8, count=n) for n in (1, 64)]
        asked += [job("send_overhead", 1.1e-7, bytes=8), job("receive_overhead", 1.3e-7, bytes=8)]
        moved = 64 * 256 * KIB
        window = {"tier": "node", "bytes": 256 * KIB, "pairs": 1, "direction": "one"}
        asked.append(Job("window", window, gap * moved, facts={"moved": moved}))
        truths = {"alpha": alpha, "beta": beta, "alpha_2": alpha_2, "beta_2": beta_2}
        truths |= {"eager_threshold": switch, "os": 1.1e-7, "or": 1.3e-7, "g": 2e-7, "G": gap}
        return asked, truths

    def measure(measured: MeasuredResults) -> Mapping[str, Quantity]:
        tier = messages(measured)[0]["intra"]
        first, last = tier["classes"][0], tier["classes"][-1]
        return {
            **tier,
            "alpha": first["alpha"],
            "beta": first["beta"],
            "alpha_2": last["alpha"],
            "beta_2": last["beta"],
        }

    assert_nominal(held(jobs, measure))


@pytest.mark.long
def test_overheads_and_their_law() -> None:
    counts = (1, 2, 4, 8, 16, 32, 64)
    law = {"a": 5e-7, "b": 4e-7, "d": 6e-8}
    seconds = {t: law["a"] + law["b"] * math.log2(t) + law["d"] * t for t in counts}

    def jobs(_: np.random.Generator) -> tuple[Sequence[Job], Mapping[str, float]]:
        asked = [
            Job("construct", {"name": name, "threads": t}, factor * seconds[t] + 1e-7, 1e-7)
            for name, factor in (("barrier", 1.0), ("parallel", 2.0))
            for t in counts
        ]
        return asked, {str(t): seconds[t] for t in counts} | law

    def measure(measured: MeasuredResults) -> Mapping[str, Quantity]:
        topology = {"cores_per_node": 64, "sockets": 1}
        entry = openmp(measured, topology)[0]["barrier"]
        assert set(entry["fit"]) == set(law)
        return dict(zip(map(str, counts), entry["seconds"], strict=True)) | entry["fit"]

    assert_nominal(held(jobs, measure))


@pytest.mark.long
def test_the_saturation_of_memory() -> None:
    counts = (1, 2, 3, 4, 6, 8, 12, 16)
    b1, bsat, q = 1.5e10, 6e10, 4.0
    moved = 3 * (1 << 26)

    def bandwidth(cores: int) -> float:
        return float((cores**-q * (b1**-q - bsat**-q) + bsat**-q) ** (-1 / q))

    def jobs(_: np.random.Generator) -> tuple[Sequence[Job], Mapping[str, float]]:
        asked = [
            Job(
                "triad",
                {"threads": t, "bytes": 1 << 26},
                moved * 4 / 3 / bandwidth(t),
                facts={"moved": moved},
            )
            for t in counts
        ]
        by_cores = {str(t): bandwidth(t) for t in counts}
        return asked, {"b1": b1, "bsat": bsat, "q": q, **by_cores}

    def measure(measured: MeasuredResults) -> Mapping[str, Quantity]:
        topology = {
            "cores_per_node": 16,
            "caches": [{"level": "L3", "bytes": 1 << 24, "shared_by": 16}],
        }
        section, absent, _ = memory(measured, topology)
        assert "memory.bsat" not in absent
        return {**section, **section["by_cores"]}

    assert_nominal(held(jobs, measure))


@pytest.mark.long
def test_rates_per_cycle() -> None:
    hertz = 3e9
    truths = {"1": hertz, "8": hertz, "flop_per_cycle": 16, "load_per_cycle": 4, "loop_cycles": 1}

    def jobs(_: np.random.Generator) -> tuple[Sequence[Job], Mapping[str, float]]:
        asked = [
            Job("clock", {"threads": t}, 1e-6, facts={"work": 1e-6 * hertz}) for t in (1, 2, 4, 8)
        ]
        asked += [
            Job("fma", {"threads": 1}, 1e-6, facts={"work": 16e-6 * hertz}),
            Job("loads", {}, 1e-6, facts={"work": 4e-6 * hertz}),
            Job("loop", {}, 1 / hertz),
        ]
        return asked, truths

    def measure(measured: MeasuredResults) -> Mapping[str, Quantity]:
        section, _ = core(measured)
        return {**section, **section["freq"]}

    assert_nominal(held(jobs, measure))


@pytest.mark.long
def test_fits_to_a_single_launch() -> None:
    """Where launches do not differ, one tells how uncertain a fit is from the noise of its batches.

    Nothing else can be told from one launch, so the intervals have to be wide enough for that only.
    """
    counts = (1, 2, 4, 8, 16, 32)
    sizes = (0, 8, 64, 512, 1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
    moved = 3 * (1 << 26)
    b1, bsat, q = 1.5e10, 6e10, 3.0

    def bandwidth(cores: int) -> float:
        return float((cores**-q * (b1**-q - bsat**-q) + bsat**-q) ** (-1 / q))

    asked = [Job("ping_pong", {"tier": "node", "bytes": n}, 4e-7 + 1e-10 * n) for n in sizes]
    for t in counts:
        barrier = {"name": "barrier", "threads": t}
        asked.append(Job("construct", barrier, 6e-7 + 4e-7 * math.log2(t), 1e-7))
        triad = {"threads": t, "bytes": 1 << 26}
        asked.append(Job("triad", triad, moved * 4 / 3 / bandwidth(t), facts={"moved": moved}))
    truths = {"alpha": 4e-7, "beta": 1e-10, "a": 5e-7, "b": 4e-7, "b1": b1, "bsat": bsat, "q": q}
    held_by: dict[str, list[bool]] = {name: [] for name in truths}
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        measured = MeasuredResults(launches(asked, 1, rng, Noise(launch=0.0)))
        topology = {
            "cores_per_node": 32,
            "caches": [{"level": "L3", "bytes": 1 << 24, "shared_by": 16}],
        }
        section = memory(measured, topology)[0]
        law = openmp(measured, topology)[0]["barrier"]["fit"]
        line = messages(measured)[0]["intra"]["classes"][0]
        for name, quantity in {**section, **law, **line}.items():
            if name in truths:
                inside = quantity["low"] <= truths[name] <= quantity["high"]
                held_by[name].append(inside)
    for name, values in held_by.items():
        assert len(values) > 50, name
        assert np.mean(values) >= 0.8, (name, np.mean(values))
