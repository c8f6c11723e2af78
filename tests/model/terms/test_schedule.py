"""Dynamic and guided schedules against a simulation of threads that fetch chunks."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np
import pytest
import sympy

from popmodel.base.expressions.elementary import TracedExpression
from popmodel.model.terms.openmp import dynamic_time, guided_chunks, guided_time


def simulate(chunks: Iterable[np.ndarray], threads: int, overhead: float) -> float:
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
    expected = simulate(cut(costs, [chunk] * (trip // chunk)), threads, 2e-7)
    assert dynamic_time(trip, 1e-6, threads, chunk, overhead=2e-7) == pytest.approx(expected)


@pytest.mark.parametrize("spread", [0.3, 0.6, 1.0])
@pytest.mark.parametrize(("threads", "chunk"), [(4, 1), (8, 4), (16, 2)])
def test_random_iterations_are_near_the_simulation(spread: float, threads: int, chunk: int) -> None:
    rng = np.random.default_rng(1)
    trip, shape = 1024, 1 / spread**2
    runs = [
        simulate(cut(rng.gamma(shape, 1 / shape, trip), [chunk] * (trip // chunk)), threads, 0.0)
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
    expected = simulate(cut(costs, guided_sizes(trip, threads, 1)), threads, overhead)
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
