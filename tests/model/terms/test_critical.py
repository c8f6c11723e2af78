"""Critical sections against a simulation of threads that queue."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import pytest

from popmodel.model.terms.openmp import random_round


def simulate(
    threads: int, rounds: int, draw: Callable[[float], float], z: float, s: float
) -> float:
    """Mean time between two entries of a thread; whoever came first enters first."""
    arrivals = [(draw(z), thread) for thread in range(threads)]
    heapq.heapify(arrivals)
    free, served = 0.0, 0
    while served < rounds * threads:
        arrived, thread = heapq.heappop(arrivals)
        free = max(free, arrived) + draw(s)
        heapq.heappush(arrivals, (free + draw(z), thread))
        served += 1
    return free / rounds


@pytest.mark.parametrize("threads", [1, 2, 4, 16])
@pytest.mark.parametrize("inside", [0.05, 0.2, 1.0])
def test_random_times_are_near_the_simulation(threads: int, inside: float) -> None:
    rng = np.random.default_rng(2)
    simulated = simulate(threads, 4000, lambda mean: float(rng.exponential(mean)), 1.0, inside)
    assert random_round(threads, 1.0, inside) == pytest.approx(simulated, rel=0.03)


def test_random_times_wait_at_least_as_long_as_constant_ones() -> None:
    for threads in range(1, 20):
        constant = max(1.0 + 0.1, threads * 0.1)
        assert random_round(threads, 1.0, 0.1) >= constant * (1 - 1e-12)
