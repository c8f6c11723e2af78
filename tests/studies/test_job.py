"""Runs of a study that a job has made: those that failed are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from popmodel.studies import executor
from popmodel.studies.executor import RunFailed, done_runs
from popmodel.studies.manifest import opened
from popmodel.studies.plan import PlannedRun, Prepared, in_turn
from popmodel.tracer.commands import TracedCommand

WORDS = ("srun", "-n", "{P}", "./app")
COMMAND = TracedCommand(WORDS, "/usr/bin/srun", 0, True, "Slurm", Path("./app"))
RUNS = (PlannedRun(1, 1), PlannedRun(2, 1), PlannedRun(4, 1))


def collected(folder: Path, monkeypatch: pytest.MonkeyPatch, *status: int) -> tuple[Any, list[str]]:
    """What a job leaves behind whose runs ended with some status."""

    def merged(raw: Path, run: PlannedRun, target: Path) -> Any:
        assert raw.parent == folder / "runs"
        target.write_text("a trace")
        facts = {"seconds": 1.0, "runtime": 1.0, "waited": 0.0, "used_threads": 1}
        return (target,), {**run.to_dict(), **facts, "has_openmp": False, "has_mpi": True}

    monkeypatch.setattr(executor, "merged", merged)
    (folder / "runs").mkdir()
    for run in in_turn(RUNS):
        number = status[RUNS.index(run.configuration)]
        (folder / "runs" / f"{run.name}.status").write_text(f"{number}\n")
        (folder / "runs" / f"{run.name}.log").write_text("app: only squares\n\n")
    told: list[str] = []
    about = Prepared(WORDS, COMMAND, Path("./app"), 4, RUNS)
    return executor.collected(opened(folder, {}, []), about, told.append), told


def test_a_run_that_failed_in_the_job_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, told = collected(tmp_path, monkeypatch, 0, 3, 0)
    assert [run.name for run in done_runs(state, RUNS)] == [
        *("1x1", "1x1.r2", "1x1.r3", "4x1", "4x1.r2", "4x1.r3")
    ]
    assert executor.failure(state, RUNS[1]) == "run 2 x 1 failed in the job: app: only squares"
    assert told == ["warning: 3 runs failed (2x1, 2x1.r2, 2x1.r3): the study goes on without"]


def test_a_job_without_any_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed, match="run 1 x 1 failed in the job: app: only squares") as error:
        collected(tmp_path, monkeypatch, 2, 3, 1)
    assert "its output is in " in str(error.value.hint)
