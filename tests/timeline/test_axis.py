"""How much of each step of time is covered."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popmodel.timeline.lanes import TimeAxis
from popmodel.traces.intervals import Intervals

SPAN = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted)


def intervals(spans: list[list[list[int]]]) -> Intervals:
    offsets = np.cumsum([0, *map(len, spans)])
    flat = [span for mine in spans for span in mine]
    begin, end = np.array(flat, np.int64).reshape(-1, 2).T
    return Intervals.of(offsets, begin, end)


def counted(spans: list[list[int]], begin: int, end: int) -> int:
    """Nanoseconds of a step that spans cover, one by one."""
    return sum(first <= time < last for time in range(begin, end) for first, last in spans)


@given(
    spans=st.lists(st.lists(SPAN, max_size=5), min_size=2, max_size=4),
    begin=st.integers(0, 20),
    length=st.integers(1, 50),
    most=st.integers(1, 12),
)
def test_each_step_has_what_intervals_cover_of_it(
    spans: list[list[list[int]]], begin: int, length: int, most: int
) -> None:
    axis = TimeAxis.over(begin, length, most)
    assert axis.columns <= most
    assert axis.columns * axis.step >= length
    lane = np.array([0, *np.arange(len(spans) - 1)])  # the first two threads share a lane
    found = axis.covered(intervals(spans), lane)
    for row in range(len(spans) - 1):
        mine = [
            span for place, each in zip(lane, spans, strict=True) if place == row for span in each
        ]
        for column in range(axis.columns):
            first = begin + column * axis.step
            assert found[row, column] == counted(mine, first, first + axis.step)


def test_the_last_step_may_be_shorter() -> None:
    spans = intervals([[[0, 100]]])
    assert TimeAxis(0, 10, 3, 25).covered(spans, np.array([0])).tolist() == [[10, 10, 5]]


def test_some_may_not_count() -> None:
    spans = intervals([[[0, 4], [4, 10], [10, 20]]])
    some = np.array([True, False, True])
    assert TimeAxis(0, 10, 2, 20).covered(spans, np.array([0]), some).tolist() == [[4, 10]]


def test_sums_are_exact_beyond_the_integers_of_floats() -> None:
    long = 2**53 + 1
    spans = intervals([[[0, long], [0, long]]])
    assert TimeAxis(0, long, 1, long).covered(spans, np.array([0])).tolist() == [[2 * long]]
