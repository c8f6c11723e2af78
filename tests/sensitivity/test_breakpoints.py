"""Pieces of convex functions against functions whose pieces are known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sensitivity.functions import Lines

from popmodel.sensitivity.piecewise_linear import Tangent, pieces

# Of slopes that are whole numbers, as counts of latencies are.
LINES = st.lists(
    st.tuples(st.floats(0.1, 10), st.integers(0, 50).map(float)), min_size=1, max_size=20
)


def test_breakpoints_values_and_slopes_of_three_lines() -> None:
    found = pieces(Lines([(1, 0), (0.5, 1), (-1, 2)]), 0, 4)
    assert found.points == pytest.approx((0, 0.5, 1.5, 4))
    assert found.values == pytest.approx((1, 1, 2, 7))
    assert found.slopes == (0, 1, 2)
    assert found.breakpoints == pytest.approx((0.5, 1.5))
    assert found.error == 0


@given(LINES)
def test_pieces_are_the_function(lines: list[tuple[float, float]]) -> None:
    function = Lines(lines)
    found = pieces(function, 0, 1)
    generator = random.Random(1)
    for x in [0, 1, *found.points, *(generator.random() for _ in range(50))]:
        assert found(x) == pytest.approx(function.value(x), rel=1e-10)
    assert list(found.slopes) == sorted(found.slopes)
    assert list(found.points) == sorted(found.points)
    assert set(found.slopes) <= {slope for _, slope in lines}


@given(LINES)
def test_k_pieces_take_no_more_than_2k_and_1_values(lines: list[tuple[float, float]]) -> None:
    function = Lines(lines)
    found = pieces(function, 0, 1)
    # lines that meet another pair in their breakpoint touch the function only there
    touching = len({s for _, s in lines})
    assert len(set(function.asked)) <= 2 * max(len(found.slopes), touching) + 1


def test_noise_of_rounding_makes_no_pieces() -> None:
    class Noisy(Lines):
        def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
            exact = super().tangent(point, from_right=from_right)
            return Tangent(point, exact.value * (1 + 1e-14 * random.Random(point).random()), 7e-9)

    assert len(pieces(Noisy([(5, 7e-9)]), 0, 100).slopes) == 1


def test_what_a_limit_of_tangents_leaves_out_is_bounded() -> None:
    parabola = Lines([(-((k / 64) ** 2), 2 * k / 64) for k in range(65)])
    some = pieces(parabola, 0, 1, most=6)
    assert 0 < some.error < 0.05
    gaps = [parabola.value(k / 1000) - some(k / 1000) for k in range(1001)]
    assert max(gaps) <= some.error * (1 + 1e-12)
    assert pieces(parabola, 0, 1).error == 0


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="from 1 to 1 is empty"):
        pieces(Lines([(0, 1)]), 1, 1)
