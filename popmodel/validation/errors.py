"""How well predictions went: errors, bias, coverage; for all tests, by region and by metric.

Runs that were used in a fit, and repeats of them, are told apart from tests.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from popmodel.machine.quantity import END
from popmodel.plain import fields_of
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.validation.comparison import RUNTIME, ComparedValue
from popmodel.validation.training import EXTRAPOLATION, INTERPOLATION
from popmodel.values import dataclass

_FIRST = ("calibration", "repetition", INTERPOLATION, EXTRAPOLATION)


@dataclass(frozen=True)
class Coverage:
    """Which share of the intervals hold what was measured."""

    value: float  # Mean over the splits: runs of a split share their prediction, so it counts once
    # Ends of the 90 % interval of that share, `wilson`; the metrics of one split are not
    # independent of each other, so splits are what is counted here as well.
    low: float
    high: float
    splits: int  # Splits that have intervals


@dataclass(frozen=True)
class Errors:
    """How far predictions are off."""

    # Values compared, and different splits (and parameters) that they are of.
    rows: int
    splits: int
    # Of the sizes of the differences, and the mean of the differences: relative for runtimes, in
    # points for efficiencies; None without rows.
    median_error: float | None
    largest_error: float | None
    bias: float | None
    # Intervals that hold the measured value, and all of them.
    covered: int
    intervals: int
    coverage: Coverage | None  # The share that they are; None without intervals
    # Of the intervals: relative to the prediction for runtimes, in points for efficiencies.
    median_half_width: float | None


@dataclass(frozen=True)
class RegionErrors:
    """The errors of some of the runs."""

    region: str  # `FitRegion.name`
    # What the runs are beyond the fit in, of some of those that are; None for all of the region.
    beyond: str | None
    # Of the runtime, and of the metrics of the main family.
    runtime: Errors
    metrics: Errors


def tests(rows: Iterable[ComparedValue]) -> list[ComparedValue]:
    """Return the rows of runs whose configuration no fit has seen."""
    return [row for row in rows if row.of.region.is_test]


def summary(rows: Sequence[ComparedValue]) -> dict[str, Any]:
    """Return how far the predictions of tests are off, and how often their intervals hold."""
    of_tests = tests(rows)
    main = [row for row in of_tests if row.family == MAIN_FAMILY]
    found: dict[str, Any] = {"runtime": fields_of(errors_of(_runtimes(of_tests)))}
    if main:
        found["metrics"] = {"family": MAIN_FAMILY, **fields_of(errors_of(main))}
    return found


def by_region(rows: Sequence[ComparedValue]) -> list[RegionErrors]:
    """Return the errors of each region; of extrapolations also by what they are beyond in."""
    found: dict[tuple[str, str | None], list[ComparedValue]] = defaultdict(list)
    for row in rows:
        found[row.of.region.name, None].append(row)
        for name in row.of.region.beyond:
            found[row.of.region.name, name].append(row)

    def order(key: tuple[str, str | None]) -> tuple[int, bool]:
        known = _FIRST.index(key[0]) if key[0] in _FIRST else len(_FIRST)
        return known, key[1] is not None

    return [
        RegionErrors(
            *key,
            errors_of(_runtimes(found[key])),
            errors_of([row for row in found[key] if row.family == MAIN_FAMILY]),
        )
        for key in sorted(found, key=order)
    ]


def by_metric(rows: Sequence[ComparedValue]) -> list[dict[str, Any]]:
    """Return the errors of every metric of all families, of tests only."""
    found: dict[tuple[str, str], list[ComparedValue]] = defaultdict(list)
    for row in tests(rows):
        if row.metric != RUNTIME:
            found[row.family, row.metric].append(row)
    return [
        {"family": family, "metric": metric, **fields_of(errors_of(some))}
        for (family, metric), some in found.items()
    ]


def errors_of(rows: Sequence[ComparedValue]) -> Errors:
    """Return the errors of rows that are all runtimes, or all efficiencies."""
    gaps = np.array([row.difference for row in rows])
    covered = [row.covered for row in rows if row.covered is not None]
    widths = [width for row in rows if (width := row.half_width) is not None]
    return Errors(
        len(rows),
        len({row.of.configuration for row in rows}),
        _or_none(np.median, np.abs(gaps)),
        _or_none(np.max, np.abs(gaps)),
        _or_none(np.mean, gaps),
        sum(covered),
        len(covered),
        _coverage(rows),
        _or_none(np.median, np.array(widths)),
    )


def _runtimes(rows: Iterable[ComparedValue]) -> list[ComparedValue]:
    return [row for row in rows if row.metric == RUNTIME]


def _or_none(what: Callable[[Any], Any], values: Any) -> float | None:
    return float(what(values)) if len(values) else None


def _coverage(rows: Sequence[ComparedValue]) -> Coverage | None:
    by_split: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
    for row in rows:
        if row.covered is not None:
            by_split[row.of.configuration].append(row.covered)
    if not by_split:
        return None
    held = sum(sum(some) / len(some) for some in by_split.values())
    number = len(by_split)
    return Coverage(held / number, *wilson(min(held, number), number), number)


def wilson(held: float, of: int, quantile: float = END) -> tuple[float, float]:
    """Return the score interval of a proportion (E. B. Wilson, J. Am. Stat. Assoc. 22 (1927)
    209).
    """
    if of < 1 or not 0 <= held <= of:
        raise ValueError(f"{held!r} of {of!r} is no proportion")
    share, square = held / of, quantile**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = quantile / (1 + square / of)
    half *= math.sqrt(share * (1 - share) / of + square / (4 * of**2))
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)
