"""Rows of events, and what their values open and close."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.kernel import _kernel
from popmodel.traces import tables
from popmodel.traces.paraver.events import (
    instants,
    select,
    where_nonzero,
)
from popmodel.traces.tables import EventTable

LOCATIONS, END = 3, 40


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK", 7)


def events_of(told: list[list[tuple[int, int]]]) -> EventTable:
    """Events of locations from their types and values; each at the time of its row."""
    flat = [each for mine in told for each in mine]
    return EventTable(
        np.cumsum([0] + [len(mine) for mine in told]),
        np.arange(len(flat), dtype=np.int64),
        np.array([type_ for type_, _ in flat], dtype=np.uint32),
        np.array([value for _, value in flat], dtype=np.int64),
    )


TOLD = st.lists(
    st.lists(
        st.tuples(
            st.integers(5, 12) | st.sampled_from([0, 2**32 - 1]),
            st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1]),
        ),
        max_size=12,
    ),
    min_size=LOCATIONS,
    max_size=LOCATIONS,
)


@given(TOLD, st.lists(st.sets(st.integers(5, 12) | st.just(0), min_size=1), max_size=3))
def test_what_events_tell_of_several_sets_of_types(
    told: list[list[tuple[int, int]]], sets: list[set[int]]
) -> None:
    flat = [(place, *each) for place, mine in enumerate(told) for each in mine]
    for found, types in zip(instants(events_of(told), *map(list, sets)), sets, strict=True):
        expected = [
            (place, i, value) for i, (place, type_, value) in enumerate(flat) if type_ in types
        ]
        assert len(found.offsets) == LOCATIONS + 1
        assert [*zip(found.location, found.time, found.value, strict=True)] == expected


def test_readings_of_what_does_not_fit_are_refused() -> None:
    types = np.array([5], np.uint32)
    with pytest.raises(ValueError, match="a table that is not there"):
        _kernel.Readings(locations=1, events=1, low=types, high=types, table=types, tables=1)
    first = np.zeros(1, np.uint32)
    readings = _kernel.Readings(locations=2, events=1, low=types, high=types, table=first, tables=1)
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="offsets of other locations"):
        readings.feed(np.array([0, 1]), one, types, one)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, END), st.sampled_from([0, 0, 1, 2])), max_size=8).map(
            lambda events: sorted(events, key=lambda event: event[0])
        ),
        min_size=LOCATIONS,
        max_size=LOCATIONS,
    )
)
def test_where_nonzero(events: list[list[tuple[int, int]]]) -> None:
    flat = [event for mine in events for event in mine]
    table = EventTable(
        np.cumsum([0] + [len(mine) for mine in events]),
        np.array([time for time, _ in flat], dtype=np.int64),
        np.full(len(flat), 7, dtype=np.uint32),
        np.array([value for _, value in flat], dtype=np.int64),
    )
    expected: list[set[int]] = []
    for mine in events:
        on: set[int] = set()
        # The last event of an instant decides what holds from there.
        values = dict(mine)
        value = 0
        for instant in range(END):
            value = values.get(instant, value)
            if value:
                on.add(instant)
        expected.append(on)
    selected = select(table, (7, 8))
    found, row = where_nonzero(selected, (7,), END)
    inside: list[set[int]] = [set() for _ in range(LOCATIONS)]
    for location, begin, end in zip(found.location, found.begin, found.end, strict=True):
        inside[location] |= set(range(begin, end))
    assert inside == expected
    assert np.all(selected.value[row] > 0)
    assert np.array_equal(selected.time[row], found.begin)
