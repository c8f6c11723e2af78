"""Configurations foretold from the others: as a fit without them would."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from calibration.small import CONSTANTS, SPLITS, drawn, fitted, program, runs
from scipy import stats

from popmodel.calibration.cross_validation import left_out, sizes_left_out
from popmodel.calibration.fit import CalibrationFit, linear, log_runtimes, solved
from popmodel.runs.measurement import MeasuredRow


def given_runs(seed: int = 3) -> list[MeasuredRow]:
    rng = np.random.default_rng(seed)
    law = {"law.loops": 0.5, "law.loops of 2 x 4": 1.0}
    return runs(program(), drawn(rng, program()), rng=rng, errors=law, metrics=True)


@pytest.fixture(scope="module")
def found() -> CalibrationFit:
    return fitted(program(), given_runs())


def test_every_configuration_is_foretold_once(found: CalibrationFit) -> None:
    results = left_out(found)
    assert [one.configuration for one in results] == list(range(len(SPLITS)))
    measured = [run.runtime for run in found.problem.runs]
    assert [one.measured for one in results] == [(one,) for one in measured]
    for one in results:
        assert one.errors == (math.log(one.measured[0] / one.value),)


@pytest.mark.parametrize("number", range(len(SPLITS)))
def test_it_is_what_a_fit_without_its_runs_says(found: CalibrationFit, number: int) -> None:
    problem = found.problem
    asked = problem.configurations[number]
    there = replace(
        problem, configurations=tuple(one for one in problem.configurations if one is not asked)
    )
    means = found.means
    for _ in range(8):
        at = linear(there, means, found.noise)
        means, covariance = solved(at, means, problem.prior, problem.bounds)
    refitted = replace(found, problem=there, means=means, covariance=covariance, linear=at)
    (log,), (slope,) = log_runtimes(refitted, [asked])
    deviation = math.sqrt(float(slope @ covariance @ slope) + found.noise**2)
    said = left_out(found)[number]

    assert abs(math.log(said.value) - log) < 0.1 * deviation
    assert said.deviation == pytest.approx(deviation, rel=0.1)


def test_in_a_linear_model_it_is_exactly_that(found: CalibrationFit) -> None:
    at, means, problem = found.linear, found.means, found.problem
    said = left_out(found)
    runtimes, slopes = found.runtimes
    for one, configuration in zip(said, problem.configurations, strict=True):
        # runs that vary without end are not there
        nothing = at.blurred(np.isin(at.run, configuration.runs), 1e9)
        scores, covariance = solved(nothing, means, problem.prior, problem.bounds)
        slope = slopes[one.configuration]
        value = runtimes[one.configuration] * math.exp(float(slope @ (scores - means)))
        assert one.value == pytest.approx(value)
        variance = float(slope @ covariance @ slope) + found.noise**2
        assert one.deviation == pytest.approx(math.sqrt(variance))


def test_density_is_that_of_the_normal_distribution(found: CalibrationFit) -> None:
    at, means, problem = found.linear, found.means, found.problem
    for one, configuration in zip(left_out(found), problem.configurations, strict=True):
        mine = np.isin(at.run, configuration.runs)
        precision = np.diag(problem.prior**-2.0) + at.slope[~mine].T @ at.slope[~mine]
        scores, _ = solved(at.only(~mine), means, problem.prior, problem.bounds)
        gap = at.gap[mine] - at.slope[mine] @ (scores - means)
        inside = at.slope[mine] @ np.linalg.inv(precision) @ at.slope[mine].T + np.eye(mine.sum())
        density = stats.multivariate_normal.logpdf(gap, cov=inside)
        constant = mine.sum() * 0.5 * math.log(2 * math.pi) - np.log(at.unit[mine]).sum()
        assert one.density == pytest.approx(density + constant)


def test_another_prior_is_one_in_which_less_is_known(found: CalibrationFit) -> None:
    wide = left_out(found, found.problem.prior * 3)
    for one, other in zip(left_out(found), wide, strict=True):
        assert other.deviation > one.deviation


def test_repeats_of_a_configuration_are_left_out_together() -> None:
    made = given_runs()
    rng = np.random.default_rng(4)
    twice = fitted(program(), [*made, *runs(program(), {}, SPLITS[:1], rng, metrics=True)])
    said = left_out(twice)
    assert len(said) == len(SPLITS)
    assert len(said[0].measured) == 2
    assert len(said[0].errors) == 2


def test_a_fit_to_all_is_nearer_than_what_is_foretold(found: CalibrationFit) -> None:
    runtimes, _ = found.runtimes
    inside = [
        abs(math.log(run.runtime / one))
        for run, one in zip(found.problem.runs, runtimes, strict=True)
    ]
    outside = [abs(one.errors[0]) for one in left_out(found)]
    assert np.mean(inside) < np.mean(outside)
    assert linear(found.problem, found.means, found.noise).gap == pytest.approx(found.linear.gap)


def of_two_sizes(exponent: float) -> CalibrationFit:
    """Runs of two sizes, whose times grow as a power of N that the signature takes for 1."""
    signature = program()
    made = []
    for size in (1e6, 4e6):
        rate = CONSTANTS["rate"] * (size / 1e6) ** (exponent - 1)
        some = runs(signature, {"N": size, "rate": rate}, metrics=True)
        made += [replace(one, parameters={"N": size}) for one in some]
    return fitted(signature, made)


def test_runs_of_one_size_leave_no_size_out(found: CalibrationFit) -> None:
    assert sizes_left_out(found) == []


def test_each_size_is_foretold_from_the_other() -> None:
    one = of_two_sizes(1.0)
    results = sizes_left_out(one)
    assert sorted(each.configuration for each in results) == list(range(2 * len(SPLITS)))
    assert max(abs(each.errors[0]) for each in results) < 0.05


def test_a_law_of_the_size_that_is_wrong_shows_where_sizes_are_left_out_only() -> None:
    one = of_two_sizes(1.4)
    alone = np.median([abs(each.errors[0]) for each in left_out(one)])
    sizes = np.median([abs(each.errors[0]) for each in sizes_left_out(one)])
    assert sizes > 3 * alone


def test_a_size_that_is_left_out_is_what_a_fit_without_it_says() -> None:
    one = of_two_sizes(1.0)
    problem = one.problem
    group = [n for n, each in enumerate(problem.configurations) if each.study.values["N"] == 4e6]
    kept = tuple(each for n, each in enumerate(problem.configurations) if n not in group)
    there, means = replace(problem, configurations=kept), one.means
    for _ in range(8):
        at = linear(there, means, one.noise)
        means, covariance = solved(at, means, problem.prior, problem.bounds)
    refitted = replace(one, problem=there, means=means, covariance=covariance, linear=at)
    logs, _ = log_runtimes(refitted, [problem.configurations[n] for n in group])
    said = {each.configuration: each for each in sizes_left_out(one)}
    for number, log in zip(group, logs, strict=True):
        assert abs(math.log(said[number].value) - log) < 0.2 * said[number].deviation
