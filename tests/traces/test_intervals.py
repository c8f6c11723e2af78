"""Sets of intervals against sets of single nanoseconds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.traces import intervals as module
from popmodel.traces import tables
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.tables import States

LOCATIONS, END = 3, 40

# For each location the instants at which something switches on and off.
switches = st.lists(
    st.lists(st.integers(0, END), unique=True, max_size=8).map(sorted),
    min_size=LOCATIONS,
    max_size=LOCATIONS,
)


def intervals(points: list[list[int]]) -> Intervals:
    pairs = [list(zip(mine[::2], mine[1::2], strict=False)) for mine in points]
    flat = [pair for mine in pairs for pair in mine]
    return Intervals.of(
        np.cumsum([0] + [len(mine) for mine in pairs]),
        np.array([b for b, _ in flat], dtype=np.int64),
        np.array([e for _, e in flat], dtype=np.int64),
    )


def instants(found: Intervals) -> list[set[int]]:
    """Nanoseconds that belong to the intervals of each location."""
    sets: list[set[int]] = [set() for _ in range(LOCATIONS)]
    for location, begin, end in zip(found.location, found.begin, found.end, strict=True):
        sets[location] |= set(range(begin, end))
    return sets


@given(switches)
def test_total(points: list[list[int]]) -> None:
    found = intervals(points)
    assert found.total().tolist() == [len(mine) for mine in instants(found)]


@given(switches, st.integers(0, LOCATIONS - 1), st.integers(0, END), st.integers(0, END))
def test_inside(points: list[list[int]], location: int, one: int, other: int) -> None:
    begin, end = sorted((one, other))
    found = intervals(points)
    inside = found.inside(*(np.array([x]) for x in (location, begin, end)))
    assert inside.tolist() == [len(instants(found)[location] & set(range(begin, end)))]


@given(switches, switches)
def test_within(points: list[list[int]], others: list[list[int]]) -> None:
    found, other = intervals(points), intervals(others)
    expected = [len(a & b) for a, b in zip(instants(found), instants(other), strict=True)]
    assert found.within(other).tolist() == expected
    assert other.within(found).tolist() == expected


@given(switches, st.lists(st.integers(0, END + 1)))
def test_passed(points: list[list[int]], times: list[int]) -> None:
    found = intervals(points)
    expected = [sum(len(mine & set(range(time))) for mine in instants(found)) for time in times]
    assert found.passed(np.array(times, np.int64)).tolist() == expected
    late = 1 << 62  # sums of such times do not fit into 64 bits
    moved = Intervals(found.offsets, found.begin + late, found.end + late)
    assert moved.passed(np.array(times, np.int64) + late).tolist() == expected


@given(switches, switches, switches, st.sampled_from([1, 4, 1 << 17]))
def test_alone(
    points: list[list[int]], more: list[list[int]], others: list[list[int]], rows: int
) -> None:
    first, second, third = intervals(points), intervals(more), intervals(others)
    expected = [
        (a | b) - c
        for a, b, c in zip(instants(first), instants(second), instants(third), strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("popmodel.traces.intervals._ROWS", rows)
        assert instants(alone([first, second], [third])) == expected


@given(switches, st.sets(st.integers(0, LOCATIONS - 1)))
def test_at(points: list[list[int]], locations: set[int]) -> None:
    found = intervals(points)
    kept = instants(found.at(np.array(sorted(locations), dtype=np.int64)))
    expected = [s if i in locations else set() for i, s in enumerate(instants(found))]
    assert kept == expected


@given(switches, st.integers(0, END), st.integers(0, END))
def test_starts(points: list[list[int]], one: int, other: int) -> None:
    begin, end = sorted((one, other))
    found = intervals(points)
    for location in range(LOCATIONS):
        first, count = found.starts(*(np.array([x]) for x in (location, begin, end)))
        mine = found.begin[found.offsets[location] : found.offsets[location + 1]]
        expected = [b for b in mine.tolist() if begin <= b < end]
        assert found.begin[first[0] : first[0] + count[0]].tolist() == expected


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, END), st.integers(0, END)).map(sorted), max_size=5).map(
            sorted
        ),
        min_size=LOCATIONS,
        max_size=LOCATIONS,
    )
)
def test_records_that_overlap_count_once(records: list[list[list[int]]]) -> None:
    flat = [record for mine in records for record in mine]
    states = States(
        np.cumsum([0] + [len(mine) for mine in records]),
        np.array([b for b, _ in flat], dtype=np.int64),
        np.array([e for _, e in flat], dtype=np.int64),
        np.full(len(flat), 1, dtype=np.int32),
    )
    found = Intervals.in_state(states, 1)
    union = [set().union(*(range(b, e) for b, e in mine)) for mine in records]
    assert instants(found) == union
    assert found.total().tolist() == [len(mine) for mine in union]


def test_nothing_at_all() -> None:
    empty = intervals([[], [], []])
    assert len(empty) == 0
    assert empty.total().tolist() == [0, 0, 0]
    assert empty.before(np.array([1]), np.array([5])).tolist() == [0]
    assert len(alone([empty], [empty])) == 0
    assert instants(empty) == [set(), set(), set()]
    assert pytest.approx(0) == empty.within(empty).sum()


@given(switches)
def test_long_columns_are_put_together_from_pieces(points: list[list[int]]) -> None:
    whole = intervals(points)
    states = States(whole.offsets, whole.begin, whole.end, np.ones(len(whole), np.int32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_BLOCK", 2)
        patch.setattr(module, "_LONG_ROWS", 2)
        found = Intervals.in_state(states, 1)
    assert instants(found) == instants(whole)
