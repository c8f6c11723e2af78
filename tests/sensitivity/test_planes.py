"""Surfaces as planes, against surfaces whose planes are known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sensitivity.functions import Hull

from popmodel.sensitivity.piecewise_linear import Plane, planes

SQUARE = [(0.0, 1.0), (0.0, 1.0)]


@st.composite
def hulls(draw: st.DrawFn) -> tuple[list[Plane], list[tuple[float, float]]]:
    """Planes over a box of one to three dimensions, many of whose corners are alike."""
    dimensions = draw(st.integers(1, 3))
    steep = st.one_of(st.floats(0, 2), st.integers(0, 3).map(float))
    flat = st.one_of(st.floats(0.5, 1), st.sampled_from([0.5, 1.0]))
    one = st.builds(Plane, flat, st.tuples(*[steep] * dimensions))
    return draw(st.lists(one, min_size=1, max_size=25)), [(0.0, 1.0), (0.0, 3.0), (0.25, 4.0)][
        :dimensions
    ]


def test_two_planes_are_found() -> None:
    roof = Hull([Plane(1, (0, 0)), Plane(0, (2, 1))])
    found = planes(roof, SQUARE, error=1e-12)
    assert set(found.planes) == set(roof.made_of)
    assert found.error == 0


@given(hulls())
def test_the_error_bounds_the_gap_everywhere(
    made: tuple[list[Plane], list[tuple[float, float]]],
) -> None:
    made_of, box = made
    surface = Hull(made_of)
    found = planes(surface, box, error=1e-3)
    assert found.error <= 1e-3
    generator = random.Random(2)
    for _ in range(200):
        point = tuple(low + (high - low) * generator.random() for low, high in box)
        gap = 1 - found(*point) / surface.heights([point])[0]
        assert -1e-12 <= gap <= found.error + 1e-12


@given(hulls(), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_planes_are_exact_where_they_are_to_be(
    made: tuple[list[Plane], list[tuple[float, float]]], shares: list[float]
) -> None:
    made_of, box = made
    surface = Hull(made_of)
    point = tuple(
        low + (high - low) * share for (low, high), share in zip(box, shares, strict=False)
    )
    found = planes(surface, box, error=0.5, touching=[point])
    assert found(*point) == pytest.approx(surface.heights([point])[0], rel=1e-12)


def test_a_limit_of_planes_gives_the_error_that_is_left() -> None:
    bowl = Hull([Plane(1 - (k / 20) ** 2, (2 * k / 20, 0)) for k in range(21)])
    found = planes(bowl, SQUARE, error=0, most=3)
    assert len(found.planes) <= 3
    worst = max(1 - found(k / 500, 0) / bowl.heights([(k / 500, 0)])[0] for k in range(501))
    assert found.error == pytest.approx(worst, rel=1e-3)
    assert found.error >= worst


def test_a_surface_of_no_height_is_one_plane() -> None:
    found = planes(Hull([Plane(0, (0, 0))]), SQUARE, error=1e-3)
    assert found.planes == (Plane(0, (0, 0)),)
    assert found.error == 0
