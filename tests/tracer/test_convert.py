"""States and events of a thread: what is open, whatever order things end in."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracer.builder import NUMBER

from popmodel.tracer.raw_records import (
    RECORD,
    CallTables,
    Construct,
    Guard,
    Openings,
    RecordKind,
    after,
    nests,
    still_open,
)
from popmodel.tracer.thread_events import BACKWARDS, NOT_RETURNED, UNBEGUN, Converter, Tables
from popmodel.traces import read
from popmodel.traces.codes import IDLE, RUNNING
from popmodel.traces.paraver.numbers import NUMBERS
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.regions import user_regions

TABLES = Tables(
    CallTables(),
    np.array([0, 1, 2]),
    {a: a for a in range(100)},
    {a: a for a in range(9)},
    np.zeros((1 << 16, 2), np.int64),
)
MENDED = "calls and regions without a recorded end (ended at the next record that implies it)"
DROPPED = "ends of calls and regions without a recorded start (dropped)"


def records(*rows: tuple[int, ...]) -> np.ndarray:
    """Rows of (time, kind, call, a, b, c), the last ones 0 by default."""
    return np.array([tuple([*row, 0, 0, 0, 0][:6]) for row in rows], RECORD)


def convert(*rows: tuple[int, ...], end: int = 1000, base: int = RUNNING, step: int = 0):
    """States and events of a thread that runs from 0 to `end`; the row, too."""
    row = Converter(0, TABLES)
    states, events = [row.begin(0, base)], []
    every = records(*rows)
    cuts = list(range(step, len(every), step)) if step else []
    parts = np.split(every, cuts)
    for i, part in enumerate(parts):
        done = row.feed(part, end if i == len(parts) - 1 else None)
        states.append(done.states)
        events.append(done.events)
    states.append(row.end(end))
    return (
        [tuple(each) for each in np.concatenate(states).tolist()],
        [(t, NUMBERS[event], v) for t, v, event, _ in np.concatenate(events).tolist()],
        row,
    )


def counts(row: Converter) -> dict[str, int]:
    return dict(+row.counts)


# What is open -------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=40)


@given(st.lists(st.integers(0, 2), max_size=3), STEPS)
def test_nesting_is_that_of_a_stack(stack: list[int], steps: list[tuple[bool, int]]) -> None:
    step = np.array([1 if opens else -1 for opens, _ in steps], np.int8)
    group = np.array([g for _, g in steps], np.int64)
    open_ = [(g, -1 - i) for i, g in enumerate(stack)]
    good, innermost = True, []
    for i, (opens, g) in enumerate(steps):
        if opens:
            open_.append((g, i))
        elif not open_ or open_.pop()[0] != g:
            good = False
            break
        innermost.append(open_[-1][1] if open_ else 777)
    assert nests(step, group, np.array(stack, np.int64)) == good
    if good:
        value = np.arange(len(steps))
        before = [-1 - i for i in range(len(stack))]
        assert after(step, value, before, 777).tolist() == innermost
        old = np.zeros(len(stack), RECORD)
        old["b"] = before
        new = np.zeros(len(steps), RECORD)
        new["b"] = value
        left = still_open(new, Openings(step, group, value), old)
        assert left["b"].tolist() == [i for _, i in open_]


# Well nested --------------------------------------------------------------------------------------

REGION = [
    (100, RecordKind.PARALLEL_BEGIN, 0, 2, 7, 1),
    (110, RecordKind.TASK_BEGIN, 1, 0, 7, 1),
    (150, RecordKind.ENTER, NUMBER["Barrier"], 1),
    (160, RecordKind.LEAVE, NUMBER["Barrier"]),
    (200, RecordKind.OMP_ENTER, Construct.IMPLICIT_BARRIER),
    (220, RecordKind.OMP_LEAVE, Construct.IMPLICIT_BARRIER),
    (230, RecordKind.TASK_END, 1, 0, 7, 1),
    (240, RecordKind.PARALLEL_END, 0, 0, 7, 1),
]


@pytest.mark.parametrize("step", [0, 2, 4, 6])
def test_states_follow_from_what_is_open_innermost(step: int) -> None:
    states, events, row = convert(*REGION, step=step)
    assert states == [
        (0, 100, 1), (100, 110, 7), (110, 150, 1), (150, 160, 13), (160, 200, 1), (200, 220, 5),
        (220, 230, 1), (230, 240, 7), (240, 1000, 1),
    ]  # fmt: skip
    assert events == [
        (100, 60000001, 3), (110, 60000018, 7), (150, 50000002, 8), (150, 50100001, 0),
        (150, 50100002, 0), (150, 50100004, 1), (160, 50000002, 0), (200, 60000005, 1),
        (220, 60000005, 0), (230, 60000018, 0), (240, 60000001, 0),
    ]  # fmt: skip
    assert counts(row) == {}


def test_tests_that_found_nothing_are_apart_from_the_one_that_did() -> None:
    test = NUMBER["Test"]
    states, events, row = convert(
        (100, RecordKind.ENTER, test),
        (200, RecordKind.LEAVE, test, 0, 5, 60),
        (300, RecordKind.ENTER, test),
        (340, RecordKind.LEAVE, test, 1, 3, 30),
    )
    assert states == [
        (0, 100, 1), (100, 140, 6), (140, 330, 1), (330, 340, 8), (340, 1000, 1),
    ]  # fmt: skip
    assert events == [
        (100, 50000003, 10039), (140, 50000003, 0), (140, 50000304, 5),
        (330, 50000003, 39), (340, 50000003, 0), (340, 50000304, 2),
    ]  # fmt: skip
    assert row.calls[test] == 8


# Not nested ---------------------------------------------------------------------------------------


def test_a_call_whose_end_is_lost_ends_with_the_next_one() -> None:
    send, recv = NUMBER["Send"], NUMBER["Recv"]
    states, events, row = convert(
        (100, RecordKind.ENTER, send), (200, RecordKind.ENTER, recv), (250, RecordKind.LEAVE, recv)
    )
    assert states == [(0, 100, 1), (100, 200, 4), (200, 250, 3), (250, 1000, 1)]
    assert [value for _, _, value in events] == [1, 0, 2, 0]
    assert counts(row) == {MENDED: 1}


def test_an_end_without_a_begin_is_left_out() -> None:
    states, events, row = convert((100, RecordKind.LEAVE, 1), (200, RecordKind.TASK_END, 1, 0, 7))
    assert states == [(0, 1000, 1)]
    assert events == []
    assert counts(row) == {DROPPED: 2}


def test_a_call_that_never_returned_ends_with_its_thread() -> None:
    states, events, row = convert((100, RecordKind.ENTER, 1))
    assert states == [(0, 100, 1), (100, 1000, 4)]
    assert events == [(100, 50000001, 1), (1000, 50000001, 0)]
    assert counts(row) == {NOT_RETURNED: 1}


def test_a_task_of_the_team_before_ends_when_the_next_one_begins() -> None:
    states, events, row = convert(
        (100, RecordKind.TASK_BEGIN, 1, 1, 7),
        (300, RecordKind.TASK_BEGIN, 1, 1, 8),
        (400, RecordKind.TASK_END, 1, 1, 8),
        base=IDLE,
    )
    assert states == [(100, 400, 1)]
    assert [each[2] for each in events] == [7, 0, 8, 0]
    assert counts(row) == {MENDED: 1}


def test_switching_tracing_off_ends_what_is_open() -> None:
    states, events, row = convert(
        (100, RecordKind.TASK_BEGIN, 1, 1, 7),
        (200, RecordKind.TRACING, 0, 0),
        (500, RecordKind.TRACING, 0, 1),
        (600, RecordKind.TRACING, 0, 1),
        (700, RecordKind.TASK_END, 1, 1, 7),
        base=IDLE,
    )
    assert states == [(100, 200, 1), (200, 500, 14)]
    assert (200, 40000012, 0) in events
    assert (500, 40000012, 1) in events
    assert counts(row) == {DROPPED: 1}


def test_a_task_that_waits_can_be_left_for_another_one() -> None:
    wait = Construct.TASKWAIT
    states, events, row = convert(
        (100, RecordKind.TASK_RUN, 0, 0, 7, 1),
        (200, RecordKind.OMP_ENTER, wait),
        (210, RecordKind.TASK_STOP, 0, 0, 7, 1),
        (220, RecordKind.TASK_RUN, 0, 0, 8, 2),
        (300, RecordKind.TASK_STOP, 0, 0, 8, 2),
        (310, RecordKind.TASK_RUN, 0, 0, 7, 1),
        (320, RecordKind.OMP_LEAVE, wait),
        (400, RecordKind.TASK_STOP, 0, 0, 7, 1),
        base=IDLE,
    )
    assert states == [(100, 200, 1), (200, 210, 5), (220, 300, 1), (310, 400, 1)]
    tasks = [(time, value) for time, type_, value in events if type_ == 60000023]
    assert tasks == [(100, 7), (210, 0), (220, 8), (300, 0), (310, 7), (400, 0)]
    assert counts(row) == {DROPPED: 1}


def test_what_is_open_at_the_end_of_a_chunk_is_mended_in_the_next() -> None:
    states, _, row = convert(
        (50, RecordKind.TASK_CREATE, 0, 0, 9),
        (100, RecordKind.PARALLEL_BEGIN, 0, 2, 7, 1),
        (110, RecordKind.TASK_BEGIN, 1, 0, 7, 1),
        (200, RecordKind.PARALLEL_END, 0, 0, 7, 1),
        (300, RecordKind.ENTER, 1),
        (310, RecordKind.LEAVE, 1),
        step=3,
    )
    assert states == [
        (0, 100, 1), (100, 110, 7), (110, 300, 1), (300, 310, 4), (310, 1000, 1),
    ]  # fmt: skip
    assert counts(row) == {MENDED: 1}


KINDS = st.sampled_from(
    [
        (RecordKind.ENTER, 1),
        (RecordKind.LEAVE, 1),
        (RecordKind.PARALLEL_BEGIN, 0),
        (RecordKind.PARALLEL_END, 0),
        (RecordKind.TASK_BEGIN, 1),
        (RecordKind.TASK_END, 1),
        (RecordKind.TASK_BEGIN, 2),
        (RecordKind.TASK_END, 2),
        (RecordKind.OMP_ENTER, 1),
        (RecordKind.OMP_LEAVE, 1),
        (RecordKind.OMP_ENTER, 4),
        (RecordKind.TASK_RUN, 0),
        (RecordKind.TASK_STOP, 0),
        (RecordKind.USER_BEGIN, 0),
        (RecordKind.USER_END, 0),
        (RecordKind.SEND, 0),
        (RecordKind.FLUSH_BEGIN, 0),
        (RecordKind.FLUSH_END, 0),
        (RecordKind.FILE_ENTER, 1),
        (RecordKind.FILE_LEAVE, 1),
        (RecordKind.FILE_ENTER, 101),
        (RecordKind.FILE_LEAVE, 101),
        (RecordKind.TRACING, 0),
        (RecordKind.COUNTERS, 0),
    ]
)


@given(st.lists(st.tuples(KINDS, st.integers(0, 3), st.integers(0, 3)), max_size=60))
def test_any_records_become_states_that_tile(rows) -> None:
    time, made = 0, []
    for (kind, call), gap, a in rows:
        time += gap
        made.append((time, kind, call, a, a, 5))
    states, events, _ = convert(*made, end=time + 1)
    assert states[0][0] == 0
    assert states[-1][1] == time + 1
    assert all(before[1] == next_[0] for before, next_ in pairwise(states))
    assert all(begin < end for begin, end, _ in states)
    assert [each[0] for each in events] == sorted(each[0] for each in events)
    balance = Counter(value != 0 for _, type_, value in events if type_ == 50000001)
    assert balance[True] == balance[False]


# Events of one's own ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0, 1, 3])
def test_of_regions_that_cross_the_inner_one_begins_again_where_the_outer_one_ends(
    step: int,
) -> None:
    _, events, row = convert(
        (100, RecordKind.USER_BEGIN, 0, 1),
        (200, RecordKind.USER_BEGIN, 0, 2),
        (300, RecordKind.USER_END, 0, 1),
        (400, RecordKind.USER_END, 0, 2),
        (500, RecordKind.USER_END, 0, 3),
        step=step,
    )
    values = [(time, value) for time, _, value in events]
    assert values == [(100, 1), (200, 2), (300, 0), (300, 1), (300, 0), (300, 2), (400, 0)]
    assert counts(row) == {UNBEGUN: 1}


@pytest.mark.parametrize("step", [0, 5])
@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=30))
def test_regions_come_back_from_the_trace_however_they_cross(
    tmp_path_factory: pytest.TempPathFactory, step: int, steps: list[tuple[int, bool]]
) -> None:
    depth, since, expected = Counter[int](), {}, []
    kept = [(0, RecordKind.USER_BEGIN, 0, 5)]
    for time, (number, begins) in enumerate(steps, start=1):
        if not (begins or depth[number]):
            continue
        kept.append((time, RecordKind.USER_BEGIN if begins else RecordKind.USER_END, 0, number))
        depth[number] += 1 if begins else -1
        if begins and depth[number] == 1:
            since[number] = time
        elif not depth[number]:
            expected.append((number, since.pop(number), time))
    expected += [(number, time, 1000) for number, time in {**since, 5: 0}.items()]
    _, events, _ = convert(*kept, step=step)
    writer = TraceWriter([1], duration=1000, labels=None)
    writer.state(0, 0, 0, 1000, 1)
    for time, type_, value in events:
        writer.event(0, 0, time, [(type_, value)])
    path = tmp_path_factory.mktemp("regions") / "x.prv"
    writer.write(path)
    found = user_regions(read(path))
    columns = (each.tolist() for each in (found.label, found.begin, found.end))
    named = (
        (int(found.names[label].split()[-1]), *span) for label, *span in zip(*columns, strict=True)
    )
    assert sorted(named) == sorted(expected)


@pytest.mark.parametrize("step", [0, 3, 6])
def test_counters_are_differences_on_the_line_of_their_record(step: int) -> None:
    _, events, row = (
        convert(
            (100, RecordKind.ENTER, 1),
            (100, RecordKind.COUNTERS, 0, 0, 50, 500),
            (200, RecordKind.LEAVE, 1),
            (200, RecordKind.COUNTERS, 0, 0, 70, 900),
            (300, RecordKind.USER_BEGIN, 0, 1),
            (300, RecordKind.COUNTERS, 0, 0, 65, 950),
            step=step,
        )
        if step == 0
        else convert(
            (100, RecordKind.ENTER, 1),
            (200, RecordKind.LEAVE, 1),
            (200, RecordKind.COUNTERS, 0, 0, 50, 500),
            (250, RecordKind.ENTER, 1),
            (260, RecordKind.LEAVE, 1),
            (260, RecordKind.COUNTERS, 0, 0, 70, 900),
            (300, RecordKind.USER_BEGIN, 0, 1),
            (300, RecordKind.COUNTERS, 0, 0, 65, 950),
            step=step,
        )
    )
    read = [(time, type_, value) for time, type_, value in events if 42000000 < type_ < 43000000]
    at = 200 if step == 0 else 260
    assert read == [
        (at, 42000050, 20), (at, 42000059, 400), (300, 42000050, 0), (300, 42000059, 50),
    ]  # fmt: skip
    assert counts(row) == {BACKWARDS: 1}


def test_sums_of_locks_are_events_and_no_states() -> None:
    states, events, _ = convert(
        (100, RecordKind.PARALLEL_BEGIN, 0, 2, 7, 1),
        (110, RecordKind.TASK_BEGIN, 1, 0, 7, 1),
        (300, RecordKind.GUARDED, Guard.LOCKS, 3, 50, 120),
        (300, RecordKind.HELD, Guard.LOCKS, 0, 90),
        (300, RecordKind.GUARDED, Guard.CRITICALS, 0, 4, 80),
        (300, RecordKind.HELD, Guard.CRITICALS, 0, 30),
        (300, RecordKind.TASK_END, 1, 0, 7, 1),
        (400, RecordKind.PARALLEL_END, 0, 0, 7, 1),
    )
    assert (110, 300, RUNNING) in states
    assert [each for each in events if 60000300 <= each[1] < 60000400] == [
        (300, 60000310, 50),
        (300, 60000311, 3),
        (300, 60000312, 120),
        (300, 60000313, 90),
        (300, 60000320, 4),
        (300, 60000321, 0),
        (300, 60000322, 80),
        (300, 60000323, 30),
    ]


# Calls for files ----------------------------------------------------------------------------------

CALL, BYTES, TIMES = 40000004, 40000011, 40009301
FREAD, READ = 3, 1


def test_calls_for_files_that_are_one_record_leave_out_the_time_between_them() -> None:
    states, events, row = convert(
        (100, RecordKind.FILE_ENTER, READ, 7), (400, RecordKind.FILE_LEAVE, READ, 3, 24, 50)
    )
    assert states == [(0, 100, 1), (100, 350, 12), (350, 1000, 1)]
    assert events == [(100, CALL, 1), (100, BYTES, 24), (350, CALL, 0), (350, TIMES, 3)]
    assert counts(row) == {}


@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_a_call_for_files_inside_another_one_lets_that_go_on(step: int) -> None:
    states, events, row = convert(
        (100, RecordKind.FILE_ENTER, FREAD),
        (200, RecordKind.FILE_ENTER, READ),
        (300, RecordKind.FILE_LEAVE, READ, 1, 9),
        (400, RecordKind.FILE_LEAVE, FREAD, 1, 5),
        step=step,
    )
    assert states == [(0, 100, 1), (100, 400, 12), (400, 1000, 1)]
    assert [each[2] for each in events if each[1] == CALL] == [3, 1, 3, 0]
    assert [each[2] for each in events if each[1] == BYTES] == [9, 5]
    assert counts(row) == {}
