"""What a fit says of runs that it does not use: each configuration foretold from the others.

Where runs differ in parameters, such as the size of the problem, each configuration has others of
the same parameters, and is foretold by these: it says little of a size that nobody measured. So
each size is foretold from the other sizes as well.

A linear model around the fit to all of them answers at once; the difference from a fit of its own
is of second order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.calibration.fit import CalibrationFit, solved
from popmodel.values import dataclass

Array = NDArray[np.float64]

_LARGEST = 1e3


@dataclass(frozen=True)
class LeftOut:
    """A configuration foretold from the others."""

    configuration: int  # Its number in `popmodel.calibration.problem.Problem`
    measured: tuple[float, ...]  # Runtimes of its runs, s
    value: float  # Runtime, s, as the other configurations have it
    deviation: float  # Standard deviation of the logarithm of a new run
    density: float  # Logarithm of the probability density of all that was measured of it

    @property
    def errors(self) -> tuple[float, ...]:
        """Logarithms of measured over foretold runtimes."""
        return tuple(math.log(one / self.value) for one in self.measured)


def left_out(found: CalibrationFit, prior: Array | None = None) -> list[LeftOut]:
    """Foretell every configuration from the others."""
    alone = [[number] for number in range(len(found.problem.configurations))]
    return _without(found, alone, found.problem.prior if prior is None else prior)


def sizes_left_out(found: CalibrationFit) -> list[LeftOut]:
    """Foretell the configurations of all parameters from those of other parameters."""
    groups: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for number, one in enumerate(found.problem.configurations):
        groups.setdefault(tuple(sorted(one.study.values.items())), []).append(number)
    return _without(found, list(groups.values()), found.problem.prior) if len(groups) > 1 else []


def error_scale(
    found: CalibrationFit, foretold: Sequence[LeftOut], ignored: Collection[int]
) -> float:
    """Return by how much errors of what is left out exceed what is announced of them, at least 1.

    The root of the mean square of errors over their deviations; some runs may be ignored.
    """
    errors = [
        error / one.deviation
        for one in foretold
        for run, error in zip(
            found.problem.configurations[one.configuration].runs, one.errors, strict=True
        )
        if run not in ignored
    ]
    return max(1.0, math.sqrt(np.mean(np.square(errors)))) if errors else 1.0


def _without(found: CalibrationFit, groups: Sequence[Sequence[int]], prior: Array) -> list[LeftOut]:
    """Foretell groups of configurations, each from the others."""
    results = []
    for group in groups:
        runs = [run for number in group for run in found.problem.configurations[number].runs]
        others = found.linear.only(~np.isin(found.linear.run, runs))
        scores, covariance = solved(others, found.means, prior, found.problem.bounds)
        results += _foretold(found, group, scores, covariance)
    return results


def _foretold(
    found: CalibrationFit, group: Sequence[int], scores: Array, covariance: Array
) -> list[LeftOut]:
    """Say of some configurations what these scores do."""
    problem, at = found.problem, found.linear
    runtimes, slopes = found.runtimes
    moved = scores - found.means
    results = []
    for number in group:
        one = problem.configurations[number]
        mine = np.isin(at.run, one.runs)
        value = runtimes[number] * math.exp(float(slopes[number] @ moved))
        variance = float(slopes[number] @ covariance @ slopes[number]) + found.noise**2
        gap = at.gap[mine] - at.slope[mine] @ moved
        within = at.slope[mine] @ covariance @ at.slope[mine].T + np.eye(int(mine.sum()))
        measured = tuple(problem.runs[run].runtime for run in one.runs)
        density = _density(gap, within) - float(np.log(at.unit[mine]).sum())
        results.append(LeftOut(number, measured, value, math.sqrt(variance), density))
    return results


def _density(gap: Array, covariance: Array) -> float:
    """Logarithm of a normal density, but for a constant."""
    root = np.linalg.cholesky(covariance)
    inside = np.clip(np.linalg.solve(root, gap), -_LARGEST, _LARGEST)
    return float(-0.5 * inside @ inside - np.log(np.diag(root)).sum())
