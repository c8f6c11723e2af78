"""Measured runs of the same split and parameters, taken together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.plain import fields_of
from popmodel.validation.comparison import RUNTIME, Paired, Row, describe_run
from popmodel.validation.training import Region
from popmodel.values import dataclass


@dataclass(frozen=True)
class Repeated:
    """One quantity of runs that should be equal."""

    measured: tuple[float, ...]  # What each run had: seconds, or a fraction
    predicted: float  # The prediction, which is the same for all
    # Its interval.
    low: float | None
    high: float | None

    @property
    def mean(self) -> float:
        """Mean of the measured values."""
        return float(np.mean(self.measured))

    @property
    def deviation(self) -> float | None:
        """Their standard deviation (with n - 1); None of a single run."""
        return float(np.std(self.measured, ddof=1)) if len(self.measured) > 1 else None

    @property
    def covered(self) -> int | None:
        """How many of the measured values the interval contains; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return sum(self.low <= value <= self.high for value in self.measured)

    @property
    def holds(self) -> bool | None:
        """Whether the interval contains the mean; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.mean <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Return the quantity as JSON types."""
        return {
            "mean": self.mean,
            "deviation": self.deviation,
            "least": min(self.measured),
            "most": max(self.measured),
            **fields_of(self, "predicted", "low", "high"),
            "covered": self.covered,
        }


@dataclass(frozen=True)
class Runs:
    """Runs of one split and one set of parameters."""

    # P and T.
    processes: int
    threads: int
    parameters: Mapping[str, float]  # Those of the application
    sources: tuple[str, ...]  # The files that the runs come from

    def describe(self, names: Sequence[str] = ()) -> str:
        """Size and some parameters: ``4 x 2, N=256``."""
        return describe_run(self.processes, self.threads, self.parameters, names)


@dataclass(frozen=True)
class Split(Runs):
    """Runs that are compared with a prediction."""

    region: Region  # Where they stand beside the runs that the model was fitted to
    runtime: Repeated  # Seconds
    # Efficiencies by family and metric id, of the runs that have them.
    metrics: Mapping[str, Mapping[str, Repeated]]

    @property
    def error(self) -> float:
        """Predicted less mean runtime, relative to the mean."""
        return self.runtime.predicted / self.runtime.mean - 1

    def holds(self, pair: Paired) -> bool:
        """Whether a run is one of its runs."""
        mine = (self.processes, self.threads, self.parameters, self.region)
        one = pair.predicted
        return mine == (one.processes, one.threads, one.parameters, pair.region)

    def to_dict(self) -> dict[str, Any]:
        """Return the split as JSON types."""
        return {
            **fields_of(self, "processes", "threads", "parameters", "sources"),
            "region": self.region.name,
            "beyond": self.region.beyond,
            "runs": len(self.runtime.measured),
            "runtime": {**self.runtime.to_dict(), "error": self.error},
            "metrics": {
                family: {
                    name: {**one.to_dict(), "error": one.predicted - one.mean}
                    for name, one in values.items()
                }
                for family, values in self.metrics.items()
            },
        }


def splits(rows: Sequence[Row]) -> tuple[Split, ...]:
    """Take runs of the same split, parameters and region together.

    They are sorted by parameters, cores and processes; runs that were used in a fit come first.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        parameters = tuple(sorted(row.parameters.items()))
        cores = row.processes * row.threads
        key = (parameters, cores, row.processes, row.region.is_test, row.region.name)
        groups.setdefault(key, []).append(row)
    return tuple(_split(groups[key]) for key in sorted(groups))


def _split(rows: Sequence[Row]) -> Split:
    by_quantity: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_quantity.setdefault((row.family, row.metric), []).append(row)
    runtime = _repeated(by_quantity.pop(("", RUNTIME)))
    metrics: dict[str, dict[str, Repeated]] = {}
    for (family, metric), some in by_quantity.items():
        metrics.setdefault(family, {})[metric] = _repeated(some)
    first = rows[0]
    sources = tuple(dict.fromkeys(row.source for row in rows))
    at = (first.processes, first.threads, first.parameters, sources, first.region)
    return Split(*at, runtime, metrics)


def _repeated(rows: Sequence[Row]) -> Repeated:
    first = rows[0]
    measured = tuple(row.measured for row in rows)
    return Repeated(measured, first.predicted, first.low, first.high)


def varied(splits: Sequence[Split]) -> list[str]:
    """Parameters in which runs differ."""
    return differing([split.parameters for split in splits])


def differing(parameters: Sequence[Mapping[str, float]]) -> list[str]:
    """Parameters in which some runs differ."""
    first = parameters[0]
    return [name for name in first if any(one.get(name) != first[name] for one in parameters)]
