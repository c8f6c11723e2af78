"""Why a study is not to be trusted: a missed check, a busy machine, few or contradicting runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from popmodel.studies import study_machine
from popmodel.studies.learning import doubts
from popmodel.studies.manifest import DONE, StudyStep
from popmodel.studies.plan import PlannedRun
from popmodel.studies.study_machine import MachineLoad

HELD = {"predicted": 2.0, "low": 1.8, "high": 2.2, "mean": 2.1, "covered": 1}


def made(**times: Sequence[float]) -> dict[PlannedRun, StudyStep]:
    """Runs by split with their times; a negative time is that of a run that waited for CPUs."""
    found = {}
    for split, some in times.items():
        processes, threads = map(int, split.removeprefix("of").split("x"))
        for repeat, time in enumerate(some, 1):
            facts = {"runtime": abs(time), "waited": 0.5 if time < 0 else 0.0}
            step = StudyStep("run", DONE, "", "", 1.0, facts=facts)
            found[PlannedRun(processes, threads, (), repeat)] = step
    return found


STEADY = [1.0, 1.01, 1.02]


def test_a_study_whose_check_holds_and_whose_runs_repeat_is_trusted() -> None:
    assert doubts(made(of1x1=STEADY, of2x1=STEADY), PlannedRun(2, 1), HELD) == []


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            {**HELD, "mean": 2.3, "covered": 0},
            "2 x 1 was predicted from the others as 2.000 s (90 %: 1.80 s .. 2.20 s), and took "
            "2.300 s",
        ),
        ("no such grid", "2 x 1 could not be predicted from the others: no such grid"),
        ({**HELD, "low": None, "high": None}, "2 x 1 was predicted from the others without"),
    ],
)
def test_a_check_that_does_not_hold_takes_trust_away(check: Any, said: str) -> None:
    (reason,) = doubts(made(of1x1=STEADY, of2x1=STEADY), PlannedRun(2, 1), check)
    assert reason.startswith(said)


def test_a_check_on_a_busy_machine_checks_nothing() -> None:
    busy = [-one for one in STEADY]
    found = doubts(made(of1x1=STEADY, of2x1=busy), PlannedRun(2, 1), {**HELD, "mean": 4.0})
    assert found == [
        "the prediction of 2 x 1 is not checked: all its runs were disturbed",
        "other programs ran beside: in 2 x 1 threads waited for CPUs, up to 50 % of their time",
    ]
    # some of its repeats had their CPUs: they count
    mixed = made(of1x1=STEADY, of2x1=[-1.0, *STEADY])
    assert doubts(mixed, PlannedRun(2, 1), HELD) == []


def test_few_and_contradicting_runs_are_told() -> None:
    found = doubts(made(of1x1=[1.0], of2x1=[1.0, 2.0, 1.0]), PlannedRun(2, 1), HELD)
    assert found == [
        "run less than 3 times, or once with CPUs of their own: 1 x 1",
        "repeats of 2 x 1 leave its time open by 67 %",
    ]
    (alone,) = doubts(made(of1x1=STEADY, of2x1=[-1.0, -1.1, 1.0]), PlannedRun(2, 1), HELD)
    assert alone.endswith("once with CPUs of their own: 2 x 1")
    assert doubts(made(of1x1=STEADY), None, None) == [
        "only one configuration was run: nothing checks the prediction"
    ]


def test_the_load_of_the_machine_is_told_in_cpus() -> None:
    assert not MachineLoad(2, 1.5, 0.1, None).is_quiet
    assert (
        str(MachineLoad(4, 1.5, 0.1, 2.0)) == "others use 1.6 of 4 CPUs; the control group grants 2"
    )
    assert MachineLoad(64, 1.0, 0.0, None).is_quiet
    found = study_machine.load(0.05)
    assert 0 <= found.foreign <= found.cpus * 1.5  # ticks are 10 ms


def test_patience_waits_until_the_machine_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = [
        MachineLoad(2, 1.0, 0.0, None),
        MachineLoad(2, 1.0, 0.0, None),
        MachineLoad(2, 0.0, 0.0, None),
    ]
    monkeypatch.setattr(study_machine, "load", lambda: loads.pop(0))
    monkeypatch.setattr(study_machine.time, "sleep", lambda _: None)
    told: list[str] = []
    assert study_machine.look(60.0, told.append).is_quiet
    assert told == [
        "others use 1.0 of 2 CPUs: waiting until they stop, 60 s at most",
        "the machine is quiet: others use 0.0 of 2 CPUs",
    ]
    loads += [MachineLoad(2, 1.0, 0.0, None)] * 2
    told.clear()
    assert not study_machine.look(0.0, told.append).is_quiet
    assert told[-1] == "warning: others use 1.0 of 2 CPUs: runs take longer than on a quiet machine"
    assert study_machine.look(None, told.append) == MachineLoad(2, 1.0, 0.0, None)
    assert told[-1].endswith("; --wait 10min waits until it is quiet")
