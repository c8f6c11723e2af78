"""Predicted beside measured: every metric of every run.

Differences of the runtime are relative to the measured value, those of efficiencies are in points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from popmodel.errors import UsageError
from popmodel.model.uncertainty import Estimate
from popmodel.plain import fields_of
from popmodel.runs.measurement import Measurement
from popmodel.validation.predicted import Predicted
from popmodel.validation.training import Region
from popmodel.values import dataclass

RUNTIME = "runtime"


@dataclass(frozen=True)
class Row:
    """One quantity of one run."""

    source: str  # File of the measurement
    # The family is empty for the runtime.
    family: str
    metric: str
    # P and T.
    processes: int
    threads: int
    parameters: Mapping[str, float]  # Those of the application
    # Seconds for the runtime, fractions for efficiencies.
    predicted: float
    # Interval of the prediction.
    low: float | None
    high: float | None
    measured: float
    region: Region  # Where the run stands beside those that the model was fitted to

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
            **fields_of(self, without=("region",)),
            "difference": self.difference,
            "covered": self.covered,
            "region": self.region.name,
            "beyond": self.region.beyond,
        }


Placed = Callable[[Measurement, Predicted], Region]
"""From a run and its prediction to where it stands."""


def by_machine(run: Measurement, predicted: Predicted) -> Region:  # noqa: ARG001 (a `Placed`)
    """Say where a run stands that no fit is known of: within what was measured of the machine."""
    return Region(predicted.validity)


def compare(
    predictions: Sequence[Predicted],
    measurements: Sequence[Measurement],
    placed: Placed = by_machine,
) -> tuple[Row, ...]:
    """Put every measured quantity beside its prediction."""
    return rows_of(paired(predictions, measurements, placed))


@dataclass(frozen=True)
class Paired:
    """A measured run with its prediction, and where it stands."""

    run: Measurement
    predicted: Predicted
    region: Region


def paired(
    predictions: Sequence[Predicted],
    measurements: Sequence[Measurement],
    placed: Placed = by_machine,
) -> tuple[Paired, ...]:
    """Find the prediction of every run; parameters and errors as of `compare`."""
    found = ((run, _prediction_of(run, predictions)) for run in measurements)
    return tuple(Paired(run, one, placed(run, one)) for run, one in found)


def rows_of(pairs: Iterable[Paired]) -> tuple[Row, ...]:
    """Put every measured quantity beside its prediction."""
    return tuple(row for pair in pairs for row in _rows(pair))


def _rows(pair: Paired) -> Iterator[Row]:
    run, predicted = pair.run, pair.predicted
    yield _row(pair, "", RUNTIME, predicted.runtime, run.runtime)
    for family, values in run.metrics.items():
        estimates = predicted.metrics.get(family, {})
        for metric, measured in values.items():
            if metric in estimates:
                yield _row(pair, family, metric, estimates[metric], measured)


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


def _row(pair: Paired, family: str, metric: str, estimate: Estimate, measured: float) -> Row:
    return Row(
        pair.run.source,
        family,
        metric,
        pair.run.processes,
        pair.run.threads,
        pair.predicted.parameters,
        estimate.value,
        estimate.low,
        estimate.high,
        float(measured),
        pair.region,
    )
