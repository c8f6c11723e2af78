"""How much the process with the most work has: beside draws of all works, and where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from popmodel.model import chance
from popmodel.model.calibration import Calibration
from popmodel.model.run.course import AVERAGED
from popmodel.model.terms.imbalance import expected_maximum, variance_of_maximum
from popmodel.model.uncertainty import FIRST, Draws, drawn_only

SPREAD = {"persistent_cv": 0.1, "transient_cv": 0.2}


def drawn(count: int = 4000, **means: float) -> Draws:
    names = tuple(means)
    known = Calibration(
        "m", "d", names, np.array(list(means.values())), np.zeros((len(names), len(names)))
    )
    return Draws({}, count, calibration=known)


@pytest.mark.parametrize(
    ("count", "variance"),  # H. L. Harter, N. Balakrishnan, CRC Handbook of Tables, 1996
    [(1, 1.0), (2, 0.681690), (3, 0.559467), (5, 0.447534), (10, 0.344344), (20, 0.275697)],
)
def test_variance_of_the_maximum_is_that_of_tables(count: int, variance: float) -> None:
    assert variance_of_maximum(count) == pytest.approx(variance, abs=2e-6)


@pytest.mark.parametrize("processes", [4, 16, 256])
def test_draws_have_the_ends_of_the_largest_work_of_all_processes(processes: int) -> None:
    rng = np.random.default_rng(processes)
    works = rng.standard_normal((4000, processes))
    most = works.max(axis=1) - works.mean(axis=1)
    found = chance.applied(SPREAD, processes, str(processes), drawn())["persistent_cv"]
    modelled = drawn_only(np.asarray(found)) / 0.1 * expected_maximum(processes)

    at = (0.5, 0.75, 0.95)
    assert np.quantile(modelled, at) == pytest.approx(np.quantile(most, at), rel=0.12)


def test_the_best_estimate_is_the_expected_maximum() -> None:
    found = chance.applied(SPREAD, 8, "8", drawn())
    assert list(np.asarray(found["persistent_cv"])[:FIRST]) == [0.1] * FIRST
    assert found["transient_cv"] == 0.2


def test_a_division_that_runs_have_told_has_what_they_told() -> None:
    name = chance.name_of("8")
    found = chance.applied(SPREAD, 8, "8", drawn(0, **{name: 1.5}))
    assert found["persistent_cv"] == pytest.approx(0.1 * math.exp(1.5 * chance.deviation(8)))


def test_another_division_has_a_chance_of_its_own() -> None:
    one, other = (
        np.log(drawn_only(np.asarray(chance.applied(SPREAD, 8, at, drawn())["persistent_cv"])))
        for at in ("8, N=64", "8, N=128")
    )
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("spread", "processes"),
    [
        (SPREAD, 1),
        ({**SPREAD, AVERAGED: 0.0}, 8),  # what each process has is known
        ({"transient_cv": 0.2}, 8),  # another one has the most in every step
    ],
)
def test_nothing_is_left_to_chance_where_nothing_is_open(
    spread: dict[str, float], processes: int
) -> None:
    assert chance.applied(spread, processes, "8", drawn()) is spread


def test_the_more_processes_the_surer_is_the_largest_work() -> None:
    deviations = [chance.deviation(count) for count in (1, 2, 4, 16, 256, 4096)]
    assert deviations[0] == 0
    assert deviations[1:] == sorted(deviations[1:], reverse=True)
