"""Fits to points that were each measured in several launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from popmodel.bench.calibration.series import Array, Series
from popmodel.bench.calibration.variances import variances_of
from popmodel.values import dataclass

_LARGE_ERROR = 0.3  # relative: beyond it errors are no longer alike up and down as factors


@dataclass(frozen=True)
class Points:
    """Points that were measured in the same launches."""

    kept: tuple[int, ...]  # Which of the series they are; others lack one of the launches
    values: Array  # Estimates
    launches: tuple[Hashable, ...]  # One for every row of ``values``
    batches: int  # Batches behind all of them
    # Independent errors of the points of one launch, one standard deviation each: what slows all of
    # them together, then each on its own.
    errors: Array


def aligned(series: Sequence[Series], least: int) -> Points | None:
    """Choose the points and launches of a fit, so that every launch has measured every point.

    As many values as possible are kept. A point that one launch alone has measured goes rather than
    the other launches, a launch that was interrupted early goes rather than most points.
    """
    rows = [dict(zip(one.of, one.values, strict=True)) for one in series]
    order = tuple(dict.fromkeys(launch for one in series for launch in one.of))
    best: tuple[int, int] = (0, 0)
    chosen: tuple[tuple[int, ...], tuple[Hashable, ...]] | None = None
    sets = dict.fromkeys(frozenset(row) for row in rows)
    for launches in (*sets, frozenset.intersection(*sets)):
        kept = tuple(i for i, row in enumerate(rows) if launches <= row.keys())
        size = len(kept) * len(launches), len(launches)
        if len(kept) >= least and size > best:
            best = size
            chosen = kept, tuple(launch for launch in order if launch in launches)
    if chosen is None:
        return None
    kept, found = chosen
    values = np.array([[rows[i][launch] for i in kept] for launch in found])
    variances, _, common, _ = variances_of(series)
    units = np.array([abs(one.scale or float(np.mean(one.values))) for one in series])[list(kept)]
    own = np.sqrt(np.array(variances)[list(kept)]) * units
    errors = np.vstack([math.sqrt(common) * units, np.diag(own)])
    return Points(kept, values, found, sum(series[i].batches for i in kept), errors)


def fitted(points: Points, fit: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Fit every launch, and tell how uncertain the fit to a single one is."""
    fits = np.array([fit(values) for values in points.values])
    if len(fits) > 1:
        return fits, np.zeros(fits.shape[1])
    # up and down: a parameter may be at the end of its range and move one way only
    moved = [fit(points.values[0] + way * one) for one in points.errors for way in (1, -1)]
    return fits, np.sqrt(((np.array(moved) - fits[0]) ** 2).sum(axis=0) / 2)


def of_fit(fits: Array, error: float, points: Points, source: str) -> Series:
    """Return the series of a positive parameter, fitted to every launch."""
    whole = float(np.mean(fits))
    # an error of the size of the value says nothing of factors
    scale = whole if error > _LARGE_ERROR * whole else None
    return Series(
        tuple(fits.tolist()), source, points.batches, scale, error / whole, points.launches
    )
