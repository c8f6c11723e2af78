"""Writing traces that are in memory: what is read again is what was written."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from oracle.script import Script
from trace_files import DATA

from popmodel.base.errors import TraceError, UsageError
from popmodel.traces import Trace, read
from popmodel.traces.calls import CallGroup, CallTable, CollectiveArguments
from popmodel.traces.codes import Event
from popmodel.traces.paraver import writer
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import labels_of
from popmodel.traces.paraver.writer import write_trace as write
from popmodel.traces.records import RecordColumns
from popmodel.traces.tables import States

REAL = ["bt-mz.S.2x2", "cg.S.2", "comd.4", "ft.S.4", "is.S.4", "mix.4", "mixnbc.4", "mixrma.4"]


def again(trace: Trace, folder: Path, name: str = "again.prv.gz") -> Trace:
    write(folder / name, trace, labels_of(trace))
    return read(folder / name)


def same(one: object, other: object) -> None:
    """Whether two tables are the same."""
    for field in fields(one):  # type: ignore[arg-type]
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.tolist() == its.tolist(), field.name


@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_is_read_again_as_it_was(name: str, tmp_path: Path) -> None:
    trace = read(DATA / f"{name}.prv.gz")
    found = again(trace, tmp_path)
    same(found.states, trace.states)
    same(found.messages, trace.messages)
    mine, its = trace.calls(), found.calls()
    assert [mine.names[n] for n in mine.name] == [its.names[n] for n in its.name]
    assert [mine.group[n] for n in mine.name] == [its.group[n] for n in its.name]
    for column in ("offsets", "entry", "exit"):
        assert getattr(mine, column).tolist() == getattr(its, column).tolist()
    same(its.collectives, mine.collectives)
    same(found.records.others().events, trace.records.others().events)
    assert found.records.others().turn.tolist() == trace.records.others().turn.tolist()
    assert found.ends().tolist() == trace.ends().tolist()
    assert found.warnings == trace.warnings
    assert (found.names, found.duration) == (trace.names, trace.duration)
    assert [each.tolist() for each in found.communicators.values()] == [
        each.tolist() for each in trace.communicators.values()
    ]


def test_long_traces_are_written_in_windows_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = read(DATA / "comd.4.prv.gz")
    write(tmp_path / "one.prv", trace, labels_of(trace))
    monkeypatch.setattr(writer, "WINDOW", 100)
    write(tmp_path / "many.prv", trace, labels_of(trace))
    assert (tmp_path / "one.prv").read_bytes() == (tmp_path / "many.prv").read_bytes()


def test_large_values_keep_their_bits(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 100)
    script.writer.event(0, 0, 50, [(7000, 2**64 - 5), (7001, 2**62)])
    found = again(script.read(tmp_path), tmp_path)
    assert found.records.others().events.value.tolist() == [-5, 2**62]


def calls(names: list[str], groups: list[CallGroup]) -> Trace:
    """A trace of one process that makes one call of each name, each of no length."""
    n = len(names)
    zero = np.zeros(n, np.int64)
    made = CallTable(
        np.array([0, n]),
        zero,
        zero,
        np.arange(n, dtype=np.int16),
        tuple(names),
        tuple(groups),
        CollectiveArguments.none(),
    )
    states = States(np.array([0, 1]), *np.array([[0], [9]]), np.array([1], np.int32))
    return Trace(
        "made",
        1,
        0,
        9,
        (),
        np.array([0, 1]),
        np.zeros(1, np.int32),
        {},
        RecordColumns(states, made),
    )


def test_names_that_have_no_number_get_one(tmp_path: Path) -> None:
    names = ["MPI_Send", "MPI_Isendrecv", "MPI_Neighbor_alltoall", "MPI call 50000003:777"]
    groups = [
        CallGroup.POINT_TO_POINT, CallGroup.POINT_TO_POINT, CallGroup.COLLECTIVE, CallGroup.OTHER
    ]  # fmt: skip
    found = again(calls(names, groups), tmp_path).calls()
    assert [found.names[n] for n in found.name] == names
    assert [found.group[n] for n in found.name] == groups
    text = (tmp_path / "again.pcf").read_text()
    assert "1    MPI_Send\n" in text
    assert "777    MPI call 50000003:777\n" in text


def test_calls_of_no_length_begin_before_they_end(tmp_path: Path) -> None:
    write(tmp_path / "x.prv", calls(["MPI_Send"], [CallGroup.POINT_TO_POINT]), Labels())
    lines = (tmp_path / "x.prv").read_text().splitlines()
    assert [line.split(":", 6)[5:] for line in lines if line.startswith("2:")] == [
        ["0", "40000001:1"], ["0", "50000001:1"], ["0", "50000001:0"], ["9", "40000001:0"],
    ]  # fmt: skip


def test_a_trace_has_a_name_of_one(tmp_path: Path) -> None:
    trace = calls(["MPI_Send"], [CallGroup.POINT_TO_POINT])
    with pytest.raises(UsageError, match=r"must end in \.prv or \.prv\.gz"):
        write(tmp_path / "x.txt", trace, Labels())
    with pytest.raises(TraceError, match="cannot be written: no such file or directory"):
        write(tmp_path / "nowhere" / "x.prv", trace, Labels())
    assert list(tmp_path.iterdir()) == []


def test_events_of_the_machine_are_left_out(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 100)
    script.writer.event(0, 0, 20, [(Event.USED, 10), (Event.CPUS, 2)])
    script.writer.event(0, 0, 30, [(Event.USER_REGION, 5)])
    others = script.read(tmp_path).records.others()
    assert others.events.value.tolist() == [5]
    assert others.lasting.tolist() == [True]


def test_events_stand_between_the_calls_where_they_stood(tmp_path: Path) -> None:
    script = Script(1)
    marks = [(7000, 1)]
    script.writer.event(0, 0, 0, marks)
    first = script.call(0, "Send", 0, attributes=marks)
    script.writer.event(0, 0, first.exit, marks)
    script.compute(0, 10)
    script.call(0, "Recv", 5, attributes=marks)
    script.writer.event(0, 0, 12, marks)
    script.writer.event(0, 0, 15, marks)
    turns = script.read(tmp_path).records.others().turn
    assert turns.tolist() == [0, 1, 2, 3, 3, 4]


def test_the_trace_of_a_part_has_the_labels_of_the_run() -> None:
    trace = read(DATA / "comd.4.prv.gz")
    part = trace.window(trace.end // 2, trace.end)
    assert labels_of(part) is labels_of(trace)
    assert (
        labels_of(replace(trace, records=RecordColumns(States.none(4), trace.calls()))) == Labels()
    )
