"""Plain extrapolations of measured run times, which a model has to beat.

Amdahl's law and that of pipelines as in C. Rosas, J. Gimenez and J. Labarta, Supercomput. Front.
Innov. 1(2) (2014) 4; the normal form of one term as in A. Calotoiu et al., SC 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from popmodel.fit.forms import normal
from popmodel.fit.intervals import logarithm
from popmodel.fit.least_squares import fit_two
from popmodel.fit.model_selection import Tried, fitted
from popmodel.fit.samples import Array, Points, Sample, points_of

_SHARES: Array = np.linspace(0.5, 1.0, 2001)


def nearest(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime of the measured run nearest in the logarithms of P and T, s."""
    return _nearest(runs, processes, threads).value


def linear(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime of the nearest run with ideal scaling from there, s."""
    run = _nearest(runs, processes, threads)
    return run.value * run.processes * run.threads / (processes * threads)


def amdahl(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by Amdahl's law of all cores R, ``t (f + (1 - f)/R)``, s.

    With one run, f = 0.
    """
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return linear(runs, processes, threads)
    logs = np.log(points.values)
    fit = fit_two(1 / cores[None], np.ones((1, len(cores))), logs, points.errors)
    share = float(fit.share[0])
    return math.exp(fit.scale[0]) * ((1 - share) / (processes * threads) + share)


def pipe(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by the efficiency of pipelines, ``R/((1 - f) + f (2R - 1))``, s.

    f = 1/2 is ideal scaling, f = 1 half of it for many cores R. With one run, f = 1/2.
    """
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return linear(runs, processes, threads)

    def relative(at: Array | float) -> Array:
        found: Array = ((1 - _SHARES) + _SHARES * (2 * np.atleast_1d(at)[:, None] - 1)) / np.square(
            np.atleast_1d(at)[:, None]
        )
        return found

    gaps = np.log(points.values)[:, None] - np.log(relative(cores))
    weights = points.errors**-2.0
    scales = weights @ gaps / weights.sum()
    best = int((weights @ (gaps - scales) ** 2).argmin())
    return math.exp(scales[best]) * float(relative(processes * threads)[0, best])


def normal_form(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by the best normal form of one term of the cores R, s.

    ``c + d R**i log2(R)**j``, with the powers of `forms.normal`, by the error at points left out,
    or of the fit where there are two. With one run: the nearest.
    """
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return nearest(runs, processes, threads)
    by_cores = Points({"P": cores}, points.values, points.errors, points.freedom, ())
    reference = int(cores.argmax())
    tried = fitted(normal("P", {}), by_cores, reference)

    def order(one: Tried) -> tuple[float, int, float]:
        return one.error if len(cores) > 2 else 0.0, one.size, one.misfit

    found = logarithm(min(tried, key=order), by_cores, reference, {"P": processes * threads})
    return nearest(runs, processes, threads) if found is None else math.exp(found)


BASELINES: Mapping[str, Callable[[Sequence[Sample], int, int], float]] = {
    "nearest": nearest,
    "linear": linear,
    "amdahl": amdahl,
    "pipe": pipe,
    "normal-form": normal_form,
}
"""All baselines by name."""


def baselines(runs: Sequence[Sample], processes: int, threads: int) -> dict[str, float]:
    """Predict a runtime by every baseline."""
    if any(run.parameters != runs[0].parameters for run in runs):
        raise ValueError("baselines extrapolate runs of the same problem")
    return {name: predict(runs, processes, threads) for name, predict in BASELINES.items()}


def _nearest(runs: Sequence[Sample], processes: int, threads: int) -> Sample:
    if not runs:
        raise ValueError("a baseline needs a measured run")

    def distance(run: Sample) -> tuple[float, int]:
        gaps = math.log(run.processes / processes), math.log(run.threads / threads)
        return round(math.hypot(*gaps), 9), -run.processes * run.threads

    return min(runs, key=distance)


def _by_cores(runs: Sequence[Sample]) -> tuple[Array, Points]:
    """Runs by all of their cores; those with the same number count as repeats."""
    points = points_of(
        [Sample(run.processes * run.threads, 1, run.value, {}, run.relative_error) for run in runs]
    )
    return points.configurations["P"], points
