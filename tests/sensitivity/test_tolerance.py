"""Where convex functions reach a value, against lines whose crossings are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sensitivity.functions import Lines

from popmodel.sensitivity.piecewise_linear import pieces
from popmodel.sensitivity.runtime_planes import reaches

THREE = Lines([(1, 0), (0.5, 1), (-1, 2)])


@pytest.mark.parametrize("interval", [None, (0, 4), (0, 0.25), (0, 1), (2, 3)])
@pytest.mark.parametrize(("value", "at"), [(1, 0.5), (1.5, 1), (3, 2), (9, 5)])
def test_where_a_value_is_reached(
    interval: tuple[float, float] | None, value: float, at: float
) -> None:
    known = None if interval is None else pieces(THREE, *interval)
    assert reaches(THREE, value, known) == pytest.approx(at, rel=1e-9)


def test_a_value_that_is_passed_at_0_already() -> None:
    assert reaches(THREE, 0.9) is None
    assert reaches(THREE, 0.9, pieces(THREE, 0, 1)) is None
    assert reaches(THREE, 0.9, pieces(THREE, 2, 3)) is None


def test_a_value_that_is_never_reached() -> None:
    assert reaches(Lines([(1, 0)]), 2) == math.inf
    assert reaches(Lines([(1, 0)]), 2, pieces(Lines([(1, 0)]), 0, 1)) == math.inf


def test_what_begins_to_matter_far_away() -> None:
    assert reaches(Lines([(100, 0), (1, 1)]), 101, None) == pytest.approx(100)


def test_inside_known_pieces_nothing_is_looked_up() -> None:
    known = pieces(THREE, 0, 4)
    before = len(THREE.asked)
    reaches(THREE, 2.5, known)
    assert len(THREE.asked) == before


@given(
    st.lists(
        st.tuples(st.floats(0.1, 10), st.integers(0, 10**6).map(float)), min_size=1, max_size=20
    ),
    st.floats(1.0001, 3),
)
def test_the_function_has_the_value_there(lines: list[tuple[float, float]], more: float) -> None:
    function = Lines(lines)
    value = more * function.value(0)
    at = reaches(function, value)
    assert at is not None
    if math.isinf(at):
        assert all(slope == 0 for _, slope in lines)
    else:
        assert function.value(at) == pytest.approx(value, rel=1e-9)
