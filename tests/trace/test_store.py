"""The cache: used, refused when stale or damaged, and never in the way."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from popmodel.trace import Trace, container, read, store
from popmodel.trace.paraver import columns

from .conftest import TEXT, cached

DATA = Path(__file__).parent.parent / "data"


def test_the_second_reading_comes_from_the_cache(
    folder: Path, path: Path, scans: list[str]
) -> None:
    first, second = read(path), read(path)
    assert scans == ["x.prv"]
    assert cached(folder).suffix == ".trace"
    for trace in (first, second):
        assert trace.states.end.tolist() == [10]
        assert trace.records.events.type.tolist() == [50000001]
        assert trace.messages.tag.tolist() == [9]
        assert trace.communicators[1].tolist() == [0, 1]
        assert trace.threads.tolist() == [2, 1]
        assert trace.nodes == (4,)
        with pytest.raises(ValueError, match="read-only"):
            trace.states.end[0] = 11
    assert first.warnings == second.warnings


def test_without_the_cache_nothing_is_written_or_used(
    folder: Path, path: Path, scans: list[str]
) -> None:
    read(path, cache=False)
    assert not folder.exists()
    read(path)
    read(path, cache=False)
    assert scans == ["x.prv"] * 3


def test_applications_are_kept_apart(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "x.prv"
    path.write_text(
        "#Paraver (x):9_ns:1(4):2:1(1:1),0:1(1:1),0\n1:1:1:1:1:0:1:1\n1:1:2:1:1:0:2:1\n"
    )
    for _ in range(2):
        assert [read(path, number).states.end.tolist() for number in (1, 2)] == [[1], [2]]
    assert len(list(folder.iterdir())) == 2


def test_a_changed_trace_is_scanned_again(folder: Path, path: Path, scans: list[str]) -> None:
    read(path)
    status = path.stat()
    path.write_text(TEXT.replace("0:10:1", "0:11:1"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, same time
    assert read(path).states.end.tolist() == [11]
    os.utime(path, ns=(1, 1))
    read(path)
    path.write_text(TEXT + "1:1:1:1:1:10:12:1\n")
    assert read(path).states.end.tolist() == [10, 12]
    assert len(scans) == 4
    cached(folder)  # the old ones were replaced


def test_an_edit_that_leaves_size_and_time_is_noticed(
    folder: Path, path: Path, scans: list[str]
) -> None:
    filler = "".join(f"1:1:1:1:1:{n}:{n + 1}:1\n" for n in range(1000, 8000))
    assert len(filler) > store.HEAD
    path.write_text(f"{TEXT}{filler}1:1:1:1:1:9000:9001:1\n")
    status = path.stat()
    assert read(path).states.end[-1] == 9001
    with path.open("r+b") as file:  # behind what the hash of its beginning covers
        file.seek(status.st_size - 4)
        file.write(b"9")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert read(path).states.end[-1] == 9009
    other = path.with_name("y.prv")
    other.write_bytes(path.read_bytes().replace(b"9009:1", b"9005:1"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert read(path).states.end[-1] == 9005
    assert len(scans) == 3
    cached(folder)


def test_what_another_scanner_made_is_made_anew(
    folder: Path, path: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read(path)
    monkeypatch.setattr(store, "scanner", lambda: "another")
    for _ in range(2):
        assert read(path).states.end.tolist() == [10]
    assert len(scans) == 2
    cached(folder)


def damage(name: str, content: bytes) -> bytes:
    head = struct.Struct("<8sIIQQ")
    magic, version, _, length, end = head.unpack(content[: head.size])
    table = json.loads(content[head.size : head.size + length])

    def rebuilt(table: dict) -> bytes:
        text = json.dumps(table).encode().ljust(length)
        return head.pack(magic, version, zlib.crc32(text), len(text), end) + text

    if name == "empty":
        return b""
    if name == "short":
        return content[:-1]
    if name == "long":
        return content + b"\0"
    if name == "head only":
        return content[:20]
    if name == "magic":
        return b"another!" + content[8:]
    if name == "version":
        return content[:8] + b"\xff" + content[9:]
    if name == "table":
        return content[: head.size + 5] + b"\xff" + content[head.size + 6 :]
    if name == "array beyond the end":
        table["arrays"]["states.end"][1] = 10**6
    if name == "array before the beginning":
        table["arrays"]["states.end"][2] = -(10**6)
    if name == "array of another kind":
        table["arrays"]["states.end"][0] = "|O8"
    if name == "array of another length":
        table["arrays"]["states.end"][1] = 0
    if name == "array missing":
        del table["arrays"]["events.time"]
    if name == "offsets that fall":
        at = table["arrays"]["states.offsets"][2] + -(-(head.size + length) // 64) * 64
        content = content[: at + 8] + b"\x05" + content[at + 9 :]
    if name == "facts missing":
        del table["facts"]["duration"]
    text = rebuilt(table)
    return text + content[len(text) :]


@pytest.mark.parametrize(
    "name",
    [
        "empty",
        "short",
        "long",
        "head only",
        "magic",
        "version",
        "table",
        "array beyond the end",
        "array before the beginning",
        "array of another kind",
        "array of another length",
        "array missing",
        "offsets that fall",
        "facts missing",
    ],
)
def test_a_damaged_file_is_made_anew(folder: Path, path: Path, scans: list[str], name: str) -> None:
    read(path)
    good = cached(folder).read_bytes()
    cached(folder).write_bytes(damage(name, good))
    assert read(path).states.end.tolist() == [10]
    assert cached(folder).read_bytes() == good
    read(path)
    assert len(scans) == 2


def test_a_cache_that_others_can_write_is_not_used(
    folder: Path, path: Path, scans: list[str]
) -> None:
    read(path)
    (cached(folder)).write_bytes(b"planted")
    folder.chmod(0o777)
    for _ in range(2):
        trace = read(path)
        assert trace.states.end.tolist() == [10]
        assert [each.text for each in trace.warnings][-1:] == [
            f"the cache {folder} is writable by others (mode 777) and is not used"
        ]
    assert len(scans) == 3
    assert cached(folder).read_bytes() == b"planted"
    assert read(path, cache=False).warnings == trace.warnings[:-1]


def test_the_cache_is_made_for_its_user_alone(folder: Path, path: Path) -> None:
    before = os.umask(0)
    try:
        read(path)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert cached(folder).stat().st_mode & 0o777 == 0o600


CUT_SHORT = """
import mmap, os, sys, tempfile
from pathlib import Path
from popmodel.trace import read
from popmodel.trace.paraver import columns
trace = read(sys.argv[1])
(cached,) = Path(os.environ["POPMODEL_CACHE_DIR"]).iterdir()
if sys.argv[2] == "ours":
    os.truncate(cached, 0)
    print(trace.states.end.sum())
else:
    file = tempfile.TemporaryFile()
    file.write(bytes(4096))
    file.flush()
    other = mmap.mmap(file.fileno(), 4096)
    file.truncate(0)
    print(other[0])
"""


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("whose", "status", "said"),
    [
        (
            "ours",
            1,
            "popmodel: error: a cached trace was truncated, or became unreadable, "
            "while it was in use\nhint: run the command again: it will read the trace itself\n",
        ),
        ("another's", -signal.SIGBUS, ""),
    ],
)
def test_a_mapped_file_that_is_cut_short_is_told(
    folder: Path, path: Path, whose: str, status: int, said: str
) -> None:
    path.write_text(TEXT + "".join(f"1:1:1:1:1:{n}:{n + 1}:1\n" for n in range(10, 5000)))
    done = subprocess.run(
        [sys.executable, "-c", CUT_SHORT, str(path), whose],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "POPMODEL_CACHE_DIR": str(folder)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", said)


@pytest.mark.usefixtures("folder")
def test_what_is_no_longer_mapped_is_no_longer_watched(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[int] = []
    guard = container._kernel.guard

    def note(mapped: object, words: bytes) -> int:
        places.append(guard(mapped, words))
        return places[-1]

    monkeypatch.setattr(container._kernel, "guard", note)
    for _ in range(3):
        assert read(path).states.end.tolist() == [10]
    assert places[0] >= 0
    assert len(set(places)) == 1


DISORDERED = TEXT + "1:1:1:1:1:20:30:2\n1:1:1:1:1:10:20:1\n2:1:1:1:1:1:50000001:0\n"


@pytest.mark.long
def test_every_damaged_byte_is_noticed(folder: Path, path: Path, scans: list[str]) -> None:
    path.write_text(DISORDERED)
    wanted = {name: each.tolist() for name, each in arrays_of(read(path)).items()}
    assert wanted["states.begin"] == [0, 10, 20]
    file = cached(folder)
    good = file.read_bytes()
    for at in range(0, len(good), 3):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        found = {name: each.tolist() for name, each in arrays_of(read(path)).items()}
        assert found == wanted, at
        assert file.read_bytes()[at] == good[at] or not good[at]  # only padding is of no account
    assert len(scans) > len(good) / 6


def arrays_of(trace: Trace) -> columns.Arrays:
    """Copies, because the tests write to files that are mapped."""
    return {
        f"{table}.{name}": getattr(getattr(trace.records, table), name).copy()
        for table, names in columns.SCHEMA.items()
        for name in ("offsets", *names)
    }


@pytest.mark.parametrize("isal", [True, False])
def test_lost_pages_are_noticed(
    folder: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch, isal: bool
) -> None:
    """What a crash or a full quota may leave: zeros where something was written."""
    if not isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    wanted = arrays_of(read(DATA / "comd.4.prv.gz"))
    good = cached(folder).read_bytes()
    for at in range(0, len(good), 4096):
        cached(folder).write_bytes(good[:at] + bytes(len(good[at : at + 4096])) + good[at + 4096 :])
        found = arrays_of(read(DATA / "comd.4.prv.gz"))
        assert all(np.array_equal(found[name], each) for name, each in wanted.items())
    assert cached(folder).read_bytes() == good
    assert len(scans) > 30


def test_a_file_cut_while_it_is_checked_is_damaged(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w+b", buffering=0) as file:
        writer = container.Writer(file, {}, {"a": container.Shape("<i8", 2)})
        writer.append("a", np.arange(2))
        with pytest.raises(container.DamagedError, match="array a has another checksum"):
            container.load(file)  # not sealed
        writer.seal()
        assert container.load(file)[1]["a"].tolist() == [0, 1]
        with pytest.raises(container.DamagedError, match="another length"):
            container._Checker(file).sum(0, 10**6)


def test_readers_at_the_same_time_see_whole_files(folder: Path, path: Path) -> None:
    path.write_text(TEXT + "".join(f"1:1:1:1:1:{n}:{n + 1}:1\n" for n in range(10, 3000)))

    def once(_: int) -> int:
        return int(read(path).states.end.sum())

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(once, range(40)))) == 1
    cached(folder)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPMODEL_CACHE_DIR", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert store.folder() == Path("/a")
    monkeypatch.delenv("POPMODEL_CACHE_DIR")
    assert store.folder() == Path("/b/popmodel")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store.folder() == Path("/c/.cache/popmodel")


def test_the_container_takes_no_more_and_no_less_than_announced(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w+b", buffering=0) as file:
        writer = container.Writer(file, {}, {"a": container.Shape("<i8", 2)})
        writer.append("a", np.arange(1))
        with pytest.raises(ValueError, match="array a lacks 8 bytes"):
            writer.arrays()
        with pytest.raises(ValueError, match="array a is full"):
            writer.append("a", np.arange(2))


BOUNDED = """
import re, sys
from pathlib import Path
from popmodel.trace import read
from popmodel.trace.paraver import columns
trace = read(sys.argv[1], cache=sys.argv[2] == "cached")
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
@pytest.mark.parametrize("kind", ["cached", "not cached"])
def test_memory_does_not_grow_with_the_trace(tmp_path: Path, folder: Path, kind: str) -> None:
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
        [sys.executable, "-c", BOUNDED, str(path), kind],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "POPMODEL_CACHE_DIR": str(folder)},
    )
    peak, columns, states = map(int, done.stdout.split())
    assert states == blocks * 20_000
    assert columns > 150e6
    assert peak < 150e6
    assert peak < 1.5 * columns
