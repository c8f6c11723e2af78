"""The most likely scores of uncertain inputs given measured runs, and what they leave open.

The model of a prediction is also the model of the measurement: scores that are standard normal
before anything was measured, run times that vary from run to run. The posterior is taken as normal
around its maximum (Laplace), which Gauss-Newton steps find. How large the own part of the errors of
laws is, the evidence says (type II maximum likelihood, D. MacKay, Neural Comput. 4 (1992) 415).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import dataclass
from popmodel.fit.problem import OWN, RUNTIME, WILD, Configuration, Problem
from popmodel.fit.samples import Array
from popmodel.model.model_error import ACTIVE, SIZE
from popmodel.runs.measurement import MeasuredRow

_STEP = 0.05  # of a score, for derivatives
_ROUNDS = 12
_DONE = 0.01  # of a score: a step that is shorter changes nothing
_LONGEST = 2.0  # of a score, in one step
_MOVES = 0.05  # of what a run varies by: a score that moves nothing by more is not looked at
_WAITED = 0.1  # least deviation of the logarithm of a run whose threads waited for CPUs
_SIZED = 4  # rounds in which the sizes of errors are looked at
_ROUNDS_OF_SIZES = 2
# what six runs cannot tell is likely beforehand as large as makes 90 % intervals hold about 90 %
# of the runs of programs that have other laws: tests/benchmarks/calibration.py
_LIKELY = {OWN: 0.5, SIZE: 0.09, ACTIVE: 0.09}
_SPREAD = math.log(1.7)  # of the logarithm of these
_FACTORS = 10 ** (np.arange(-4, 5) / 4)  # that are tried
_USUAL = 0.02  # noise from run to run
_AS_GOOD_AS = 4  # repeats
_MIDDLE = 0.6745  # median of the sizes of standard normal values
_FAR = 0.2
_DEVIATIONS = 4.0


class Linear(NamedTuple):
    """Runs near some scores: what they say, as a linear function of the scores."""

    run: NDArray[np.int64]  # int64[m]: Number of the run of each row
    gap: Array  # float64[m]: Measured less modelled, in standard deviations from run to run
    slope: Array  # float64[m, n]: By how much the modelled value changes, in the same
    unit: Array  # float64[m]: That standard deviation: of a logarithm, or of a part of the runtime
    # float64[m]: By how much the modelled value changes with the logarithm of all times of the run.
    whole: Array

    def only(self, kept: NDArray[np.bool_]) -> Linear:
        """Return some of the rows."""
        return Linear(
            self.run[kept], self.gap[kept], self.slope[kept], self.unit[kept], self.whole[kept]
        )

    def blurred(self, rows: NDArray[np.bool_], factor: float) -> Linear:
        """Return the same, as if some rows varied more from run to run."""
        by = np.where(rows, factor, 1.0)
        return Linear(
            self.run, self.gap / by, self.slope / by[:, None], self.unit * by, self.whole / by
        )


@dataclass(frozen=True)
class CalibrationFit:
    """The scores that runs have left."""

    problem: Problem  # With replays at these scores
    means: Array  # float64[n]: Scores
    covariance: Array  # float64[n, n]: What is left open
    noise: float  # Standard deviation of the logarithm of a runtime from run to run
    linear: Linear  # The runs around the means
    # Logarithm of the probability of the runs, all scores taken into account, and of the sizes of
    # what they have for themselves.
    evidence: float

    @cached_property
    def runtimes(self) -> tuple[Array, Array]:
        """Runtime of every configuration, s, and the slopes of its logarithm.

        float64[configurations] and float64[configurations, names].
        """
        logs, slopes = log_runtimes(self, self.problem.configurations)
        return np.exp(logs), slopes


def log_runtimes(
    fitted: CalibrationFit, configurations: Sequence[Configuration]
) -> tuple[Array, Array]:
    """Return the logarithm of the runtime of configurations, and its slopes along the scores."""
    points, steps = _around(fitted.problem, fitted.means)
    values = [parts[RUNTIME] for parts in fitted.problem.modelled(points, configurations)]
    logs = np.log(np.array(values).reshape(len(configurations), len(points)))
    return logs[:, 0], (logs[:, 1:] - logs[:, :1]) / steps


def _around(problem: Problem, means: Array) -> tuple[Array, Array]:
    """Scores, and each a step away from the largest that it may be, for derivatives."""
    steps = np.where(means + _STEP > problem.bounds[1], -_STEP, _STEP)
    return means + np.concatenate([np.zeros((1, len(means))), np.diag(steps)]), steps


def linear(problem: Problem, means: Array, noise: float) -> Linear:
    """Compare runs with the model near some scores.

    Times of the runtime and of what is computed are compared by their logarithm, losses, which may
    be nothing, as parts of the runtime.
    """
    points, steps = _around(problem, means)
    rows, gaps, slopes, units, wholes = [], [], [], [], []
    for configuration, values in zip(problem.configurations, problem.modelled(points), strict=True):
        for number in configuration.runs:
            run = problem.runs[number]
            longer = problem.longer(number, points)
            for part in problem.parts[number]:
                modelled = values[part.name] * longer
                if part.absolute == 0:  # the runtime and useful time: never 0
                    deviation, whole = noise * part.relative, 1.0
                    gap = math.log(part.seconds / modelled[0])
                    slope = np.log(modelled[1:] / modelled[0]) / steps
                else:
                    # relative to what is larger, so that a wrong model is not a sure one
                    larger = max(part.seconds, float(modelled[0]))
                    share = part.relative * larger / run.runtime
                    deviation = noise * math.hypot(share, part.absolute)
                    gap = (part.seconds - modelled[0]) / run.runtime
                    slope = (modelled[1:] - modelled[0]) / (steps * run.runtime)
                    whole = float(modelled[0]) / run.runtime
                deviation *= WILD / noise if number in problem.in_part else 1.0
                deviation *= math.hypot(1.0, _disturbance(run) / noise)
                rows.append(number)
                units.append(deviation)
                gaps.append(gap / deviation)
                slopes.append(slope / deviation)
                wholes.append(whole / deviation)
    return Linear(
        np.array(rows), np.array(gaps), np.array(slopes), np.array(units), np.array(wholes)
    )


def _disturbance(run: MeasuredRow) -> float:
    """How much longer a run may be whose threads waited for CPUs: deviation of the logarithm."""
    return max(run.waited or 0.0, _WAITED) if run.disturbed else 0.0


def solved(
    at: Linear, means: Array, prior: Array, bounds: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the most likely scores of a linear model, and the covariance around them.

    Notes
    -----
    The covariance is that without bounds: a score that is held at 0 may be above.
    """
    precision = at.slope.T @ at.slope + np.diag(prior**-2.0)
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    aim = at.slope.T @ (at.gap + at.slope @ means)
    scores: Array = covariance @ aim
    low, high = bounds
    if ((scores < low) | (scores > high)).any():
        from scipy.optimize import lsq_linear

        root = np.linalg.cholesky(precision)  # exact by active sets
        scores = lsq_linear(root.T, np.linalg.solve(root, aim), bounds, "bvls", 1e-14).x
        scores = np.clip(scores, low, high)  # its last step rounds below a bound
    return scores, covariance


def evidence(at: Linear, means: Array, prior: Array, scales: Array | None = None) -> Array:
    """Return the logarithm of the probability density of what was measured, but for a constant.

    For several scales of the scores, float64[k, n], by which slopes are longer; float64[k].
    """
    by = np.ones((1, len(means))) if scales is None else scales
    slope = at.slope * by[:, None]
    spread = slope * prior
    covariance = spread @ spread.swapaxes(-1, -2) + np.eye(len(at.gap))
    gap = at.gap[:, None] + slope @ (means / by)[..., None]
    root = np.linalg.cholesky(covariance)
    inside = np.linalg.solve(root, gap)[..., 0]
    volume = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=1)
    density: Array = -0.5 * (inside**2).sum(axis=1) - volume - np.log(at.unit).sum()
    return density


def fit(problem: Problem, noise: float, start: Array | None = None) -> CalibrationFit:
    """Find the most likely scores, and how large the errors are that each run has for itself."""
    means = np.clip(np.zeros(len(problem.names)) if start is None else start, *problem.bounds)
    at = linear(problem, means, noise)
    for number in range(_ROUNDS):
        if number < _SIZED:
            problem, at, means = _sized(problem, at, means)
        aim, _ = solved(at, means, problem.prior, problem.bounds)
        step = np.clip(aim - means, -_LONGEST, _LONGEST)
        means = means + step
        at = linear(problem, means, noise)
        if np.abs(step).max(initial=0.0) < _DONE:
            break
    _, covariance = solved(at, means, problem.prior, problem.bounds)
    total = float(evidence(at, means, problem.prior)[0]) + sum(
        _log_prior(kind, size) for kind, size in problem.sizes.items()
    )
    return CalibrationFit(problem, means, covariance, noise, at, total)


def relevant(problem: Problem, noise: float) -> Problem:
    """Return a problem without the names on which what was measured hardly depends.

    Residual terms stay: what the runs cannot tell may be there all the same.
    """
    at = linear(problem, np.zeros(len(problem.names)), noise)
    moves = np.abs(at.slope).max(axis=0, initial=0.0) * np.maximum(problem.prior, 1.0)
    return problem.with_names((moves > _MOVES) | problem.positive)


def _log_prior(kind: str, size: float) -> float:
    """Return the logarithm of how likely a size is beforehand, but for a constant."""
    return -0.5 * (math.log(size / _LIKELY[kind]) / _SPREAD) ** 2


def _sized(problem: Problem, at: Linear, means: Array) -> tuple[Problem, Linear, Array]:
    """Choose the sizes of what runs have for themselves by the evidence, one after the other."""
    for _ in range(_ROUNDS_OF_SIZES):
        for kind in problem.sizes:
            columns, size = problem.of_size(kind), problem.sizes[kind]
            scales = np.where(columns, _FACTORS[:, None], 1.0)
            likely = evidence(at, means, problem.prior, scales)
            likely = likely + [_log_prior(kind, size * by) for by in _FACTORS.tolist()]
            best = float(_FACTORS[np.argmax(likely)])
            scale = np.where(columns, best, 1.0)
            at, means = at._replace(slope=at.slope * scale), means / scale
            problem = problem.with_size(kind, size * best)
    return problem, at, means


def noise_of(problem: Problem) -> float:
    """Return how much runtimes vary from run to run, as repeats tell, or else as is usual.

    A standard deviation of the logarithm. Four repeats' worth of what is usual are added. Of many
    repeats a few may be far off: farther than the others vary, they say nothing of the noise.
    """
    repeats = [np.full(_AS_GOOD_AS, _USUAL * _MIDDLE)]
    for configuration in problem.configurations:
        runs = [problem.runs[number] for number in configuration.runs]
        logs = np.log([run.runtime for run in runs if not run.disturbed])
        if len(logs) > 1:  # from the median: one is none, or of two both are alike
            gaps = np.sort(np.abs(logs - np.median(logs)))[1:]
            repeats.append(gaps * math.sqrt(2) if len(logs) == 2 else gaps)
    every, usual = np.concatenate(repeats), _USUAL**2 * _AS_GOOD_AS
    far = max(_FAR, _DEVIATIONS * float(np.median(every)) / _MIDDLE)
    measured = every[_AS_GOOD_AS:][every[_AS_GOOD_AS:] < far]
    return math.sqrt((usual + float(np.sum(measured**2))) / (_AS_GOOD_AS + len(measured)))


# Runs that do not fit the others: found by what they would do to the rest, named, never dropped. A
# run that something disturbed is any length too long: in all that it does, as when other programs
# share its cores, or in a part, as when one thread had to wait. Each run in turn is supposed to be
# one: all of its times have a factor that nobody knows; or none of them says more than an order of
# magnitude. Where that makes all runs together more probable by far more than such a thing is
# improbable, the run is a suspect.

_RARE = 0.1
"""How probable it is that a run was disturbed, before anything is known of it."""
_ODDS = math.log(_RARE / (1 - _RARE))
_PROBABLE = 1 / 3
"""How probable it has to be for the run to be named: a disturbed run among the good ones does more
harm than a good one too few, so that less than even odds are enough."""
_MISSED = 6.0
"""By how much the linear model may miss the logarithm of the evidence of a suspicion."""
_TRIED = 2


class Outlier(NamedTuple):
    """A run that does not fit the others."""

    run: int  # Its number
    probability: float  # That something disturbed it
    factor: float  # Its runtime over what the other runs say of it


def robust(problem: Problem, noise: float) -> tuple[CalibrationFit, tuple[Outlier, ...]]:
    """Fit runs of which some may have been disturbed.

    At most a third of the runs are suspected: of more nobody can tell which are the good ones.
    """
    best = fit(problem, noise)
    suspects: list[tuple[int, float]] = []
    for _ in range(len(problem.runs) // 3):
        start = np.append(best.means, 0.0)
        trials = [fit(trial, noise, start) for trial in _likely_suspicions(best)]
        likeliest = max(trials, key=lambda trial: trial.evidence, default=None)
        if likeliest is None:
            break
        odds = likeliest.evidence - best.evidence + _ODDS
        if odds < math.log(_PROBABLE / (1 - _PROBABLE)):
            break
        suspects.append((likeliest.problem.outliers[-1], 1 / (1 + math.exp(-odds))))
        best = likeliest
    if not suspects:
        return best, ()
    said = {
        number: float(values[RUNTIME][0])
        for configuration, values in zip(
            best.problem.configurations, best.problem.modelled(best.means[None]), strict=True
        )
        for number in configuration.runs
    }
    return best, tuple(
        Outlier(number, probability, best.problem.runs[number].runtime / said[number])
        for number, probability in suspects
    )


def _likely_suspicions(fitted: CalibrationFit) -> list[Problem]:
    """Suspicions that would help most, as far as a linear model tells: of runs and of parts."""
    at, problem = fitted.linear, fitted.problem
    means, prior = np.append(fitted.means, 0.0), np.append(problem.prior, WILD)
    gains = {}
    for number in range(len(problem.runs)):
        if number in problem.outliers:
            continue
        mine = at.run == number
        longer = at._replace(slope=np.column_stack([at.slope, np.where(mine, at.whole, 0.0)]))
        gains[number, False] = float(evidence(longer, means, prior)[0])
        blurred = longer.blurred(mine, WILD / fitted.noise)
        gains[number, True] = float(evidence(blurred, means, prior)[0])
    enough = fitted.evidence - _ODDS - _MISSED
    best = sorted((key for key in gains if gains[key] > enough), key=lambda key: -gains[key])
    return [problem.with_outlier(number, in_part=in_part) for number, in_part in best[:_TRIED]]
