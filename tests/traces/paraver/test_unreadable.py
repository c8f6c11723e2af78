"""Files that cannot be read, or not wholly: what is wrong, where, and what to do."""

import gzip
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from trace_files import DATA, HEADER, STATE, message_of, same, write

from popmodel.base.errors import TraceError, UsageError
from popmodel.traces import read, source
from popmodel.traces.paraver import reader


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (
            b"\x7fELF\x02\x01\0\0\0\0",
            ": the file is binary: it does not begin with '#Paraver'",
            "give the .prv or .prv.gz file that Extrae wrote",
        ),
        (
            b"#Paraver (x):9_ns:1(1)\n",
            ":1: the header lacks ':' at column 23: the line ends",
            "the line is damaged: copy the trace again, or merge it again (mpi2prv)",
        ),
        (
            b"#Par",
            ":1: the header lacks '#Paraver (' at column 1: found '#Par'",
            "the line is damaged: copy the trace again, or merge it again (mpi2prv)",
        ),
        (
            (HEADER + STATE + "1:1:1:1").encode(),
            ":3: the file ends in the middle of a record",
            "copy the trace or run the program again",
        ),
        (
            (HEADER + STATE + "1:1:1:9:1:0:1:1\n").encode(),
            ":3: task 9 is outside application 1, which has 2",
            "header and records do not match: merge the trace again (mpi2prv)",
        ),
        (
            gzip.compress((HEADER + STATE * 100).encode(), mtime=0)[:-20],
            ": the compressed file is truncated or followed by other data",
            "copy or compress the trace again",
        ),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, content: bytes, message: str, hint: str | None
) -> None:
    path = write(tmp_path / "x.prv", content)
    assert message_of(path) == (message, hint)
    assert message_of(path) == (message, hint)


def test_damaged_compression(tmp_path: Path) -> None:
    content = bytearray((DATA / "is.S.4.prv.gz").read_bytes())
    content[3000:3010] = b"\xff" * 10
    message, hint = message_of(write(tmp_path / "x.prv.gz", content))
    assert message.startswith((": the compressed data are damaged: ", ":"))
    assert "damaged" in message or "record" in message
    content = bytearray((DATA / "is.S.4.prv.gz").read_bytes())
    content[-6] ^= 1  # the checksum
    message, hint = message_of(write(tmp_path / "y.prv.gz", content))
    assert message.startswith(": the compressed data are damaged: ")
    assert hint == "copy or compress the trace again"
    content = b"\x1f\x8bnonsense that is no gzip at all"
    message, hint = message_of(write(tmp_path / "z.prv.gz", content))
    assert message.startswith(": the compressed data are damaged: ")


def test_the_standard_library_stands_in_for_isal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = read(DATA / "is.S.4.prv.gz")
    damaged = bytearray((DATA / "is.S.4.prv.gz").read_bytes())
    damaged[-6] ^= 1
    monkeypatch.setitem(sys.modules, "isal", None)  # importing it fails
    assert same(read(DATA / "is.S.4.prv.gz"), wanted)
    message, _ = message_of(write(tmp_path / "x.prv.gz", damaged))
    assert message.startswith(": the compressed data are damaged: ")
    message, _ = message_of(write(tmp_path / "y.prv.gz", damaged[:2000]))
    assert message == ": the compressed file is truncated or followed by other data"


def test_a_missing_file_names_near_ones(tmp_path: Path) -> None:
    write(tmp_path / "run_16.prv.gz", b"")
    assert message_of(tmp_path / "run_16.prv") == (
        ": no such file",
        f"did you mean {tmp_path / 'run_16.prv.gz'}?",
    )
    assert message_of(tmp_path / "other") == (": no such file", f"there is 1 trace in {tmp_path}")
    assert message_of(tmp_path / "none" / "x.prv") == (
        ": no such file",
        f"no such directory: {tmp_path / 'none'}",
    )


def test_a_missing_file_in_a_folder_that_may_not_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)  # the tests may run as root, who may list all
    assert message_of(tmp_path / "x.prv") == (
        ": no such file",
        f"cannot list the directory {tmp_path}: permission denied",
    )


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "x.prv", HEADER)
    monkeypatch.setattr(Path, "open", refuse)  # the tests may run as root, who may read all
    assert message_of(path) == (": permission denied", "ask its owner for read access")


def test_a_name_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    assert message_of(path) == (": cannot be opened: file name too long", None)


def test_a_disk_that_fails_while_a_trace_is_read() -> None:
    def fail(_: memoryview) -> int:
        raise OSError(5, "Input/output error")

    broken, path = SimpleNamespace(readinto=fail), Path("x.prv")
    for text in (source.TraceSource(broken, path, 9), source.TraceSource(broken, path, 9, ())):
        with pytest.raises(TraceError) as caught:
            text.readinto(memoryview(bytearray(1)))
        assert caught.value.message == "x.prv: cannot be read: input/output error"


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.prv"
    os.mkfifo(path)
    hint = "give the name of a file; a trace cannot be read from a pipe"
    # nobody writes to it: opening it would wait for ever
    assert message_of(path) == (": is a pipe, not a file", hint)
    assert message_of(Path("-")) == ("-: no such file".removeprefix("-"), hint)
    with pytest.raises(UsageError) as caught:
        read("")
    assert caught.value.message == "the name of the trace must not be empty"
    assert caught.value.hint == "give a .prv or .prv.gz file"


def test_a_file_that_cannot_be_sought(tmp_path: Path) -> None:
    def fail(_: int) -> bytes:
        raise OSError(29, "Illegal seek")

    broken = SimpleNamespace(read=fail)
    with pytest.raises(TraceError) as caught:
        source._peek(broken, tmp_path)
    assert caught.value.message == f"{tmp_path}: cannot be read: illegal seek"
    assert caught.value.hint == "give the name of a file; a trace cannot be read from a pipe"


@pytest.mark.parametrize("tail", [b"x", b"other bytes", b"\n", b"\x1f\x8bother bytes"])
@pytest.mark.parametrize("isal", [True, False])
def test_what_follows_compressed_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: bytes, isal: bool
) -> None:
    if not isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    path = write(tmp_path / "x.prv.gz", gzip.compress((HEADER + STATE).encode()) + tail)
    message, hint = message_of(path)
    assert message in (
        ": the compressed file is truncated or followed by other data",
        ": other data follow the compressed data",
        ": the compressed data are damaged: Unknown compression method",
    )
    assert hint == "copy or compress the trace again"


def test_a_wrong_record_of_a_compressed_file_may_be_damage(tmp_path: Path) -> None:
    hint = "check with gzip -t: copy the file again if it is damaged, else merge it again (mpi2prv)"
    text = (HEADER + STATE + "1:1:1:1\n").encode()
    message = ":3: a state record has 8 fields, this line has 4 fields"
    assert message_of(write(tmp_path / "x.prv.gz", gzip.compress(text))) == (message, hint)
    assert message_of(write(tmp_path / "x.prv", text)) == (
        message,
        "the line is damaged: copy the trace again, or merge it again (mpi2prv)",
    )


def test_a_header_with_more_threads_than_there_can_be_records(tmp_path: Path) -> None:
    header = "#Paraver (x):1000_ns:1(4):1:1(%d:1),0\n"
    path = write(tmp_path / "x.prv", header % 16_000_000 + "1:1:1:1:1:0:1000:1\n")
    message, _ = message_of(path)
    assert message == (
        ":1: the header states 16000000 threads, more than the file can have records"
    )
    assert read(write(path, header % 65536 + STATE)).locations == 65536
    packed = gzip.compress((header % 70_000 + STATE).encode())
    assert read(write(tmp_path / "y.prv.gz", packed + gzip.compress(b""))).locations == 70_000


def test_too_little_memory_names_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(reader, "scan_text", fail)
    assert message_of(write(tmp_path / "x.prv", HEADER)) == (
        ": not enough memory to read it",
        "use a machine with more memory",
    )
