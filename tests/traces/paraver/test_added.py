"""Traces with further events: what was there stays, and all is in order of time."""

import gzip

import numpy as np
import pytest
from oracle.script import Script

from popmodel.base.errors import FileError, TraceError, UsageError
from popmodel.traces import read
from popmodel.traces.codes import Event
from popmodel.traces.paraver.labels import parse_pcf
from popmodel.traces.paraver.numbers import NUMBERS
from popmodel.traces.paraver.writer import add_events

NUMBER = NUMBERS[Event.CRITICAL_PATH]


def events(*rows, application=1):
    """Rows of process, time and value."""
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return Event.CRITICAL_PATH, "A path", {0: "no", 1: "yes"}, application, *columns


@pytest.fixture
def source(tmp_path):
    script = Script(2)
    for process, length in enumerate((100, 300)):
        script.compute(process, length)
        script.collective(process, "Barrier", 400 - length)
    script.end()
    path = tmp_path / "run.prv"
    script.writer.write(path)
    return path


def record_lines(path) -> list[str]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return text.decode().splitlines()[1:]


@pytest.mark.parametrize("name", ["out.prv", "out.prv.gz"])
def test_the_trace_keeps_its_lines_and_has_those_added(source, tmp_path, name):
    target = tmp_path / name
    add_events(source, target, *events((1, 300, 0), (0, 50, 1), (1, 0, 1)))
    old, new = record_lines(source), record_lines(target)
    added = [line for line in new if f":{NUMBER}:" in line]
    assert [line for line in new if line not in added] == old
    assert added == [
        f"2:2:1:2:1:0:{NUMBER}:1",
        f"2:1:1:1:1:50:{NUMBER}:1",
        f"2:2:1:2:1:300:{NUMBER}:0",
    ]
    times = [int(line.split(":")[5]) for line in new if line[0] in "12"]
    assert times == sorted(times)


def test_popmodel_reads_what_was_added(source, tmp_path):
    target = tmp_path / "out.prv"
    add_events(source, target, *events((0, 50, 1), (0, 400, 0)))
    found = read(target)
    mine = found.records.events.type == NUMBER
    assert found.records.events.time[mine].tolist() == [50, 400]
    assert found.records.events.value[mine].tolist() == [1, 0]
    assert found.calls().entry.tolist() == read(source).calls().entry.tolist()


def test_the_legend_names_what_was_added(source, tmp_path):
    target = tmp_path / "out.prv.gz"
    source.with_suffix(".pcf").write_text("STATES\n1    Running\n")
    source.with_suffix(".row").write_text("LEVEL THREAD SIZE 2\na\nb\n")
    add_events(source, target, *events((0, 50, 1)))
    labels = parse_pcf((tmp_path / "out.pcf").read_text())
    assert labels.states == {1: "Running"}
    assert labels.event_type(NUMBER) == "A path"
    assert labels.event_value(NUMBER, 1) == "yes"
    assert (tmp_path / "out.row").read_text() == source.with_suffix(".row").read_text()


def test_events_behind_the_last_record_are_written(source, tmp_path):
    target = tmp_path / "out.prv"
    add_events(source, target, *events((0, 5000, 1), (0, 6000, 0)))
    assert record_lines(target)[-2:] == [
        f"2:1:1:1:1:5000:{NUMBER}:1",
        f"2:1:1:1:1:6000:{NUMBER}:0",
    ]


def test_nothing_added_changes_nothing(source, tmp_path):
    target = tmp_path / "out.prv"
    add_events(source, target, *events())
    assert target.read_text() == source.read_text()


def test_times_are_in_the_unit_of_the_trace(tmp_path):
    source, target = tmp_path / "us.prv", tmp_path / "out.prv"
    source.write_text("#Paraver (01/01/2000 at 00:00):9:1(2):1:2(1:1,1:1)\n1:1:1:1:1:0:9:1\n")
    add_events(source, target, *events((1, 4000, 1)))
    assert record_lines(target)[-1] == f"2:2:1:2:1:4:{NUMBER}:1"


def test_threads_of_a_later_application_follow_those_before(tmp_path):
    source, target = tmp_path / "two.prv", tmp_path / "out.prv"
    source.write_text("#Paraver (01/01/2000 at 00:00):9_ns:1(4):2:1(2:1):2(1:1,1:1)")
    add_events(source, target, *events((1, 4, 1), application=2))
    assert record_lines(target) == [f"2:4:2:2:1:4:{NUMBER}:1"]


def test_what_is_no_trace_is_refused(tmp_path):
    source, target = tmp_path / "a.txt", tmp_path / "out.prv"
    source.write_text("nothing\n")
    with pytest.raises(TraceError, match="the header lacks '#Paraver"):
        add_events(source, target, *events())
    assert not target.exists()


def test_the_trace_itself_is_not_overwritten(source):
    with pytest.raises(UsageError, match="is the trace itself"):
        add_events(source, source, *events())


def test_a_file_that_cannot_be_written_is_named(source, tmp_path):
    with pytest.raises(FileError, match="cannot be written: no such file"):
        add_events(source, tmp_path / "none" / "out.prv", *events())
