"""Raw directories: what is usable, and one clear line for what is not."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
from tracer.builder import Run, post, receive, send
from tracer.plan import Plan

from popmodel.base.errors import TraceError
from popmodel.tracer import raw
from popmodel.tracer.conversion import merge
from popmodel.tracer.raw_records import HEADER, RECORD, RecordKind
from popmodel.traces import read as read_trace
from popmodel.traces.caveats import LIMITED, describe_losses, losses


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A raw directory of two processes."""
    return Plan(2).finish().write(tmp_path / "raw")


def first_file(folder: Path, suffix: str) -> Path:
    return sorted(folder.glob(f"*{suffix}"))[0]


def refused(folder: Path) -> TraceError:
    with pytest.raises(TraceError) as error:
        merge(folder, folder.parent / "x.prv")
    assert "\n" not in error.value.message
    assert error.value.hint
    return error.value


def told(folder: Path) -> dict[str, int]:
    done = merge(folder, folder.parent / "x.prv")
    return {warning.text: warning.count for warning in done.warnings}


def change(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def change_record(path: Path, row: int, **fields: int) -> None:
    record = np.frombuffer(path.read_bytes()[64 + 32 * row :][:32], RECORD).copy()
    for name, value in fields.items():
        record[name] = value
    change(path, 64 + 32 * row, record.tobytes())


@pytest.mark.parametrize("padding", [1, 1000])
def test_room_that_was_never_filled_is_passed_over(tmp_path: Path, padding: int) -> None:
    run = Plan(2).finish()
    plain = merge(run.write(tmp_path / "a"), tmp_path / "a.prv")
    padded = merge(run.write(tmp_path / "b", padding=padding), tmp_path / "b.prv")
    assert padded.records == plain.records
    assert padded.path.read_bytes() == plain.path.read_bytes()


def test_a_record_that_was_being_written_is_passed_over(tmp_path: Path) -> None:
    folder = Plan(1).finish().write(tmp_path / "raw", padding=3)
    path = first_file(folder, ".raw")
    count = (path.stat().st_size - 64) // 32 - 3
    change_record(path, count, time=7_000_000)  # its kind is still 0
    assert told(folder) == {}


def test_records_behind_a_gap_are_refused(tmp_path: Path) -> None:
    folder = Plan(1).finish().write(tmp_path / "raw", padding=3)
    path = first_file(folder, ".raw")
    count = (path.stat().st_size - 64) // 32 - 3
    change_record(path, count + 2, time=7_000_000, kind=1)
    error = refused(folder)
    assert error.message == f"{path}: there are records after a gap at record {count}"


def test_a_file_that_ends_inside_a_record(folder: Path) -> None:
    path = first_file(folder, ".raw")
    os.truncate(path, path.stat().st_size - 5)
    assert told(folder) == {
        "threads with an incomplete last record (record dropped)": 1,
        "records that were written but are missing from the files": 1,
        "MPI calls that had not returned when their thread ended (assumed to end there)": 1,
    }


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"kind": 62}, "has unknown kind 62"),
        ({"kind": RecordKind.ENTER, "call": 999}, "has unknown MPI call 999"),
        ({"kind": RecordKind.OMP_ENTER, "call": 99}, "has unknown OpenMP construct 99"),
        ({"kind": RecordKind.LEFT_OUT, "call": 9}, "has calls of unknown kind 9"),
        ({"kind": RecordKind.FILE_ENTER, "call": 99}, "has unknown call 99 for files"),
        (
            {"kind": RecordKind.FILE_LEAVE, "call": 1, "b": -5},
            "has a negative number of bytes or time of files",
        ),
        ({"kind": RecordKind.GUARDED, "call": 9}, "has locks of unknown kind 9"),
        ({"kind": RecordKind.HELD, "call": 1, "b": -5}, "has a negative time or count of locks"),
        ({"kind": RecordKind.SEND, "c": -1}, "has a message of -1 bytes"),
        ({"time": 4_999_000}, "is 2000 ns earlier than the previous one"),
    ],
)
def test_impossible_records_are_named(folder: Path, fields: dict[str, int], what: str) -> None:
    path = first_file(folder, ".raw")
    change_record(path, 1, **fields)
    change_record(path, 0, time=5_001_000)
    error = refused(folder)
    assert error.message == f"{path}: record 1 {what}"
    assert error.hint is not None
    assert "the file is damaged" in error.hint


@pytest.mark.parametrize(
    ("at", "data", "message"),
    [
        (0, b"POPMODEL", "is not a raw file of popmodel trace"),
        (8, struct.pack(">I", 0x01020304), "written on a machine with a different byte order"),
        (8, struct.pack("=I", 5), "the header is damaged"),
        (16, struct.pack("=I", 128), "the header is damaged"),
        (12, struct.pack("=I", 9), "has format version 9, but this popmodel reads version 2"),
        (28, struct.pack("=I", 3), "its header names thread 3"),
    ],
)
def test_headers_are_checked(folder: Path, at: int, data: bytes, message: str) -> None:
    path = first_file(folder, ".raw")
    change(path, at, data)
    assert refused(folder).message == f"{path}: {message}"


def test_a_file_that_gets_shorter_is_told(folder: Path) -> None:
    thread = raw.RawThread(first_file(folder, ".raw"), 0)
    os.truncate(thread.path, HEADER.size + 32)
    with pytest.raises(TraceError, match="the file shrank while it was read"):
        thread.read(0, thread.count)


def test_other_files_are_passed_over(folder: Path) -> None:
    (folder / "core.17").write_text("x")
    (folder / "node1.7.t0.raw").write_bytes(first_file(folder, ".raw").read_bytes())
    (folder / "node1.8.meta").write_text(first_file(folder, ".meta").read_text())
    assert told(folder) == {
        "files not written by the tracer (ignored)": 1,
        "processes without a .meta file (dropped)": 1,
        "processes without records (dropped)": 1,
    }


@pytest.mark.parametrize("begin", [b"", bytes(8) + b"\x01" * 40])
@pytest.mark.parametrize("zeros", [0, 16, 48, 1 << 16])
def test_a_thread_that_was_killed_before_its_first_record_is_left_out(
    folder: Path, begin: bytes, zeros: int
) -> None:
    """The library makes room in zeros, then it writes the header, its magic number last."""
    path = first_file(folder, ".raw")
    path.with_name(path.name.replace(".t0.", ".t1.")).write_bytes(begin + bytes(zeros))
    assert told(folder) == {"threads without records (dropped; killed, or disk full?)": 1}


def test_directories_without_records_are_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, problem in (
        ("empty", "contains no raw files of popmodel trace"),
        ("absent", "directory not found"),
        ("file", "is a file, not a directory"),
    ):
        assert refused(tmp_path / name).message == f"{tmp_path / name}: {problem}"
    for path in folder.iterdir():  # as on a full disk
        path.write_bytes(b"")
    assert refused(folder).message == f"{folder}: contains no records of any process"


def test_two_runs_at_a_time_that_nothing_tells_apart_are_refused(folder: Path) -> None:
    run = Plan(2).finish()
    for process in run.processes:
        process.pid = process.events[0]["pid"] = process.pid + 50
    run.write(folder)
    error = refused(folder)
    assert error.message == (
        f"{folder}: process 100 on node1 and process 150 on node1 were both rank 0 at the same time"
    )
    assert error.hint is not None
    assert "a separate directory" in error.hint


def test_processes_without_mpi_beside_those_with_it_are_left_out(tmp_path: Path) -> None:
    run = Plan(2).finish()
    helper = run.process(pid=7)
    helper.thread().put(10, RecordKind.PARALLEL_BEGIN)
    helper.end(100)
    assert told(run.write(tmp_path / "raw")) == {
        "processes without MPI in a run with MPI (dropped)": 1
    }


def test_a_limit_of_size_is_told_and_marked(tmp_path: Path) -> None:
    run = Plan(2).finish()
    run.processes[1].say("full", thread=0, lost_from=5_000_100, limited=1)
    folder = run.write(tmp_path / "raw")
    assert told(folder) == {"threads whose last records are missing: --max-size was reached": 1}
    merge(folder, tmp_path / "x.prv")
    (loss,) = losses(read_trace(tmp_path / "x.prv"))
    assert (loss.process, loss.reason) == (1, LIMITED)
    assert describe_losses([loss]).endswith("(--max-size reached)")


def test_a_full_disk_that_the_tracer_met_is_told(tmp_path: Path) -> None:
    run = Plan(2).finish()
    run.processes[0].say("full", thread=0, lost_from=5_000_100)
    for count in (1, 3):  # when first seen, and at the end
        run.processes[1].say("note", text="datatypes of unknown size", count=count)
    run.processes[1].say("colour", value=1)
    assert told(run.write(tmp_path / "raw")) == {
        "threads whose last records are lost: the disk was full": 1,
        "datatypes of unknown size": 3,
        "events of unknown kind 'colour'": 1,
    }


def test_a_description_that_was_cut_is_used_up_to_there(folder: Path) -> None:
    path = first_file(folder, ".meta")
    path.write_text(path.read_text()[:-10])
    assert told(folder) == {
        "processes whose .meta file ends in an incomplete line (line dropped)": 1,
        "processes that were killed or crashed: their trace ends there": 1,
    }


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (2, "{", "is not JSON: expecting property name"),
        (2, '{"event":"mpi","rank":0}', "damaged line: size is missing"),
        (2, '{"event":"mpi","rank":5,"size":2}', "damaged line: rank is 5 of 2"),
        (2, "[]", "damaged line: the document must be a table"),
        (
            1,
            '{"event":"end"}',
            "damaged line: event must be 'start' in the first line",
        ),
        (
            2,
            '{"event":"full","thread":0,"lost_from":18446744073709551615}',
            "damaged line: lost_from must be",
        ),
        (
            1,
            '{"event":"start","version":8}',
            "damaged line: version is 8, but this popmodel reads version 2",
        ),
    ],
)
def test_damaged_descriptions_are_named_by_line(
    folder: Path, line: int, text: str, message: str
) -> None:
    path = first_file(folder, ".meta")
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n")
    assert refused(folder).message.startswith(f"{path}:{line}: {message}")


@pytest.mark.parametrize("text", ["", '{"event":"start","ver'])
def test_a_process_that_could_not_describe_itself_is_left_out(folder: Path, text: str) -> None:
    first_file(folder, ".meta").write_text(text)
    assert told(folder)["processes with an empty .meta file (dropped; killed, or disk full?)"] == 1
    assert [process.rank for process in raw.read(folder)[0].processes] == [1]


def test_processes_of_another_mpi_than_their_launcher_are_told(tmp_path: Path) -> None:
    """Each is alone: the most common mistake where there are several MPIs."""
    run = Plan(1).finish()
    folder = run.write(tmp_path / "raw")
    process = run.processes[0]
    process.pid = process.events[0]["pid"] = process.pid + 50
    run.write(folder)
    error = refused(folder)
    assert error.message == (
        f"{folder}: process 100 on node1 and process 150 on node1 were each alone in MPI_COMM_WORLD"
    )
    assert error.hint is not None
    assert "use the mpirun of the program's MPI (Some MPI)" in error.hint


def test_a_directory_in_place_of_a_file_is_told(folder: Path) -> None:
    for suffix in (".raw", ".meta"):
        path = first_file(folder, suffix)
        path.unlink()
        path.mkdir()
        assert refused(folder).message == f"{path}: cannot be read: is a directory"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
def test_chunks_cut_neither_calls_nor_readings(tmp_path: Path, size: int) -> None:
    run = Run(1)
    thread = run.process(0).thread()
    for number in range(1, 6):
        at = 1000 * number
        thread.call("Irecv", at, at + 10, post(number))
        thread.call("Send", at + 20, at + 30, send(0, 1, 5))
        thread.put(at + 30, RecordKind.COUNTERS, b=number)
        # With tracing off there are no calls around these.
        for kind, a, b, c in receive(0, 1, 5, number):
            thread.put(at + 40, kind, 0, a, b, c)
        thread.put(at + 50, RecordKind.USER_BEGIN)
        thread.put(at + 50, RecordKind.COUNTERS, b=number)
    found = raw.RawThread(first_file(run.write(tmp_path / "raw"), ".raw"), 0)
    chunks = list(found.chunks(size))
    assert np.concatenate(chunks).tolist() == [tuple(row) for row in thread.rows]
    for chunk in chunks:
        kinds = chunk["kind"].tolist()
        assert kinds[0] not in (
            RecordKind.COUNTERS,
            RecordKind.LEAVE,
            RecordKind.POST,
            RecordKind.SEND,
            RecordKind.RECEIVED,
        )
        assert kinds[-1] != RecordKind.RECEIVE
        assert kinds.count(RecordKind.ENTER) == kinds.count(RecordKind.LEAVE)


def test_one_call_can_be_longer_than_a_chunk(tmp_path: Path) -> None:
    run = Run(1)
    thread = run.process(0).thread()
    thread.call("Startall", 10, 20, *(send(0, 1, 5) for _ in range(50)))
    for at in range(30, 130):
        thread.call("Barrier", at, at + 1)
    found = raw.RawThread(first_file(run.write(tmp_path / "raw"), ".raw"), 0)
    first, *others = found.chunks(4)
    assert len(first) >= 52
    assert sum(map(len, others)) == 252 - len(first)
    assert max(map(len, others)) <= 4
