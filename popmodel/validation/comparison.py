"""Predicted beside measured: every metric of every run, and how well it went overall.

Differences of the runtime are relative to the measured value, those of efficiencies are in points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.errors import UsageError
from popmodel.model.uncertainty import Estimate
from popmodel.plain import fields_of
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.validation.measurement import Measurement
from popmodel.validation.predicted import Predicted
from popmodel.values import dataclass

RUNTIME = "runtime"


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
    parameters : mapping of str to float
        Those of the application.
    predicted, measured : float
        Seconds for the runtime, fractions for efficiencies.
    low, high : float or None
        Interval of the prediction.
    """

    source: str
    family: str
    metric: str
    processes: int
    threads: int
    parameters: Mapping[str, float]
    predicted: float
    low: float | None
    high: float | None
    measured: float

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
        return {**fields_of(self), "difference": self.difference, "covered": self.covered}


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
        predicted.parameters,
        estimate.value,
        estimate.low,
        estimate.high,
        float(measured),
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
