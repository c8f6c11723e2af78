"""The fit: constants that are known come back, its steps and bounds are those of other solvers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from fit.small import NOISE, SPLITS, drawn, fitted, program, ready, runs
from hypothesis import given
from hypothesis import strategies as st
from truth.judged import binomial

from popmodel.fit.problem import RUNTIME
from popmodel.fit.scores import (
    CalibrationFit,
    Linear,
    evidence,
    linear,
    noise_of,
    robust,
    solved,
)
from popmodel.machines.quantity import END
from popmodel.runs.measurement import MeasuredRow

DRAWS = 30


def scores_of(constants: dict[str, float]) -> dict[str, float]:
    """Scores of constants that are stated by a factor of two to either side."""
    given = program().constants
    return {
        f"constants.{name}": END * math.log2(value / given[name].value)
        for name, value in constants.items()
    }


def standard(found: CalibrationFit, true: dict[str, float]) -> list[float]:
    """By how many of its deviations each score is off."""
    deviations = np.sqrt(np.diag(found.covariance))
    numbers = {name: number for number, name in enumerate(found.problem.names)}
    return [
        float((found.means[numbers[name]] - value) / deviations[numbers[name]])
        for name, value in true.items()
        if name in numbers
    ]


def errors(rng: np.random.Generator) -> dict[str, float]:
    """Errors of laws, in all splits and in each."""
    laws = ("law.loops", "law.messages")
    own = [f"{law} of {p} x {t}" for law in laws for p, t in SPLITS]
    return {name: float(rng.standard_normal()) for name in (*laws, *own)}


@pytest.mark.long
@pytest.mark.parametrize("metrics", [False, True], ids=["runtimes", "metrics"])
def test_intervals_of_constants_hold_them_as_often_as_they_say(metrics: bool) -> None:
    off: list[float] = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        true = drawn(rng, program())
        made = runs(program(), true, rng=rng, errors=errors(rng), metrics=metrics)
        off += standard(fitted(program(), made), scores_of(true))
    low, high = binomial([abs(one) < END for one in off])

    assert len(off) == 3 * DRAWS
    assert low <= 0.95
    assert high >= 0.87
    assert abs(np.mean(off)) < 3 / math.sqrt(len(off))


def given_fit(seed: int = 1, metrics: bool = True) -> CalibrationFit:
    rng = np.random.default_rng(seed)
    made = runs(program(), drawn(rng, program()), rng=rng, errors=errors(rng), metrics=metrics)
    return fitted(program(), made)


def misfit(found: CalibrationFit, scores: np.ndarray) -> np.ndarray:
    """Standardised differences of the runs, and of the scores from what was known before."""
    at = linear(found.problem, scores, found.noise)
    # in the deviations of the fit: what is modelled changes them a little
    return np.concatenate([at.gap * at.unit / found.linear.unit, scores / found.problem.prior])


@pytest.mark.long
def test_the_most_likely_scores_are_those_of_another_solver() -> None:
    found = given_fit()
    ends = np.where(found.problem.positive, 0.0, -np.inf)
    there = scipy.optimize.least_squares(
        lambda scores: misfit(found, scores),
        np.maximum(found.means, ends + 1e-9) * 0.8,
        bounds=(ends - 1e-12, np.inf),
        diff_step=1e-4,
        max_nfev=8,
    )
    gap = np.abs(there.x - found.means) / np.sqrt(np.diag(found.covariance))

    assert float(np.sum(misfit(found, found.means) ** 2)) <= 2 * there.cost * 1.002 + 1e-3
    assert gap.max() < 0.1


@pytest.mark.long
def test_the_covariance_is_the_inverse_of_the_curvature() -> None:
    found = given_fit()
    slopes = np.empty((len(misfit(found, found.means)), len(found.means)))
    for number, score in enumerate(found.means):
        above, below = found.means.copy(), found.means.copy()
        above[number] += 0.02
        # a term takes time or none: there is no slope below 0
        below[number] -= min(score, 0.02) if found.problem.positive[number] else 0.02
        gap = misfit(found, above) - misfit(found, below)
        slopes[:, number] = gap / (above - below)[number]
    expected = np.linalg.inv(slopes.T @ slopes)
    scale = np.sqrt(np.diag(expected))

    np.testing.assert_allclose(
        found.covariance / np.outer(scale, scale), expected / np.outer(scale, scale), atol=0.05
    )


Bounds = tuple[np.ndarray, np.ndarray]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Linear, np.ndarray, np.ndarray, Bounds]:
    """Linear models with random runs, priors and bounds."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 8))
    slope = rng.normal(size=(rows, columns)) * np.exp(rng.normal(size=columns))
    if columns > 1 and draw(st.booleans()):
        slope[:, 0] = -slope[:, 1]
    ones = np.ones(rows)
    at = Linear(np.zeros(rows, np.int64), 3 * rng.normal(size=rows), slope, ones, ones)
    prior = np.exp(rng.normal(size=columns))
    low = np.where(rng.random(columns) < 0.6, 0.0, -np.inf)
    high = np.where(rng.random(columns) < 0.4, rng.exponential(size=columns), np.inf)
    return at, rng.normal(size=columns), prior, (low, high)


@given(problems())
def test_bounded_scores_are_those_of_another_solver(
    problem: tuple[Linear, np.ndarray, np.ndarray, Bounds],
) -> None:
    at, means, prior, bounds = problem
    found, covariance = solved(at, means, prior, bounds)
    whole = np.concatenate([at.slope, np.diag(1 / prior)])
    aim = np.concatenate([at.gap + at.slope @ means, np.zeros(len(prior))])
    there = scipy.optimize.minimize(
        lambda x: 0.5 * np.sum((whole @ x - aim) ** 2),
        np.clip(np.zeros(len(prior)), *bounds),
        jac=lambda x: whole.T @ (whole @ x - aim),
        bounds=list(zip(*bounds, strict=True)),
        method="L-BFGS-B",
        options={"ftol": 0, "gtol": 1e-10, "maxiter": 100_000, "maxfun": 100_000},
    )

    assert (found >= bounds[0]).all()
    assert (found <= bounds[1]).all()
    cost = 0.5 * np.sum((whole @ found - aim) ** 2)
    assert cost <= there.fun * (1 + 1e-9) + 1e-12
    np.testing.assert_allclose(found, there.x, atol=1e-4)
    np.testing.assert_allclose(covariance @ (whole.T @ whole), np.eye(len(prior)), atol=1e-6)


@given(problems())
def test_evidence_is_the_density_of_all_that_was_measured(
    problem: tuple[Linear, np.ndarray, np.ndarray, Bounds],
) -> None:
    at, means, prior, _ = problem
    at = at._replace(unit=np.full(len(at.gap), 0.02))
    covariance = at.slope @ np.diag(prior**2) @ at.slope.T + np.eye(len(at.gap))
    measured = at.gap + at.slope @ means
    density = scipy.stats.multivariate_normal.logpdf(measured, cov=covariance)
    constant = len(at.gap) * (0.5 * math.log(2 * math.pi) - math.log(0.02))

    assert evidence(at, means, prior)[0] == pytest.approx(density + constant)


def test_errors_of_laws_are_as_large_as_the_runs_say() -> None:
    true = {"rate": 2e-9}
    quiet = fitted(program(), runs(program(), true, metrics=True))
    wild = {f"law.loops of {p} x {t}": 4.0 * (-1) ** k for k, (p, t) in enumerate(SPLITS)}
    loud = fitted(program(), runs(program(), true, errors=wild | {"law.loops": 0}, metrics=True))

    assert loud.problem.own > 2 * quiet.problem.own


def test_a_fit_sees_missing_times_as_large_as_their_scores() -> None:
    """What runs may hide is in draws of what was learnt, not in the model that is fitted."""
    problem = ready(program(), runs(program(), {}))
    points = np.zeros((3, len(problem.names)))
    points[:, problem.names.index("residual.processes")] = 0.0, 1.0, 4.0
    _, on_four, *_ = problem.modelled(points)
    none, one, four = on_four[RUNTIME]
    assert four - none == pytest.approx(4 * (one - none))
    assert one > none


def test_names_on_which_no_run_depends_are_not_looked_at() -> None:
    alone = runs(program(), {}, ((1, 1), (1, 1), (1, 2)))
    problem = ready(program(), alone)
    assert "constants.size" not in problem.names
    assert "constants.rate" in problem.names


def repeated(*runtimes: float) -> list[MeasuredRow]:
    (one,) = runs(program(), {}, ((4, 1),))
    return [replace(one, runtime=runtime) for runtime in runtimes]


def test_noise_without_repeats_is_the_usual_one() -> None:
    assert noise_of(ready(program(), repeated(1.0))) == pytest.approx(NOISE)


def test_noise_is_that_of_the_repeats() -> None:
    rng = np.random.default_rng(0)
    made = repeated(*np.exp(0.06 * rng.standard_normal(60)))
    assert noise_of(ready(program(), made)) == pytest.approx(0.06, rel=0.25)


def test_noise_is_not_that_of_one_run_that_is_far_off() -> None:
    made = repeated(1.0, 1.01, 0.99, 2.0)
    assert noise_of(ready(program(), made)) < 0.025


def test_no_more_than_a_third_of_the_runs_are_suspected() -> None:
    rng = np.random.default_rng(0)
    made = runs(program(), drawn(rng, program()), rng=rng, errors=errors(rng), metrics=True)
    wild = [
        replace(run, runtime=run.runtime * math.exp(1.5 * rng.standard_normal())) for run in made
    ]
    two = [made[0], replace(made[1], runtime=made[1].runtime * 5)]
    for some, most in ((wild, len(wild) // 3), (two, 0)):
        problem = ready(program(), some)
        _, outliers = robust(problem, noise_of(problem))
        assert len(outliers) <= most
