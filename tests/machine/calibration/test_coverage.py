"""Intervals of 90 % hold the truth in about 90 % of many synthetic measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from machine.calibration.synthetic import Job, launches

from popmodel.machine.calibration import memory, openmp, point_to_point
from popmodel.machine.calibration.measured import Measured

DRAWS = 100
KIB = 1024
SIZES = (0, 1, 8, 64, 256, 512, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)

Quantity = Mapping[str, Any]


def coverage(
    truths: Mapping[str, float],
    measure: Callable[[np.random.Generator], Mapping[str, Quantity]],
) -> dict[str, float]:
    """Share of the draws in which the interval of each quantity holds its truth."""
    held: dict[str, list[bool]] = {name: [] for name in truths}
    for seed in range(DRAWS):
        found = measure(np.random.default_rng(seed))
        for name, truth in truths.items():
            quantity = found[name]
            assert quantity["low"] <= quantity["value"] <= quantity["high"]
            held[name].append(quantity["low"] <= truth <= quantity["high"])
    return {name: float(np.mean(values)) for name, values in held.items()}


def assert_nominal(found: Mapping[str, float]) -> None:
    """Between 85 and 95 % over all quantities; each alone within what so many draws can tell."""
    assert 0.85 <= np.mean(list(found.values())) <= 0.95, found
    for name, share in found.items():
        assert 0.80 <= share <= 0.99, (name, found)


# -- messages

ALPHA, BETA, SWITCH, ALPHA_2, BETA_2 = 4e-7, 2e-10, 4 * KIB, 2.2e-6, 8e-11


def message(size: int) -> float:
    return ALPHA + BETA * size if size <= SWITCH else ALPHA_2 + BETA_2 * size


def network_jobs() -> list[Job]:
    jobs = [Job("ping_pong", {"bytes": n, "tier": "node"}, message(n)) for n in SIZES]
    jobs += [
        Job(
            "late_receiver",
            {"bytes": n, "tier": "node", "delay": 5e-4},
            3e-7 if n <= SWITCH else 5.2e-4,
            quantile=0.5,
        )
        for n in (KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB)
    ]
    jobs.append(Job("send_overhead", {"bytes": 8, "tier": "node"}, 1.1e-7))
    jobs.append(Job("receive_overhead", {"bytes": 8, "tier": "node"}, 1.3e-7))
    window = {"bytes": 256 * KIB, "tier": "node", "pairs": 1}
    moved = {"moved": 64 * 256 * KIB}
    jobs.append(Job("window", {**window, "direction": "one"}, 1.6e-3, facts=moved))
    return jobs


@pytest.mark.parametrize("count", [3, 10])
def test_messages(count: int) -> None:
    jobs = network_jobs()
    switches = []

    def measure(rng: np.random.Generator) -> dict[str, Quantity]:
        net, _ = point_to_point.calibrate(Measured(launches(jobs, count, rng)))
        tier = net["intra"]
        classes = tier["classes"]
        switches.append((tier["eager_threshold"]["value"], [one["upto"] for one in classes]))
        found = {key: tier[key] for key in ("os", "or", "G")}
        if len(classes) == 2:
            found |= {"alpha": classes[0]["alpha"], "beta": classes[0]["beta"]}
            found |= {"alpha_2": classes[1]["alpha"], "beta_2": classes[1]["beta"]}
        else:  # another cut: its lines are not those of the truth
            missed = {"value": 0.0, "low": 0.0, "high": 0.0}
            found |= dict.fromkeys(("alpha", "beta", "alpha_2", "beta_2"), missed)
        return found

    truths = {"alpha": ALPHA, "beta": BETA, "alpha_2": ALPHA_2, "beta_2": BETA_2}
    truths |= {"os": 1.1e-7, "or": 1.3e-7, "G": 1.6e-3 / (64 * 256 * KIB)}
    found = coverage(truths, measure)
    assert_nominal(found)
    assert {switch for switch, _ in switches} == {SWITCH}
    assert np.mean([bounds == [SWITCH, None] for _, bounds in switches]) > 0.97


# -- OpenMP

COUNTS = (1, 2, 4, 8, 16, 32, 64)
LAW = {"a": 5e-7, "b": 4e-7, "d": 6e-8}
TOPOLOGY = {"cores_per_node": 64, "sockets": 1}


def law(threads: int) -> float:
    return LAW["a"] + LAW["b"] * np.log2(threads) + LAW["d"] * threads


def construct(name: str, threads: int, seconds: float) -> Job:
    return Job("construct", {"name": name, "threads": threads}, seconds + 1e-7, 1e-7)


@pytest.mark.parametrize("count", [3, 10])
def test_overheads_and_their_law(count: int) -> None:
    jobs = [
        construct(name, t, factor * law(t))
        for t in COUNTS
        for name, factor in (("barrier", 1.0), ("parallel", 2.0), ("for", 1.2))
    ]

    def measure(rng: np.random.Generator) -> dict[str, Quantity]:
        section, _, _ = openmp.calibrate(Measured(launches(jobs, count, rng)), TOPOLOGY)
        entry = section["barrier"]
        assert set(entry["fit"]) == set(LAW)
        return {
            **{f"T={t}": q for t, q in zip(entry["T"], entry["seconds"], strict=True)},
            **entry["fit"],
        }

    assert_nominal(coverage({f"T={t}": law(t) for t in COUNTS} | LAW, measure))


# -- memory

B1, BSAT, Q = 1.5e10, 6e10, 4.0


def bandwidth(cores: int) -> float:
    return float((cores**-Q * (B1**-Q - BSAT**-Q) + BSAT**-Q) ** (-1 / Q))


@pytest.mark.parametrize("count", [3, 10])
def test_memory(count: int) -> None:
    counts = (1, 2, 3, 4, 6, 8, 12, 16)
    moved = 3 * (1 << 26)
    jobs = [
        Job(
            "triad",
            {"threads": t, "bytes": 1 << 26},
            moved * 4 / 3 / bandwidth(t),
            facts={"moved": moved},
        )
        for t in counts
    ]
    topology = {"cores_per_node": 16, "caches": [{"level": "L3", "bytes": 1 << 24}]}

    def measure(rng: np.random.Generator) -> dict[str, Quantity]:
        section, absent, _ = memory.calibrate(Measured(launches(jobs, count, rng)), topology)
        assert "memory.bsat" not in absent
        return section

    assert_nominal(coverage({"b1": B1, "bsat": BSAT, "q": Q}, measure))
