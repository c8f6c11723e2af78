"""Runs that are contradicting, noisy, too few, copies, disturbed or of several programs.

Each has its sentence, and none makes an answer surer than it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest
from fit.small import MACHINE, program, runs

import popmodel
from popmodel.runs.measurement import MeasuredRow

SPLITS = ((1, 1), (4, 1), (2, 4), (8, 1), (1, 8), (16, 1))
ASKED = (32, 2)
N = 1e6


def measured(seed: int = 0, noise: float = 0.02, repeats: int = 1) -> list[MeasuredRow]:
    rng = np.random.default_rng(seed)
    made = runs(program(), {}, SPLITS * repeats, rng, {"law.loops": 0.5}, noise)
    return [replace(run, parameters={"N": N}) for run in made]


def slower(made: Sequence[MeasuredRow], number: int, factor: float) -> list[MeasuredRow]:
    some = list(made)
    some[number] = replace(some[number], runtime=some[number].runtime * factor)
    return some


class Answer:
    """What is said with some runs."""

    def __init__(self, made: Sequence[MeasuredRow], folder: Path) -> None:
        rows = [
            f"{run.processes},{run.threads},{N:g},{run.runtime:.9g},{run.waited or 0:g}"
            for run in made
        ]
        path = folder / "runs.csv"
        path.write_text("\n".join(["processes,threads,N,runtime,waited", *rows]) + "\n")
        found = popmodel.signature([program(), path], machine=MACHINE)
        said = popmodel.predict(
            found.signature, machine=MACHINE, procs=ASKED[0], threads=ASKED[1]
        ).runtime
        assert said.low is not None
        assert said.high is not None
        self.sentences = [*found.facts["notes"], *found.facts["caveats"]]
        self.value, self.width = said.value, log(said.high / said.low)
        self.is_right = said.low < truth() < said.high

    def says(self, part: str) -> int:
        return sum(part in sentence for sentence in self.sentences)


@cache
def truth() -> float:
    (run,) = runs(program(), {}, (ASKED,), errors={"law.loops": 0.5})
    return run.runtime


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return Answer(measured(), tmp_path_factory.mktemp("good"))


def test_good_runs_have_no_doubts(good: Answer) -> None:
    assert good.is_right
    assert good.width < 0.7
    for doubt in ("trusted", "suspect", "vary by", "too few", "waited", "counted once"):
        assert not good.says(doubt)


def test_a_contradicting_run_is_named(good: Answer, tmp_path: Path) -> None:
    made = measured()
    found = Answer([*made, *slower(made[-1:], 0, 2.0)], tmp_path)

    assert found.says("suspect: ") == found.says("runs.csv:8 took 2.") == 1
    assert found.is_right
    assert found.width > 0.95 * good.width


def test_runs_that_all_contradict_each_other_tell_little(good: Answer, tmp_path: Path) -> None:
    made = measured()
    found = Answer([*made, *(replace(run, runtime=run.runtime * 1.6) for run in made)], tmp_path)

    assert found.says("vary by") + found.says("not to be trusted yet") >= 1
    assert found.width > 1.25 * good.width
    assert found.is_right


def test_noisy_runs_are_told_of(good: Answer, tmp_path: Path) -> None:
    found = Answer(measured(3, noise=0.12, repeats=3), tmp_path)

    assert found.says("runs of one configuration vary by") == 1
    assert found.is_right
    assert found.width > good.width


def test_few_runs_are_told_of(good: Answer, tmp_path: Path) -> None:
    found = Answer(measured()[:3], tmp_path)

    assert found.says("3 configurations are too few") == 1
    assert found.is_right
    assert found.width > 1.2 * good.width


def test_copies_are_counted_once(good: Answer, tmp_path: Path) -> None:
    found = Answer([*measured(), *measured()], tmp_path)

    assert found.says("counted once") == 1
    assert found.width == pytest.approx(good.width)
    assert found.value == pytest.approx(good.value)


def test_runs_that_waited_for_cpus_count_less(good: Answer, tmp_path: Path) -> None:
    made = [replace(run, runtime=run.runtime * 1.25, waited=0.2) for run in measured()[3:]]
    found = Answer([*measured()[:3], *made], tmp_path)

    assert found.says("threads waited for CPUs") == 1
    assert found.is_right
    assert found.width > 1.2 * good.width


def test_runs_of_two_programs_are_not_trusted(good: Answer, tmp_path: Path) -> None:
    made = measured()
    other = [replace(run, runtime=run.runtime * 0.25) for run in made[::2]]
    found = Answer([*other, *made[1::2]], tmp_path)

    assert found.sentences[0].startswith("not to be trusted yet: ")
    assert found.says("nothing that disturbs a run makes it shorter") >= 1
    assert found.width > 2 * good.width
    assert found.is_right
