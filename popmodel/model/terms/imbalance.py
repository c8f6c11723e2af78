"""Processes with unequal work: what the slowest costs, and which loss it appears as.

The spread of work has a persistent part (the same process is slow in every step), which is a lack
of load balance, and a transient part (another one in every step), which is serialisation, because
in each step all wait for the slowest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Value, maximum, named, sqrt

Levels = NDArray[np.float64]

_REACH = 12.0  # standard deviations; the distribution function beyond differs from 0 or 1 by 1e-32
_STEP = 0.02


def expected_maximum(n: Value) -> Value:
    """Return q(n), the expected maximum of n independent standard normal values.

    ``E = b - integral of Phi(x)**n from -b to b``, by the trapezoidal rule, which converges faster
    than any power of the step for this integrand.

    Parameters
    ----------
    n : int or Traced
        At least 1; q(1) = 0, q(2) = 1/sqrt(pi).
    """
    if n < 1:
        raise ValueError(f"the maximum of {n} values does not exist")
    found: Value = named("q", _quadrature, n)
    return found


@lru_cache(maxsize=256)
def _quadrature(n: int) -> float:
    if n == 1:
        return 0.0
    count = round(2 * _REACH / _STEP)
    inner = sum(
        (0.5 * math.erfc((_REACH - i * _STEP) / math.sqrt(2))) ** n for i in range(1, count)
    )
    return _REACH - _STEP * (inner + 0.5)  # half of Phi(b)**n = 1 at the upper end


def spread_at(cv: Value, processes: Value, reference_processes: Value, exponent: Value) -> Value:
    """Return the coefficient of variation of the work of a process, ``cv (P/P_ref)**H``.

    Parameters
    ----------
    cv : value
        Coefficient of variation at ``reference_processes``.
    processes : value
        P.
    reference_processes, exponent : value
        P_ref and H: 0 for a smooth map of costs, 1/2 for independent cells.
    """
    return cv * (processes / reference_processes) ** exponent


def excess_of_largest(part: Value, processes: Value) -> Value:
    """Return by how much the process with a part of all work exceeds the average, ``P w - 1``.

    0 where the average process has as much to do. If work that comes in pieces is dealt out so
    that no piece moved from one process to another would help, and a process has more than twice
    the work of another one, then it has one piece: half of its work moved there would help.
    """
    return maximum(part * processes - 1, 0.0)


def slowest_overall(persistent: Value, transient: Value, steps: Value, processes: Value) -> Value:
    """Return the largest work of a process in the whole run over the average, minus 1.

    ``sqrt(sigma_p**2 + sigma_t**2/n) q(P)``: transient differences average out over n steps.
    """
    return sqrt(persistent**2 + transient**2 / steps) * expected_maximum(processes)


def slowest_per_step(persistent: Value, transient: Value, processes: Value) -> Value:
    """Return the time of a step that all processes end together over the average, minus 1.

    ``sqrt(sigma_p**2 + sigma_t**2) q(P)``; exact for steps that end in a global synchronisation,
    an upper bound when a process waits for its neighbours only.
    """
    return sqrt(persistent**2 + transient**2) * expected_maximum(processes)


def largest(levels: Levels, spread: float, factors: Sequence[tuple[float, Levels]] = ()) -> float:
    """Return the expected work of the process that has the most of it in a step.

    Process r has ``w_r (1 + s z_r + sum_k a_k (f_rk - 1))`` to do, of a normal score z and of
    factors that take each of their values with the same probability, all independent of each
    other: ``E = x0 + integral over x > x0 of 1 - product over r of F(x/w_r - 1)``, where F is the
    distribution of what is added to 1 and x0 is where the product is 0.

    Parameters
    ----------
    levels : float64[P]
        w: what each process has to do on average.
    spread : float
        s.
    factors : sequence of (float, float64[n])
        a and the values of f, whose mean is 1; above `_CONVOLVED` of them those with the least
        variance count as normal ones.
    """
    levels = np.ascontiguousarray(levels, dtype=np.float64)
    given = tuple((float(share), one.tobytes()) for share, one in factors)
    return _largest(levels.tobytes(), float(spread), given)


_CONVOLVED = 6
_SUPPORT = 1024  # values that a sum of factors may have; more are put together
_POINTS = 2000  # of the integral
_LEVELS = 256  # different ones; more are rounded to these


@lru_cache(maxsize=512)
def _largest(levels: bytes, spread: float, factors: tuple[tuple[float, bytes], ...]) -> float:
    w = np.frombuffer(levels)
    added = sorted(
        (share * (np.frombuffer(one) - 1) for share, one in factors), key=np.var, reverse=True
    )
    spread = math.sqrt(spread**2 + sum(float(np.var(one)) for one in added[_CONVOLVED:]))
    values, weights = np.zeros(1), np.ones(1)
    for one in added[:_CONVOLVED]:
        values, weights = _sum(values, weights, one)
    reach = 8 * spread  # the normal distribution beyond is below 1e-15
    low, high = 1 + values[0] - reach, 1 + values[-1] + reach
    start, end = float((w * low).max()), float((w * high).max())
    w, counts = _grouped(w[w * high >= start])
    if end <= start:
        return end
    if spread:
        points = np.linspace(low - 1, high - 1, _POINTS)
        at = (points[:, None] - values[None, :]) / spread
        below = _normal(at) @ weights
    else:
        points, below = values, np.cumsum(weights)
    x = np.linspace(start, end, _POINTS)
    is_exact = not spread and w.size * values.size <= _POINTS
    if is_exact:
        x = np.unique(np.concatenate([[start], np.outer(w, 1 + values).ravel()]))
        x = x[x >= start]
    total = np.zeros(x.size)
    for level, count in zip(w.tolist(), counts.tolist(), strict=True):
        if level > 0:
            with np.errstate(divide="ignore"):
                share = np.log(np.minimum(_below(x / level - 1, points, below, spread), 1.0))
            total += count * share
    beyond = 1 - np.exp(total)
    steps = np.diff(x)
    if is_exact:  # constant between the values
        return float(start + (beyond[:-1] * steps).sum())
    return float(start + ((beyond[:-1] + beyond[1:]) / 2 * steps).sum())


def _grouped(levels: Levels) -> tuple[Levels, NDArray[np.int64]]:
    """Different levels and how many processes have each; many as the nearest of some."""
    w, counts = np.unique(levels, return_counts=True)
    if w.size <= _LEVELS:
        return w, counts
    low, step = w[0], (w[-1] - w[0]) / (_LEVELS - 1)
    counts = np.bincount(np.rint((levels - low) / step).astype(np.int64), minlength=_LEVELS)
    return (low + step * np.arange(_LEVELS))[counts > 0], counts[counts > 0]


def _below(at: Levels, points: Levels, below: Levels, spread: float) -> Levels:
    """Distribution function, of which some points are known: between them linear, or steps."""
    if spread:
        return np.interp(at, points, below)
    steps: Levels = np.concatenate([[0.0], below])
    return steps[np.searchsorted(points, at + _ROUNDING, side="right")]


_ROUNDING = 1e-12


def _sum(values: Levels, weights: Levels, other: Levels) -> tuple[Levels, Levels]:
    """Distribution of the sum of a value and of one of ``other`` at random."""
    added, chances = _few(other, np.full(other.size, 1 / other.size))
    return _few(np.add.outer(values, added).ravel(), np.outer(weights, chances).ravel())


def _few(values: Levels, weights: Levels) -> tuple[Levels, Levels]:
    """Different values and their weights; of more than `_SUPPORT`, neighbours as their mean."""
    if values.size <= _SUPPORT:
        found, which = np.unique(values, return_inverse=True)
        return found, np.bincount(which.ravel(), weights).astype(np.float64)
    order = np.argsort(values)
    group = np.arange(values.size) * _SUPPORT // values.size
    mass = np.bincount(group, weights[order]).astype(np.float64)
    mean: Levels = np.bincount(group, (weights * values)[order]) / mass
    return mean, mass


def _normal(x: Levels) -> Levels:
    """Standard normal distribution function, between values 0.01 apart."""
    points, values = _table()
    found: Levels = np.interp(x, points, values)
    return found


@lru_cache(maxsize=1)
def _table() -> tuple[Levels, Levels]:
    points = np.arange(-900, 901) / 100
    values = np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in points.tolist()])
    return points, values
