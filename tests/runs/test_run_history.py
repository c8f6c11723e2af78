"""The file of a history: appended to as a whole, damaged lines named."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from popmodel.base import files
from popmodel.base.errors import FileError
from popmodel.runs.run_history import HistoryLine, append_history, read_history


def run(label: str, mark: str = "0") -> HistoryLine:
    stamp = {"inputs": [{"path": "run.prv", "size": 3, "head_sha256": mark}]}
    return HistoryLine(
        label, "2026-01-01T00:00:00Z", "run", "M, 4 CPUs", 2, (2, 1), "", {"MPI_Send": 2}, (), 1.5,
        {"ipc": 1.25}, {"mpi": {"load_balance": 0.5}}, {"solve": 0.1}, {}, ("odd",), stamp,
    )  # fmt: skip


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "perf.jsonl"
    every, added = append_history(path, [run("a"), run("b")])
    assert added == 2
    assert read_history(path) == every == [run("a"), run("b")]
    assert len(path.read_text().splitlines()) == 2


def test_what_a_history_holds_stays_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "perf.jsonl"
    append_history(path, [run("a")])
    known = {**json.loads(path.read_text()), "of a later version": [1]}
    text = json.dumps(known, indent=None)
    path.write_text(text)  # without a line end
    append_history(path, [run("b")])
    assert path.read_text().splitlines()[0] == text
    assert [line.label for line in read_history(path)] == ["a", "b"]


def test_a_trace_is_added_once_under_a_label(tmp_path: Path) -> None:
    path = tmp_path / "perf.jsonl"
    append_history(path, [run("a"), run("a", "1")])
    every, added = append_history(path, [run("a"), run("b")])
    assert (len(every), added) == (3, 1)


def damage(path: Path, number: int, text: str) -> None:
    lines = path.read_text().splitlines()
    lines[number - 1] = text
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"schema": "popmodel/history/1", "lab', "is not JSON"),
        ('{"schema": "popmodel/history/9"}', "is not a line of a history"),
        ("[1]", "is not a line of a history"),
        ('{"schema": "popmodel/history/1"}', "label is missing"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_added(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "perf.jsonl"
    append_history(path, [run("a"), run("b"), run("c")])
    damage(path, 2, text)
    before = path.read_bytes()
    with pytest.raises(FileError) as caught:
        append_history(path, [run("d")])
    assert caught.value.message.startswith(f"{path}:2")
    assert problem in caught.value.message
    assert caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("wrong", [{"runtime": 0}, {"runtime": "1"}, {"factors": {"ipc": -1}}])
def test_a_line_with_impossible_numbers_is_refused(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / "perf.jsonl"
    append_history(path, [run("a")])
    damage(path, 1, json.dumps({**json.loads(path.read_text()), **wrong}))
    with pytest.raises(FileError, match=r"perf\.jsonl:1: "):
        read_history(path)


def test_a_failing_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "perf.jsonl"
    append_history(path, [run("a")])
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(FileError, match="no space left"):
        append_history(path, [run("b")])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["perf.jsonl"]  # noqa: PTH208


def test_commands_at_one_time_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "perf.jsonl"
    threads = [
        threading.Thread(target=append_history, args=(path, [run(f"label {number}")]))
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_history(path)) == 12


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, path = tmp_path / "link.jsonl", tmp_path / "perf.jsonl"
    link.symlink_to(path)
    append_history(link, [run("a")])
    assert link.is_symlink()
    assert len(read_history(path)) == 1
