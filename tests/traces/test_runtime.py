"""How long threads are in states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.traces import tables
from popmodel.traces.calls import CallTable, CollectiveArguments
from popmodel.traces.codes import RUNNING, TRACING_DISABLED
from popmodel.traces.intervals import Intervals
from popmodel.traces.recorded_run import Trace
from popmodel.traces.records import RecordColumns
from popmodel.traces.runtime import state_times
from popmodel.traces.tables import States

STATES = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.integers(0, 5), st.sampled_from([RUNNING, 0, 5, TRACING_DISABLED])
        ),
        max_size=10,
    ),
    min_size=1,
    max_size=4,
)
"""Of each location the gap before each state, its length, and what it is."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK", 7)


def spans(records: list[list[tuple[int, int, int]]]) -> list[list[tuple[int, int, int]]]:
    found = []
    for mine in records:
        clock = 0
        found.append([])
        for gap, length, state in mine:
            found[-1].append((clock + gap, clock + gap + length, state))
            clock += gap + length
    return found


def states_of(records: list[list[tuple[int, int, int]]]) -> States:
    flat = [span for mine in records for span in mine]
    return States(
        np.cumsum([0] + [len(mine) for mine in records]),
        np.array([begin for begin, _, _ in flat], dtype=np.int64),
        np.array([end for _, end, _ in flat], dtype=np.int64),
        np.array([state for _, _, state in flat], dtype=np.int32),
    )


def trace_of(found: list[list[tuple[int, int, int]]]) -> Trace:
    """A trace of processes of one thread that has states only."""
    nothing = np.empty(0, np.int64)
    count = len(found)
    calls = CallTable(
        np.zeros(count + 1, np.int64),
        nothing,
        nothing,
        nothing.astype(np.int16),
        (),
        (),
        CollectiveArguments.none(),
    )
    return Trace(
        path="states.prv",
        application=1,
        begin=0,
        end=100,
        nodes=(),
        process_offsets=np.arange(count + 1),
        node_of_location=np.zeros(count, np.int32),
        communicators={},
        records=RecordColumns(states_of(found), calls),
    )


@given(STATES)
def test_times_in_all_states_and_without_those_of_no_tracing(
    records: list[list[tuple[int, int, int]]],
) -> None:
    found = spans(records)
    covered, traced = state_times(trace_of(found))
    assert covered.tolist() == [sum(e - b for b, e, _ in mine) for mine in found]
    assert traced.tolist() == [
        sum(e - b for b, e, state in mine if state != TRACING_DISABLED) for mine in found
    ]


@given(STATES)
def test_when_threads_are_in_a_state(records: list[list[tuple[int, int, int]]]) -> None:
    found = spans(records)
    running = Intervals.in_state(states_of(found), RUNNING)
    assert [*zip(running.location, running.begin, running.end, strict=True)] == [
        (location, begin, end)
        for location, mine in enumerate(found)
        for begin, end, state in mine
        if state == RUNNING
    ]
