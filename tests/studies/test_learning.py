"""The signature of a study: of traces where that goes, else of the times of the runs alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import popmodel
from popmodel.base.errors import PopmodelError
from popmodel.model import signatures
from popmodel.studies import learning
from popmodel.studies.manifest import DONE, StudyStep
from popmodel.studies.plan import PlannedRun

SMALL, LARGE = ((("N", size),) for size in (100.0, 200.0))


def made(times: dict[PlannedRun, float], waited: float = 0.0) -> dict[PlannedRun, StudyStep]:
    facts = {"waited": waited}
    return {
        run: StudyStep("run", DONE, "", "", 1.0, facts={**facts, "runtime": time})
        for run, time in times.items()
    }


TIMES = {
    PlannedRun(1, 1, SMALL): 1.0,
    PlannedRun(2, 1, SMALL): 0.5,
    PlannedRun(1, 1, LARGE): 4.0,
    PlannedRun(2, 1, LARGE): 2.0,
}


@pytest.mark.parametrize(
    ("error", "said"),
    [(PopmodelError("comm must be world"), "comm must be world"), (KeyError("x"), "KeyError")],
)
def test_traces_that_make_no_signature_leave_the_times(
    error: Exception, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(learning, "read", fails)
    refused = [{"P": 3.0, "T": 1.0, "N": 100.0}]
    of_runs = [run.values for run in TIMES]
    text, notes = learning.signature_of_runs(tmp_path, made(TIMES), "app", of_runs, refused)
    assert notes[0].startswith("no structure was found in the traces (")
    assert said in notes[0]
    path = tmp_path / "signature.toml"
    learning.write(path, text, ("./app", "{N}"))
    signature = signatures.load(path)
    assert signature.command == ("./app", "{N}")
    run = popmodel.predict(path, procs=2, settings={"N": 400})
    assert run.runtime.value == pytest.approx(8.0, rel=0.05)  # times go with N**2
    assert signature.limits.require  # what was refused is not predicted


def test_powers_of_sizes_come_from_splits_that_were_run_at_several() -> None:
    assert learning.size_powers(made(TIMES)) == pytest.approx([2.0])
    alone = {run: time for run, time in TIMES.items() if run.settings == LARGE}
    assert learning.size_powers(made(alone)) == [0.0]


def test_repeats_as_far_apart_as_all_are_learnt_from_and_disturbed_ones_left_out() -> None:
    times = (3.0, 1.0, 1.2, 1.1, 0.2)
    runs = made({PlannedRun(1, 1, (), k): time for k, time in enumerate(times, 1)})
    runs |= made({PlannedRun(2, 1, (), 1): 1.0}) | made({PlannedRun(2, 1, (), 2): 9.0}, waited=0.5)
    runs |= made({PlannedRun(4, 1, (), 1): 9.0}, waited=0.5)
    assert [run.name for run in learning.learnt_from(runs)] == [
        *("1x1", "1x1.r4", "1x1.r5", "2x1", "4x1")
    ]
