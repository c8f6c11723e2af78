"""Surfaces as planes, against surfaces whose planes are known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from whatif.functions import Hull

from popmodel.whatif.planes import Plane, planes

PLANES = st.lists(
    st.builds(Plane, st.floats(0.5, 1), st.floats(0, 2), st.floats(0, 2)), min_size=1, max_size=25
)


def test_two_planes_are_found() -> None:
    roof = Hull([Plane(1, 0, 0), Plane(0, 2, 1)])
    found = planes(roof, (0, 1), (0, 1), error=1e-12)
    assert set(found.planes) == set(roof.made_of)
    assert found.error == 0


def test_a_plane_that_is_greatest_nowhere_is_left_out() -> None:
    found = planes(Hull([Plane(1, 0, 0), Plane(0.5, 0.1, 0.1)]), (0, 1), (0, 1), error=0)
    assert found.planes == (Plane(1, 0, 0),)


@given(PLANES)
def test_the_error_bounds_the_gap_everywhere(made_of: list[Plane]) -> None:
    surface = Hull(made_of)
    found = planes(surface, (0, 1), (0, 3), error=1e-3)
    assert found.error <= 1e-3
    generator = random.Random(2)
    for _ in range(200):
        x, y = generator.random(), 3 * generator.random()
        assert -1e-12 <= 1 - found(x, y) / surface.heights([(x, y)])[0] <= found.error + 1e-12


def test_a_limit_of_planes_gives_the_error_that_is_left() -> None:
    bowl = Hull([Plane(1 - (k / 20) ** 2, 2 * k / 20, 0) for k in range(21)])
    found = planes(bowl, (0, 1), (0, 1), error=0, most=3)
    assert len(found.planes) <= 3
    worst = max(1 - found(k / 500, 0) / bowl.heights([(k / 500, 0)])[0] for k in range(501))
    assert found.error == pytest.approx(worst, rel=1e-3)
    assert found.error >= worst


def test_scales_of_the_parameters_do_not_matter() -> None:
    surface = Hull([Plane(10, 0, 0), Plane(9.9, 5e4, 1e9), Plane(9.7, 2e4, 3e9)])
    found = planes(surface, (0, 1e-4), (0, 1e-9), error=1e-10)
    assert set(found.planes) == set(surface.made_of)
