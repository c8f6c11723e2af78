"""Long traces: their records lie in temporary files, and memory does not grow with them."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces import read
from popmodel.traces.paraver import columns, reader, text_scan
from popmodel.traces.paraver.columns import ColumnFile

TEXT = (
    "#Paraver (x):1000_ns:1(4):1:2(2:1,1:1),1\nc:1:1:2:1:2\n"
    "1:1:1:1:1:0:10:1\n2:1:1:1:1:5:50000001:1\n3:1:1:1:1:1:2:3:1:2:1:3:4:8:9\n"
)


LIMITS = [[(reader, "MEMORY", 0)], [(text_scan, "HELD", 1 << 10), (text_scan, "CHUNK", 1 << 12)]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of 4,993 records, not all in the order of time."""
    where = tmp_path / "x.prv"
    late = (f"1:1:1:1:1:{n}:{n + 1}:1\n" for n in [*range(2000, 5000), *range(10, 2000)])
    where.write_text(TEXT + "".join(late))
    return where


@pytest.mark.parametrize(
    "limits",
    LIMITS,
    ids=["columns", "streams"],
)
def test_records_in_files_are_those_in_memory(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: list[tuple[Any, str, int]]
) -> None:
    wanted = read(path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for limit in limits:
        monkeypatch.setattr(*limit)
    trace = read(path)
    assert len(trace.states.begin) == 4991
    for table in ("states", "events", "messages"):
        for name in columns.SCHEMA[table]:
            found, held = (getattr(getattr(each.records, table), name) for each in (trace, wanted))
            assert np.array_equal(found, held)
    assert not trace.states.begin.flags.writeable
    assert list((tmp_path / "tmp").iterdir()) == []
    assert trace.warnings == wanted.warnings


@pytest.mark.parametrize(
    "limits",
    LIMITS,
)
@pytest.mark.parametrize(
    ("number", "problem", "hint"),
    [
        (
            errno.ENOSPC,
            "not enough space for its records in {}: no space left on device",
            "free some space there, or name another directory: --scratch DIR, or TMPDIR=DIR",
        ),
        (
            errno.EIO,
            "its records cannot be written to {}: Input/output error",
            "name a directory that you can write to: --scratch DIR, or TMPDIR=DIR",
        ),
    ],
)
def test_a_disk_that_takes_no_more_is_said(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: list[tuple[Any, str, int]],
    number: int,
    problem: str,
    hint: str,
) -> None:
    def pwrite(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "pwrite", pwrite)
    for limit in limits:
        monkeypatch.setattr(*limit)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}: {problem.format(tmp_path)}"
    assert caught.value.hint == hint


def test_a_machine_without_a_temporary_directory_takes_that_of_the_trace(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gettempdir() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", gettempdir)
    monkeypatch.setattr(reader, "MEMORY", 0)
    before = sorted(path.parent.iterdir())
    assert len(read(path).states.begin) == 4991
    assert sorted(path.parent.iterdir()) == before


def test_incomplete_columns_are_not_mapped() -> None:
    scanner = _kernel.Scanner([[1]], 1, 1, 10, 1, 1)
    scanner.feed(b"1:1:1:1:1:0:1:1\n")
    scanner.finish()
    scan = text_scan.Scan.of(scanner)
    with tempfile.TemporaryFile(buffering=0) as streams, tempfile.TemporaryFile() as file:
        spill = columns.Spill(streams, 1)
        spill.drain(scanner, memoryview(bytearray(100)))
        scan.counts = scan.counts + 1
        filled = ColumnFile(file, columns.shapes_of(scan.counts))
        with pytest.raises(ValueError, match="states have 1 rows before location 1"):
            columns.write(scan, None, [spill], filled)


BOUNDED = """
import re, sys
from pathlib import Path
from popmodel.traces import read
from popmodel.traces.paraver import columns
trace = read(sys.argv[1])
size = sum(
    getattr(getattr(trace.records, table), name).nbytes
    for table, names in columns.SCHEMA.items()
    for name in names
)
# Not ru_maxrss: that one remembers the process which this one was forked from.
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(peak * 1024, size, len(trace.states.begin))
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc/self/status")
def test_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    """A compressed trace of 300 MB of text is read in less than 150 MB, all of Python included."""
    igzip = pytest.importorskip("isal.igzip")
    block = b"".join(
        b"1:%d:1:%d:1:@%07d00:@%07d50:1\n2:%d:1:%d:1:@%07d50:50000001:%d\n"
        % (t, t, n, n, t, t, n, n % 2)
        for n in range(20_000)
        for t in (n % 4 + 1,)
    )
    path = tmp_path / "x.prv.gz"
    blocks = 200
    with igzip.open(path, "wb", compresslevel=0) as file:
        file.write(b"#Paraver (x):999999999999_ns:1(4):1:4(1:1,1:1,1:1,1:1),0\n")
        for number in range(blocks):
            file.write(block.replace(b"@", b"%d" % (100 + number)))
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(path)], capture_output=True, text=True, check=True
    )
    peak, size, states = map(int, done.stdout.split())
    assert states == blocks * 20_000
    assert size > 150e6
    assert peak < 150e6
    assert peak < 1.5 * size
