"""Measured runs beside their predictions: every quantity of every run, and of all runs of a split.

Differences of the runtime are relative to the measured value, those of efficiencies are in points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from popmodel.errors import UsageError
from popmodel.model.uncertainty import Estimate
from popmodel.plain import fields_of
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.predictions import Predicted
from popmodel.validation.training import FitRegion
from popmodel.values import dataclass

RUNTIME = "runtime"


@dataclass(frozen=True)
class ComparedRun:
    """A measured run with its prediction."""

    run: MeasuredRow
    predicted: Predicted
    region: FitRegion  # Where it stands beside the runs that the model was fitted to

    @property
    def configuration(self) -> tuple[Any, ...]:
        """What repeats share: P, T and parameters."""
        parameters = sorted(self.predicted.parameters.items())
        return self.run.processes, self.run.threads, *parameters

    def values(self) -> Iterator[ComparedValue]:
        """The runtime, and every metric that both sides know."""
        yield ComparedValue(self, "", RUNTIME, self.predicted.runtime, self.run.runtime)
        for family, values in self.run.metrics.items():
            estimates = self.predicted.metrics.get(family, {})
            for metric, measured in values.items():
                if metric in estimates:
                    yield ComparedValue(self, family, metric, estimates[metric], float(measured))


@dataclass(frozen=True)
class ComparedValue:
    """One quantity of one run."""

    of: ComparedRun
    # The family is empty for the runtime.
    family: str
    metric: str
    estimate: Estimate  # Seconds for the runtime, fractions for efficiencies
    measured: float

    @property
    def processes(self) -> int:
        """P."""
        return self.of.run.processes

    @property
    def threads(self) -> int:
        """T."""
        return self.of.run.threads

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the measurement; None without an interval."""
        return _inside(self.estimate, self.measured)

    @property
    def difference(self) -> float:
        """Predicted less measured: relative for the runtime, in points for efficiencies."""
        gap = self.estimate.value - self.measured
        return gap / self.measured if self.metric == RUNTIME else 100 * gap

    @property
    def half_width(self) -> float | None:
        """Of the interval: relative to the prediction for the runtime, in points otherwise."""
        if self.estimate.low is None or self.estimate.high is None:
            return None
        half = (self.estimate.high - self.estimate.low) / 2
        return half / self.estimate.value if self.metric == RUNTIME else 100 * half

    def to_dict(self) -> dict[str, Any]:
        """Return the quantity as JSON types."""
        return {
            "source": self.of.run.source,
            **fields_of(self, "family", "metric", "processes", "threads"),
            "parameters": self.of.predicted.parameters,
            "predicted": self.estimate.value,
            **fields_of(self.estimate, "low", "high"),
            "measured": self.measured,
            "difference": self.difference,
            "covered": self.covered,
            "region": self.of.region.name,
            "beyond": self.of.region.beyond,
        }


@dataclass(frozen=True)
class Repeated:
    """One quantity of runs that should be equal."""

    measured: tuple[float, ...]  # What each run had: seconds, or a fraction
    estimate: Estimate  # The prediction, which is the same for all

    @property
    def predicted(self) -> float:
        """The prediction."""
        return self.estimate.value

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
        held = [_inside(self.estimate, value) for value in self.measured]
        return None if held[0] is None else sum(map(bool, held))

    @property
    def holds(self) -> bool | None:
        """Whether the interval contains the mean; None without an interval."""
        return _inside(self.estimate, self.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return the quantity as JSON types."""
        return {
            "mean": self.mean,
            "deviation": self.deviation,
            "least": min(self.measured),
            "most": max(self.measured),
            "predicted": self.predicted,
            **fields_of(self.estimate, "low", "high"),
            "covered": self.covered,
        }


def _inside(estimate: Estimate, value: float) -> bool | None:
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low <= value <= estimate.high


@dataclass(frozen=True)
class Split:
    """Runs of one split, one set of parameters and one region, with their prediction."""

    # P and T.
    processes: int
    threads: int
    parameters: Mapping[str, float]  # Those of the application
    region: FitRegion  # Where the runs stand beside those that the model was fitted to
    runs: tuple[ComparedRun, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that the runs come from."""
        return tuple(dict.fromkeys(pair.run.source for pair in self.runs))

    @cached_property
    def runtime(self) -> Repeated:
        """The runtime, s."""
        return Repeated(
            tuple(pair.run.runtime for pair in self.runs), self.runs[0].predicted.runtime
        )

    @cached_property
    def metrics(self) -> Mapping[str, Mapping[str, Repeated]]:
        """Efficiencies by family and metric id, of the runs that have them."""
        alike: dict[str, dict[str, list[ComparedValue]]] = {}
        for value in values_of(self.runs):
            if value.metric != RUNTIME:
                alike.setdefault(value.family, {}).setdefault(value.metric, []).append(value)
        return {
            family: {
                metric: Repeated(tuple(one.measured for one in values), values[0].estimate)
                for metric, values in metrics.items()
            }
            for family, metrics in alike.items()
        }

    @property
    def error(self) -> float:
        """Predicted less mean runtime, relative to the mean."""
        return self.runtime.predicted / self.runtime.mean - 1

    def describe(self, names: Sequence[str] = ()) -> str:
        """Size and some parameters: ``4 x 2, N=256``."""
        return describe_run(self.processes, self.threads, self.parameters, names)

    def to_dict(self) -> dict[str, Any]:
        """Return the split as JSON types."""
        return {
            **fields_of(self, "processes", "threads", "parameters", "sources"),
            "region": self.region.name,
            "beyond": self.region.beyond,
            "runs": len(self.runs),
            "runtime": {**self.runtime.to_dict(), "error": self.error},
            "metrics": {
                family: {
                    name: {**one.to_dict(), "error": one.predicted - one.mean}
                    for name, one in values.items()
                }
                for family, values in self.metrics.items()
            },
        }


Placed = Callable[[MeasuredRow, Predicted], FitRegion]
"""From a run and its prediction to where it stands."""


def by_machine(run: MeasuredRow, predicted: Predicted) -> FitRegion:  # noqa: ARG001 (a `Placed`)
    """Say where a run stands that no fit is known of: within what was measured of the machine."""
    return FitRegion(predicted.validity)


def compare(
    predictions: Sequence[Predicted],
    measurements: Iterable[MeasuredRow],
    placed: Placed = by_machine,
) -> tuple[ComparedRun, ...]:
    """Find the prediction of every run, and where it stands."""
    pairs = ((run, _prediction_of(run, predictions)) for run in measurements)
    return tuple(ComparedRun(run, one, placed(run, one)) for run, one in pairs)


def values_of(pairs: Iterable[ComparedRun]) -> tuple[ComparedValue, ...]:
    """Every quantity of every run."""
    return tuple(value for pair in pairs for value in pair.values())


def splits(pairs: Iterable[ComparedRun]) -> tuple[Split, ...]:
    """Take runs of the same split, parameters and region together.

    They are sorted by parameters, cores and processes; runs that were used in a fit come first.
    """
    groups: dict[tuple[Any, ...], list[ComparedRun]] = {}
    for pair in pairs:
        processes, threads, *parameters = pair.configuration
        region = pair.region.is_test, pair.region.name
        key = (tuple(parameters), processes * threads, processes, *region)
        groups.setdefault(key, []).append(pair)
    ordered = [groups[key] for key in sorted(groups)]
    return tuple(
        Split(
            same[0].run.processes,
            same[0].run.threads,
            same[0].predicted.parameters,
            same[0].region,
            tuple(same),
        )
        for same in ordered
    )


def _prediction_of(run: MeasuredRow, predictions: Sequence[Predicted]) -> Predicted:
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
    known = (describe_run(one.processes, one.threads, one.parameters, names) for one in predictions)
    raise UsageError(
        f"{run.place} is a run of "
        f"{describe_run(run.processes, run.threads, run.parameters, names)}, "
        f"the prediction is for {', '.join(dict.fromkeys(known))}",
        f"predict --procs {run.processes} --threads {run.threads}, or name the application",
    )


def describe_run(
    processes: int, threads: int, parameters: Mapping[str, float], names: Sequence[str] = ()
) -> str:
    """Size of a run and some of its parameters: ``4 x 2, N=256``."""
    told = [f"{name}={parameters[name]:g}" for name in names if name in parameters]
    return ", ".join([f"{processes} x {threads}", *told])


def varied(splits: Sequence[Split]) -> list[str]:
    """Parameters in which runs differ."""
    return differing([split.parameters for split in splits])


def differing(parameters: Sequence[Mapping[str, float]]) -> list[str]:
    """Parameters in which some runs differ."""
    first = parameters[0]
    return [name for name in first if any(one.get(name) != first[name] for one in parameters)]
