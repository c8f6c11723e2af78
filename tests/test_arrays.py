"""What is said of arrays is what NumPy says."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.base import arrays


@pytest.mark.parametrize("size", [0, 1, 100, 100_000])
def test_distinct_values_are_those_of_numpy(size: int) -> None:
    values = np.random.default_rng(1).integers(0, 50, size)
    assert np.array_equal(arrays.distinct(values), np.unique(values))
    assert arrays.distinct(values).dtype == values.dtype


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize("few", [[], [3], [0, 49, 7, 70]])
def test_values_among_a_few_are_those_of_numpy(size: int, few: list[int]) -> None:
    values = np.random.default_rng(1).integers(0, 50, size, dtype=np.uint32)
    assert np.array_equal(arrays.among(values, few), np.isin(values, few))


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_quantiles_are_those_of_numpy(size: int) -> None:
    values, shares = np.random.default_rng(1).normal(size=size), (0.0, 0.05, 0.5, 0.95, 1.0)
    assert arrays.quantiles(values, shares) == pytest.approx(np.quantile(values, shares), rel=1e-14)


@pytest.mark.parametrize("size", [0, 1, 100, 10_000])
def test_rows_that_are_alike_are_those_of_numpy(size: int) -> None:
    columns = np.random.default_rng(1).integers(-3, 3, (3, size)) * 2**40
    rows, which = arrays.alike(*columns)
    expected, index = np.unique(columns.T, axis=0, return_inverse=True)
    assert np.array_equal(rows, expected)
    assert np.array_equal(which, index.reshape(-1))
