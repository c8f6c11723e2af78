"""Fits to points that were measured in several launches, and their errors."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.machines.bench.estimate.launch_intervals import (
    Series,
    aligned,
    fitted,
    of_fit,
    quantities,
)


def test_points_of_a_fit_are_of_the_same_launches() -> None:
    series = [
        Series((1.0, 2.0, 3.0), "", 10, launches=("a", "b", "c")),
        Series((30.0, 10.0, 20.0), "", 10, launches=("c", "a", "b")),
        Series((200.0, 300.0), "", 10, launches=("b", "c")),
    ]
    points = aligned(series, 2)
    assert points is not None
    assert points.kept == (0, 1)
    assert points.values.tolist() == [[1, 10], [2, 20], [3, 30]]
    points = aligned(series, 3)
    assert points is not None
    assert points.launches == ("b", "c")
    assert points.values.tolist() == [[2, 20, 200], [3, 30, 300]]
    assert aligned([*series, Series((1.0,), "", 10, launches=("d",))], 4) is None


def test_a_fit_to_one_launch_has_the_errors_of_its_points() -> None:
    series = [Series((value,), "", 10, sampling=0.01) for value in (1.0, 2.0)]
    points = aligned(series, 2)
    assert points is not None
    fits, errors = fitted(points, lambda values: np.array([values.sum()]))
    assert fits.tolist() == [[3.0]]
    assert errors == pytest.approx([0.01 * np.hypot(1.0, 2.0)])


def test_an_error_of_the_size_of_a_fit_is_no_factor() -> None:
    points = aligned([Series((1.0,), "", 10, sampling=0.01)] * 2, 2)
    assert points is not None
    found = quantities({"x": of_fit(np.array([2.0]), 3.0, points, "fit")})["x"]
    assert found["high"] == pytest.approx(2 + 1.645 * 3, rel=1e-3)
    assert 0 < found["low"] < 1e-5
    close = quantities({"x": of_fit(np.array([2.0]), 0.02, points, "fit")})["x"]
    assert close["high"] == pytest.approx(2 * np.exp(1.645 * 0.01), rel=1e-4)


def test_a_fit_to_one_of_several_launches_has_their_spread() -> None:
    effects = (0.9, 1.0, 1.1)
    series = [Series(tuple(value * one for one in effects), "", 10) for value in range(1, 9)]
    lone = Series((1.0,), "", 10, launches=("alone",))
    points = aligned([*series, *[lone] * 9], 9)
    assert points is not None
    _, errors = fitted(points, lambda values: values[:1])
    assert errors[0] == pytest.approx(0.1, rel=0.1)
