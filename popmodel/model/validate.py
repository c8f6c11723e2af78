"""Predicted beside measured: every metric of every run, and how well it went overall.

Differences of the runtime are relative to the measured value, those of efficiencies are in points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from popmodel.documents import Kind
from popmodel.errors import UsageError
from popmodel.model import prediction
from popmodel.model.measured import Measurement
from popmodel.model.prediction import MAIN_FAMILY
from popmodel.shapes import Named, Optional, Plain, Real, Table, Text, Whole
from popmodel.values import dataclass

SCHEMA = "popmodel/validate/1"
RUNTIME = "runtime"

Estimate = Mapping[str, Any]  # value, low, high, as `Estimate.to_dict` gives it


@dataclass(frozen=True)
class Predicted:
    """What a prediction says of one run.

    Attributes
    ----------
    processes, threads : int
        P and T.
    runtime : mapping
        ``value``, ``low`` and ``high``, s.
    metrics : mapping of str to mapping of str to mapping
        The same by family and metric id.
    parameters : mapping of str to float
        Those of the application.
    """

    processes: int
    threads: int
    runtime: Estimate
    metrics: Mapping[str, Mapping[str, Estimate]]
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One quantity of one run.

    Attributes
    ----------
    source : str
        File of the measurement.
    family, metric : str
        The family is empty for the runtime.
    processes, threads : int
        P and T.
    predicted, measured : float
        Seconds for the runtime, fractions for efficiencies.
    low, high : float or None
        Interval of the prediction.
    parameters : mapping of str to float
        Those of the application.
    """

    source: str
    family: str
    metric: str
    processes: int
    threads: int
    predicted: float
    low: float | None
    high: float | None
    measured: float
    parameters: Mapping[str, float] = field(default_factory=dict)

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the measurement; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def difference(self) -> float:
        """Predicted less measured: relative for the runtime, in points for efficiencies."""
        gap = self.predicted - self.measured
        return gap / self.measured if self.metric == RUNTIME else 100 * gap

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON types."""
        return {
            "source": self.source,
            "family": self.family,
            "metric": self.metric,
            "processes": self.processes,
            "threads": self.threads,
            "parameters": dict(self.parameters),
            "predicted": self.predicted,
            "low": self.low,
            "high": self.high,
            "measured": self.measured,
            "difference": self.difference,
            "covered": self.covered,
        }


_ESTIMATE = Table(
    {"value": Real(), "low": Optional(Real()), "high": Optional(Real())},
    required=("value", "low", "high"),
    others=Plain(),
)
_TIME = Table(
    {"value": Real(above=0), "low": Optional(Real(least=0)), "high": Optional(Real(least=0))},
    required=("value", "low", "high"),
    others=Plain(),
)
_WITH_NAME = Table({"name": Text()}, required=("name",), others=Plain())
_APPLICATION = Table(
    {"name": Text(), "settings": Named(Real())}, required=("name",), others=Plain()
)

PREDICTION = Kind(
    prediction.SCHEMA,
    "prediction",
    Table(
        {
            "application": _APPLICATION,
            "machine": _WITH_NAME,
            "processes": Whole(1),
            "threads": Whole(1),
            "runtime": _TIME,
            "metrics": Named(Named(_ESTIMATE)),
        },
        required=("application", "machine", "processes", "threads", "runtime", "metrics"),
        others=Plain(),
    ),
    "make one: popmodel predict ... -o prediction.json",
)
"""A prediction that was saved: what is compared of it, and what names it."""


def from_document(document: Mapping[str, Any]) -> Predicted:
    """Take what is compared from a prediction's document."""
    return Predicted(
        document["processes"],
        document["threads"],
        document["runtime"],
        document["metrics"],
        document["application"].get("settings", {}),
    )


def compare(
    predictions: Sequence[Predicted], measurements: Sequence[Measurement]
) -> tuple[Row, ...]:
    """Put every measured quantity beside its prediction.

    Parameters
    ----------
    predictions : sequence of Predicted
        One for each size and set of parameters.
    measurements : sequence of Measurement
        What a run does not say of its parameters is as predicted.

    Raises
    ------
    UsageError
        If a run has a size or parameters for which there is no prediction.
    """
    rows: list[Row] = []
    for run in measurements:
        predicted = _prediction_of(run, predictions)
        rows.append(_row(run, predicted, "", RUNTIME, predicted.runtime, run.runtime))
        for family, values in run.metrics.items():
            estimates = predicted.metrics.get(family, {})
            rows += [
                _row(run, predicted, family, metric, estimates[metric], measured)
                for metric, measured in values.items()
                if metric in estimates
            ]
    return tuple(rows)


def _prediction_of(run: Measurement, predictions: Sequence[Predicted]) -> Predicted:
    for one in predictions:
        if (one.processes, one.threads) == (run.processes, run.threads) and all(
            one.parameters.get(name) == value for name, value in run.parameters.items()
        ):
            return one
    names = [
        name
        for name, value in run.parameters.items()
        if any(one.parameters.get(name) != value for one in predictions)
    ]
    known = ", ".join(
        dict.fromkeys(
            describe_run(one.processes, one.threads, one.parameters, names) for one in predictions
        )
    )
    raise UsageError(
        f"{run.place} is a run of "
        f"{describe_run(run.processes, run.threads, run.parameters, names)}, "
        f"the prediction is for {known}",
        f"predict --procs {run.processes} --threads {run.threads}, or name the application",
    )


def describe_run(
    processes: int, threads: int, parameters: Mapping[str, float], names: Sequence[str] = ()
) -> str:
    """Size of a run and some of its parameters: ``4 x 2, N=256``."""
    told = [f"{name}={parameters[name]:g}" for name in names if name in parameters]
    return ", ".join([f"{processes} x {threads}", *told])


def _row(
    run: Measurement,
    predicted: Predicted,
    family: str,
    metric: str,
    estimate: Estimate,
    measured: float,
) -> Row:
    return Row(
        run.source,
        family,
        metric,
        run.processes,
        run.threads,
        estimate["value"],
        estimate["low"],
        estimate["high"],
        float(measured),
        predicted.parameters,
    )


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how far predictions are off, and how often their intervals hold the measurement.

    Returns
    -------
    dict
        ``runtime``: runs, median and largest absolute relative error, bias (mean relative error),
        covered and of how many. ``metrics``: the same in points, over the main family.
    """
    main = [row for row in rows if row.family == MAIN_FAMILY]
    found = {"runtime": _errors([row for row in rows if row.metric == RUNTIME])}
    if main:
        found["metrics"] = {"family": MAIN_FAMILY, **_errors(main)}
    return found


def _errors(rows: Sequence[Row]) -> dict[str, Any]:
    gaps = np.array([row.difference for row in rows])
    covered = [row.covered for row in rows if row.covered is not None]
    return {
        "rows": len(rows),
        "median_error": float(np.median(np.abs(gaps))),
        "largest_error": float(np.abs(gaps).max()),
        "bias": float(gaps.mean()),
        "covered": sum(covered),
        "intervals": len(covered),
    }
