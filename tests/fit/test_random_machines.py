"""Intervals of runtimes alone hold on machines that the laws do not know."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from popmodel.fit.projection import project
from popmodel.runs.measurement import MeasuredRow

SIZES = ((1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (1, 3, 6, 12, 20), (2, 3, 5, 9, 14, 24), (1, 4, 16))


def machine(draw: np.random.Generator) -> Callable[[int], float]:
    """Runtime by processes: memory that fills a node, caches, messages, imbalance."""
    serial = draw.choice([0, 10 ** draw.uniform(-4, -2)])
    cores = int(draw.choice([8, 16, 24, 32, 48, 64]))
    traffic = draw.choice([0, draw.uniform(0.2, 1)])
    full, sharp = cores * draw.uniform(0.2, 0.8), draw.uniform(3, 8)
    cached, fit = draw.choice([0, draw.uniform(0.05, 0.5)]), 2 ** draw.uniform(1, 7)
    latency = 10 ** draw.uniform(-6, -3.5) * draw.choice([0, 1])
    halo = 10 ** draw.uniform(-3.5, -1.5) * draw.choice([0, 1])
    uneven, power = 10 ** draw.uniform(-2.8, -1.1), draw.choice([0, 0.25, 0.5])

    def runtime(processes: int) -> float:
        busy = min(processes, cores) / full
        work = serial + (1 - serial) / processes
        work *= 1 - traffic + traffic * (1 + busy**sharp) ** (1 / sharp)
        work *= 1 - cached / (1 + (fit / processes) ** 2)
        slowest = uneven * processes**power * math.sqrt(2 * math.log(processes))
        messages = latency * math.log2(processes) + halo * processes ** (-2 / 3)
        return float(work * (1 + slowest) + (messages if processes > 1 else 0))

    return runtime


@pytest.mark.long
def test_intervals_of_runtimes_hold_on_machines_that_no_law_knows() -> None:
    held = []
    for number in range(60):
        draw = np.random.default_rng([7, number])
        runtime, noise = machine(draw), draw.choice([0.005, 0.015, 0.03])
        sizes = SIZES[number % len(SIZES)]
        runs = [
            MeasuredRow("runs.csv", p, 1, runtime(p) * math.exp(noise * draw.normal()), {})
            for p in sizes
        ]
        targets = [(sizes[-1] * farther, 1) for farther in (2, 4, 8)]
        for row in project(runs, targets, "strong", 0).rows:
            if row.metric == "runtime" and row.low is not None and row.high is not None:
                measured = runtime(row.processes) * math.exp(noise * draw.normal())
                held.append(row.low <= measured <= row.high)
    assert len(held) > 150
    assert 0.85 < np.mean(held) < 0.99
