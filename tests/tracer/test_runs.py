"""Several runs whose records are in one directory: which process is of which."""

from __future__ import annotations

from pathlib import Path

import pytest
from tracer.builder import Run

from popmodel import traces as reader
from popmodel.base.errors import TraceError
from popmodel.tracer.conversion import merge, merge_runs, of_run
from popmodel.tracer.raw import NOT_TRACED, SPAWNED, Raw, read

S = 10**9


def started(
    folder: Path,
    size: int,
    begin: int,
    pid: int,
    *,
    ranks: tuple[int, ...] | None = None,
    job: str | None = None,
    spawned: int = 0,
    notes: tuple[str, ...] = (),
    length: int = S,
) -> None:
    """Add a run of some processes to a raw directory."""
    run = Run(size)
    for rank in range(size) if ranks is None else ranks:
        process = run.process(rank, begin=begin, pid=pid + rank)
        for event in process.events:
            if event["event"] == "mpi":
                event.update({"spawned": spawned, **({"job": job} if job else {})})
        process.thread().call("Init", begin, begin + 100)
        for text in notes:
            process.say("note", text=text, count=1)
        process.end(begin + length)
    run.write(folder)


def pids(runs: tuple[Raw, ...]) -> list[list[int]]:
    return [[process.meta.pid for process in raw.processes] for raw in runs]


def test_one_run_is_one(tmp_path: Path) -> None:
    started(tmp_path, 2, 5 * S, 100)
    assert pids(read(tmp_path)) == [[100, 101]]


def test_one_after_the_other(tmp_path: Path) -> None:
    started(tmp_path, 2, 10 * S, 100)
    started(tmp_path, 3, 5 * S, 200)
    started(tmp_path, 2, 1 * S, 300)
    assert pids(read(tmp_path)) == [[300, 301], [200, 201, 202], [100, 101]]


def test_at_a_time_where_the_launcher_names_them(tmp_path: Path) -> None:
    started(tmp_path, 2, 5 * S, 100, job="a")
    started(tmp_path, 2, 5 * S, 200, job="b")
    assert pids(read(tmp_path)) == [[100, 101], [200, 201]]


def test_a_rank_that_is_missing_is_not_taken_from_the_next_run(tmp_path: Path) -> None:
    started(tmp_path, 2, 5 * S, 100, ranks=(0,))
    started(tmp_path, 2, 15 * S, 200)
    runs = read(tmp_path)
    assert pids(runs) == [[100], [200, 201]]
    assert [raw.missing for raw in runs] == [(1,), ()]


def test_spawned_processes_are_a_run_of_their_own(tmp_path: Path) -> None:
    started(tmp_path, 1, 5 * S, 100, job="x@1", notes=(SPAWNED,))
    started(tmp_path, 1, 5 * S + 10, 200, job="x@2", spawned=1)
    runs = read(tmp_path)
    assert pids(runs) == [[100], [200]]
    assert [raw.spawned for raw in runs] == [False, True]
    assert not any(w.text == NOT_TRACED for raw in runs for w in raw.warnings)


def test_spawned_processes_that_were_not_traced_are_told(tmp_path: Path) -> None:
    started(tmp_path, 1, 5 * S, 100, notes=(SPAWNED,))
    (raw,) = read(tmp_path)
    assert [w.count for w in raw.warnings if w.text == NOT_TRACED] == [1]


def test_each_run_becomes_a_trace(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    started(raw, 2, 5 * S, 100)
    started(raw, 3, 15 * S, 200)
    told: list[float] = []
    names: list[str] = []
    made = merge_runs(
        raw, tmp_path / "x.prv", progress=told.append, check=lambda path: names.append(path.name)
    )
    assert names == ["x.run1.prv", "x.run2.prv"]
    assert [one.path.name for one in made] == names
    assert [reader.read(one.path).processes for one in made] == [2, 3]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)
    with pytest.raises(TraceError, match="contains 2 runs"):
        merge(raw, tmp_path / "y.prv")


def test_one_run_keeps_the_name(tmp_path: Path) -> None:
    started(tmp_path / "raw", 2, 5 * S, 100)
    (made,) = merge_runs(tmp_path / "raw", tmp_path / "x.prv.gz")
    assert made.path == tmp_path / "x.prv.gz"
    assert of_run(Path("x.prv.gz"), 2) == Path("x.run2.prv.gz")
