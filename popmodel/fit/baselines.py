"""Plain extrapolations of measured run times, which a model has to beat.

Amdahl's law and that of pipelines as in C. Rosas, J. Gimenez and J. Labarta, Supercomput. Front.
Innov. 1(2) (2014) 4; the normal form of one term as in A. Calotoiu et al., SC 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.fit.candidates import normal
from popmodel.fit.least_squares import fit_two
from popmodel.fit.samples import Array, LawPoints, Sample, points_of


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
    return _of_terms(lambda at: (1 / at, np.ones_like(at)), cores, points, processes * threads)


def pipe(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by the efficiency of pipelines, ``R/((1 - f) + f (2R - 1))``, s.

    f = 1/2 is ideal scaling, f = 1 half of it for many cores R. With one run, f = 1/2. A smaller f,
    more than ideal scaling, is taken for 1/2.
    """
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return linear(runs, processes, threads)

    def terms(at: Array) -> tuple[Array, Array]:
        return 1 / at, (2 * at - 1) / at**2

    return _of_terms(terms, cores, points, processes * threads)


def normal_form(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by the best normal form of one term of the cores R, s.

    ``c + d R**i log2(R)**j``, with the powers of `candidates.normal`, by the error at points left
    out, or of the fit where there are two. With one run, or where it is 0: the nearest.
    """
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return nearest(runs, processes, threads)
    forms = normal("P", {})
    with np.errstate(divide="ignore"):
        table = np.array([form.terms[0].at({"P": cores}) for form in forms])
    stays = np.array([[float(len(form.terms) == 2)] for form in forms]) * np.ones_like(cores)

    def fitted(kept: Any) -> tuple[Array, Array]:
        return fit_two(table[:, kept], stays[:, kept], points.values[kept], points.errors[kept])

    every = np.arange(len(points))
    coefficients, misfit = fitted(every)
    off = np.zeros(len(forms))
    if len(points) > 2:
        for row in every:
            own, _ = fitted(every[every != row])
            there = own[:, 0] * table[:, row] + own[:, 1] * stays[:, row]
            with np.errstate(divide="ignore", invalid="ignore"):
                gaps = np.log(there / points.values[row])
            off += np.where(np.isfinite(gaps), gaps**2, np.inf)
    off = np.where(np.isfinite(misfit), off, np.inf)
    sizes = np.array([len(form.terms) for form in forms])
    best = int(np.lexsort((misfit, sizes, np.round(off, 12)))[0])
    target = float(forms[best].terms[0].at({"P": np.float64(processes * threads)}))
    value = float(coefficients[best] @ [target, stays[best, 0]])
    return value if value > 0 else nearest(runs, processes, threads)


def _of_terms(
    terms: Callable[[Array], tuple[Array, Array]], cores: Array, points: LawPoints, target: int
) -> float:
    """The best sum of two terms, at a number of cores."""
    first, second = terms(cores)
    coefficients, _ = fit_two(first[None], second[None], points.values, points.errors)
    return float(coefficients[0] @ np.array(terms(np.array([float(target)])))[:, 0])


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


def _by_cores(runs: Sequence[Sample]) -> tuple[Array, LawPoints]:
    """Runs by all of their cores; those with the same number count as repeats."""
    points = points_of(
        [Sample(run.processes * run.threads, 1, run.value, {}, run.relative_error) for run in runs]
    )
    return points.configurations["P"], points
