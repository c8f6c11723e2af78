"""Calibrated predictions of truths that share no law with the model: a short form.

``python tests/benchmarks/calibration.py`` has the long one. Bounds are those that predictions are
to keep over many truths; here are a few, with fixed seeds. What does not keep them yet is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from truth import truth
from truth.judged import (
    CALIBRATED,
    END,
    TOP,
    Compared,
    Decision,
    Poisoned,
    Recovered,
    Row,
    Verdict,
    binomial,
    judged,
    poisoned,
    recovered,
)

SEEDS = range(4)
FAMILIES = ("moderate", "hard")
MANY = 12
"""Truths of a family for errors of single runs, of which four say too little."""

Judge = Callable[..., Sequence[Verdict]]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Truths of a family, each calibrated once."""

    @cache
    def of_seed(family: str, seed: int) -> Verdict:
        return judged(truth(family, seed), tmp_path_factory.mktemp(family), methods=(CALIBRATED,))

    def found(family: str, count: int = len(SEEDS)) -> list[Verdict]:
        return [of_seed(family, seed) for seed in range(count)]

    return found


def rows(found: Sequence[Verdict], region: str) -> list[Row]:
    return [row for one in found for row in one.rows if row.region == region]


def errors(found: Sequence[Row]) -> tuple[float, float]:
    """Median errors: of the runtime, relative, and of the parallel efficiency."""
    gaps = [row.metrics[TOP].error for row in found]
    return float(np.median([row.error for row in found])), float(np.median(gaps))


def held(found: Sequence[Row] | Sequence[Compared]) -> list[bool]:
    """Whether each interval that is printed holds what was measured of the run."""
    return [one for row in found if (one := row.said.covers(row.measured)) is not None]


def most_are_below(bound: float, found: Sequence[float]) -> bool:
    """Whether the median of many may be below a bound, of which these are a few."""
    return binomial([one < bound for one in found])[1] >= 0.5


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_inside_are_small(family: str, verdicts: Judge) -> None:
    found = rows(verdicts(family, MANY), "inside")

    assert most_are_below(0.04, [row.error for row in found])
    assert most_are_below(0.02, [row.metrics[TOP].error for row in found])


@pytest.mark.long
def test_errors_inside_of_moderate_truths_are_small(verdicts: Judge) -> None:
    runtime, efficiency = errors(rows(verdicts("moderate"), "inside"))

    assert runtime < 0.04
    assert efficiency < 0.02


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_inside_hold_as_many_runs_as_they_say(family: str, verdicts: Judge) -> None:
    found = rows(verdicts(family), "inside")
    low, high = binomial(held(found))

    assert len(held(found)) == len(found)
    assert low <= 0.97
    assert high >= 0.85


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_of_the_efficiency_inside_hold_as_many_runs_as_they_say(
    family: str, verdicts: Judge
) -> None:
    found = [row.metrics[TOP] for row in rows(verdicts(family), "inside")]
    low, high = binomial(held(found))

    assert low <= 0.97
    assert high >= 0.85


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_inside_are_narrow(family: str, verdicts: Judge) -> None:
    found = rows(verdicts(family), "inside")

    assert np.median([row.said.half_width or 0.0 for row in found]) < 0.12


@pytest.mark.parametrize(
    ("family", "runtime", "efficiency"), [("moderate", 0.10, 0.06), ("hard", 0.20, 0.15)]
)
def test_errors_at_four_times_the_processes(
    family: str, runtime: float, efficiency: float, verdicts: Judge
) -> None:
    found = errors(rows(verdicts(family), "P x 4"))

    assert found[0] < runtime
    assert found[1] < efficiency


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_at_eight_times_the_processes_hold_or_are_not_there(
    family: str, verdicts: Judge
) -> None:
    found = held(rows(verdicts(family), "P x 8"))

    assert not found or binomial(found)[1] >= 0.8


@pytest.mark.long
def test_irregular_programs_at_eight_times_the_processes(verdicts: Judge) -> None:
    found = rows(verdicts("irregular"), "P x 8")

    assert most_are_below(0.20, [row.error for row in found])
    assert len(held(found)) == len(found)
    assert binomial(held(found))[1] >= 0.85


def decisions(verdicts: Judge) -> list[Decision]:
    return [each for family in FAMILIES for one in verdicts(family) for each in one.decisions]


def test_splits_lose_little(verdicts: Judge) -> None:
    found = [one.found for one in decisions(verdicts)]

    assert np.mean(found) < 0.03
    assert np.quantile(found, 0.9) < 0.10


def test_splits_lose_as_much_as_is_announced(verdicts: Judge) -> None:
    taken = decisions(verdicts)
    gaps = np.array([one.found - (one.announced or 0.0) for one in taken])
    chance = gaps.std(ddof=1) / np.sqrt(len(gaps))  # of the mean over so few truths

    assert all(one.announced is not None for one in taken)
    assert abs(gaps.mean()) < 0.01 + END * chance


def test_splits_are_not_worse_than_processes_alone(verdicts: Judge) -> None:
    alone = [one.default for family in FAMILIES for one in verdicts(family)]

    assert np.mean([one.found for one in decisions(verdicts)]) <= np.mean(alone)


def test_calibration_takes_seconds(verdicts: Judge) -> None:
    assert np.median([one.seconds for one in verdicts("moderate")]) < 5


@pytest.fixture(scope="module")
def disturbed(verdicts: Judge, tmp_path_factory: pytest.TempPathFactory) -> list[Poisoned]:
    """Truths of which one run of six took twice as long."""
    folder = tmp_path_factory.mktemp("disturbed")
    return [poisoned(one.truth, folder, one.calibrated) for one in verdicts("moderate")]


@pytest.mark.long
def test_run_that_took_twice_as_long_is_named(disturbed: Sequence[Poisoned]) -> None:
    assert binomial([one.named for one in disturbed])[1] >= 0.8


@pytest.mark.long
def test_run_that_took_twice_as_long_moves_the_answer_less_than_its_interval(
    disturbed: Sequence[Poisoned],
) -> None:
    assert all(one.moved < 1 for one in disturbed)


@pytest.mark.long
def test_hardly_any_other_run_is_suspected(disturbed: Sequence[Poisoned]) -> None:
    assert np.mean([one.alarms for one in disturbed]) / 6 < 0.1


def test_constants_of_the_model_itself_are_recovered(tmp_path: Path) -> None:
    found: list[Recovered] = [one for seed in SEEDS for one in recovered(seed, tmp_path)]
    inside = [bool(one.after.covers(one.true)) for one in found]
    narrower = [
        (one.after.half_width or 0.0) <= 1.05 * (one.before.half_width or 0.0) for one in found
    ]

    low, high = binomial(inside)
    assert low <= 0.97
    assert high >= 0.9
    assert np.mean(narrower) > 0.9
