"""Runs of a study that a job has made: those that failed are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from popmodel.study import runs, scripts
from popmodel.study.manifest import opened
from popmodel.study.plan import Run
from popmodel.study.request import Prepared
from popmodel.study.traced import RunFailed, Traced
from popmodel.tracer.commands import Command

WORDS = ("srun", "-n", "{P}", "./app")
COMMAND = Command(WORDS, "/usr/bin/srun", 0, True, "Slurm", Path("./app"))
RUNS = (Run(1, 1), Run(2, 1), Run(4, 1))


def collected(folder: Path, monkeypatch: pytest.MonkeyPatch, *status: int) -> tuple[Any, list[str]]:
    """What a job leaves behind whose runs ended with some status."""

    def merged(raw: Path, target: Path, seconds: float | None, others: Any) -> Traced:
        assert raw.parent == folder / "runs"
        assert seconds is None
        target.write_text("a trace")
        return Traced(1.0, {"has_openmp": False, "has_mpi": True}, (target, *others))

    monkeypatch.setattr(scripts, "merged", merged)
    (folder / "runs").mkdir()
    for run, number in zip(RUNS, status, strict=True):
        (folder / "runs" / f"{run.name}.status").write_text(f"{number}\n")
        (folder / "runs" / f"{run.name}.log").write_text("app: only squares\n\n")
    told: list[str] = []
    about = Prepared(WORDS, COMMAND, Path("./app"), 4, RUNS)
    return scripts.collected(opened(folder, {}, []), about, told.append), told


def test_a_run_that_failed_in_the_job_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, told = collected(tmp_path, monkeypatch, 0, 3, 0)
    assert list(runs.done_runs(state, RUNS)) == [RUNS[0], RUNS[2]]
    assert runs.failure(state, RUNS[1]) == "run 2 x 1 failed in the job: app: only squares"
    assert told == ["warning: 1 of 3 runs failed (2x1): the study goes on without"]


def test_too_few_runs_of_a_job_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed, match="run 2 x 1 failed in the job: app: only squares") as error:
        collected(tmp_path, monkeypatch, 0, 3, 1)
    assert "submit the job again" in str(error.value.hint)
