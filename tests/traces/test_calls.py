"""MPI calls, paired."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import TraceError, UsageError
from popmodel.traces import Trace, read
from popmodel.traces.calls import CallGroup
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.tables import location_of_row

DATA = Path(__file__).parent.parent / "data"
TYPES = [50000001, 50000002, 50000003, 60000001]


def traced(tmp_path: Path, writer: TraceWriter) -> Trace:
    writer.event(0, 0, 0, [(99_000_001, 0)])  # a trace's times count from its first record
    writer.write(tmp_path / "x.prv")
    return read(tmp_path / "x.prv")


def test_entries_and_exits_are_paired_by_location(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], duration=100)
    writer.event(0, 0, 10, [(50000001, 3), (42000050, 5)])
    writer.event(0, 0, 20, [(50000001, 0)])
    writer.event(0, 0, 20, [(50000003, 43)])
    writer.event(0, 0, 20, [(50000003, 0)])  # entry and exit at the same time
    writer.event(1, 0, 15, [(50000002, 10), (50100001, 8), (50100004, 1)])
    writer.event(1, 0, 90, [(50000002, 0)])
    calls = traced(tmp_path, writer).calls()
    assert calls.offsets.tolist() == [0, 2, 3]
    assert calls.entry.tolist() == [10, 20, 15]
    assert calls.exit.tolist() == [20, 20, 90]
    assert [calls.names[code] for code in calls.name] == [
        "MPI_Isend",
        "MPI_Cart_create",
        "MPI_Allreduce",
    ]
    assert [calls.group[code] for code in calls.name] == [
        CallGroup.POINT_TO_POINT,
        CallGroup.OTHER,
        CallGroup.COLLECTIVE,
    ]
    assert calls.warnings == ()
    assert location_of_row(calls.offsets).tolist() == [0, 0, 1]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(1, 9)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_calls_and_their_places_do_not_need_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[int, int, int]],
    random: Random,
) -> None:
    """Of calls that begin one after the other: the next where the one before ends, or later."""
    folder = tmp_path_factory.mktemp("lines")
    lines, calls, time = [], [], 1
    for step, length, name in drawn:
        length = min(length, step)  # up to where the next can begin
        calls.append((time, time + length, f"MPI call {name}"))
        lines += [f"{time}:50000002:{100 + name}", f"{time}:70000001:{name}"]
        lines.append(f"{time + length}:50000002:0")
        time += step
    random.shuffle(lines)
    header = f"#Paraver (x):{time + 3}_ns:1(1):1:1(1:1),0\n1:1:1:1:1:0:{time + 3}:1\n"
    (folder / "x.prv").write_text(header + "".join(f"2:1:1:1:1:{line}\n" for line in lines))
    names = "".join(f"{100 + name}  MPI call {name}\n" for name in range(1, 10))
    places = "".join(f"{name}  place {name}\n" for name in range(1, 10))
    (folder / "x.pcf").write_text(
        f"EVENT_TYPE\n9  50000002  MPI Collective Comm\nVALUES\n0  End\n{names}\n"
        f"EVENT_TYPE\n0  70000001  Caller at level 1\nVALUES\n0  End\n{places}\n"
    )
    trace = read(folder / "x.prv")
    found, sites = trace.calls(), trace.sites()
    named = [found.names[code] for code in found.name.tolist()]
    assert list(zip(found.entry.tolist(), found.exit.tolist(), named, strict=True)) == calls
    assert found.warnings == ()
    every = sites.site.tolist() or [0] * len(calls)  # none: all at one place
    told = [sites.places[site][0] for site in every]
    assert told == [name.replace("MPI call", "place") for _, _, name in calls]


def test_what_cannot_be_paired_is_counted(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1, 1], duration=100)
    writer.event(0, 0, 5, [(50000001, 0)])
    writer.event(0, 0, 10, [(50000001, 1)])
    writer.event(0, 0, 20, [(50000002, 8)])
    writer.event(0, 0, 30, [(50000002, 0)])
    writer.event(0, 0, 35, [(50000002, 0)])
    writer.event(2, 0, 40, [(50000003, 32)])
    calls = traced(tmp_path, writer).calls()
    assert calls.offsets.tolist() == [0, 2, 2, 3]
    assert calls.entry.tolist() == [10, 20, 40]
    assert calls.exit.tolist() == [20, 30, 100]
    assert [(each.text, each.count) for each in calls.warnings] == [
        ("MPI calls without an exit event (assumed to end with the next call or the trace)", 2),
        ("MPI exit events without an entry (ignored)", 2),
    ]


Event = tuple[int, int, int]
"""Time, type and value."""


def in_order(events: list[Event]) -> Iterator[Event]:
    """The events, those at one time turned where nothing else is a call, and what follows agrees.

    That is, as many pairs as follow each other may be turned; behind them comes what is wanted.
    """

    def pairs(left: list[Event], is_open: bool) -> bool:
        ons = [bool(value) for _, _, value in left[:2]]
        return ons == [is_open, not is_open] and left[0][0] == left[1][0]

    is_open = False
    while events:
        rest = events
        while pairs(rest, is_open):
            rest = rest[2:]
        if rest is not events and (bool(rest) and rest[0][2] == 0) == is_open:
            events = [events[1], events[0], *events[2:]]
            yield events.pop(0)
        yield events[0]
        is_open = events.pop(0)[2] != 0


def plainly(trace: Trace) -> tuple[list[tuple], int, int]:
    """Calls, unclosed calls and orphaned exits, one event after the other."""
    found, unclosed, orphans = [], 0, 0
    records = trace.records.events
    for location in range(trace.locations):
        current = None
        mine = slice(*records.offsets[location : location + 2])
        columns = (column[mine].tolist() for column in (records.time, records.type, records.value))
        events = [event for event in zip(*columns, strict=True) if event[1] // 10 == 5000000]
        for time, type_, value in in_order(events):
            if current is not None:
                found.append((location, *current, time))
                unclosed += value != 0
            elif value == 0:
                orphans += 1
            current = (trace.records.labels.mpi_name(type_, value), time) if value else None
        if current is not None:
            found.append((location, *current, trace.end))
            unclosed += 1
    return found, unclosed, orphans


def vectorised(trace: Trace) -> tuple[list[tuple], int, int]:
    calls = trace.calls()
    rows = zip(
        location_of_row(calls.offsets).tolist(),
        [calls.names[code] for code in calls.name.tolist()],
        calls.entry.tolist(),
        calls.exit.tolist(),
        strict=True,
    )
    counts = {" ".join(each.text.split()[:2]): each.count for each in calls.warnings}
    return list(rows), counts.get("MPI calls", 0), counts.get("MPI exit", 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 50), st.sampled_from(TYPES), st.integers(0, 2)),
        max_size=25,
    )
)
def test_pairing_at_once_is_pairing_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[int, int, int, int]]
) -> None:
    writer = TraceWriter([1, 1, 1], duration=60)
    for process, time, type_, value in records:
        writer.event(process, 0, time, [(type_, value)])
    trace = traced(tmp_path_factory.mktemp("calls"), writer)
    assert vectorised(trace) == plainly(trace)


def test_calls_of_a_real_trace() -> None:
    trace = read(DATA / "mixpers.4.prv.gz")
    assert vectorised(trace) == plainly(trace)
    calls = trace.calls()
    assert calls is trace.calls()
    assert {"MPI_Startall", "MPI_Recv_init", "MPI_Waitall", "MPI_Allreduce"} <= set(calls.names)


def test_tables_for_pandas() -> None:
    trace = read(DATA / "bt-mz.S.2x2.prv.gz")
    for table, rows in (("states", 19853), ("events", 48740), ("messages", 122), ("calls", None)):
        frame = trace.to_dataframe(table)
        assert list(frame.columns[:2]) == ["process", "thread"]
        assert rows is None or len(frame) == rows
        assert frame["process"].isin([0, 1]).all()
        assert frame["thread"].isin([0, 1]).all()
    with pytest.raises(UsageError) as caught:
        trace.to_dataframe("counters")
    assert caught.value.message == "a trace has no table 'counters'"
    assert caught.value.hint == "choose one of states, events, messages, calls"


def test_what_collectives_tell_of_themselves(tmp_path: Path) -> None:
    """Behind the entry, or before it at the same time, as other writers have it."""
    writer = TraceWriter([1, 1], duration=100)
    sent, received, root, communicator = range(50100001, 50100005)
    writer.event(0, 0, 10, [(50000002, 7), (sent, 8), (root, 1), (communicator, 3)])
    writer.event(0, 0, 20, [(50000002, 0)])
    writer.event(0, 0, 30, [(50000001, 1)])
    writer.event(0, 0, 40, [(50000001, 0), (received, 99)])  # of no call
    writer.event(1, 0, 10, [(sent, 5), (received, 6), (communicator, 1), (50000002, 10)])
    writer.event(1, 0, 20, [(50000002, 0)])
    told = traced(tmp_path, writer).calls().collectives
    assert told.call.tolist() == [0, 2]
    assert told.sent.tolist() == [8, 5]
    assert told.received.tolist() == [0, 6]
    assert told.is_root.tolist() == [True, False]
    assert told.communicator.tolist() == [3, 1]


def test_values_of_any_size_are_numbered(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=100)
    for time, value in enumerate((-5, 2**40, 1, -5)):
        writer.event(0, 0, time, [(50000001, value % 2**64)])
    calls = traced(tmp_path, writer).calls()
    assert calls.names == (
        "MPI call 50000001:-5",
        "MPI_Send",
        f"MPI call 50000001:{2**40}",
    )
    assert calls.name.tolist() == [0, 2, 1, 0]


def test_more_calls_than_can_be_numbered_are_damage(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    for time in range(2**15 + 1):
        writer.event(0, 0, time, [(50000001, time + 1)])
    trace = traced(tmp_path, writer)
    with pytest.raises(TraceError) as caught:
        trace.calls()
    assert (
        caught.value.message
        == f"{trace.path}: has 32769 different MPI calls, at most 32768 can be read"
    )
    assert "copy the trace again" in str(caught.value.hint)


def test_calls_that_were_let_go_are_made_again(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=100)
    writer.event(0, 0, 10, [(50000001, 1)])
    writer.event(0, 0, 20, [(50000001, 2)])
    writer.event(0, 0, 30, [(50000001, 0)])
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    part = trace.window(5, 25)
    for each in (trace, part):
        calls = each.calls()
        assert each.calls() is calls
        each.release_calls()
        assert each.calls() is not calls
        assert each.calls().entry.tolist() == calls.entry.tolist()
        assert each.call_warnings() == calls.warnings
        assert len(calls.warnings) == 1
