"""Predictions of truths, beside what happens: errors, coverage, the splits that are taken."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import popmodel
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables
from popmodel.fit.baselines import BASELINES
from popmodel.fit.calibrate import Calibrated, calibrate
from popmodel.fit.samples import END, Sample
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import Quantity
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import Estimate
from popmodel.prediction.prediction import assess
from popmodel.prediction.split_choice import SplitChoice, estimated
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.predictions import metrics_of_new_run, of_new_run
from truth.given import observables, write
from truth.measured import TruthRun
from truth.own import own
from truth.truths import Configuration, Truth

MAIN, TOP = "hybrid-additive", "parallel_efficiency"
AS_WRITTEN, CALIBRATED = "as written", "calibrated"
REGIONS: Mapping[str, Callable[[Truth], list[Configuration]]] = {
    "inside": Truth.inside,
    "P x 4": Truth.beyond4,
    "P x 8": Truth.beyond8,
}


@dataclass(frozen=True)
class Number:
    """A predicted number with its interval, if it has one."""

    value: float
    low: float | None = None
    high: float | None = None

    def covers(self, measured: float) -> bool | None:
        """Whether the interval holds a measured value; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= measured <= self.high

    @property
    def half_width(self) -> float | None:
        """Half of the interval over the value; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.value


@dataclass(frozen=True)
class Compared:
    """A metric of a run that nobody had measured."""

    # Of one run, and of the mean of many.
    measured: float
    mean: float
    # What was foretold of one run, and of the mean of many.
    said: Number
    said_of_mean: Number

    @property
    def error(self) -> float:
        """Of what was foretold for the run."""
        return abs(self.said.value - self.measured)


@dataclass(frozen=True)
class Row:
    """A run that nobody had measured, and what a method said of it."""

    method: str  # Who foretold
    region: str  # Of `REGIONS`
    size: Configuration  # Processes and threads
    measured: float  # Runtime, s
    said: Number  # Runtime that was foretold, with the interval for one run
    # Of the additive hybrid family, by id; empty where nothing was foretold of them.
    metrics: Mapping[str, Compared]

    @property
    def error(self) -> float:
        """Of the runtime, relative to what was measured."""
        return abs(self.said.value / self.measured - 1)


@dataclass(frozen=True)
class Decision:
    """A split that was taken."""

    method: str  # By whom
    size: Configuration  # Processes and threads
    announced: float | None  # Expected loss that was announced
    found: float  # By how much it takes longer than the fastest of all splits, noise left out


@dataclass(frozen=True)
class Verdict:
    """All that is found of one truth."""

    truth: Truth
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]
    default: float
    seconds: float
    calibrated: Calibrated = field(repr=False)


def binomial(held: Sequence[bool]) -> tuple[float, float]:
    """Interval of 90 % of a probability (E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209)."""
    count, part = len(held), sum(held) / len(held)
    middle = part + END**2 / (2 * count)
    reach = END * math.sqrt(part * (1 - part) / count + (END / (2 * count)) ** 2)
    whole = 1 + END**2 / count
    return max(middle - reach, 0.0) / whole, min(middle + reach, whole) / whole


def measurement(run: TruthRun, number: int = 0) -> MeasuredRow:
    """Return a run as it is read from its trace, with every metric."""
    observed = Observables(**observables(run))  # type: ignore[arg-type]
    aggregates = observed.aggregates() | run.aggregates
    metrics = {
        name: family.evaluate(aggregates, observed.absent).values
        for name, family in load_families().items()
    }
    return MeasuredRow(
        f"run-{number}.prv",
        run.processes,
        run.threads,
        aggregates["runtime"],
        metrics,
        parameters=run.parameters,
        aggregates=aggregates,
    )


def without_metrics(run: MeasuredRow) -> MeasuredRow:
    """Return a run of which only the runtime is known."""
    return MeasuredRow(
        run.source, run.processes, run.threads, run.runtime, {}, parameters=run.parameters
    )


def calibrated(signature: Signature, profile: Profile, runs: Sequence[MeasuredRow]) -> Calibrated:
    """Calibrate a signature by measured runs."""
    return calibrate(signature, profile, runs)


def read(one: Truth, folder: Path) -> tuple[Signature, Profile]:
    """Return what people know of a truth; its files are written to a folder."""
    paths = write(one, folder)
    return popmodel.load_signature(paths[0]), popmodel.load_machine(paths[1])


def judged(
    one: Truth,
    folder: Path,
    only_runtimes: bool = False,
    methods: Sequence[str] = (CALIBRATED, AS_WRITTEN, *BASELINES),
) -> Verdict:
    """Calibrate by the runs of a truth, and foretell those that were not made."""
    signature, profile = read(one, folder)
    runs = [measurement(one.run(*size), number) for number, size in enumerate(one.training())]
    if only_runtimes:
        runs = [without_metrics(run) for run in runs]
    began = time.process_time()
    found = calibrated(signature, profile, runs)
    seconds = time.process_time() - began
    samples = [Sample(run.processes, run.threads, run.runtime) for run in runs]
    tests = {
        (region, size): (one.run(*size, repeat=1), one.expected(*size))
        for region, sizes in REGIONS.items()
        for size in sizes(one)
    }
    cores = 8 * one.machine.cores
    splits = one.splits(cores)
    times = {size: one.expected(*size).runtime for size in splits}
    best = min(times.values())
    known = {
        CALIBRATED: (found.signature, found.fit.noise),
        AS_WRITTEN: (signature, _USUAL_NOISE),
    }
    rows: list[Row] = []
    decisions: list[Decision] = []
    for method in methods:
        if method in known:
            used, noise = known[method]
            foretell = _by_model(used, profile, noise)
            choice = _choice(used, profile, cores)
            size, announced = choice.taken.split, choice.taken.regret
        else:
            foretell = _by_baseline(method, samples)
            size = min(splits, key=lambda each: BASELINES[method](samples, *each))
            announced = None
        decisions.append(Decision(method, size, announced, times[size] / best - 1))
        for (region, tested), (run, mean) in tests.items():
            runtime, metrics = foretell(*tested)
            compared = {
                name: Compared(run.metrics[MAIN][name], mean.metrics[MAIN][name], *numbers)
                for name, numbers in metrics.items()
                if name in run.metrics[MAIN]
            }
            measured = run.aggregates["runtime"]
            rows.append(Row(method, region, tested, measured, runtime, compared))
    default = times[splits[0]] / best - 1
    return Verdict(one, tuple(rows), tuple(decisions), default, seconds, found)


Foretell = Callable[[int, int], tuple[Number, dict[str, tuple[Number, Number]]]]
"""From P and T to the runtime of a run, and metrics of one run and of the mean of many."""


def _by_model(signature: Signature, profile: Profile, noise: float) -> Foretell:
    study = Study(signature, profile, {}, DRAWS, 0)
    family = load_families()[MAIN]

    def foretell(processes: int, threads: int) -> tuple[Number, dict[str, tuple[Number, Number]]]:
        placement = study.admit(processes, threads)
        run = study.outcome(placement, study.sources())
        validity = assess(profile, placement, run.machine.used)
        metrics = family.evaluate_samples(run.modelled.aggregates, run.modelled.absent).values
        runtime = estimated(run.modelled.runtime, validity)
        means = {name: estimated(value, validity) for name, value in metrics.items()}
        runs = metrics_of_new_run({MAIN: means}, noise)[MAIN]
        found = {name: (_number(runs[name]), _number(one)) for name, one in means.items()}
        return _number(of_new_run(runtime, noise)), found

    return foretell


def _number(said: Estimate) -> Number:
    return Number(said.value, said.low, said.high)


def _by_baseline(method: str, samples: Sequence[Sample]) -> Foretell:
    def foretell(processes: int, threads: int) -> tuple[Number, dict[str, tuple[Number, Number]]]:
        return Number(BASELINES[method](samples, processes, threads)), {}

    return foretell


def _choice(signature: Signature, profile: Profile, cores: int) -> SplitChoice:
    (choice,) = popmodel.predict(signature, machine=profile, cores=cores, draws=DRAWS).choices
    return choice


DRAWS = 400
_USUAL_NOISE = 0.02


@dataclass(frozen=True)
class Poisoned:
    """What one disturbed run does."""

    named: bool  # Whether it is suspected, and no other run is
    alarms: int  # Runs that are suspected though nothing disturbed them, without the disturbed one
    # By how much it moves the runtime that is foretold, in half widths of the interval that the
    # undisturbed runs give.
    moved: float


def poisoned(one: Truth, folder: Path, before: Calibrated) -> Poisoned:
    """Calibrate with a run that took twice as long; foretell four times as many processes."""
    signature, profile = read(one, folder)
    clean = [one.run(*size) for size in one.training()]
    disturbed, where = one.poisoned(clean)
    after = calibrated(signature, profile, [measurement(run, k) for k, run in enumerate(disturbed)])
    undisturbed, moved = (
        _by_model(found.signature, profile, 0.0)(*one.beyond4()[0])[0] for found in (before, after)
    )
    gap = math.log(moved.value / undisturbed.value)
    end = undisturbed.high if gap > 0 else undisturbed.low
    reach = math.inf if end is None else abs(math.log(end / undisturbed.value))
    return Poisoned(
        [each.run for each in after.outliers] == [where], len(before.outliers), abs(gap) / reach
    )


@dataclass(frozen=True)
class Recovered:
    """A constant that is known, and what a calibration says of it."""

    true: float  # Its value
    # As it was stated, and as the runs have left it.
    before: Number
    after: Number


def recovered(seed: int, folder: Path) -> list[Recovered]:
    """Calibrate by runs that the model itself has made; compare the constants."""
    one = own(seed, folder)
    signature, profile = read(one.stated, folder)
    found = calibrated(signature, profile, one.training()).signature

    def number(quantity: Quantity) -> Number:
        return Number(quantity.value, quantity.low, quantity.high)

    return [
        Recovered(true, number(signature.constants[name]), number(found.constants[name]))
        for name, true in one.constants.items()
    ]
