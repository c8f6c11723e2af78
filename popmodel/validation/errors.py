"""How well predictions went: errors, bias, coverage; for all tests, by region and by metric.

Runs that were used in a fit, and repeats of them, are told apart from tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.validation.binomial import wilson
from popmodel.validation.comparison import RUNTIME, Row
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
class Part:
    """The errors of some of the runs."""

    region: str  # `Region.name`
    # What the runs are beyond the fit in, of some of those that are; None for all of the region.
    beyond: str | None
    # Of the runtime, and of the metrics of the main family.
    runtime: Errors
    metrics: Errors


def tests(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of runs whose configuration no fit has seen."""
    return [row for row in rows if row.region.is_test]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how far the predictions of tests are off, and how often their intervals hold."""
    of_tests = tests(rows)
    main = [row for row in of_tests if row.family == MAIN_FAMILY]
    found: dict[str, Any] = {"runtime": fields(errors_of(_runtimes(of_tests)))}
    if main:
        found["metrics"] = {"family": MAIN_FAMILY, **fields(errors_of(main))}
    return found


def by_region(rows: Sequence[Row]) -> list[Part]:
    """Return the errors of each region; of extrapolations also by what they are beyond in."""
    found: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.region.name, None].append(row)
        for name in row.region.beyond:
            found[row.region.name, name].append(row)

    def order(key: tuple[str, str | None]) -> tuple[int, bool]:
        known = _FIRST.index(key[0]) if key[0] in _FIRST else len(_FIRST)
        return known, key[1] is not None

    return [
        Part(
            *key,
            errors_of(_runtimes(found[key])),
            errors_of([row for row in found[key] if row.family == MAIN_FAMILY]),
        )
        for key in sorted(found, key=order)
    ]


def by_metric(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the errors of every metric of all families, of tests only."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in tests(rows):
        if row.metric != RUNTIME:
            found[row.family, row.metric].append(row)
    return [
        {"family": family, "metric": metric, **fields(errors_of(some))}
        for (family, metric), some in found.items()
    ]


def errors_of(rows: Sequence[Row]) -> Errors:
    """Return the errors of rows that are all runtimes, or all efficiencies."""
    gaps = np.array([row.difference for row in rows])
    covered = [row.covered for row in rows if row.covered is not None]
    widths = [width for row in rows if (width := _half_width(row)) is not None]
    return Errors(
        len(rows),
        len({_split(row) for row in rows}),
        _or_none(np.median, np.abs(gaps)),
        _or_none(np.max, np.abs(gaps)),
        _or_none(np.mean, gaps),
        sum(covered),
        len(covered),
        _coverage(rows),
        _or_none(np.median, np.array(widths)),
    )


def _runtimes(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.metric == RUNTIME]


def _or_none(what: Callable[[Any], Any], values: Any) -> float | None:
    return float(what(values)) if len(values) else None


def _half_width(row: Row) -> float | None:
    if row.low is None or row.high is None:
        return None
    half = (row.high - row.low) / 2
    return half / row.predicted if row.metric == RUNTIME else 100 * half


def _coverage(rows: Sequence[Row]) -> Coverage | None:
    by_split: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
    for row in rows:
        if row.covered is not None:
            by_split[_split(row)].append(row.covered)
    if not by_split:
        return None
    held = sum(sum(some) / len(some) for some in by_split.values())
    number = len(by_split)
    return Coverage(held / number, *wilson(min(held, number), number), number)


def _split(row: Row) -> tuple[Any, ...]:
    return row.processes, row.threads, *sorted(row.parameters.items())


def fields(errors: Errors) -> Mapping[str, Any]:
    """Return the fields by name."""
    return {name: getattr(errors, name) for name in errors.__dataclass_fields__}
