"""Residual terms: taken where the runs ask for them, as large as they are; else left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration.small import drawn, fitted, program, runs

from popmodel.calibration.fit import CalibrationFit
from popmodel.calibration.term_selection import Term, with_terms
from popmodel.machine.quantity import END

LOG = "residual.log_processes"
DRAWS = 12
SPLITS = ((1, 1), (4, 1), (8, 1), (1, 8), (16, 2), (32, 1))
SMALL = """
[[program]]
loop = { count = 50 }
[[program.body]]
parallel = { trip = "N / P", seconds = "rate" }
[[program.body]]
collective = { op = "allreduce", bytes = 8 }
"""
LARGE = SMALL.replace("bytes = 8", "bytes = 4e3")
"""A collective that the signature does not have, of a size that a prior expects."""

Offered = tuple[CalibrationFit, tuple[Term, ...]]


def offered(seed: int, body: str) -> Offered:
    rng = np.random.default_rng(seed)
    names = ("law.loops", *(f"law.loops of {p} x {t}" for p, t in SPLITS))
    law = {name: float(rng.standard_normal()) for name in names}
    signature = program(SMALL, rate=2e-8)
    true = drawn(rng, signature)
    made = runs(program(body, rate=2e-8), true, SPLITS, rng, law, metrics=True)
    return with_terms(fitted(signature, made))


@pytest.fixture(scope="module")
def missing() -> list[Offered]:
    return [offered(seed, LARGE) for seed in range(DRAWS)]


@pytest.fixture(scope="module")
def complete() -> list[Offered]:
    return [offered(seed, SMALL) for seed in range(DRAWS)]


def taken(found: Offered) -> list[str]:
    return [one.name for one in found[1] if one.is_taken]


@pytest.mark.long
def test_a_collective_that_the_signature_lacks_is_taken(missing: list[Offered]) -> None:
    assert [taken(one) for one in missing] == [[LOG]] * DRAWS


@pytest.mark.long
def test_nothing_is_taken_where_nothing_is_missing(complete: list[Offered]) -> None:
    assert np.mean([len(taken(one)) > 0 for one in complete]) <= 0.1


@pytest.mark.long
def test_every_term_that_runs_may_tell_is_told_of(
    missing: list[Offered], complete: list[Offered]
) -> None:
    for found, terms in (*missing, *complete):
        assert sorted(one.name for one in terms) == sorted(found.problem.residuals)
        assert all(one.is_taken == (one.gain >= 1) for one in terms)


def test_its_amplitude_is_inside_of_its_interval(missing: list[Offered]) -> None:
    small, large = (
        runs(program(body, rate=2e-8), {}, ((8, 1),))[0].runtime for body in (SMALL, LARGE)
    )
    amplitude = (large - small) / 50 / math.log2(8)
    held = []
    for found, _ in missing:
        number = found.problem.names.index(LOG)
        unit = found.problem.residuals[LOG]
        deviation = math.sqrt(found.covariance[number, number]) * unit
        value = found.means[number] * unit
        assert value == pytest.approx(amplitude, rel=0.3)
        assert deviation < 0.3 * amplitude
        held.append(abs(value - amplitude) < END * deviation)
    assert np.mean(held) >= 0.9


def test_a_term_that_is_not_taken_may_be_there_all_the_same(complete: list[Offered]) -> None:
    for found, _ in complete:
        for name in found.problem.residuals:
            number = found.problem.names.index(name)
            assert found.means[number] >= 0
            assert found.covariance[number, number] > 0
