"""Disturbed runs are found among the others, and named; runs that are good are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from calibration.small import MACHINE, SPLITS, drawn, program, ready, runs
from truth.judged import binomial

from popmodel.calibration.fit import CalibrationFit, fit, noise_of
from popmodel.calibration.outliers import Outlier, robust
from popmodel.calibration.posterior import calibrated_signature
from popmodel.model.study import Study
from popmodel.model.uncertainty import Estimate, estimate
from popmodel.runs.measurement import MeasuredRow

DRAWS = 12
FACTOR = 2.0


def given_runs(seed: int, metrics: bool = True) -> list[MeasuredRow]:
    rng = np.random.default_rng(seed)
    names = ("law.loops", "law.messages", *(f"law.loops of {p} x {t}" for p, t in SPLITS))
    law = {name: float(rng.standard_normal()) for name in names}
    return runs(program(), drawn(rng, program()), rng=rng, errors=law, metrics=metrics)


def robustly(made: Sequence[MeasuredRow]) -> tuple[CalibrationFit, tuple[Outlier, ...]]:
    one = ready(program(), made)
    return robust(one, noise_of(one))


def poisoned(made: Sequence[MeasuredRow], number: int, factor: float = FACTOR) -> list[MeasuredRow]:
    """The same runs, one of which took longer in all that it did."""
    return [
        replace(run, runtime=run.runtime * factor) if index == number else run
        for index, run in enumerate(made)
    ]


@pytest.fixture(scope="module")
def clean() -> list[tuple[CalibrationFit, tuple[Outlier, ...]]]:
    return [robustly(given_runs(seed)) for seed in range(DRAWS)]


@pytest.fixture(scope="module")
def disturbed() -> list[tuple[CalibrationFit, tuple[Outlier, ...]]]:
    return [robustly(poisoned(given_runs(seed), seed % 6)) for seed in range(DRAWS)]


@pytest.mark.long
def test_a_run_that_took_twice_as_long_is_named(
    disturbed: list[tuple[CalibrationFit, tuple[Outlier, ...]]],
) -> None:
    named = [[one.run for one in found[1]] == [seed % 6] for seed, found in enumerate(disturbed)]
    assert binomial(named)[1] >= 0.8
    assert np.mean(named) >= 0.75


@pytest.mark.long
def test_its_factor_and_its_probability_are_told(
    disturbed: list[tuple[CalibrationFit, tuple[Outlier, ...]]],
) -> None:
    found = [one for _, outliers in disturbed for one in outliers]
    assert np.median([one.factor for one in found]) == pytest.approx(FACTOR, rel=0.1)
    assert all(1 / 3 <= one.probability <= 1 for one in found)


@pytest.mark.long
def test_it_moves_the_answer_by_less_than_its_interval(
    clean: list[tuple[CalibrationFit, tuple[Outlier, ...]]],
    disturbed: list[tuple[CalibrationFit, tuple[Outlier, ...]]],
) -> None:
    moved = []
    for (before, _), (after, _) in zip(clean, disturbed, strict=True):
        here, there = (foretold(one) for one in (before, after))
        assert here.low is not None
        assert here.high is not None
        moved.append(here.low < there.value < here.high)
    assert np.mean(moved) >= 0.9


def foretold(found: CalibrationFit) -> Estimate:
    """A run that nobody made."""
    study = Study(calibrated_signature(found), MACHINE, {}, 200, 0)
    return estimate(study.run(study.admit(16, 4), study.sources()).modelled.runtime)


@pytest.mark.long
def test_good_runs_are_hardly_ever_named(
    clean: list[tuple[CalibrationFit, tuple[Outlier, ...]]],
) -> None:
    assert np.mean([len(outliers) > 0 for _, outliers in clean]) <= 0.1


def test_no_more_than_a_third_of_the_runs_are_suspected() -> None:
    rng = np.random.default_rng(0)
    wild = [
        replace(run, runtime=run.runtime * float(np.exp(1.5 * rng.standard_normal())))
        for run in given_runs(0)
    ]
    _, outliers = robustly(wild)
    assert len(outliers) <= len(wild) // 3


def test_of_two_runs_none_is_suspected() -> None:
    made = given_runs(0)[:2]
    _, outliers = robustly([made[0], replace(made[1], runtime=made[1].runtime * 5)])
    assert outliers == ()


@pytest.mark.long
def test_runs_that_nothing_disturbed_are_fitted_as_they_are(
    clean: list[tuple[CalibrationFit, tuple[Outlier, ...]]],
) -> None:
    one = ready(program(), given_runs(1))
    found, outliers = clean[1]
    assert outliers == ()
    np.testing.assert_array_equal(found.means, fit(one, noise_of(one)).means)
