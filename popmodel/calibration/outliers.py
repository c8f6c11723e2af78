"""Runs that do not fit the others: found by what they would do to the rest, named, never dropped.

A run that something disturbed is any length too long: in all that it does, as when other programs
share its cores, or in a part, as when one thread had to wait. Each run in turn is supposed to be
one: all of its times have a factor that nobody knows; or none of them says more than an order of
magnitude. Where that makes all runs together more probable by far more than such a thing is
improbable, the run is a suspect.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from popmodel.calibration.fit import CalibrationFit, evidence, fit
from popmodel.calibration.observables import RUNTIME
from popmodel.calibration.problem import WILD, Problem
from popmodel.values import dataclass

_RARE = 0.1
"""How probable it is that a run was disturbed, before anything is known of it."""
_ODDS = math.log(_RARE / (1 - _RARE))
_PROBABLE = 1 / 3
"""How probable it has to be for the run to be named: a disturbed run among the good ones does more
harm than a good one too few, so that less than even odds are enough."""
_FAR = 6.0
"""By how much the linear model may miss the logarithm of the evidence of a suspicion."""
_TRIED = 2


@dataclass(frozen=True)
class Outlier:
    """A run that does not fit the others."""

    run: int  # Its number
    probability: float  # That something disturbed it
    factor: float  # Its runtime over what the other runs say of it


def robust(problem: Problem, noise: float) -> tuple[CalibrationFit, tuple[Outlier, ...]]:
    """Fit runs of which some may have been disturbed.

    At most a third of the runs are suspected: of more nobody can tell which are the good ones.
    """
    best = fit(problem, noise)
    outliers: list[Outlier] = []
    for _ in range(len(problem.runs) // 3):
        start = np.append(best.means, 0.0)
        trials = [fit(one, noise, start) for one in _likely(best)]
        found = max(trials, key=lambda one: one.evidence, default=None)
        if found is None:
            break
        odds = found.evidence - best.evidence + _ODDS
        if odds < math.log(_PROBABLE / (1 - _PROBABLE)):
            break
        outliers.append(Outlier(found.problem.outliers[-1], 1 / (1 + math.exp(-odds)), 1.0))
        best = found
    return best, tuple(replace(one, factor=_factor(best, one.run)) for one in outliers)


def _likely(found: CalibrationFit) -> list[Problem]:
    """Suspicions that would help most, as far as a linear model tells: of runs and of parts."""
    at, problem = found.linear, found.problem
    means, prior = np.append(found.means, 0.0), np.append(problem.prior, WILD)
    gains = {}
    for number in range(len(problem.runs)):
        if number in problem.outliers:
            continue
        mine = at.run == number
        longer = replace(at, slope=np.column_stack([at.slope, np.where(mine, at.whole, 0.0)]))
        gains[number, False] = evidence(longer, means, prior)
        gains[number, True] = evidence(longer.blurred(mine, WILD / found.noise), means, prior)
    enough = found.evidence - _ODDS - _FAR
    best = sorted((key for key in gains if gains[key] > enough), key=lambda key: -gains[key])
    return [problem.with_outlier(number, in_part=in_part) for number, in_part in best[:_TRIED]]


def _factor(found: CalibrationFit, number: int) -> float:
    """Measured runtime of a run over that which the others say."""
    problem = found.problem
    for one, values in zip(
        problem.configurations, problem.modelled(found.means[None]), strict=True
    ):
        if number in one.runs:
            return problem.runs[number].runtime / float(values[RUNTIME][0])
    raise AssertionError("every run has a configuration")
