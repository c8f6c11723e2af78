"""Estimates of a quantity, one per launch, from the batches of a job.

Latencies are the 10 % quantile of the batches of a launch: what the machine does when it is left
alone, without the luck of the minimum. Contention is the median.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import quantile, quantiles
from popmodel.bench.samples import Result
from popmodel.values import dataclass

Array = NDArray[np.float64]
Statistic = Callable[[Array], float]

_CLOCK = 1e-9  # s: what a difference of times is relative to if it is nothing


def p10(batches: Array) -> float:
    """Return the 10 % quantile: for latencies."""
    return quantile(batches, 0.1)


def median(batches: Array) -> float:
    """Return the median: for contention."""
    return quantile(batches, 0.5)


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
    results: Sequence[Result],
    value: Callable[[Result], float],
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
    groups: Sequence[tuple[Result, ...]],
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


def spread(series: Series) -> float:
    """Return the relative standard deviation between the launches; 0 for one launch."""
    if len(series.values) < 2:
        return 0.0
    return float(np.std(series.coordinates, ddof=1))


def scaled(series: Series, factor: float, source: str | None = None) -> Series:
    """Return the series of a multiple of a quantity."""
    return replace(
        series,
        values=tuple(value * factor for value in series.values),
        source=source or series.source,
        scale=None if series.scale is None else series.scale * abs(factor),
    )
