"""Files are written as a whole or not at all, and never through what others have planted."""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from popmodel.base import files
from popmodel.base.errors import FileError
from popmodel.base.files import ENDING
from popmodel.machines.bench import run_directory
from popmodel.machines.bench.bench_plan import BenchPlan
from popmodel.studies.study_documents import keep


def test_a_file_is_written_as_a_whole(tmp_path: Path) -> None:
    files.write_text(tmp_path / "a", "first")
    with files.written(tmp_path / "a") as file:
        file.write(b"second")
        file.flush()
        assert (tmp_path / "a").read_text() == "first"
    assert (tmp_path / "a").read_text() == "second"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    files.write_text(tmp_path / "a", "first")
    with pytest.raises(RuntimeError), files.written(tmp_path / "a") as file:
        file.write(b"second")
        raise RuntimeError
    assert (tmp_path / "a").read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_new_file_has_the_permissions_that_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "text", "")
        files.write_text(tmp_path / "program", "", files.PROGRAM)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "text").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "program").stat().st_mode) == 0o750


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o4600)
    with files.written(path) as file:
        file.write(b"new")
        assert all(each.stat().st_mode & 0o077 == 0 for each in tmp_path.iterdir())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name, target in (("a", victim), ("b", tmp_path / "not there")):
        (tmp_path / name).symlink_to(target)
        files.write_text(tmp_path / name, "ours")
        assert (tmp_path / name).read_text() == "ours"
        assert not (tmp_path / name).is_symlink()
    assert victim.read_text() == "precious"
    assert not (tmp_path / "not there").exists()


def test_a_name_of_the_moment_that_is_taken_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: bytes(size))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f"{files.PREFIX}{bytes(8).hex()}").symlink_to(victim)
    with pytest.raises(FileExistsError):
        files.write_text(tmp_path / "a", "ours")
    assert victim.read_text() == "precious"


def test_what_was_written_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append(f"fsync {os.fstat(descriptor).st_size}")
        fsync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    files.write_bytes(tmp_path / "a", b"12345")
    assert steps[-2:] == ["fsync 5", "rename"]


ENDED = """
import os, signal, sys
from popmodel.base import files
with files.written(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), int(sys.argv[2]))
    signal.pause()
"""


@pytest.mark.long(after=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDED, str(tmp_path / "a"), str(int(number))],
        check=False,
        capture_output=True,
        restore_signals=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert done.returncode in (-number, 128 + number)
    assert list(tmp_path.iterdir()) == []


def test_signals_mean_afterwards_what_they_meant_before(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in ENDING]
    files.write_text(tmp_path / "a", "")
    assert [signal.getsignal(number) for number in ENDING] == before


def test_a_copy_is_written_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "from").write_bytes(b"program")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "to").symlink_to(tmp_path / "victim")
    files.copy(tmp_path / "from", tmp_path / "to", 0o700)
    assert (tmp_path / "to").read_bytes() == b"program"
    assert stat.S_IMODE((tmp_path / "to").stat().st_mode) == 0o700
    assert (tmp_path / "victim").read_text() == "precious"


def test_nothing_is_appended_through_a_link(tmp_path: Path) -> None:
    with files.append_to(tmp_path / "log") as file:
        file.write(b"one\n")
    with files.append_to(tmp_path / "log") as file:
        file.write(b"two\n")
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    (tmp_path / "link").symlink_to(tmp_path / "log")
    with pytest.raises(OSError, match="symbolic links"):
        files.append_to(tmp_path / "link")


def test_the_link_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    files.refuse_planted(tmp_path / "link", "x")  # our own
    files.refuse_planted(tmp_path / "nothing", "x")
    owner = (tmp_path / "link").lstat().st_uid
    if owner == 0:
        os.lchown(tmp_path / "link", 4321, 4321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(FileError) as caught:
        files.refuse_planted(tmp_path / "link", "choose another file")
    assert caught.value.problem == "is a symbolic link of another user (to elsewhere)"
    assert caught.value.hint == "choose another file"


def test_where_no_file_can_be_made_is_found_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.expect_writable(tmp_path / "new")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError):
        files.expect_writable(tmp_path / "no" / "new")
    with pytest.raises(NotADirectoryError):
        files.expect_writable(tmp_path / "file" / "new")
    (tmp_path / "link").symlink_to(tmp_path / "no" / "new")
    with pytest.raises(FileNotFoundError):
        files.expect_writable(tmp_path / "link")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(PermissionError):
        files.expect_writable(tmp_path / "new")


def test_a_file_system_that_is_only_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Readable:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(os, "statvfs", lambda _: Readable)
    with pytest.raises(OSError, match="Read-only file system"):
        files.expect_writable(tmp_path / "new")


def test_what_its_reader_refuses_is_not_written(tmp_path: Path) -> None:
    seen = []

    def read(path: Path) -> None:
        seen.append((path.name, path.read_text()))
        if "bad" in path.read_text():
            raise FileError(path, "is bad", line=1, hint="write it better")

    files.write_text(tmp_path / "a.toml", "good", read=read)
    with pytest.raises(FileError) as caught:
        files.write_text(tmp_path / "a.toml", "bad\n", read=read)
    assert seen == [("a.toml", "good"), ("a.toml", "bad\n")]
    assert caught.value.message == (
        f"{tmp_path}/a.toml:1: is not written, for popmodel could not read it: is bad"
    )
    assert caught.value.hint == "write it better"
    assert (tmp_path / "a.toml").read_text() == "good"
    assert [each.name for each in tmp_path.iterdir()] == ["a.toml"]


@pytest.mark.long
def test_no_document_holds_what_json_does_not_know() -> None:
    """Every text of JSON is made by a call that refuses NaN and infinities."""
    root = Path(files.__file__).parents[1]
    calls = [
        (path, node)
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.dumps", "json.dump")
    ]
    allowing = [
        f"{path}:{node.lineno}"
        for path, node in calls
        if not any(
            word.arg == "allow_nan" and ast.unparse(word.value) == "False" for word in node.keywords
        )
    ]
    assert len(calls) > 10
    assert not allowing


def test_plans_and_results_of_studies_are_read_back_before_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tmp_path / "splits.json"
    with pytest.raises(FileError, match="is not written, for popmodel could not read it: "):
        keep(result, {"schema": "popmodel/splits/1", "candidates": 3})
    plan = BenchPlan("quick", ("core",), 1, 1, 0, (), {})
    monkeypatch.setattr(BenchPlan, "to_dict", lambda _: {"launches": "none"})
    with pytest.raises(FileError, match="is not written, for popmodel could not read it: "):
        run_directory.begin(tmp_path / "run", plan, {})
    assert not result.exists()
    assert not (tmp_path / "run" / run_directory.PLAN).exists()
