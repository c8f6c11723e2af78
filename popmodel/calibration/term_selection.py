"""Residual terms: looked for, taken only if configurations that are left out ask for them.

A term that the runs do not ask for may be there all the same, and grow where nobody measured: it
stays in the interval, as large as the runs allow.
"""

from __future__ import annotations

from dataclasses import replace

from popmodel.calibration.cross_validation import left_out
from popmodel.calibration.fit import CalibrationFit, fit
from popmodel.calibration.missing_terms import POSSIBLE
from popmodel.calibration.problem import Problem
from popmodel.values import dataclass

_GAIN = 1.0
"""By how much the logarithm of the probability of what is left out must grow: e is some 3."""


@dataclass(frozen=True)
class Term:
    """A residual term that was offered to the fit."""

    name: str  # Of `popmodel.model.residual.RESIDUALS`
    is_taken: bool  # Whether it is part of the model
    # By how much it makes what is left out more probable, all configurations together: the
    # logarithm of a factor.
    gain: float


def with_terms(found: CalibrationFit) -> tuple[CalibrationFit, tuple[Term, ...]]:
    """Take the residual terms that left-out configurations ask for, one after the other."""
    taken: list[Term] = []
    while True:
        gains = _gains(found, {one.name for one in taken})
        best = max(gains, key=lambda name: gains[name], default=None)
        if best is None or gains[best] < _GAIN:
            others = (Term(name, is_taken=False, gain=gain) for name, gain in gains.items())
            return found, (*taken, *others)
        taken.append(Term(best, is_taken=True, gain=gains[best]))
        problem = _taken(found.problem, best)
        found = fit(problem, found.noise, found.means)


def _gains(found: CalibrationFit, taken: set[str]) -> dict[str, float]:
    """What taking each of the other terms would gain."""
    problem = found.problem
    before = sum(one.density for one in left_out(found))
    return {
        name: sum(one.density for one in left_out(found, _taken(problem, name).prior)) - before
        for name in problem.residuals
        if name not in taken
    }


def _taken(problem: Problem, name: str) -> Problem:
    prior = problem.prior.copy()
    prior[problem.names.index(name)] /= POSSIBLE
    return replace(problem, prior=prior)
