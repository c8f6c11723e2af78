"""The files of the cache: which make room, and what happens where none can be written."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from popmodel.errors import TraceError, UsageError
from popmodel.trace import read, store
from popmodel.trace.paraver import reader

from .conftest import TEXT, cached

DATA = Path(__file__).parent.parent / "data"


def without_nameless_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system or a file system that has none."""
    open_ = os.open

    def refuse(path: object, flags: int, *rest: object, **named: object) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return open_(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


def refuse_files(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let no file be made."""
    open_ = os.open

    def refuse(path: object, flags: int, *rest: object, **named: object) -> int:
        if flags & (os.O_CREAT | os.O_TMPFILE):
            raise OSError(number, os.strerror(number))
        return open_(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


def test_files_without_a_name_are_not_needed(
    folder: Path, path: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_nameless_files(monkeypatch)
    monkeypatch.setattr(reader, "HELD", 0)
    for _ in range(2):
        assert read(path).states.end.tolist() == [10]
    assert scans == ["x.prv"]
    assert cached(folder).suffix == ".trace"
    os.utime(path, ns=(1, 1))
    fail_with(errno.ENOSPC, monkeypatch)
    assert read(path).states.end.tolist() == [10]
    cached(folder)  # the old one


def test_a_file_that_cannot_be_named_is_not_kept(
    folder: Path, path: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOENT, "no /proc")

    monkeypatch.setattr(os, "link", refuse)
    for _ in range(2):
        assert read(path).states.end.tolist() == [10]
    assert scans == ["x.prv"] * 2
    assert list(folder.iterdir()) == []


KILLED = """
import os, signal, sys
from popmodel.trace import container, read
if sys.argv[2] == "named":
    del os.O_TMPFILE
container.Writer.seal = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
read(sys.argv[1])
"""


@pytest.mark.long(after=1)
@pytest.mark.parametrize("kind", ["nameless", "named"])
def test_a_killed_process_leaves_nothing_for_long(folder: Path, path: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), kind],
        check=False,
        env={**os.environ, "POPMODEL_CACHE_DIR": str(folder)},
    )
    assert done.returncode == -signal.SIGKILL
    left = list(folder.iterdir())
    assert len(left) == (kind == "named")
    read(path)
    assert len(list(folder.iterdir())) == 1 + len(left)  # it may still be in use
    for each in left:
        age(each, days=2)
    os.utime(path, ns=(1, 1))
    read(path)
    assert cached(folder).suffix == ".trace"


def age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def test_what_was_not_used_for_the_longest_time_makes_room(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {name: tmp_path / f"{name}.prv" for name in "abcd"}
    file = {}
    for name, path in paths.items():
        path.write_text(TEXT)
        before = set(folder.iterdir()) if folder.exists() else set()
        read(path)
        (file[name],) = set(folder.iterdir()) - before
    size = max(each.stat().st_size for each in file.values())
    for hours, name in enumerate("dcba", 1):
        age(file[name], hours / 24)
    read(paths["a"])  # used again
    monkeypatch.setenv("POPMODEL_CACHE_LIMIT", str(3 * size))
    (tmp_path / "e.prv").write_text(TEXT)
    read(tmp_path / "e.prv")
    left = set(folder.iterdir())
    assert {name for name, each in file.items() if each in left} == {"a", "d"}
    assert len(left) == 3
    monkeypatch.setenv("POPMODEL_CACHE_LIMIT", "10B")  # less than any: then it is not kept
    (tmp_path / "f.prv").write_text(TEXT)
    assert read(tmp_path / "f.prv").states.end.tolist() == [10]
    assert set(folder.iterdir()) == left
    monkeypatch.setenv("POPMODEL_CACHE_LIMIT", "much")
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "f.prv")
    assert caught.value.message.startswith("POPMODEL_CACHE_LIMIT: 'much' is not a size")
    assert caught.value.hint.startswith("give a number with B, kB")


def test_what_is_of_no_more_use_goes_after_a_day(tmp_path: Path, folder: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.prv").write_text(TEXT)
        read(tmp_path / f"{name}.prv")
    (folder / "other.txt").write_text("not ours")
    (folder / "old.trace").write_text("of another version")
    (tmp_path / "a.prv").unlink()
    (tmp_path / "d.prv").write_text(TEXT)
    read(tmp_path / "d.prv")
    assert len(list(folder.iterdir())) == 6
    for file in folder.iterdir():
        age(file, days=2)
    (tmp_path / "e.prv").write_text(TEXT)
    read(tmp_path / "e.prv")
    origins = {store._origin(file) for file in folder.glob("*.trace")}
    assert origins == {tmp_path / f"{name}.prv" for name in "bcde"}
    assert (folder / "other.txt").exists()
    assert not (folder / "old.trace").exists()


@pytest.mark.parametrize("obstacle", ["file in the way", "no permission", "unwritable"])
def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    where = tmp_path / "obstacle"
    where.write_text("")
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(where / "cache"))
    if obstacle != "file in the way":
        monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "cache"))

        refuse_files(monkeypatch, errno.EACCES if obstacle == "no permission" else errno.EROFS)
    assert read(path).states.end.tolist() == [10]
    assert read(path).warnings == read(path, cache=False).warnings


def test_a_long_trace_goes_to_a_temporary_file_when_there_is_no_cache(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "obstacle").write_text("")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "obstacle" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    path.write_text(TEXT + "".join(f"1:1:1:1:1:{n}:{n + 1}:1\n" for n in range(10, 5000)))
    for name, value in (("HELD", 1 << 10), ("CHUNK", 1 << 12), ("MEMORY", 0)):
        wanted = read(path, cache=False)
        monkeypatch.setattr(reader, name, value)
        trace = read(path)
        assert np.array_equal(trace.states.begin, wanted.states.begin)
        assert len(trace.states.begin) == 4991
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("held", [1 << 25, 1 << 10])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_cache_that_takes_no_more_is_done_without(
    folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch, number: int, held: int
) -> None:
    path.write_text(TEXT + "".join(f"1:1:1:1:1:{n}:{n + 1}:1\n" for n in range(10, 5000)))
    wanted = read(path, cache=False)
    monkeypatch.setattr(reader, "HELD", held)
    pwrite = os.pwrite

    def fail(descriptor: int, *rest: object) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(folder):
            raise OSError(number, os.strerror(number))
        return pwrite(descriptor, *rest)

    monkeypatch.setattr(os, "pwrite", fail)
    for _ in range(2):
        trace = read(path)
        assert np.array_equal(trace.states.begin, wanted.states.begin)
        (warning,) = set(trace.warnings) - set(wanted.warnings)
        assert warning.text == f"the cache {folder} is not used: {os.strerror(number)}"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "step",
    [
        "popmodel.trace.container.Writer.seal",
        "popmodel.trace.container.Writer.arrays",
        "popmodel.trace.store.make_room",
        "os.link",
        "pathlib.Path.replace",
    ],
)
def test_a_cache_that_fails_in_any_step_is_done_without(
    folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    calls = []

    def fail(*_: object, **__: object) -> None:
        calls.append(step)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(step, fail)
    assert read(path).states.end.tolist() == [10]
    assert calls
    assert list(folder.iterdir()) == []


def fail_with(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def pwrite(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pwrite", pwrite)


def test_other_failures_to_write(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(reader, "MEMORY", 0)
    fail_with(errno.ENOSPC, monkeypatch)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == (
        f"{path}: not enough space for its records in {tmp_path}: no space left on device"
    )
    assert caught.value.hint == "free some space there, set TMPDIR to another directory"


def test_a_disk_too_full_for_the_folder_is_said(
    folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_files(monkeypatch, errno.ENOSPC)
    trace = read(path)
    assert trace.states.end.tolist() == [10]
    assert trace.warnings[-1].text == f"the cache {folder} is not used: No space left on device"
