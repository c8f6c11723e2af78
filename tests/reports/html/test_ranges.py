"""Values on one axis: where they lie, and which numbers stand along it."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports.html.ranges import PageScale, linear, ratios, round_numbers
from popmodel.reports.pictures import Mark
from popmodel.reports.renderers.sheet import text_width

LEFT, RIGHT = 14, 206  # what is free at both ends of 220 pixels
POSITIVE = st.floats(1e-9, 1e9)


def text(value: float) -> str:
    return f"{value:g}"


def test_ends_that_are_known_lie_at_the_ends() -> None:
    scale = linear([0.3], text, ends=(0.0, 1.0))
    assert [scale.at(one) for one in (0.0, 0.5, 1.0)] == [LEFT, (LEFT + RIGHT) / 2, RIGHT]


def test_equal_ratios_have_equal_lengths() -> None:
    scale = ratios([0.25, 4.0])
    middle = scale.at(1.0)
    assert middle - scale.at(0.5) == pytest.approx(scale.at(2.0) - middle)
    assert scale.at(4.0) - scale.at(2.0) == pytest.approx(scale.at(2.0) - middle)


def test_what_is_beyond_the_axis_lies_at_its_end() -> None:
    scale = linear([], text, ends=(0.0, 1.0))
    assert (scale.at(-1.0), scale.at(7.0)) == (LEFT, RIGHT)


@given(st.lists(POSITIVE, min_size=1, max_size=8))
def test_larger_values_lie_further_right_within_the_axis(values: list[float]) -> None:
    for scale in (linear(values, text), ratios(values)):
        places = [scale.at(one) for one in sorted(values)]
        assert places == sorted(places)
        assert places[0] >= LEFT
        assert places[-1] <= RIGHT


@given(st.lists(POSITIVE, min_size=2, max_size=8))
def test_numbers_along_an_axis_stand_apart(values: list[float]) -> None:
    for scale in (linear(values, text), ratios(values)):
        for (one, first), (other, second) in itertools.pairwise(scale.marks):
            room = (text_width(first) + text_width(second)) / 2
            assert scale.at(other) - scale.at(one) > room


def test_one_stands_along_an_axis_of_ratios() -> None:
    for values in ([0.97, 1.02], [0.4, 1.3], [0.02, 60.0], [1e-6, 1e7]):
        assert 1.0 in dict(ratios(values).marks)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0.9, 1.12, [0.9, 0.95, 1.0, 1.05, 1.1]),
        (0.3, 3.0, [0.5, 1, 2]),
        (0.01, 1.0, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]),
        (1e-3, 1e3, [1e-3, 1e-2, 0.1, 1, 10, 100, 1e3]),
    ],
)
def test_round_numbers(low: float, high: float, found: list[float]) -> None:
    assert round_numbers(low, high) == found


def numbers_of(svg: str) -> list[float]:
    """Where the ends of the strokes of an interval are."""
    path = next(
        one.get("d") or "" for one in ElementTree.fromstring(svg) if one.get("class") == "bar"
    )
    return [float(one) for one in re.findall(r"M([\d.]+) [\d.]+v", path)]


def test_a_cell_has_the_interval_where_its_ends_lie() -> None:
    scale = linear([], text, ends=(0.0, 10.0))
    first, last = numbers_of(scale.drawn(5.0, 2.0, 9.0, Mark.FIRST))
    assert (first, last) == (
        pytest.approx(scale.at(2.0), abs=0.1),
        pytest.approx(scale.at(9.0), abs=0.1),
    )


def test_a_cell_without_an_interval_has_none() -> None:
    svg = linear([1.0, 2.0], text).drawn(1.5)
    assert not [one for one in ElementTree.fromstring(svg) if one.get("class") == "bar"]


def test_the_line_of_what_is_exact_and_what_was_before_are_drawn() -> None:
    drawn = ElementTree.fromstring(ratios([0.5, 2.0]).drawn(0.8, before=1.4))
    assert {"exact", "before"} <= {one.get("class") for one in drawn}


def test_a_bar_begins_at_the_begin_of_the_axis() -> None:
    scale = linear([], text, ends=(0.0, 4.0))
    bar = next(
        one for one in ElementTree.fromstring(scale.bar(1.0, None, None)) if one.tag == "rect"
    )
    assert (bar.get("x"), float(bar.get("width") or "")) == (str(LEFT), (RIGHT - LEFT) / 4)


def test_names_of_units_are_text() -> None:
    head = linear([1.0, 2.0], lambda value: f"{value:g} <b>&").head
    assert all(one.text and one.text.endswith(" <b>&") for one in ElementTree.fromstring(head))


def test_a_single_value_has_an_axis() -> None:
    for scale in (linear([3.0], text), linear([0.0], text), ratios([1.0])):
        assert isinstance(scale, PageScale)
        assert scale.low < scale.high
        assert math.isfinite(scale.at(3.0))
