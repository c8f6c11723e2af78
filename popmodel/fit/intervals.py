"""Intervals of a fitted law: of its constants, and of its value anywhere.

Errors are those of the samples, scaled by what the residuals say, with Student's quantile for the
few degrees of freedom that both have. What a form itself misses grows with the distance from the
points: a power of each variable, whose exponent the points leave open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.fit.least_squares import profile
from popmodel.fit.model_selection import Choice, Tried
from popmodel.fit.samples import END, Array, Interval, Points
from popmodel.values import dataclass

ASSUMED_DRIFT = 0.15
"""Half of the interval of the exponent of a variable that was never varied: assumed; work per
process as P**-0.85 to P**-1.15, a factor of 1.23 at four times the processes."""
_BEYOND = 4.0  # by how much farther than the points forms are compared
REFUTED = 9.0
"""Mean square of residuals over errors from which errors are not believed."""
_FAR = 1.5  # largest half of the interval of an exponent: no law of its own is left


@dataclass(frozen=True)
class Beyond:
    """How fast a law may go wrong outside of what was measured of a variable."""

    # Ends of what was measured.
    low: float
    high: float
    half: float  # Half of the interval of the exponent of the distance from the nearer end

    def far(self, value: float) -> float:
        """Half of the interval that it adds to the logarithm of the law at a value."""
        return self.half * math.log(max(value / self.high, self.low / value, 1.0))


@dataclass(frozen=True)
class Spread:
    """What is known of the coefficients of a law, and of how far it holds."""

    # Shares of the second term that the points allow, for each the logarithm of the value at the
    # reference, and its price as a part of the squared width of the interval; best first.
    shares: Array
    scales: Array
    costs: Array
    # Half of the interval of the logarithm of the value at the reference, for a given share.
    half: float
    # Half of the interval of the exponent of each variable, about the reference.
    powers: Mapping[str, float]
    beyond: Mapping[str, Beyond]  # The same outside of what was measured
    factor: float  # By what the errors of samples were scaled

    def at(
        self,
        first: float,
        second: float,
        ratios: Mapping[str, float],
        there: Mapping[str, float],
    ) -> Interval:
        """Return the value where the terms are so many times those of the reference."""
        model = (1 - self.shares) * first + self.shares * second
        if not model[0] > 0:
            return Interval(0.0, 0.0, math.exp(self.scales[0]) * float(model.max()))
        with np.errstate(divide="ignore"):
            middle = self.scales + np.log(model)
        reach = self.half * np.sqrt(np.maximum(1 - self.costs, 0.0))
        value = float(middle[0])
        below, above = value - float((middle - reach).min()), float((middle + reach).max()) - value
        far = math.hypot(
            *(half * math.log(ratios.get(name, 1.0)) for name, half in self.powers.items()),
            *(one.far(there[name]) for name, one in self.beyond.items() if name in there),
        )
        return Interval(
            math.exp(value),
            math.exp(value - math.hypot(below, far)),
            math.exp(value + math.hypot(above, far)),
        )


def spread_of(points: Points, choice: Choice, tables: Sequence[Array], reference: int) -> Spread:
    """Return what points leave open of the chosen law."""
    best, logs = choice.best, np.log(points.values)
    quantile, factor = _scatter(points, best)
    width = quantile * factor
    half = width / math.sqrt(float((points.errors**-2.0).sum()))
    shares, scales, costs = np.array([best.share]), np.array([best.scale]), np.zeros(1)
    if len(tables) == 2:
        all_shares, all_scales, misfits = profile(tables[0], tables[1], logs, points.errors)
        all_costs = np.maximum(misfits - best.misfit, 0.0) / width**2
        within = all_costs <= 1
        shares = np.concatenate([shares, all_shares[within]])
        scales = np.concatenate([scales, all_scales[within]])
        costs = np.concatenate([costs, all_costs[within]])
    powers, beyond = _exponents(points, choice, width, reference)
    return Spread(shares, scales, costs, half, powers, beyond, factor)


def _scatter(points: Points, best: Tried) -> tuple[float, float]:
    """Quantile of 95 %, and by what to scale the errors of points.

    The variance of the residuals, drawn towards the stated one as if that had been found with
    ``points.freedom`` degrees of freedom (the conjugate prior of a variance). Residuals that refute
    the stated errors stand alone.
    """
    own = len(points) - best.size
    if own and best.misfit > REFUTED * own:
        return student(max(own, 2)), math.sqrt(best.misfit / own)
    freedom = points.freedom + own
    return student(freedom), math.sqrt((points.freedom + best.misfit) / freedom)


def student(freedom: int) -> float:
    """Quantile of 95 % of Student's distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.95)) if freedom < 1000 else END


def _exponents(
    points: Points, choice: Choice, width: float, reference: int
) -> tuple[dict[str, float], dict[str, Beyond]]:
    """What points leave open of exponents: about the reference, and outside of the points."""
    best, weights = choice.best, points.errors**-2.0
    names = set().union(*(term.names for term in best.form.terms)) | {"P"}
    powers: dict[str, float] = {}
    beyond: dict[str, Beyond] = {}
    for name, column in points.configurations.items():
        logs = np.log(column)
        ends = float(column.min()), float(column.max())
        if np.ptp(logs) == 0:
            if name in names:
                beyond[name] = Beyond(*ends, ASSUMED_DRIFT)
        elif best.size == 1:
            if name in names or name == "T":
                lever = float(weights @ (logs - weights @ logs / weights.sum()) ** 2)
                powers[name] = min(width / math.sqrt(lever), _FAR)
        else:
            half = _between_forms(points, choice, name, reference, width)
            if half > 0:
                beyond[name] = Beyond(*ends, min(half, _FAR))
    return powers, beyond


def _between_forms(
    points: Points, choice: Choice, name: str, reference: int, width: float
) -> float:
    """How forms that are about as good differ beyond the points, as half of an exponent's interval.

    Each form has the weight of its likelihood.
    """
    far = points.configuration(reference)
    edge = float(points.configurations[name].max())
    values, weights = [], []
    gaps: dict[str, list[float]] = {}
    for place in (edge, edge * _BEYOND):
        far[name] = place
        value = logarithm(choice.best, points, reference, far)
        if value is None:
            return 0.0
        for one in choice.alike:
            other = logarithm(one, points, reference, far)
            if other is not None:
                gaps.setdefault(one.form.text, []).append(other - value)
    for one in choice.alike:
        found = gaps.get(one.form.text, [])
        if len(found) == 2:
            values.append(found[1] - found[0])
            weights.append(_likelihood(one.misfit - choice.best.misfit, width))
    if not values:
        return 0.0
    mean = float(np.square(values) @ np.array(weights)) / (1 + sum(weights))
    return END * math.sqrt(mean) / math.log(_BEYOND)


def _likelihood(worse: float, width: float) -> float:
    """Weight of a form whose misfit is so much larger; at most 1."""
    return math.exp(-0.5 * max(worse, 0.0) * (END / width) ** 2)


def logarithm(
    one: Tried, points: Points, reference: int, configuration: Mapping[str, float]
) -> float | None:
    """Logarithm of a fitted form at a configuration; None where it has no value above 0."""
    found = float(logarithms(one, points, reference, configuration))
    return None if math.isnan(found) else found


def logarithms(
    one: Tried, points: Points, reference: int, configurations: Mapping[str, Any]
) -> Array:
    """Logarithms of a fitted form at configurations, by variable; NaN where it is not above 0."""
    home = points.configuration(reference)
    shape = np.broadcast_shapes(*(np.shape(value) for value in configurations.values()))
    total = np.zeros(shape)
    for term, share in zip(one.form.terms, (1 - one.share, one.share), strict=False):
        total = total + share * term.at(configurations) / float(term.at(home))
    able = (total > 0) & np.isfinite(total)
    return one.scale + np.log(np.where(able, total, np.nan))
