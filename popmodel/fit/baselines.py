"""The runtime of a whole program from a few runs: plain extrapolations, and an average of all laws.

The plain ones have to be beaten. Amdahl's law and that of pipelines as in C. Rosas, J. Gimenez and
J. Labarta, Supercomput. Front. Innov. 1(2) (2014) 4; the normal form of one term as in A. Calotoiu
et al., SC 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from popmodel.fit.candidates import physical, product_of
from popmodel.fit.mixture import Mixture, mixture
from popmodel.fit.samples import Array, LawPoints, Sample, fit_two, points_of

DIVIDED = ("1/(P*T)",)
"""What runtimes follow that are shared out: the first guess."""
_NORMAL_POWERS = ("0", "1/4", "1/3", "1/2", "2/3", "3/4", "1", "5/4", "4/3", "3/2", "2", "5/2", "3")
_NORMAL_LOGS = (0, 1, 2)


def whole_run(samples: Sequence[Sample], hints: Sequence[str] = DIVIDED) -> Mixture:
    """Average over the laws that runtimes of a whole program may follow.

    Parameters
    ----------
    samples
        Runtimes, s; repeats of a configuration tell their errors.
    hints
        Forms that are likely, such as ``N**3/(P*T)``, the likeliest first.

    Examples
    --------
    >>> runs = whole_run([Sample(p, 1, 10 / p + 0.1) for p in (1, 2, 4, 8, 16)])
    >>> there = runs.at(64, 1)
    >>> there.low < 10 / 64 + 0.1 < there.high
    True
    """
    points = points_of(samples)
    if not points.values.all():
        raise ValueError("a runtime must be above 0")
    return mixture(points, physical(points, hints), points.configuration(points.middle))


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
    return _of_terms(lambda cores: (1 / cores, np.ones_like(cores)), runs, processes, threads)


def pipe(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by the efficiency of pipelines, ``R/((1 - f) + f (2R - 1))``, s.

    f = 1/2 is ideal scaling, f = 1 half of it for many cores R. With one run, f = 1/2. A smaller f,
    more than ideal scaling, is taken for 1/2.
    """
    return _of_terms(
        lambda cores: (1 / cores, (2 * cores - 1) / cores**2), runs, processes, threads
    )


def normal_form(runs: Sequence[Sample], processes: int, threads: int) -> float:
    """Return the runtime by the best normal form of one term of the cores R, s.

    ``c + d R**i log2(R)**j`` with powers from -3 to 3, as runtimes fall, by the error at points
    left out, or of the fit where there are two. With one run, or where it is 0: the nearest.
    """
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return nearest(runs, processes, threads)
    powers = [Fraction(sign + power) for power in _NORMAL_POWERS for sign in ("", "-")]
    factors = dict.fromkeys(pair for pair in product(powers, _NORMAL_LOGS) if any(pair))
    terms = [product_of({"P": pair}) for pair in factors for _ in range(2)]
    sizes = np.tile([1, 2], len(factors))  # without and with a constant
    with np.errstate(divide="ignore"):
        table = np.array([term.at({"P": cores}) for term in terms])
    stays = (sizes == 2)[:, None] * np.ones_like(cores)

    def fitted(kept: Any) -> tuple[Array, Array]:
        return fit_two(table[:, kept], stays[:, kept], points.values[kept], points.errors[kept])

    every = np.arange(len(points))
    coefficients, misfit = fitted(every)
    off = np.zeros(len(terms))
    if len(points) > 2:
        for row in every:
            own, _ = fitted(every[every != row])
            there = own[:, 0] * table[:, row] + own[:, 1] * stays[:, row]
            with np.errstate(divide="ignore", invalid="ignore"):
                gaps = np.log(there / points.values[row])
            off += np.where(np.isfinite(gaps), gaps**2, np.inf)
    off = np.where(np.isfinite(misfit), off, np.inf)
    best = int(np.lexsort((misfit, sizes, np.round(off, 12)))[0])
    target = float(terms[best].at({"P": np.float64(processes * threads)}))
    value = float(coefficients[best] @ [target, stays[best, 0]])
    return value if value > 0 else nearest(runs, processes, threads)


BASELINES: Mapping[str, Callable[[Sequence[Sample], int, int], float]] = {
    "nearest": nearest,
    "linear": linear,
    "amdahl": amdahl,
    "pipe": pipe,
    "normal-form": normal_form,
}
"""All plain extrapolations by name."""


def baselines(runs: Sequence[Sample], processes: int, threads: int) -> dict[str, float]:
    """Predict a runtime by every plain extrapolation."""
    if any(run.parameters != runs[0].parameters for run in runs):
        raise ValueError("baselines extrapolate runs of the same problem")
    return {name: predict(runs, processes, threads) for name, predict in BASELINES.items()}


def _of_terms(
    terms: Callable[[Array], tuple[Array, Array]],
    runs: Sequence[Sample],
    processes: int,
    threads: int,
) -> float:
    """The best sum of two terms of the cores; of one run, ideal scaling."""
    cores, points = _by_cores(runs)
    if len(points) == 1:
        return linear(runs, processes, threads)
    first, second = terms(cores)
    coefficients, _ = fit_two(first[None], second[None], points.values, points.errors)
    return float(coefficients[0] @ np.array(terms(np.array([float(processes * threads)])))[:, 0])


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
