"""Measured runs beside their predictions: every quantity of every run, and of all runs of a split.

Differences of the runtime are relative to the measured value, those of efficiencies are in points.
A run that was used in a fit is no test of it. The others are at a configuration of the fit, between
such configurations, or beyond them: how far, and in what, is told before any error is looked at.
A run with more threads than cores, one that as many threads do not shorten, and one whose repeats
differ far more than those of all others say nothing about a prediction: they are left out, each
with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.errors import UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass, fields_of
from popmodel.model.terms.openmp import NO_SPEEDUP
from popmodel.model.uncertainty import Calibration, Estimate
from popmodel.runs.measurement import MeasuredRow, oversubscribed
from popmodel.validation.predictions import Predicted, Subject

RUNTIME = "runtime"
CALIBRATION = "calibration"
REPETITION = "repetition"
INTERPOLATION = "interpolation"
EXTRAPOLATION = "extrapolation"
BOUNDARY = "node boundary"
"""What a run on several nodes is beyond where all runs of the fit were on one."""
CORES = "cores"
"""P T: P and T may each be within their range, and their product far beyond."""
EXPECTED_SPEEDUP = 1.5
"""Predicted speed-up by threads from which none at all tells of the binding, not of the model."""
LARGE_SPREAD = 0.3
"""Longest over shortest of some repeats, less 1, from which they may be disturbed."""
FAR_ABOVE = 5.0
"""By what factor that exceeds what is usual in the other runs, then."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Training:
    """The runs that a model has been fitted to."""

    digests: frozenset[str]  # `MeasuredRow.digest` of each
    # Smallest and largest value of ``P``, ``T``, ``nodes``, `CORES` and parameters, as far as they
    # are known.
    hull: Mapping[str, tuple[float, float]]
    runs: tuple[MeasuredRow, ...] = ()  # Those of them that are at hand

    def to_dict(self) -> dict[str, Any]:
        """Return how many runs there are, and their ranges."""
        hull = {name: {"low": low, "high": high} for name, (low, high) in self.hull.items()}
        return {"runs": len(self.digests), "hull": hull}


@dataclass(frozen=True)
class FitRegion:
    """Where a run stands."""

    # `CALIBRATION`, `REPETITION`, `INTERPOLATION` or `EXTRAPOLATION`; without runs of a fit how far
    # the prediction goes beyond what was measured of the machine, `Validity.status`.
    name: str
    # By what factor it is outside the hull, by what it is outside in.
    beyond: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_test(self) -> bool:
        """Whether it is a run of a configuration that no fit has seen."""
        return self.name not in (CALIBRATION, REPETITION)


def of_runs(runs: Sequence[MeasuredRow], nodes_of: Callable[[int, int], int | None]) -> Training:
    """Return what was fitted to some runs, whose parameters are all known."""
    rows = [_configuration(run, nodes_of(run.processes, run.threads)) for run in runs]
    # what is not known of all is known of none
    known = [name for name in rows[0] if all(name in row for row in rows)]
    hull = {
        name: (min(row[name] for row in rows), max(row[name] for row in rows)) for name in known
    }
    return Training(frozenset(run.digest for run in runs), hull, tuple(runs))


def of_calibration(
    calibration: Calibration, runs: Iterable[tuple[MeasuredRow, MeasuredRow]]
) -> Training:
    """Return what a calibrated signature was fitted to."""
    known = {
        whole.digest: whole
        for read, whole in runs
        if {read.digest, whole.digest} & set(calibration.runs)
    }
    hull = dict(calibration.hull)
    if known and len(known) == len(calibration.runs):  # what it does not keep of them
        cores = [run.processes * run.threads for run in known.values()]
        hull[CORES] = (float(min(cores)), float(max(cores)))
    return Training(frozenset({*calibration.runs, *known}), hull, tuple(known.values()))


def joined(some: Sequence[Training]) -> Training | None:
    """Return all runs of several fits together; None of none."""
    if not some:
        return None
    hull: dict[str, tuple[float, float]] = {}
    for name in some[0].hull:
        ends = [one.hull[name] for one in some if name in one.hull]
        if len(ends) == len(some):
            hull[name] = (min(low for low, _ in ends), max(high for _, high in ends))
    runs = {run.digest: run for one in some for run in one.runs}
    return Training(frozenset().union(*(one.digests for one in some)), hull, tuple(runs.values()))


def region_of(run: MeasuredRow, nodes: int | None, training: Training) -> FitRegion:
    """Say where a run stands, whose parameters are all known."""
    if run.digest in training.digests:
        return FitRegion(CALIBRATION)
    same = run.processes, run.threads, run.parameters
    if any((used.processes, used.threads, used.parameters) == same for used in training.runs):
        return FitRegion(REPETITION)
    beyond: dict[str, float] = {}
    for name, value in _configuration(run, nodes).items():
        if name not in training.hull:
            continue
        low, high = training.hull[name]
        factor = max(value / high, low / value)
        if factor > 1 + _ROUNDING:
            at_boundary = name == "nodes" and high == 1
            beyond[BOUNDARY if at_boundary else name] = factor
    if {"P", "T"} & set(beyond):
        beyond.pop(CORES, None)  # said already
    return FitRegion(EXTRAPOLATION if beyond else INTERPOLATION, beyond)


def _configuration(run: MeasuredRow, nodes: int | None) -> dict[str, float]:
    """P, T, their product, nodes and parameters; without a parameter that is no magnitude."""
    found = {"P": run.processes, "T": run.threads, CORES: run.processes * run.threads}
    if nodes is not None:
        found["nodes"] = nodes
    return {**found, **{name: value for name, value in run.parameters.items() if value > 0}}


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


def compare(
    predictions: Sequence[Predicted],
    runs: Iterable[MeasuredRow],
    training: Training | None = None,
) -> tuple[ComparedRun, ...]:
    """Find the prediction of every run, and where it stands.

    Where no fit is known, that is within what was measured of the machine.
    """
    pairs = []
    for run in runs:
        predicted = _prediction_of(run, predictions)
        region = FitRegion(predicted.validity)
        if training is not None:
            region = region_of(run, predicted.nodes, training)
        pairs.append(ComparedRun(run, predicted, region))
    return tuple(pairs)


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


@dataclass(frozen=True)
class ExcludedRuns:
    """Runs that are not compared."""

    # P and T.
    processes: int
    threads: int
    parameters: Mapping[str, float]  # Those of the application
    sources: tuple[str, ...]  # The files that the runs come from
    measured: tuple[float, ...]  # Their runtimes, s
    why: str  # What stands against them

    @classmethod
    def of(cls, runs: Sequence[MeasuredRow], why: str) -> ExcludedRuns:
        """Runs of one split and one set of parameters."""
        return cls(
            runs[0].processes,
            runs[0].threads,
            runs[0].parameters,
            tuple(dict.fromkeys(run.source for run in runs)),
            tuple(run.runtime for run in runs),
            why,
        )

    def sentence(self, names: Sequence[str] = ()) -> str:
        """Say which runs are left out, and why."""
        split = describe_run(self.processes, self.threads, self.parameters, names)
        return f"left out: {plural(len(self.measured), 'run')} of {split}: {self.why}"


def excluded(runs: Iterable[tuple[MeasuredRow, str]]) -> tuple[ExcludedRuns, ...]:
    """Take runs that are left out for one reason each together by split and parameters."""
    groups: dict[tuple[object, ...], list[MeasuredRow]] = {}
    for run, why in runs:
        groups.setdefault((*run.configuration, why), []).append(run)
    return tuple(ExcludedRuns.of(same, str(why)) for (*_, why), same in groups.items())


def suspicious(splits: Sequence[Split]) -> tuple[tuple[Split, ...], tuple[ExcludedRuns, ...]]:
    """Part the splits into those to be judged and those that look disturbed.

    A split is left out if

    - it is no faster than the same processes with one thread each, where the prediction is faster
      by `EXPECTED_SPEEDUP`: so it looks if the threads of a process are bound to one core;
    - the longest of its repeats exceeds the shortest by more than `LARGE_SPREAD`, and by more than
      `FAR_ABOVE` times what is the median of the other splits; that takes two others with repeats.
    """
    kept: list[Split] = []
    left: list[ExcludedRuns] = []
    for split in splits:
        why = _uneven(split, splits) or _no_speedup(split, splits)
        if why is None:
            kept.append(split)
        else:
            left.append(ExcludedRuns.of([pair.run for pair in split.runs], why))
    return tuple(kept), tuple(left)


def _no_speedup(split: Split, splits: Sequence[Split]) -> str | None:
    if split.threads == 1:
        return None
    for one in splits:
        if (one.processes, one.threads, one.parameters) != (split.processes, 1, split.parameters):
            continue
        measured = one.runtime.mean / split.runtime.mean
        predicted = one.runtime.predicted / split.runtime.predicted
        if measured <= 1 + NO_SPEEDUP and predicted >= EXPECTED_SPEEDUP:
            return (
                f"{measured:.2f} times as fast as {one.describe()}, {predicted:.2g} times "
                "predicted: as if the threads of a process shared a core"
            )
    return None


def _uneven(split: Split, splits: Sequence[Split]) -> str | None:
    others = [_spread(one) for one in splits if one is not split and len(one.runtime.measured) > 1]
    if len(split.runtime.measured) < 2 or len(others) < 2:
        return None
    spread, usual = _spread(split), median(others)
    if spread <= max(LARGE_SPREAD, FAR_ABOVE * usual):
        return None
    times = split.runtime.measured
    return (
        f"they took {min(times):.3g} to {max(times):.3g} s, while repeats of the others differ by "
        f"{100 * usual:.2g} %: something else ran on their cores"
    )


def _spread(split: Split) -> float:
    return max(split.runtime.measured) / min(split.runtime.measured) - 1


class Comparison(NamedTuple):
    """What came of it."""

    # All runs; what a run leaves open of its parameters is as predicted.
    measured: tuple[MeasuredRow, ...]
    pairs: tuple[ComparedRun, ...]  # Those that are compared, with their predictions
    training: Training | None  # The runs that the model was fitted to, if any are known
    left_out: tuple[ExcludedRuns, ...]  # Runs that are not compared
    defaults: Mapping[str, float]  # Parameters of the application left at their defaults


def compare_runs(
    about: Subject,
    runs: Sequence[MeasuredRow],
    fitted: Sequence[MeasuredRow] = (),
    *,
    all_runs: bool = False,
) -> Comparison:
    """Compare runs with what is predicted of them."""

    def filled(some: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
        return tuple(
            replace(run, parameters={**about.parameters, **run.parameters}) for run in some
        )

    fits = []  # that the signature knows of, and that were named
    if about.calibration is not None:
        read = (*fitted, *runs)
        fits.append(of_calibration(about.calibration, zip(read, filled(read), strict=True)))
    if fitted:
        fits.append(of_runs(filled(fitted), about.nodes_of))
    training = joined(fits)
    able, crowded = (list(runs), []) if all_runs else _parted(runs, about)
    pairs = compare(about.predict(able), filled(able), training)
    left = excluded((whole, why) for run, why in crowded for whole in filled([run]))
    if not all_runs:
        kept, disturbed = suspicious(splits(pairs))
        left += disturbed
        of_kept = {id(pair) for split in kept for pair in split.runs}
        pairs = tuple(pair for pair in pairs if id(pair) in of_kept)
    defaults = {
        name: value
        for name, value in about.defaults.items()
        if not all(name in run.parameters for run in runs)
    }
    return Comparison(filled(runs), pairs, training, left, defaults)


def _parted(
    runs: Sequence[MeasuredRow], about: Subject
) -> tuple[list[MeasuredRow], list[tuple[MeasuredRow, str]]]:
    """Runs whose threads had cores, and the others with the reason; all if there are no others."""
    able: list[MeasuredRow] = []
    crowded: list[tuple[MeasuredRow, str]] = []
    for run in runs:
        why = None if about.available is None else oversubscribed(run, *about.available)
        if why is None and run.disturbed:
            why = "their threads waited for CPUs"
        if why is None:
            able.append(run)
        else:
            crowded.append((run, why))
    # where none is left, prediction and verdict say what the machine has, and what disturbed
    return (able, crowded) if able else (list(runs), [])
