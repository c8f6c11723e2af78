"""From batches and launches to a number with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import quantiles
from popmodel.base.errors import PopmodelError
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.bench.sample_files import SampleResult

# Estimates of a quantity, one per launch, from the batches of a job.
#
# Latencies are the 10 % quantile of the batches of a launch: what the machine does when it is left
# alone, without the luck of the minimum. Contention is the median.


Array = NDArray[np.float64]

_CLOCK = 1e-9  # s: what a difference of times is relative to if it is nothing


def p10(batches: Array) -> float:
    """Return the 10 % quantile: for latencies."""
    return quantiles(batches, (0.1,))[0]


def median(batches: Array) -> float:
    """Return the median: for contention."""
    return quantiles(batches, (0.5,))[0]


@dataclass(frozen=True)
class Series:
    """Estimates of one quantity, one per launch."""

    values: tuple[float, ...]  # At least one
    source: str  # How they were obtained
    batches: int  # Batches behind all of them
    # None: positive, spread taken relative to the value. Else the spread is taken relative to this,
    # for differences that may be near 0.
    scale: float | None = None
    # Relative standard error of an estimate within a launch: all that is known of the spread if
    # there is one launch.
    sampling: float = 0.0
    # Which launch each value is of; empty if they are numbered from 0.
    launches: tuple[Hashable, ...] = ()

    @property
    def of(self) -> tuple[Hashable, ...]:
        """What tells the launch of every value from the others."""
        return self.launches or tuple(range(len(self.values)))

    @property
    def coordinates(self) -> Array:
        """The values in the scale in which their spread is taken."""
        values = np.asarray(self.values)
        return np.log(values) if self.scale is None else values / self.scale

    def back(self, coordinate: float) -> float:
        """Return the value of a coordinate."""
        return math.exp(coordinate) if self.scale is None else coordinate * self.scale


def of_results(
    results: Sequence[SampleResult],
    value: Callable[[SampleResult], float],
    source: str,
    scale: float | None = None,
) -> Series:
    """Estimate a quantity in every launch."""
    values = tuple(value(result) for result in results)
    if scale is None and min(values) <= 0:
        scale = max(map(abs, values)) or _CLOCK
    batches = sum(result.seconds.size for result in results)
    errors = [_relative_error(result.seconds) for result in results]
    known = tuple(result.launch for result in results)
    of = () if None in known else known
    return Series(values, source, batches, scale, float(np.mean(errors)), of)


def of_groups(
    groups: Sequence[tuple[SampleResult, ...]],
    value: Callable[..., float],
    source: str,
    scale: float | None = None,
) -> Series:
    """Estimate a quantity from several results of every launch."""
    firsts = [group[0] for group in groups]
    by_first = {id(group[0]): group for group in groups}
    one = of_results(firsts, lambda result: value(*by_first[id(result)]), source, scale)
    errors = [
        math.hypot(*(_relative_error(result.seconds) for result in group)) for group in groups
    ]
    return replace(one, sampling=float(np.mean(errors)))


def _relative_error(batches: Array) -> float:
    """Relative standard error of a quantile of batches, from their middle half (normal scores)."""
    if batches.size < 4:
        return 0.05  # next to nothing is known
    low, middle, high = quantiles(batches, (0.25, 0.5, 0.75))
    whole = abs(middle) or _CLOCK
    return (high - low) / 1.349 * 1.7 / math.sqrt(batches.size) / whole


# How far launches are apart.


_ROUNDING = 1e-6  # relative: of the clock and of the file


def deviations(series: Sequence[Series]) -> list[tuple[float, float]]:
    """Return the standard deviation between launches of every series, and its degrees of freedom.

    That of a series with one launch is the error of its batches, and how far the others are apart.
    """
    freedom = [len(one.values) - 1 for one in series]
    variances = [
        float(np.var(one.coordinates, ddof=1)) if own else 0.0
        for one, own in zip(series, freedom, strict=True)
    ]
    whole = sum(freedom)
    pooled = float(np.dot(variances, freedom)) / whole if whole else 0.0
    return [
        (
            math.sqrt(max(variance if own else one.sampling**2 + pooled, _ROUNDING**2)),
            float(own or whole or math.inf),
        )
        for one, variance, own in zip(series, variances, freedom, strict=True)
    ]


# Fits to points that were each measured in several launches.


_LARGE_ERROR = 0.3  # relative: beyond it errors are no longer alike up and down as factors


class EstimatePoints(NamedTuple):
    """Points that were measured in the same launches."""

    kept: tuple[int, ...]  # Which of the series they are; others lack one of the launches
    values: Array  # Estimates
    launches: tuple[Hashable, ...]  # One for every row of ``values``
    batches: int  # Batches behind all of them
    errors: Array  # Of the points of one launch, one standard deviation each


def aligned(series: Sequence[Series], least: int) -> EstimatePoints | None:
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
    units = np.array([abs(one.scale or float(np.mean(one.values))) for one in series])[list(kept)]
    own = np.array([deviation for deviation, _ in deviations(series)])[list(kept)]
    return EstimatePoints(kept, values, found, sum(series[i].batches for i in kept), own * units)


def fitted(points: EstimatePoints, fit: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Fit every launch, and tell how uncertain the fit to a single one is."""
    fits = np.array([fit(values) for values in points.values])
    if len(fits) > 1:
        return fits, np.zeros(fits.shape[1])
    # up and down: a parameter may be at the end of its range and move one way only
    moved = [fit(points.values[0] + way * one) for one in np.diag(points.errors) for way in (1, -1)]
    return fits, np.sqrt(((np.array(moved) - fits[0]) ** 2).sum(axis=0) / 2)


def of_fit(fits: Array, error: float, points: EstimatePoints, source: str) -> Series:
    """Return the series of a positive parameter, fitted to every launch."""
    whole = float(np.mean(fits))
    # an error of the size of the value says nothing of factors
    scale = whole if error > _LARGE_ERROR * whole else None
    return Series(
        tuple(fits.tolist()), source, points.batches, scale, error / whole, points.launches
    )


# From the estimates of launches to a number with its interval.
#
# A quantity is estimated in every launch apart, since what a launch decides once (placement, which
# core, which connection) is the same in all its batches: batches alone would give intervals that
# are far too narrow. The estimate is the mean over the launches, its interval Student's t.


LEVEL = 0.90
_UPPER = (1 + LEVEL) / 2
CLIPPED = "not distinguishable from 0, set to 0 with an interval of the measurement error"
_DIGITS = 6


class CalibrationError(PopmodelError):
    """Samples do not make a profile."""


def measured_as(limits: Iterable[float], n: int, source: str) -> dict[str, Any]:
    """Return a quantity of a profile that was measured: value, low and high."""
    interval = dict(zip(("value", "low", "high"), limits, strict=True))
    return interval | {"origin": "measured", "n": n, "source": source}


def quantities(
    series: Mapping[str, Series], *, zero: frozenset[str] = frozenset()
) -> dict[str, dict[str, Any]]:
    """Return quantities of a profile with their 90 % intervals."""
    from scipy.special import ndtri, stdtrit

    found = {}
    apart = deviations(list(series.values()))
    for (name, one), (spread, dof) in zip(series.items(), apart, strict=True):
        centre = float(np.mean(one.coordinates))
        student = ndtri(_UPPER) if math.isinf(dof) else stdtrit(dof, _UPPER)
        half = float(student) * spread / math.sqrt(len(one.values))
        try:
            limits = [one.back(centre), one.back(centre - half), one.back(centre + half)]
        except OverflowError:
            raise CalibrationError(
                f"these samples do not determine {name}: no launch measured all that it needs",
                "measure again: popmodel machine measure",
            ) from None
        if name in zero:
            if limits[0] < 0:
                limits[2] = -limits[1]
            limits = [max(limit, 0.0) for limit in limits]
        elif limits[0] <= 0:
            raise CalibrationError(
                f"these samples do not determine {name}: it must be above 0, not {limits[0]:g}",
                "measure again: popmodel machine measure",
            )
        else:  # an interval that was taken linearly may reach below what makes sense
            limits = [max(limit, limits[0] * _ROUNDING) for limit in limits]
        value, low, high = (float(f"{limit:.{_DIGITS}g}") for limit in limits)
        launches = len(one.values)
        source = f"{one.source}, {launches} launch{'es' if launches > 1 else ''}"
        found[name] = measured_as((value, min(low, value), max(high, value)), one.batches, source)
    return found


def one_quantity(series: Series, *, zero: bool = False) -> dict[str, Any]:
    """Return a quantity of a profile that no other one informs."""
    return quantities({"": series}, zero=frozenset({""} if zero else ()))[""]


def criterion(count: int, error: float, free: int) -> float:
    """Corrected Akaike criterion of least squares (Hurvich and Tsai, Biometrika 76 (1989) 297).

    Of the mean of squared errors, and parameters; without its correction where points are too few.
    """
    score = count * math.log(error) + 2 * free
    return score + 2 * free * (free + 1) / (count - free - 1) if count > free + 1 else score
