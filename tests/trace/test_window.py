"""Cutting a trace to a window, and to several stretches that then follow one another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle.window import cut as cut_by_columns

from popmodel.errors import UsageError
from popmodel.trace import Trace, columns, read, window_events
from popmodel.trace.names import is_counter
from popmodel.trace.window import splice
from popmodel.trace.writer import TraceWriter

SEND, PARALLEL, FUNCTION, CYCLES, USER = 50000001, 60000001, 60000018, 42000059, 60000019
END = 100


def traced(tmp_path: Path, writer: TraceWriter) -> Trace:
    writer.write(tmp_path / "x.prv")
    return read(tmp_path / "x.prv", cache=False)


def events(trace: Trace, location: int = 0) -> list[tuple[int, int, int]]:
    begin, end = trace.events.offsets[location : location + 2]
    table = trace.events
    return list(
        zip(
            table.time[begin:end].tolist(),
            table.type[begin:end].tolist(),
            table.value[begin:end].tolist(),
            strict=True,
        )
    )


def test_states_are_clipped(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], duration=END)
    for process in (0, 1):
        for begin in range(0, END, 20):
            writer.state(process, 0, begin, begin + 20, begin)
    trace = traced(tmp_path, writer).window(30, 60)
    assert (trace.begin, trace.end, trace.duration) == (30, 60, 30)
    assert trace.states.offsets.tolist() == [0, 2, 4]
    assert trace.states.begin.tolist() == [30, 40] * 2
    assert trace.states.end.tolist() == [40, 60] * 2
    assert trace.states.state.tolist() == [20, 40] * 2


@pytest.mark.parametrize("together", [1, 3, 10**6])
def test_events_are_cut_the_same_however_many_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(window_events, "_ROWS", together)
    writer = TraceWriter([1, 2, 1], duration=END)
    for process, thread in ((0, 0), (1, 1), (2, 0)):
        writer.event(process, thread, 10, [(SEND, 1), (USER, 5)])
        writer.event(process, thread, 40, [(CYCLES, 30)])
        writer.event(process, thread, 50, [(SEND, 0)])
    trace = traced(tmp_path, writer).window(30, 60)
    expected = [(30, SEND, 1), (40, CYCLES, 30), (50, SEND, 0)]
    assert [events(trace, location) for location in range(4)] == [expected, [], expected, expected]


def test_what_is_open_is_opened_and_closed_again(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], duration=END)
    writer.event(0, 0, 5, [(PARALLEL, 2), (FUNCTION, 7), (USER, 3)])
    writer.event(0, 0, 10, [(SEND, 1), (50100001, 88)])
    writer.event(0, 0, 50, [(SEND, 0)])
    writer.event(0, 0, 70, [(FUNCTION, 0)])
    writer.event(0, 0, 80, [(PARALLEL, 0)])
    writer.event(1, 0, 35, [(SEND, 2)])
    trace = traced(tmp_path, writer).window(30, 60)
    assert events(trace) == [
        (30, PARALLEL, 2),
        (30, FUNCTION, 7),
        (30, SEND, 1),
        (50, SEND, 0),
        (60, PARALLEL, 0),
        (60, FUNCTION, 0),
    ]
    assert events(trace, 1) == [(35, SEND, 2), (60, SEND, 0)]
    calls = trace.calls()
    assert calls.entry.tolist() == [30, 35]
    assert calls.exit.tolist() == [50, 60]
    assert calls.warnings == ()


def test_counters_are_divided_at_both_edges(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=END)
    for time, count in ((10, 7), (40, 300), (50, 20), (70, 200)):
        writer.event(0, 0, time, [(CYCLES, count)])
    trace = traced(tmp_path, writer)
    assert events(trace.window(30, 60)) == [
        (30, CYCLES, 0),
        (40, CYCLES, 100),
        (50, CYCLES, 20),
        (60, CYCLES, 100),
    ]
    assert events(trace.window(52, 60)) == [(52, CYCLES, 0), (60, CYCLES, 80)]
    assert events(trace.window(40, 50)) == [(40, CYCLES, 300), (50, CYCLES, 20)]
    assert events(trace.window(0, 10)) == [(10, CYCLES, 7)]
    assert events(trace.window(71, 90)) == []


def test_messages_with_a_time_inside_are_kept(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], duration=END)
    spans = [(0, 10), (0, 30), (35, 40), (59, 80), (60, 80), (61, 80), (0, 80)]
    for number, (send, receive) in enumerate(spans):
        writer.message((0, 0), (1, 0), (send, send), (receive, receive), number)
    kept = traced(tmp_path, writer).window(30, 60).messages
    assert sorted(kept.size.tolist()) == [1, 2, 3, 4]
    assert kept.offsets.tolist() == [0, 4, 4]


def test_windows_that_make_no_sense(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=END)
    writer.state(0, 0, 0, 10, 1)
    trace = traced(tmp_path, writer)
    with pytest.raises(UsageError) as caught:
        trace.window(20, 20)
    assert caught.value.message == "a window must end after it begins, not from 20 ns to 20 ns"
    assert caught.value.hint == "give the earlier time first"
    with pytest.raises(UsageError) as caught:
        trace.window(100, 120)
    assert caught.value.message == f"{trace.path}: the window 100 ns to 120 ns is outside the trace"
    assert caught.value.hint == "the trace covers 0 s to 100 ns"
    assert (trace.window(50, 500).begin, trace.window(50, 500).end) == (50, 100)


times = st.integers(0, END)
pairs = st.tuples(
    st.sampled_from([SEND, 50000002, PARALLEL, FUNCTION, CYCLES, 42000050, USER]),
    st.integers(0, 3),
)


@st.composite
def traces(draw: st.DrawFn) -> TraceWriter:
    """Events of all kinds in any order; counters count to thousands so that rounding is small."""
    writer = TraceWriter([2, 1], duration=END)
    places = st.sampled_from([(0, 0), (0, 1), (1, 0)])
    for place, begin, end in draw(st.lists(st.tuples(places, times, times), max_size=10)):
        writer.state(*place, min(begin, end), max(begin, end), 1)
    for place, time, values in draw(
        st.lists(st.tuples(places, times, st.lists(pairs, min_size=1, max_size=3)), max_size=30)
    ):
        writer.event(*place, time, [(t, v * 10**6 if is_counter(t) else v) for t, v in values])
    for send, receive in draw(st.lists(st.tuples(times, times), max_size=5)):
        writer.message((0, 1), (1, 0), (send, send), (receive, receive), 8)
    return writer


def alike(one: Trace, other: Trace, rounding: int) -> bool:
    assert (one.begin, one.end) == (other.begin, other.end)
    for table, names in columns.SCHEMA.items():
        for name in ("offsets", *names):
            left, right = (getattr(getattr(each, table), name) for each in (one, other))
            assert left.dtype == right.dtype
            if name == "value":
                counter = np.array([is_counter(t) for t in one.events.type.tolist()], bool)
                difference = np.abs(left - right)
                assert np.all(difference <= np.where(counter, rounding, 0))
            else:
                assert left.tolist() == right.tolist(), (table, name)
    return True


@settings(max_examples=150, deadline=None)
@given(traces(), st.lists(times, min_size=4, max_size=4, unique=True))
def test_cutting_again_changes_nothing_and_cuts_compose(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, edges: list[int]
) -> None:
    trace = traced(tmp_path_factory.mktemp("window"), writer)
    a, b, c, d = sorted(edges)
    outer = trace.window(a, d)
    assert alike(outer.window(a, d), outer, 0)
    assert alike(outer.window(b, c), trace.window(b, c), 2)
    assert alike(outer.window(a, c), trace.window(a, c), 2)
    assert alike(outer.window(b, d), trace.window(b, d), 2)


@settings(max_examples=100, deadline=None)
@given(traces(), times)
def test_two_halves_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, middle: int
) -> None:
    """State time and counts are divided, not lost and not counted twice."""
    assume(0 < middle < END)
    trace = traced(tmp_path_factory.mktemp("halves"), writer)
    halves = [trace.window(0, middle), trace.window(middle, END)]

    def useful(each: Trace) -> int:
        return int((each.states.end - each.states.begin).sum())

    assert sum(map(useful, halves)) == useful(trace)

    def count(each: Trace, first: int) -> int:
        counter = np.array([is_counter(t) for t in each.events.type.tolist()], bool)
        return int(each.events.value[counter & (each.events.time >= first)].sum())

    at_edge = count(trace.window(middle, END), middle) - count(
        trace.window(middle, END), middle + 1
    )
    whole, parts = count(trace, 0), sum(count(half, 0) for half in halves) - at_edge
    assert abs(whole - parts) <= 6


@settings(max_examples=150, deadline=None)
@given(traces(), st.lists(times, min_size=2, max_size=2, unique=True))
def test_a_cut_is_what_looking_at_all_events_gives(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, edges: list[int]
) -> None:
    trace = traced(tmp_path_factory.mktemp("oracle"), writer)
    assert alike(trace.window(*sorted(edges)), cut_by_columns(trace, *sorted(edges)), 0)


def test_stretches_follow_one_another(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], duration=END)
    writer.state(0, 0, 0, 45, 1)
    writer.state(0, 0, 45, END, 2)
    writer.event(0, 0, 10, [(SEND, 1)])
    writer.event(0, 0, 50, [(SEND, 0), (USER, 8)])
    for time, count in ((20, 7), (60, 400)):
        writer.event(0, 0, time, [(CYCLES, count)])
    for send, receive in ((5, 25), (25, 65), (33, 38), (65, 90)):
        writer.message((0, 0), (1, 0), (send, send), (receive, receive), 8)
    trace = traced(tmp_path, writer)
    part = splice(trace, np.array([60, 20]), np.array([70, 30]))
    assert (part.begin, part.end, part.whole is trace) == (20, 40, True)
    assert part.pieces is not None
    assert list(part.pieces) == [(20, 30), (60, 70)]
    assert part.pieces.moved(np.array([0, 20, 25, 30, 45, 60, 61, 99])).tolist() == [
        20, 20, 25, 30, 30, 30, 31, 40,
    ]  # fmt: skip
    states = part.states
    assert states.begin.tolist() == [20, 30]
    assert states.end.tolist() == [30, 40]
    assert states.state.tolist() == [1, 2]
    assert events(part) == [
        (20, SEND, 1),
        (20, CYCLES, 7),
        (30, CYCLES, 100),
        (30, SEND, 0),
        (30, CYCLES, 400),
    ]
    messages = part.messages
    assert messages.logical_send.tolist() == [5, 25, 35]
    assert messages.physical_receive.tolist() == [25, 35, 60]


def test_stretches_outside_of_the_trace(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=END)
    writer.state(0, 0, 0, 10, 1)
    trace = traced(tmp_path, writer)
    with pytest.raises(UsageError) as caught:
        splice(trace, np.array([END, 30]), np.array([END + 5, 30]))
    assert caught.value.message == f"{trace.path}: 2 stretches of time outside the trace"
    assert caught.value.hint == "the trace covers 0 s to 100 ns"


stretches = st.lists(st.tuples(times, times).map(sorted), min_size=1, max_size=6)


def columns_of(spans: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    begin, end = np.array(spans, np.int64).reshape(-1, 2).T
    return begin, end


@settings(max_examples=100, deadline=None)
@given(traces(), st.lists(times, min_size=2, max_size=5, unique=True))
def test_stretches_that_touch_are_one_window(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, edges: list[int]
) -> None:
    trace = traced(tmp_path_factory.mktemp("touching"), writer)
    edges = sorted(edges)
    part = splice(trace, np.array(edges[:-1]), np.array(edges[1:]))
    assert alike(part, trace.window(edges[0], edges[-1]), 0)


@settings(max_examples=150, deadline=None)
@given(traces(), stretches)
def test_stretches_are_windows_put_behind_one_another(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, spans: list[list[int]]
) -> None:
    """Each holds what cutting it out of the whole run gives; no time is lost or counted twice."""
    inside = {time for begin, end in spans for time in range(begin, end)}
    assume(inside)
    trace = traced(tmp_path_factory.mktemp("splice"), writer)
    part = splice(trace, *columns_of(spans))
    assert part.duration == len(inside)
    assert part.pieces is not None
    assert part.pieces.length == len(inside)
    cuts = [trace.window(begin, end) for begin, end in part.pieces]
    for location in range(trace.locations):
        expected = [
            (time - piece_begin + start, type_, value)
            for one, piece_begin, start in zip(
                cuts, part.pieces.begin.tolist(), part.pieces.start.tolist(), strict=True
            )
            for time, type_, value in events(one, location)
        ]
        assert events(part, location) == expected
    useful = [int((each.states.end - each.states.begin).sum()) for each in (part, *cuts)]
    assert useful[0] == sum(useful[1:])


@settings(max_examples=100, deadline=None)
@given(traces(), stretches, st.tuples(times, times).map(sorted))
def test_a_window_of_stretches_knows_where_it_lies_in_the_run(
    tmp_path_factory: pytest.TempPathFactory,
    writer: TraceWriter,
    spans: list[list[int]],
    window: list[int],
) -> None:
    assume(any(begin < end for begin, end in spans))
    trace = traced(tmp_path_factory.mktemp("inner"), writer)
    part = splice(trace, *columns_of(spans))
    begin, end = (min(part.begin + time, part.end) for time in window)
    assume(begin < end)
    inner = part.window(begin, end)
    assert inner.whole is trace
    assert inner.pieces is not None
    assert inner.pieces.length == end - begin
    again = splice(trace, inner.pieces.begin, inner.pieces.end)
    shift = begin - again.begin
    assert (again.states.begin + shift).tolist() == inner.states.begin.tolist()
    assert (again.states.end + shift).tolist() == inner.states.end.tolist()
    instants = np.arange(END)
    assert (again.pieces.moved(instants) + shift).tolist() == inner.pieces.moved(instants).tolist()


def test_many_stretches_are_taken_in_one_pass(tmp_path: Path) -> None:
    count = 20000
    writer = TraceWriter([1, 1], duration=10 * count)
    for process in (0, 1):
        writer.state(process, 0, 0, 10 * count, 1)
        writer.event(process, 0, 1, [(SEND, 1)])
    trace = traced(tmp_path, writer)
    begin = np.arange(count) * 10
    part = splice(trace, begin, begin + 4)
    assert part.duration == 4 * count
    assert (part.states.end - part.states.begin).sum() == 2 * 4 * count
    assert len(part.calls().entry) == 2 * count
