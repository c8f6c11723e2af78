"""Loops in chunks, critical sections, tasks and shared lines against simulations of threads."""

import heapq
import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
import sympy

from popmodel.base.expressions.elementary import TracedExpression
from popmodel.model.terms.openmp import (
    dynamic_time,
    false_sharing_time,
    guided_chunks,
    guided_time,
    random_round,
    task_time,
)


def end_of_chunks(chunks: Iterable[np.ndarray], threads: int, overhead: float) -> float:
    """End of the last thread; a free thread takes the next chunk."""
    free = [0.0] * threads
    for chunk in chunks:
        start = heapq.heappop(free)
        heapq.heappush(free, start + overhead + float(chunk.sum()))
    return max(free)


def cut(costs: np.ndarray, sizes: Iterable[int]) -> list[np.ndarray]:
    return np.split(costs, np.cumsum(list(sizes))[:-1])


def guided_sizes(trip: int, threads: int, chunk: int) -> list[int]:
    sizes, rest = [], trip
    while rest:
        sizes.append(min(rest, max(chunk, math.ceil(rest / threads))))
        rest -= sizes[-1]
    return sizes


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 16])
@pytest.mark.parametrize(("trip", "chunk"), [(64, 1), (96, 4), (1000, 10), (8, 8)])
def test_equal_iterations_are_exact(trip: int, chunk: int, threads: int) -> None:
    costs = np.full(trip, 1e-6)
    expected = end_of_chunks(cut(costs, [chunk] * (trip // chunk)), threads, 2e-7)
    assert dynamic_time(trip, 1e-6, threads, chunk, overhead=2e-7) == pytest.approx(expected)


@pytest.mark.parametrize("spread", [0.3, 0.6, 1.0])
@pytest.mark.parametrize(("threads", "chunk"), [(4, 1), (8, 4), (16, 2)])
def test_random_iterations_are_near_the_simulation(spread: float, threads: int, chunk: int) -> None:
    rng = np.random.default_rng(1)
    trip, shape = 1024, 1 / spread**2
    runs = [
        end_of_chunks(
            cut(rng.gamma(shape, 1 / shape, trip), [chunk] * (trip // chunk)), threads, 0.0
        )
        for _ in range(60)
    ]
    assert dynamic_time(trip, 1.0, threads, chunk, spread=spread) == pytest.approx(
        np.mean(runs), rel=0.07
    )


def test_one_thread_does_everything_itself() -> None:
    assert dynamic_time(100, 1e-6, 1, 7, spread=0.5) == pytest.approx(1e-4, rel=0.06)
    assert dynamic_time(100, 1e-6, 1, 10) == pytest.approx(1e-4)


def test_a_chunk_larger_than_the_loop_is_the_loop() -> None:
    assert dynamic_time(10, 1e-6, 4, 64) == pytest.approx(1e-5)


@pytest.mark.parametrize(("trip", "threads", "chunk"), [(10000, 4, 1), (4096, 16, 4), (50, 8, 1)])
def test_guided_makes_about_as_many_chunks(trip: int, threads: int, chunk: int) -> None:
    assert guided_chunks(trip, threads, chunk) == pytest.approx(
        len(guided_sizes(trip, threads, chunk)), rel=0.35
    )


@pytest.mark.parametrize("threads", [2, 4, 16])
def test_guided_ends_as_the_simulation(threads: int) -> None:
    trip, iteration, overhead = 10000, 1e-6, 5e-7
    costs = np.full(trip, iteration)
    expected = end_of_chunks(cut(costs, guided_sizes(trip, threads, 1)), threads, overhead)
    assert guided_time(trip, iteration, threads, overhead=overhead) == pytest.approx(
        expected, rel=0.05
    )


def test_traced_numbers_give_the_same_time_and_its_formula() -> None:
    values = {"W": 960.0, "t": 1e-6, "T": 6.0, "c": 4.0}
    symbols = {name: sympy.Symbol(name, positive=True) for name in values}
    for law in (dynamic_time, guided_time):
        time = law(
            *(TracedExpression(value, symbols[name]) for name, value in values.items()),
            spread=0.4,
            overhead=1e-7,
        )
        expected = law(*values.values(), spread=0.4, overhead=1e-7)
        assert time.value == pytest.approx(expected, rel=1e-12)
        numbers = {symbols[name]: value for name, value in values.items()}
        assert float(time.formula.subs(numbers)) == pytest.approx(expected)


# Critical sections: threads that queue.


def mean_round(
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
    simulated = mean_round(threads, 4000, lambda mean: float(rng.exponential(mean)), 1.0, inside)
    assert random_round(threads, 1.0, inside) == pytest.approx(simulated, rel=0.03)


def test_random_times_wait_at_least_as_long_as_constant_ones() -> None:
    for threads in range(1, 20):
        constant = max(1.0 + 0.1, threads * 0.1)
        assert random_round(threads, 1.0, 0.1) >= constant * (1 - 1e-12)


# Tasks: threads that take what is ready.


def end_of_tasks(count: int, seconds: float, threads: int, create: float) -> float:
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
    simulated = end_of_tasks(400, 0.1, threads, create)
    assert task_time(400, 0.1, 0.1, threads, create) == pytest.approx(simulated, rel=0.05)


def test_a_chain_gains_nothing_from_threads() -> None:
    assert task_time(10, 1.0, 10.0, 8) == pytest.approx(10.0)


# Lines that threads share, against counting them.


def shared_writes(elements: int, threads: int, chunk: int, line: int) -> float:
    """Share of the writes that go to a line which more than one thread writes."""
    owner = [(i // chunk) % threads for i in range(elements)]
    shared = 0
    for start in range(0, elements, line):
        owners = owner[start : start + line]
        shared += len(owners) if len(set(owners)) > 1 else 0
    return shared / elements


@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_small_chunks_share_every_line(chunk: int) -> None:
    assert shared_writes(8192, 4, chunk, 8) == 1.0
    time = false_sharing_time(8192, 4, chunk, 8, 1e-7, 1.0)
    sharers = min(4, 6 // chunk + 2)
    assert time == pytest.approx(2048 * (1 - 1 / sharers) * 1e-7)


def test_blocks_share_next_to_nothing() -> None:
    whole = false_sharing_time(8192, 4, 2048, 8, 1e-7, 1.0)
    assert whole < 0.004 * false_sharing_time(8192, 4, 1, 8, 1e-7, 1.0)


def test_padded_threads_lose_nothing() -> None:
    assert false_sharing_time(1000, 4, 1, 8, 1e-7, 0.0) == 0
