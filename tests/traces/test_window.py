"""Cutting a trace to a window, and to several stretches that then follow one another."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle.window import cut as cut_by_columns

from popmodel.base.errors import UsageError
from popmodel.traces import Trace, read
from popmodel.traces.codes import Event
from popmodel.traces.intervals import Instants
from popmodel.traces.paraver import columns
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.regions import parallel_regions
from popmodel.traces.run_parts import splice

SEND, PARALLEL, FUNCTION, CYCLES, USER = 50000001, 60000001, 60000018, 42000059, 60000019
BARRIER, LOCK, WAITED, LOST = 60000005, 60000006, 60000312, 40009001
END = 100


def traced(tmp_path: Path, writer: TraceWriter) -> Trace:
    writer.event(0, 0, 0, [(99_000_001, 0)])  # a trace's times count from its first record
    writer.write(tmp_path / "x.prv")
    return read(tmp_path / "x.prv")


TABLES = (
    (lambda trace: trace.calls(), ("entry", "exit")),
    (lambda trace: trace.records.openmp().constructs, ("begin", "end")),
    (lambda trace: cycles(trace), ("time",)),
    (lambda trace: trace.records.lock_waits(), ("time",)),
)


def cycles(trace: Trace) -> Instants:
    (found,) = trace.records.counters([Event.CYCLES], slice(0, trace.locations))
    return found


def readings(trace: Trace) -> list[tuple[int, int]]:
    found = cycles(trace)
    return list(zip(found.time.tolist(), found.value.tolist(), strict=True))


def test_what_goes_on_over_an_edge_is_clipped(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], duration=END)
    writer.event(0, 0, 5, [(PARALLEL, 2), (FUNCTION, 7), (USER, 3)])
    writer.event(0, 0, 10, [(SEND, 1), (50100001, 88), (70000001, 4), (80000001, 5)])
    writer.event(0, 0, 50, [(SEND, 0)])
    writer.event(0, 0, 70, [(FUNCTION, 0)])
    writer.event(0, 0, 80, [(PARALLEL, 0)])
    writer.event(1, 0, 35, [(SEND, 2)])
    trace = traced(tmp_path, writer).window(30, 60)
    calls = trace.calls()
    assert calls.offsets.tolist() == [0, 1, 2]
    assert calls.entry.tolist() == [30, 35]
    assert calls.exit.tolist() == [50, 60]
    assert [calls.names[code] for code in calls.name.tolist()] == ["MPI_Send", "MPI_Recv"]
    assert calls.collectives.call.tolist() == [0]
    assert calls.collectives.sent.tolist() == [88]
    sites = trace.sites()
    assert [sites.places[site] for site in sites.site.tolist()] == [
        ("function 4", "line 5"),
        ("", ""),
    ]
    openmp = trace.records.openmp()
    for spans in (openmp.constructs, openmp.functions):
        assert (spans.begin.tolist(), spans.end.tolist()) == ([30], [60])
    assert parallel_regions(trace).names == ["function 7"]
    events = trace.records.events
    assert rows(events.time, events.type, events.value) == [(50, SEND, 0), (35, SEND, 2)]


def test_a_call_without_an_end_is_known_of_the_whole_run(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=END)
    writer.event(0, 0, 70, [(SEND, 2)])
    trace = traced(tmp_path, writer)
    assert [warning.count for warning in trace.calls().warnings] == [1]
    assert trace.window(10, 20).calls().warnings == trace.calls().warnings
    assert len(trace.window(10, 20).calls()) == 0


def test_counters_are_divided_at_both_edges(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=END)
    for time, count in ((10, 7), (40, 300), (50, 20), (70, 200)):
        writer.event(0, 0, time, [(CYCLES, count)])
    trace = traced(tmp_path, writer)
    assert readings(trace.window(30, 60)) == [(30, 0), (40, 100), (50, 20), (60, 100)]
    assert readings(trace.window(52, 60)) == [(52, 0), (60, 80)]
    assert readings(trace.window(40, 50)) == [(40, 300), (50, 20)]
    assert readings(trace.window(0, 10)) == [(10, 7)]
    assert readings(trace.window(71, 90)) == []


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
    st.sampled_from([PARALLEL, FUNCTION, BARRIER, LOCK, CYCLES, WAITED, LOST, USER]),
    st.integers(0, 3),
)


@st.composite
def traces(draw: st.DrawFn) -> TraceWriter:
    """Calls, and events of other kinds in any order; rounding is small where counts are large."""
    writer = TraceWriter([2, 1], duration=END)
    places = st.sampled_from([(0, 0), (0, 1), (1, 0)])
    for place, begin, end in draw(st.lists(st.tuples(places, times, times), max_size=10)):
        writer.state(*place, min(begin, end), max(begin, end), 1)
    for place in ((0, 0), (0, 1), (1, 0)):
        edges = sorted(draw(st.lists(times, max_size=8)))
        for entry, exit_ in zip(edges[::2], edges[1::2], strict=False):
            type_ = draw(st.sampled_from([SEND, 50000002]))
            arguments = [(50100001, entry)] if type_ != SEND and entry else []
            writer.event(*place, entry, [(type_, 1), *arguments])
            writer.event(*place, exit_, [(type_, 0)])
    for place, time, values in draw(
        st.lists(st.tuples(places, times, st.lists(pairs, min_size=1, max_size=3)), max_size=30)
    ):
        writer.event(*place, time, [(t, v * 10**6 if t == CYCLES else v) for t, v in values])
    for send, receive in draw(st.lists(st.tuples(times, times), max_size=5)):
        writer.message((0, 1), (1, 0), (send, send), (receive, receive), 8)
    return writer


def rows(*arrays: np.ndarray) -> list[tuple]:
    return list(zip(*(each.tolist() for each in arrays), strict=True))


def tables(trace: Trace) -> dict[str, object]:
    """All that is known of a part of a run."""
    records, calls = trace.records, trace.calls()
    openmp, waits, told = records.openmp(), records.synchronisation(), calls.collectives
    spans = (openmp.constructs, openmp.functions, *waits.barriers, *waits.locks)
    marks = records.marks()
    instants = (
        records.lock_waits(),
        cycles(trace),
        marks.get(Event.LOST, Instants.none(trace.locations)),
    )
    plain = {
        name: rows(*(getattr(getattr(records, name), column) for column in columns.SCHEMA[name]))
        for name in ("states", "messages")
    }
    return plain | {
        "window": (trace.begin, trace.end),
        "offsets": [getattr(records, name).offsets.tolist() for name in ("states", "messages")],
        "calls": (
            calls.offsets.tolist(),
            [
                (calls.names[code], *span)
                for code, *span in rows(calls.name, calls.entry, calls.exit)
            ],
        ),
        "collectives": rows(told.call, told.sent, told.received, told.communicator, told.is_root),
        "spans": [
            (each.offsets.tolist(), rows(each.begin, each.end)) for each in spans if len(each)
        ],
        "instants": [(each.offsets.tolist(), rows(each.time, each.value)) for each in instants],
    }


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
        found = cycles(each)
        return int(found.value[found.time >= first].sum())

    at_edge = count(trace.window(middle, END), middle) - count(
        trace.window(middle, END), middle + 1
    )
    whole, parts = count(trace, 0), sum(count(half, 0) for half in halves) - at_edge
    assert abs(whole - parts) <= 6


@given(traces(), st.lists(times, min_size=2, max_size=2, unique=True))
def test_a_cut_is_what_looking_at_all_events_gives(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, edges: list[int]
) -> None:
    trace = traced(tmp_path_factory.mktemp("oracle"), writer)
    found, expected = (tables(cut(trace, *sorted(edges))) for cut in (Trace.window, cut_by_columns))
    # What a call told before the window is not among the events inside.
    del found["collectives"], expected["collectives"]
    assert found == expected


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
    calls = part.calls()
    assert rows(calls.entry, calls.exit) == [(20, 30)]
    assert readings(part) == [(20, 7), (30, 100), (30, 400)]
    assert part.records.events.time.tolist() == [20, 30]
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


@given(traces(), st.lists(times, min_size=2, max_size=5, unique=True))
def test_stretches_that_touch_are_one_window(
    tmp_path_factory: pytest.TempPathFactory, writer: TraceWriter, edges: list[int]
) -> None:
    trace = traced(tmp_path_factory.mktemp("touching"), writer)
    edges = sorted(edges)
    part = splice(trace, np.array(edges[:-1]), np.array(edges[1:]))
    assert tables(part) == tables(trace.window(edges[0], edges[-1]))


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
    shifts = part.pieces.shift.tolist()
    for location in range(trace.locations):
        for table, names in TABLES:
            expected = [
                (*(getattr(found, name)[row] + shift for name in names),)
                for one, shift in zip(cuts, shifts, strict=True)
                for found in [table(one)]
                for row in range(*found.offsets[location : location + 2])
            ]
            found = table(part)
            mine = slice(*found.offsets[location : location + 2])
            assert rows(*(getattr(found, name)[mine] for name in names)) == expected
    useful = [int((each.states.end - each.states.begin).sum()) for each in (part, *cuts)]
    assert useful[0] == sum(useful[1:])


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
