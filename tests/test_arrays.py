"""What is said of arrays is what NumPy says."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel import arrays


@pytest.mark.parametrize("size", [0, 1, 100, 100_000])
def test_distinct_values_are_those_of_numpy(size: int) -> None:
    values = np.random.default_rng(1).integers(0, 50, size)
    assert np.array_equal(arrays.distinct(values), np.unique(values))
    assert arrays.distinct(values).dtype == values.dtype


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_quantiles_are_those_of_numpy(size: int, share: float) -> None:
    values = np.random.default_rng(1).normal(size=size)
    assert arrays.quantile(values, share) == pytest.approx(np.quantile(values, share), rel=1e-14)
