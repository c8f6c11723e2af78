"""Tasks against a simulation of threads that take what is ready."""

from __future__ import annotations

import heapq

import pytest

from popmodel.model.terms.openmp import task_time


def simulate(count: int, seconds: float, threads: int, create: float) -> float:
    """Thread 0 creates one task after the other, then helps; tasks are independent."""
    free = [0.0] * (threads - 1)
    ready = [(i + 1) * create for i in range(count)]
    if threads == 1:
        return count * (create + seconds)
    joined = False
    end = 0.0
    for moment in ready:
        if not joined and free[0] > ready[-1]:
            heapq.heappush(free, ready[-1])  # the creating thread is done creating
            joined = True
        start = max(moment, heapq.heappop(free))
        end = max(end, start + seconds)
        heapq.heappush(free, start + seconds)
    return end


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
@pytest.mark.parametrize("create", [0.0, 0.001, 0.3])
def test_independent_tasks_are_near_the_simulation(threads: int, create: float) -> None:
    simulated = simulate(400, 0.1, threads, create)
    assert task_time(400, 0.1, 0.1, threads, create) == pytest.approx(simulated, rel=0.05)


def test_a_chain_gains_nothing_from_threads() -> None:
    assert task_time(10, 1.0, 10.0, 8) == pytest.approx(10.0)


def test_one_thread_does_all_the_work() -> None:
    assert task_time(10, 1.0, 3.0, 1, 0.5) == 15.0


def test_creating_limits_many_threads() -> None:
    assert task_time(1000, 1e-6, 0.0, 10**6, 1e-6) == pytest.approx(1e-3)
