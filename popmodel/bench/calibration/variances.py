"""How far launches are apart: variances that inform each other, and what moves a whole launch.

A few launches say little about a spread, so the variances of similar quantities inform each other
(G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3: moderated t statistics). Not so what slows a
whole launch: that is one observation per launch however many quantities show it, told apart by an
analysis of variance and joined with the degrees of freedom of F. E. Satterthwaite, Biometrics Bull.
2 (1946) 110.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from popmodel.bench.calibration.series import Array, Series

_FEWEST = 4  # quantities that can tell what they have in common
_ROUNDING = 1e-6  # relative: of the clock and of the file


def deviations(series: Sequence[Series]) -> tuple[list[float], list[float]]:
    """Return the standard deviation between launches of every series, and its freedom."""
    variances, degrees, common, common_freedom = variances_of(series)
    spreads, freedom = [], []
    for variance, dof in zip(variances, degrees, strict=True):
        whole = variance + common
        spreads.append(math.sqrt(whole))
        unsure = (variance / whole) ** 2 / dof + (common / whole) ** 2 / common_freedom
        freedom.append(1 / unsure if unsure else math.inf)
    return spreads, freedom


def variances_of(series: Sequence[Series]) -> tuple[list[float], list[float], float, float]:
    """Return variances of the series on their own, their degrees of freedom, and both of all."""
    several = [one for one in series if len(one.values) > 1]
    common, common_freedom, own = _launch_effect(several)
    prior, prior_freedom = _prior(
        np.array(own), np.array([len(one.values) - 1 for one in several], dtype=np.float64)
    )
    by_series = dict(zip(map(id, several), own, strict=True))
    pooled_freedom = float(sum(len(one.values) - 1 for one in several))
    variances, freedom = [], []
    for one in series:
        degrees = float(len(one.values) - 1)
        if degrees == 0:  # a single launch of this one: others tell how far launches are apart
            variance, dof = one.sampling**2 + prior, math.inf
        elif math.isinf(prior_freedom):
            variance, dof = prior, pooled_freedom
        else:
            dof = degrees + prior_freedom
            variance = (degrees * by_series[id(one)] + prior_freedom * prior) / dof
        variances.append(max(variance, _ROUNDING**2))
        freedom.append(dof)
    return variances, freedom, common, common_freedom


def _launch_effect(series: Sequence[Series]) -> tuple[float, float, list[float]]:
    """Tell what moves all series of a launch together from what each does on its own."""
    own = [float(np.var(one.coordinates, ddof=1)) for one in series]
    if not series:
        return 0.0, 1.0, own
    # of the same launches in the same order: where a job is missing, positions tell no launch
    ((launches, _),) = Counter(one.of for one in series).most_common(1)
    usual = len(launches)
    together = np.flatnonzero([one.of == launches for one in series])
    if together.size < _FEWEST:
        return 0.0, 1.0, own
    table = np.array([series[int(index)].coordinates for index in together])
    table = table - table.mean(axis=1, keepdims=True)
    # the median over the series: a few far noisier than the rest are not an effect of the launch
    effect = np.median(table, axis=0)
    effect = effect - effect.mean()
    without = ((table - effect) ** 2).sum(axis=1) / (usual - 1)
    without = without * together.size / (together.size - 1)  # the effect was taken from these
    # the median of n normal values varies pi/2 times as much as their mean
    chance = math.pi / 2 * float(np.median(without)) / together.size
    common = float(effect @ effect) / (usual - 1) - chance
    if common <= 0:
        return 0.0, usual - 1.0, own
    for index, variance in zip(together, without, strict=True):
        own[int(index)] = float(variance)
    return common, usual - 1.0, own


def _prior(variances: Array, freedom: Array) -> tuple[float, float]:
    """Common variance and its degrees of freedom, from many variances (Smyth 2004, section 6.2).

    Where their logarithms scatter as chance alone would have it, all share one variance.
    """
    kept = variances > 0
    if kept.sum() < _FEWEST:
        return (float(variances.mean()) if variances.size else 0.0), 0.0
    from scipy.special import digamma, polygamma

    half = freedom[kept] / 2
    logs = np.log(variances[kept]) - digamma(half) + np.log(half)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    if excess <= 0:
        return float(np.exp(logs.mean())), math.inf
    strength = _inverse_trigamma(excess)
    return float(np.exp(logs.mean() + digamma(strength) - np.log(strength))), 2 * strength


def _inverse_trigamma(value: float) -> float:
    """Solve ``trigamma(x) = value``; 1/x < trigamma(x) < 1/x + 1/x**2 bounds the solution."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    least = 1 / value
    return float(
        brentq(
            lambda x: polygamma(1, x) - value, least, least + math.sqrt(least), xtol=1e-13 * least
        )
    )
