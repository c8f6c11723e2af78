"""From the estimates of launches to a number with its interval.

A quantity is estimated in every launch apart, since what a launch decides once (placement, which
core, which connection) is the same in all its batches: batches alone would give intervals that are
far too narrow. The estimate is the mean over the launches, its interval Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from popmodel.bench.calibration.series import Series
from popmodel.bench.calibration.variances import deviations
from popmodel.errors import PopmodelError

LEVEL = 0.90
CLIPPED = "not distinguishable from 0, set to 0 with an interval of the measurement error"
_DIGITS = 6
_ROUNDING = 1e-6  # of a value: the least that an interval may reach down to


class CalibrationError(PopmodelError):
    """Samples do not make a profile."""


def quantities(
    series: Mapping[str, Series], *, zero: frozenset[str] = frozenset(), alike: bool = True
) -> dict[str, dict[str, Any]]:
    """Return quantities of a profile with their 90 % intervals."""
    groups = [list(series.values())] if alike else [[one] for one in series.values()]
    parts = [deviations(group) for group in groups]
    spreads = [spread for part, _ in parts for spread in part]
    freedom = [dof for _, part in parts for dof in part]
    found = {}
    for (name, one), spread, dof in zip(series.items(), spreads, freedom, strict=True):
        centre = float(np.mean(one.coordinates))
        half = _student(dof) * spread / math.sqrt(len(one.values))
        try:
            limits = [one.back(centre), one.back(centre - half), one.back(centre + half)]
        except OverflowError:
            raise CalibrationError(
                f"these samples do not determine {name}: no launch measured all that it needs",
                "measure again: popmodel bench",
            ) from None
        if name in zero:
            if limits[0] < 0:
                limits[2] = -limits[1]
            limits = [max(limit, 0.0) for limit in limits]
        elif limits[0] <= 0:
            raise CalibrationError(
                f"these samples do not determine {name}: it must be above 0, not {limits[0]:g}",
                "measure again: popmodel bench",
            )
        else:  # an interval that was taken linearly may reach below what makes sense
            limits = [max(limit, limits[0] * _ROUNDING) for limit in limits]
        value, low, high = (_rounded(limit) for limit in limits)
        launches = len(one.values)
        found[name] = {
            "value": value,
            "low": min(low, value),
            "high": max(high, value),
            "origin": "measured",
            "n": one.batches,
            "source": f"{one.source}, {launches} launch{'es' if launches > 1 else ''}",
        }
    return found


def _student(freedom: float) -> float:
    from scipy.special import ndtri, stdtrit

    upper = (1 + LEVEL) / 2
    return float(ndtri(upper) if math.isinf(freedom) else stdtrit(freedom, upper))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
