"""The expected work of the slowest process, against draws and closed forms."""

import tracemalloc

import numpy as np
import pytest

from popmodel.model.terms.imbalance import expected_maximum, largest


def test_equal_processes_of_normal_work_have_the_known_maximum() -> None:
    assert largest(np.ones(16), 0.1) == pytest.approx(1 + 0.1 * expected_maximum(16), rel=1e-5)


def test_without_chance_it_is_the_largest() -> None:
    assert largest(np.array([1.0, 3.0, 2.0]), 0.0) == 3.0


def test_two_values_on_two_processes_are_counted_out() -> None:
    # three of four cases have at least one 1.2
    assert largest(np.ones(2), 0.0, [(1.0, np.array([0.8, 1.2]))]) == pytest.approx(
        0.75 * 1.2 + 0.25 * 0.8
    )


@pytest.mark.parametrize("spread", [0.0, 0.1])
@pytest.mark.parametrize("parts", [1, 2, 9])
def test_sums_of_factors_agree_with_draws(spread: float, parts: int) -> None:
    rng = np.random.default_rng(parts)
    levels = rng.uniform(0.5, 1.2, 12)
    values = [rng.lognormal(0, 0.2, 5 + part) for part in range(parts)]
    values = [one / one.mean() for one in values]
    size = (100_000, levels.size)
    added = spread * rng.standard_normal(size)
    for one in values:
        added += (rng.choice(one, size) - 1) / parts
    expected = (levels * (1 + added)).max(axis=1).mean()
    found = largest(levels, spread, [(1 / parts, one) for one in values])
    assert found == pytest.approx(expected, abs=3e-3)


def test_many_processes_are_grouped_by_their_level() -> None:
    rng = np.random.default_rng(0)
    levels = rng.uniform(0.9, 1.1, 2000)
    drawn = (levels * (1 + 0.1 * rng.standard_normal((2000, 2000)))).max(axis=1).mean()
    assert largest(levels, 0.1) == pytest.approx(drawn, abs=3e-3)


def test_many_values_of_several_factors_take_no_more_memory_than_few() -> None:
    rng = np.random.default_rng(0)
    levels = rng.uniform(0.9, 1.1, 8)

    def peak(values: int) -> int:
        factors = [rng.lognormal(0, 0.1, values) for _ in range(3)]
        factors = [(1 / 3, one / one.mean()) for one in factors]
        tracemalloc.start()
        largest(levels, 0.05, factors)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(100_000) < 2 * peak(5_000)
