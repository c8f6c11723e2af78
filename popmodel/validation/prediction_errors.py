"""How well predictions went: errors, bias, coverage, terms, plain extrapolations, and the choice.

Runs that were used in a fit, and repeats of them, are told apart from tests.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.base.values import dataclass, fields_of
from popmodel.efficiency.evaluation import TERMS, TERMS_FAMILY, FamilyTerm, leaves, terms
from popmodel.fit.baselines import BASELINES, baselines
from popmodel.fit.samples import Sample
from popmodel.machines.quantity import END
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.prediction.split_choice import SplitChoice
from popmodel.validation.comparison import (
    CALIBRATION,
    EXTRAPOLATION,
    INTERPOLATION,
    REPETITION,
    RUNTIME,
    ComparedValue,
    Repeated,
    Split,
    Training,
)

MODEL = "model"
"""What the predictions that are validated are called beside plain extrapolations."""
CANCELLING = 0.05
"""Share of the runtime from which an error of a term is worth a word."""
HIDDEN = 0.5
"""An error of the runtime below this part of that of a term hides it."""
_REGIONS = (CALIBRATION, REPETITION, INTERPOLATION, EXTRAPOLATION)


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


def tests(rows: Iterable[ComparedValue]) -> list[ComparedValue]:
    """Return the rows of runs whose configuration no fit has seen."""
    return [row for row in rows if row.of.region.is_test]


def summary(rows: Sequence[ComparedValue]) -> dict[str, Any]:
    """Return how far the predictions of tests are off, and how often their intervals hold."""
    of_tests = tests(rows)
    main = _main_metrics(of_tests)
    found: dict[str, Any] = {"runtime": fields_of(errors_of(_runtimes(of_tests)))}
    if main:
        found["metrics"] = {"family": MAIN_FAMILY, **fields_of(errors_of(main))}
    return found


def by_region(rows: Sequence[ComparedValue]) -> list[dict[str, Any]]:
    """Return the errors of each region, of the runtime and of the metrics of the main family.

    Of extrapolations also by what they are beyond in; None for all of the region.
    """
    groups: dict[tuple[str, str | None], list[ComparedValue]] = defaultdict(list)
    for row in rows:
        for beyond in (None, *row.of.region.beyond):
            groups[row.of.region.name, beyond].append(row)

    def order(key: tuple[str, str | None]) -> tuple[int, bool]:
        number = _REGIONS.index(key[0]) if key[0] in _REGIONS else len(_REGIONS)
        return number, key[1] is not None

    return [
        {
            "region": key[0],
            "beyond": key[1],
            "runtime": fields_of(errors_of(_runtimes(groups[key]))),
            "metrics": fields_of(errors_of(_main_metrics(groups[key]))),
        }
        for key in sorted(groups, key=order)
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


def _main_metrics(rows: Iterable[ComparedValue]) -> list[ComparedValue]:
    return [row for row in rows if row.family == MAIN_FAMILY]


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


@dataclass(frozen=True)
class TermComparison:
    """One term of one split."""

    term: FamilyTerm  # Which
    seconds: Repeated  # Measured by each run, predicted, and the interval, s
    runtime: float  # Mean measured runtime of these runs, s

    @property
    def error(self) -> float:
        """Predicted less mean measured time, as a part of the measured runtime."""
        return (self.seconds.predicted - self.seconds.mean) / self.runtime

    def to_dict(self) -> dict[str, Any]:
        """Return the term as JSON types."""
        return {"term": self.term.name, **self.seconds.to_dict(), "error": self.error}


@dataclass(frozen=True)
class ByTerm:
    """All terms of one split that both sides know; they add up to the runtime where all are
    known.
    """

    split: Split  # The runs
    terms: tuple[TermComparison, ...]  # In the order of `popmodel.efficiency.evaluation.TERMS`

    @property
    def cancelling(self) -> tuple[TermComparison, TermComparison] | None:
        """The terms that are most too short and most too long, where they hide each other."""
        shortest = min(self.terms, key=lambda one: one.error)
        longest = max(self.terms, key=lambda one: one.error)
        least = min(-shortest.error, longest.error)
        if least < CANCELLING or abs(self.split.error) >= HIDDEN * max(
            -shortest.error, longest.error
        ):
            return None
        return shortest, longest

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as JSON types."""
        found = self.cancelling
        return {
            **fields_of(self.split, "processes", "threads", "parameters"),
            "region": self.split.region.name,
            "terms": self.terms,
            "cancelling": None if found is None else [one.term.name for one in found],
        }


def by_term(splits: Iterable[Split]) -> tuple[ByTerm, ...]:
    """Compare the terms of every split that has runs with efficiencies."""
    every = (_compared(split) for split in splits)
    return tuple(one for one in every if one is not None)


def _compared(split: Split) -> ByTerm | None:
    pairs = [pair for pair in split.runs if pair.run.metrics.get(TERMS_FAMILY)]
    if not pairs:
        return None
    predicted = pairs[0].predicted.terms
    measured: list[Mapping[str, Any]] = [
        terms(pair.run.runtime, pair.run.metrics[TERMS_FAMILY]) for pair in pairs
    ]
    both = {name for name in predicted if all(name in one for one in measured)}
    runtime = sum(pair.run.runtime for pair in pairs) / len(pairs)
    found = []
    for term in leaves(dict.fromkeys(both)):
        one = predicted[term.name]
        times = tuple(float(each[term.name]) for each in measured)
        found.append(TermComparison(term, Repeated(times, one), runtime))
    return ByTerm(split, tuple(found)) if found else None


def errors_by_term(found: Iterable[ByTerm]) -> list[dict[str, Any]]:
    """Return the errors of every term at all tests that have it, as parts of measured runtimes.

    In the order of `popmodel.efficiency.evaluation.TERMS`.
    """
    errors: dict[str, list[float]] = {term.name: [] for term in TERMS}
    for split in found:
        if split.split.region.is_test:
            for compared in split.terms:
                errors[compared.term.name].append(compared.error)
    return [
        {
            "term": name,
            "splits": len(some),
            "median_error": float(np.median(np.abs(some))),
            "largest_error": max(map(abs, some)),
            "bias": sum(some) / len(some),
        }
        for name, some in errors.items()
        if some
    ]


def sentences(compared: Sequence[ByTerm], names: Sequence[str] = ()) -> tuple[str, ...]:
    """Say where a right runtime comes from wrong terms."""
    said = []
    for terms_of_split in compared:
        if terms_of_split.cancelling is None:
            continue
        short, long = terms_of_split.cancelling
        split = terms_of_split.split
        said.append(
            f"{split.describe(names)}: the runtime is off by {100 * split.error:+.1f} % as errors "
            f"cancel: of the runtime, {short.term.label} is {-100 * short.error:.2g} % too short "
            f"and {long.term.label} {100 * long.error:.2g} % too long"
        )
    return tuple(said)


@dataclass(frozen=True)
class BaselineErrors:
    """The errors of one way to predict."""

    name: str  # `MODEL` or a baseline
    splits: int  # Tests, the same for all
    # Of the relative errors of runtimes.
    median_error: float
    largest_error: float
    bias: float
    # Mean size of the model's relative errors over that of this baseline's, in the manner of R. J.
    # Hyndman, A. B. Koehler, Int. J. Forecast. 22 (2006) 679: below 1 the model is better. None of
    # the model itself, and of a baseline without error.
    mase: float | None


@dataclass(frozen=True)
class Baselines:
    """What plain extrapolations of the same runs make of the tests (`popmodel.fit.baselines`)."""

    # Whether they saw the runs of the fit; False if each test was extrapolated from all others,
    # which is more than the model has seen.
    declared: bool
    # Those that there are runs of the same problem for, with runtimes by the names of `BASELINES`.
    tests: tuple[tuple[Split, Mapping[str, float]], ...]
    errors: tuple[BaselineErrors, ...]  # First the model

    def to_dict(self) -> dict[str, Any]:
        """Return measured and predicted runtimes as JSON types."""
        return {
            "declared": self.declared,
            "tests": [
                {
                    **fields_of(split, "processes", "threads", "parameters"),
                    "measured": split.runtime.mean,
                    "predicted": {MODEL: split.runtime.predicted, **values},
                }
                for split, values in self.tests
            ],
            "errors": self.errors,
        }


def compare_baselines(splits: Sequence[Split], training: Training | None) -> Baselines | None:
    """Extrapolate to every test; None where there is nothing to extrapolate from."""
    declared = training is not None and bool(training.runs)
    tests = []
    for split in splits:
        if declared and training is not None:
            samples = [
                Sample(run.processes, run.threads, run.runtime)
                for run in training.runs
                if run.parameters == split.parameters
            ]
        else:
            samples = [
                Sample(other.processes, other.threads, time)
                for other in splits
                if other is not split and other.parameters == split.parameters
                for time in other.runtime.measured
            ]
        if samples:
            tests.append((split, baselines(samples, split.processes, split.threads)))
    if not tests:
        return None
    means = np.array([split.runtime.mean for split, _ in tests])
    ours = np.array([split.runtime.predicted for split, _ in tests]) / means - 1
    errors = [_baseline_errors(MODEL, ours, None)]
    for name in BASELINES:
        theirs = np.array([values[name] for _, values in tests]) / means - 1
        size = float(np.abs(theirs).mean())
        mase = float(np.abs(ours).mean()) / size if size else None
        errors.append(_baseline_errors(name, theirs, mase))
    return Baselines(declared, tuple(tests), tuple(errors))


def _baseline_errors(name: str, errors: Any, mase: float | None) -> BaselineErrors:
    sizes = np.abs(errors)
    return BaselineErrors(
        name, len(errors), float(np.median(sizes)), float(sizes.max()), float(errors.mean()), mase
    )


Choose = Callable[[Mapping[str, float], Sequence[tuple[int, int]]], SplitChoice | None]
"""From parameters and splits to which of them is recommended; None if that cannot be told."""


@dataclass(frozen=True)
class MeasuredSplit:
    """A split that was measured."""

    # P and T.
    processes: int
    threads: int
    measured: float  # Mean runtime, s
    predicted: float  # Runtime, s
    is_test: bool  # Whether no fit has seen its configuration
    loss: float  # Measured runtime over that of the best measured split, less 1


@dataclass(frozen=True)
class DefaultSplit:
    """What people take without a model."""

    name: str  # What it is called
    split: tuple[int, int]  # P and T
    loss: float | None  # As of `MeasuredSplit`; None if it was not measured


@dataclass(frozen=True)
class SplitDecision:
    """How good the choice among the measured splits of a number of cores would have been."""

    cores: int  # P T
    parameters: Mapping[str, float]  # Of the application
    options: tuple[MeasuredSplit, ...]  # The measured splits, by rising threads
    # The split that is recommended among them, and the one that was fastest.
    take: tuple[int, int]
    best: tuple[int, int]
    announced: float | None  # Expected loss of the recommended one as predicted, relative
    regret: float  # Its loss as measured
    # Splits that are predicted to be equally good, the recommended one among them.
    tied: tuple[tuple[int, int], ...]
    defaults: tuple[DefaultSplit, ...]  # What the usual defaults would have cost


def decisions(splits: Sequence[Split], choose: Choose) -> tuple[SplitDecision, ...]:
    """Judge the choices that the measured splits allow, by parameters and cores.

    A number of cores of which fewer than two splits, or no test, were measured allows none.
    """
    groups: dict[tuple[Any, ...], dict[tuple[int, int], list[Split]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for split in splits:
        key = (tuple(sorted(split.parameters.items())), split.processes * split.threads)
        groups[key][split.processes, split.threads].append(split)
    choices = []
    for (parameters, cores), by_split in sorted(groups.items()):
        options = _options(by_split)
        if len(options) < 2 or not any(split.is_test for split in options):
            continue
        made = choose(dict(parameters), [(split.processes, split.threads) for split in options])
        if made is not None:
            choices.append(_decision(cores, dict(parameters), options, made))
    return tuple(choices)


def _options(by_split: Mapping[tuple[int, int], Sequence[Split]]) -> tuple[MeasuredSplit, ...]:
    means = {}
    for pair, some in by_split.items():
        times = [time for split in some for time in split.runtime.measured]
        means[pair] = sum(times) / len(times)
    best = min(means.values())
    return tuple(
        MeasuredSplit(
            *pair,
            means[pair],
            some[0].runtime.predicted,
            any(split.region.is_test for split in some),
            means[pair] / best - 1,
        )
        for pair, some in sorted(by_split.items(), key=lambda item: item[0][1])
    )


def _decision(
    cores: int,
    parameters: Mapping[str, float],
    options: tuple[MeasuredSplit, ...],
    made: SplitChoice,
) -> SplitDecision:
    losses = {(option.processes, option.threads): option.loss for option in options}
    return SplitDecision(
        cores,
        parameters,
        options,
        made.taken.split,
        min(losses, key=lambda pair: losses[pair]),
        made.taken.regret,
        losses[made.taken.split],
        tuple(option.split for option in made.tied),
        tuple(
            DefaultSplit(option.name, option.split, losses.get(option.split))
            for option in made.defaults
        ),
    )
