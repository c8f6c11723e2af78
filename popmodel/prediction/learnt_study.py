"""Predictions from a signature that was learnt from runs: anchored at them, no surer than they are.

Three candidates tell the runtime: the model of the program's parts, laws of the run as a whole
(`popmodel.fit.whole_run`), and the nearest run's own time with its work divided anew. Each predicts
the learnt runs that are left out; the better it does, the more it weighs. The answer is their mean
on a logarithmic scale, and draws come from their mixture, as wide as these errors ask for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from popmodel.errors import PopmodelError
from popmodel.expressions.elementary import Value, numbers
from popmodel.fit.samples import Sample
from popmodel.fit.whole_run import WholeRun, whole_run
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import END
from popmodel.model.evaluation import Evaluation, Outcome
from popmodel.model.laws import PROGRAM
from popmodel.model.performance import Known
from popmodel.model.replayed.agreement import Agreement
from popmodel.model.run.course import Course
from popmodel.model.run.observe import observe
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.placement import WHOLE, Allocation, Placement
from popmodel.model.signature.learnt_runs import LearntRun
from popmodel.model.signature.program import Signature
from popmodel.model.study import Study
from popmodel.model.uncertainty import FIRST, Array, Draws, drawn_only, estimate, nominal
from popmodel.values import dataclass

FORM, ERROR = PROGRAM
CANDIDATES = ("parts", "whole run", "nearest run")
"""What tells the runtime: the model of the parts, laws of the whole run, the nearest run's time."""
PRIOR = np.array([0.8, 0.15, 0.05])
"""Weights of the candidates before they are tested."""
SUPERLINEAR = 2.0
"""By how much a speed-up may exceed the ratio of the cores, if runs show no more: caches."""
FAR = 2.0
"""A measured runtime off the model by more than this factor is disturbed or of another machine."""
_UNTESTED = 0.1  # error, as a logarithm, of a candidate that nothing tests
_FLOOR = 0.05  # errors below tell candidates apart no more
_TOLERANCE = 1.5  # times the error of the best candidate, which others are held against
_MOST_TESTS = 4  # tests beyond these make no candidate likelier: they share what is wrong
_GROWTH = 0.75  # of the error with the distance, in doublings of the cores, beyond the first
_OWN = 0.5  # of the variance, which every split has for itself
_PER_DOUBLING = 0.05  # error, for each doubling of a parameter, or of threads, beyond the runs
_LEAST = 0.02  # error of a run
_NOTEWORTHY = 0.1  # error of a run that is left out or predicted back, from which it may be a miss
_WAITED = 0.1  # share of the time that threads waited for CPUs
_CONFIGURATIONS, _UNPROVEN = 3, 0.9  # with fewer numbers of P, or of T, nothing is surer


@dataclass(frozen=True)
class Anchor:
    """A learnt run on the machine at hand, s."""

    run: LearntRun
    predicted: float  # By the model of the parts
    # As measured, or, without, as the model says it with the replay of the trace for its own.
    seconds: float
    computing: float  # Computing of a process, by the model
    interval: tuple[float, float]  # Of ``predicted``; the value twice where it was not asked for

    def to_dict(self) -> dict[str, Any]:
        """Return the run predicted back as JSON types."""
        run = self.run
        return {
            "processes": run.processes,
            "threads": run.threads,
            "parameters": dict(run.parameters),
            "measured": run.runtime,
            "predicted": self.predicted,
            "error": self.predicted / self.seconds - 1,
            "left_out_error": None if run.left_out is None else run.left_out - 1,
            "waited": run.waited,
        }


@dataclass(frozen=True)
class Extrapolation:
    """The runtime of one configuration, by all candidates; logarithms of seconds."""

    parts: float  # By the model of the parts as it is
    centers: Array  # By candidate
    weights: Array
    errors: Array  # Of runs that are left out, root mean square
    deviations: Array  # Standard deviations here
    own: float  # The part of these that a split has for itself
    least: float  # What sanity allows
    outside: Mapping[str, float] = field(default_factory=dict)  # Parameters: times the range seen

    @property
    def center(self) -> float:
        """Best estimate."""
        return max(float(self.weights @ self.centers), self.least)

    def factor(self, runtime: Value, drawn: Draws, split: str) -> Value:
        """What the times of the model of the parts are multiplied by, in every draw."""
        if not drawn.count:
            return math.exp(self.center - self.parts)
        change = np.broadcast_to(np.log(numbers(runtime)), FIRST + drawn.count)
        change = change - change[0]
        spread = float(np.std(drawn_only(change)))
        known = np.array([spread, 0.0, 0.0])
        wider = np.sqrt(np.maximum(self.deviations**2 - known**2, 0.0))
        share = np.array([0.5 * (1 + math.erf(z / math.sqrt(2))) for z in drawn.scores(FORM)])
        form = np.minimum(np.searchsorted(np.cumsum(self.weights), share), len(self.weights) - 1)
        common, own = drawn.scores(ERROR), drawn.scores(f"{ERROR} of {split}")
        off = wider[form] * math.sqrt(1 - _OWN) * common
        off = off + np.hypot(wider[form] * math.sqrt(_OWN), self.own) * own
        logs = self.centers[form] + off + np.where(form == 0, change, 0.0)
        middle = float(self.weights @ self.centers)
        logs[:FIRST] = middle + self.weights[0] * change[:FIRST]
        # what sanity allows moves all draws alike: none of their width is lost above it
        logs = np.maximum(logs + (self.center - middle), self.least)
        found: Array = np.exp(logs - self.parts - change)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return candidates and ranges as JSON types."""
        rows = zip(CANDIDATES, self.centers, self.weights, self.errors, strict=True)
        return {
            "candidates": [
                {"name": name, "runtime": math.exp(center), "weight": weight, "error": error}
                for name, center, weight, error in rows
            ],
            "outside": dict(self.outside),
        }


class WholeProgram:
    """What the runs behind a signature say of the program as a whole on a machine."""

    def __init__(self, signature: Signature, profile: Profile, seed: int) -> None:
        assert signature.learnt is not None
        self.signature, self.profile, self.seed = signature, profile, seed
        self.learnt = signature.learnt
        self._agreements: dict[Any, Agreement | str] = {}
        self._laws: dict[Any, tuple[WholeRun | None, Array]] = {}
        self._at: dict[Any, Extrapolation | None] = {}

    def study(self, parameters: Mapping[str, float], draws: int = 0) -> Study:
        """The model of the parts alone."""
        return Study(self.signature, self.profile, parameters, draws, self.seed)

    def agreement(self, study: Study, placement: Placement) -> Agreement | None:
        """The replay of a configuration, once; None where nothing can be replayed."""
        key = (placement, *sorted(study.values.items()))
        if key not in self._agreements:
            try:
                self._agreements[key] = Study.replay(study, placement)
            except NotUnrolled as reason:
                self._agreements[key] = str(reason)
        found = self._agreements[key]
        if isinstance(found, str):
            raise NotUnrolled(found)
        return found

    def _parts(self, study: Study, placement: Placement) -> Evaluation:
        """A run by the model of the parts."""
        try:
            agreement = self.agreement(study, placement)
        except NotUnrolled:
            agreement = None
        return Study.run(study, placement, study.sources(), agreement=agreement)

    @cached_property
    def anchors(self) -> tuple[Anchor, ...]:
        """The runs that this machine has room for, the first those on the most cores."""
        found = []
        for run in sorted(self.learnt.runs, key=lambda one: -one.cores):
            study = self.study(run.parameters)
            try:
                placement = study.admit(run.processes, run.threads)
                evaluation = self._parts(study, placement)
            except PopmodelError:  # no room for it, or the machine is not known there
                continue
            predicted = nominal(evaluation.modelled.runtime)
            replayed, measured = predicted * run.ideal / run.written, self._measured(run)
            close = measured is not None and 1 / FAR < measured / replayed < FAR
            seconds = measured if measured is not None and close else replayed
            ends = (predicted, predicted)
            off = max(abs(math.log(each / predicted)) for each in (seconds, measured or seconds))
            if max(off, abs(math.log(run.left_out or 1.0))) > _NOTEWORTHY:
                drawn = estimate(
                    self._parts(self.study(run.parameters, 200), placement).modelled.runtime
                )
                if drawn.low is not None and drawn.high is not None:
                    ends = (drawn.low, drawn.high)
            found.append(Anchor(run, predicted, seconds, _computing(evaluation), ends))
        return tuple(found)

    def _measured(self, run: LearntRun) -> float | None:
        """A runtime that was measured on this machine, as far as that can be known."""
        is_of_it = run.waited <= _WAITED and not self.profile.is_preset
        return run.runtime if is_of_it else None

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why predictions are not to be trusted yet, a sentence each, the worst first."""
        found = [
            (run.waited, f"threads of {run.name} waited for CPUs {percent(run.waited)} of the time")
            for run in self.learnt.runs
            if run.waited > _WAITED
        ]
        for anchor in self.anchors:
            run, measured = anchor.run, self._measured(anchor.run)
            low, high = (end / anchor.predicted for end in anchor.interval)
            for ratio, text in (
                (anchor.predicted / (measured or anchor.seconds), "predicted back"),
                (run.left_out or 1.0, "predicted from the other runs"),
            ):
                off = abs(math.log(ratio))
                if off > _NOTEWORTHY and not low <= 1 / ratio <= high:
                    found.append((off, f"{run.name}, {text}, is {percent(ratio - 1, '+')} off"))
        return tuple(dict.fromkeys(text for _, text in sorted(found, key=lambda one: -one[0])))

    @property
    def surest(self) -> float:
        """The largest probability that runs of so few processes, or threads, allow."""
        few = len({run.processes for run in self.learnt.runs}) < _CONFIGURATIONS
        if self.learnt.openmp:
            few |= len({run.threads for run in self.learnt.runs}) < _CONFIGURATIONS
        return _UNPROVEN if few else 1.0

    def next_run(self, placement: Placement | None) -> dict[str, int]:
        """The run that would tell most: twice the cores of the largest, or what is asked for."""
        largest = max(self.learnt.runs, key=lambda run: run.cores)
        processes, threads = 2 * largest.processes, largest.threads
        if placement is not None and placement.cores < processes * threads:
            processes, threads = placement.processes, placement.threads
        return {"processes": processes, "threads": threads}

    def facts(self, placement: Placement | None, here: Extrapolation | None) -> dict[str, Any]:
        """What documents have of the runs, and of the candidates for one configuration."""
        found: dict[str, Any] = {
            "doubts": list(self.doubts),
            "next_run": self.next_run(placement),
            "runs": [anchor.to_dict() for anchor in self.anchors],
        }
        return found if here is None else found | here.to_dict()

    def at(self, study: Study, placement: Placement) -> Extrapolation | None:
        """Say what a configuration takes; None where no run tells of it."""
        parameters = {name: one.value for name, one in study.params.items()}
        key = (placement, *sorted(parameters.items()))
        if key not in self._at:
            self._at[key] = self._extrapolated(parameters, placement) if self.anchors else None
        return self._at[key]

    def _extrapolated(self, parameters: Mapping[str, float], placement: Placement) -> Extrapolation:
        study = self.study(parameters)
        here = self._parts(study, placement)
        parts, computing = math.log(nominal(here.modelled.runtime)), _computing(here)
        outside = self.outside(parameters)
        moved = np.array([self._moved(anchor, study) for anchor in self.anchors])
        seconds = np.array([anchor.seconds for anchor in self.anchors])
        gaps = np.log(seconds / np.array([anchor.predicted for anchor in self.anchors]))
        far = np.array([_distance(anchor.run, placement) for anchor in self.anchors])
        near = 2.0**-far
        gap = float(near @ gaps / near.sum())
        law, tested = self._law(parameters, moved)
        nearest = self.anchors[int(far.argmin())]
        plain = math.log(nearest.seconds * computing / nearest.computing)
        by_law, width = self._by_law(law, study, placement, parts)
        errors = np.vstack([self._left_out(gaps - gap), tested])
        rms = np.sqrt(np.mean(errors**2, axis=1))
        distance = abs(math.log2(placement.cores / nearest.run.cores))
        growth = max(distance, 1.0) ** _GROWTH
        beyond = _PER_DOUBLING * sum(map(math.log2, outside.values()))
        deviations = np.maximum(rms, _LEAST) * growth
        deviations[1] = max(deviations[1], width)
        threads = abs(math.log2(placement.threads / nearest.run.threads))
        centers = np.array([parts + gap, by_law, plain])
        return Extrapolation(
            parts,
            np.where(np.isfinite(centers), centers, parts + gap),
            _weights(errors, np.isfinite(centers)),
            rms,
            np.hypot(deviations, beyond),
            _PER_DOUBLING * threads,
            self._least(placement, parameters, moved, computing),
            outside,
        )

    def outside(self, parameters: Mapping[str, float]) -> dict[str, float]:
        """By what factor parameters are outside of those of the runs."""
        found = {}
        for name, (low, high) in self.learnt.ranges.items():
            factor = max(parameters[name] / high, low / parameters[name])
            if factor > 1 + 1e-9:
                found[name] = factor
        return found

    def _moved(self, anchor: Anchor, study: Study) -> float:
        """The time of a run with other parameters: by its work; nan where it cannot have them."""
        run = anchor.run
        if all(study.params[name].value == value for name, value in run.parameters.items()):
            return anchor.seconds
        try:
            there = Study.run(study, study.admit(run.processes, run.threads), study.sources())
        except PopmodelError:
            return math.nan
        return anchor.seconds * _computing(there) / anchor.computing

    def _law(self, parameters: Mapping[str, float], moved: Array) -> tuple[WholeRun | None, Array]:
        """The law of the whole run, and errors of it and of the nearest run at those left out."""
        key = tuple(sorted(parameters.items()))
        if key not in self._laws:
            runs = [anchor.run for anchor in self.anchors]
            known = [index for index, value in enumerate(moved) if math.isfinite(value)]
            law = _law([runs[i] for i in known], moved[known])
            share = np.log([anchor.computing / anchor.seconds for anchor in self.anchors])
            errors = np.full((2, len(runs)), _UNTESTED)
            for index, run in enumerate(runs):
                others = [i for i in known if runs[i].configuration != run.configuration]
                if index in known and others:
                    nearest = min(others, key=lambda i: _apart(runs[i], run))
                    errors[1, index] = abs(share[index] - share[nearest])
                    within = _law([runs[i] for i in others], moved[others])
                    if within is not None:
                        predicted = within.at(run.processes, run.threads).value
                        errors[0, index] = abs(math.log(predicted / moved[index]))
            self._laws[key] = law, errors
        return self._laws[key]

    def _by_law(
        self, law: WholeRun | None, study: Study, placement: Placement, parts: float
    ) -> tuple[float, float]:
        """Runtime by the law of the whole run, and its standard deviation, as logarithms.

        Where runs do not have as many threads, the law tells of those of as many cores whose
        threads they have, and the model of the parts how this split compares with it.
        """
        if law is None:
            return math.nan, 0.0
        counts = {anchor.run.threads for anchor in self.anchors}
        threads = min(counts, key=lambda count: abs(math.log2(count / placement.threads)))
        at, there = placement, parts
        if threads != placement.threads and placement.cores % threads == 0:
            try:
                at = study.admit(placement.cores // threads, threads)
                there = math.log(nominal(self._parts(study, at).modelled.runtime))
            except PopmodelError:
                at, there = placement, parts
        found = law.at(at.processes, at.threads)
        width = math.log(found.high / found.low) / (2 * END)
        return parts + math.log(found.value) - there, width

    def _left_out(self, rest: Array) -> Array:
        """Errors of the model of the parts: of runs that are left out, at least of those kept."""
        tested = [
            _UNTESTED if anchor.run.left_out is None else abs(math.log(anchor.run.left_out))
            for anchor in self.anchors
        ]
        return np.maximum(np.array(tested), np.abs(rest))

    def _least(
        self,
        placement: Placement,
        parameters: Mapping[str, float],
        moved: Array,
        computing: float,
    ) -> float:
        """The logarithm of the shortest time that makes sense.

        More work on the same cores is never faster than measured there, and a speed-up over a run
        never above the ratio of the cores times what caches may bring. Runs whose threads waited
        for CPUs say nothing of that.
        """
        quiet = np.array([anchor.run.waited <= _WAITED for anchor in self.anchors])
        known = np.isfinite(moved) & quiet
        cores = np.array([anchor.run.cores for anchor in self.anchors], dtype=np.float64)[known]
        area = moved[known] * cores
        gain = max(
            [SUPERLINEAR, *(area[i] / a for i, c in enumerate(cores) for a in area[cores > c])]
        )
        least = float((area / gain).max(initial=0.0)) / placement.cores
        for anchor in (anchor for anchor, able in zip(self.anchors, quiet, strict=True) if able):
            run = anchor.run
            same = (run.processes, run.threads) == (placement.processes, placement.threads)
            more = all(parameters[name] >= value for name, value in run.parameters.items())
            if same and more and computing > anchor.computing * (1 + _LEAST):
                least = max(least, anchor.seconds)
        return math.log(least) if least > 0 else -math.inf


class LearntStudy(Study):
    """A study whose runs take as long as the runs behind the signature and all candidates say."""

    def __init__(self, *given: Any, program: WholeProgram | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.parts = Study(*given, **named)
        self.program = program or WholeProgram(self.signature, self.profile, self.seed)

    def _like(self, signature: Signature, settings: Mapping[str, float]) -> Study:
        same = (self.draws, self.seed, self.factors, self.allocation)
        return LearntStudy(signature, self.profile, settings, *same, program=self.program)

    def run(
        self,
        placement: Placement,
        drawn: Draws,
        overlap: str | None = None,
        agreement: Agreement | None = None,
        known: Known | None = None,
    ) -> Evaluation:
        """Evaluate the model, and anchor it."""
        run = self.parts.run(placement, drawn, overlap, agreement, known)
        here = self.program.at(self, placement)
        if here is None:
            return run
        split = f"{placement.processes} x {placement.threads}"
        return self._scaled(run, here.factor(run.modelled.runtime, drawn, split), placement)

    def _scaled(self, run: Evaluation, factor: Value, placement: Placement) -> Evaluation:
        """Return a run all of whose parts take a factor longer."""
        times = ("overhead", "synchronising", "waiting", "transfer", "measured")
        longer = {name: getattr(run.work, name) * factor for name in times}
        work = replace(run.work.computed(factor), **longer)
        course = run.course
        course = Course(course.computing * factor, course.ideal * factor, course.runtime * factor)
        modelled = observe(work, placement, course, has_mpi=self.has_mpi)
        return replace(run, work=work, course=course, modelled=modelled)

    @property
    def surest(self) -> float:
        """The largest probability that is ever announced."""
        return self.program.surest

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why predictions are not to be trusted yet, a sentence each."""
        return self.program.doubts

    def learnt(self, placement: Placement | None = None) -> dict[str, Any] | None:
        """What documents have of the runs behind the signature."""
        here = None if placement is None else self.program.at(self, placement)
        return self.program.facts(placement, here)

    @property
    def outside(self) -> dict[str, float]:
        """Sentences on parameters outside of those of the runs, with how many times they are."""
        values = {name: one.value for name, one in self.params.items()}
        return {
            _beyond(name, values[name], self.program.learnt.ranges[name]): factor
            for name, factor in self.program.outside(values).items()
        }

    def scores(self, drawn: Draws) -> dict[str, Array]:
        """Return the normal scores of all groups of uncertain quantities, and of the candidates."""
        found = super().scores(drawn)
        return found | ({name: drawn.scores(name) for name in PROGRAM} if self.draws else {})

    def replay(self, placement: Placement) -> Agreement:
        """Put a replay beside the closed form, of the model of the parts."""
        if self.factors or self.signature is not self.program.signature:
            return self.parts.replay(placement)
        agreement = self.program.agreement(self.parts, placement)
        assert agreement is not None
        return agreement

    def outcome(self, placement: Placement, drawn: Draws) -> Outcome:
        """Evaluate a run as predictions show it."""
        try:
            agreement = self.replay(placement)
        except NotUnrolled as reason:
            return Outcome(self.run(placement, drawn), None, str(reason))
        return Outcome(self.run(placement, drawn, agreement=agreement), agreement, None)


def study_of(
    signature: Signature,
    profile: Profile,
    settings: Mapping[str, float],
    draws: int,
    seed: int,
    factors: Mapping[str, Value] | None = None,
    allocation: Allocation = WHOLE,
) -> Study:
    """Return the study of a program: anchored at the runs that it was learnt from, if any were.

    Where constants or spreads were set by hand it is another program than that of the runs.
    """
    same = signature.learnt is not None and settings.keys() <= signature.params.keys()
    kind = LearntStudy if same and not signature.set_imbalance else Study
    return kind(signature, profile, settings, draws, seed, factors, allocation)


def _beyond(name: str, value: float, seen: tuple[float, float]) -> str:
    """Say how far a parameter is outside of those of the runs: ``N = 900 is 3 x the largest``."""
    low, high = seen
    if value > high:
        return f"{name} = {value:g} is {value / high:.3g} x the largest of the runs ({high:g})"
    return f"{name} = {value:g} is 1/{low / value:.3g} of the smallest of the runs ({low:g})"


def _computing(run: Evaluation) -> float:
    """Computing of a process, s; without any, its runtime."""
    return nominal(run.work.serial + run.work.stretched) or nominal(run.modelled.runtime)


def _distance(run: LearntRun, placement: Placement) -> float:
    """Doublings of processes and threads between a run and a placement."""
    ratios = run.processes / placement.processes, run.threads / placement.threads
    return sum(abs(math.log2(ratio)) for ratio in ratios)


def _apart(run: LearntRun, other: LearntRun) -> float:
    """Doublings of processes, threads and parameters between two runs."""
    ratios = [run.processes / other.processes, run.threads / other.threads]
    ratios += [value / other.parameters[name] for name, value in run.parameters.items()]
    return sum(abs(math.log2(ratio)) for ratio in ratios)


def _law(runs: list[LearntRun], seconds: Array) -> WholeRun | None:
    """The law of runs as a whole; None if they are of one configuration."""
    if len({(run.processes, run.threads) for run in runs}) < 2:
        return None
    pairs = zip(runs, seconds.tolist(), strict=True)
    return whole_run([Sample(run.processes, run.threads, value, {}) for run, value in pairs])


def _weights(errors: Array, able: Array) -> Array:
    """Weights of candidates by their errors at runs that are left out."""
    tests = errors.shape[1]
    best = float(np.sqrt(np.mean(errors[able] ** 2, axis=1)).min())
    misfit = np.sum((errors / max(_FLOOR, _TOLERANCE * best)) ** 2, axis=1)
    logs = np.log(PRIOR) - misfit / 2 * min(1.0, _MOST_TESTS / tests)
    weights = np.where(able, np.exp(logs - logs[able].max()), 0.0)
    return np.asarray(weights / weights.sum())


def percent(share: float, sign: str = "") -> str:
    """A share in whole per cent."""
    return f"{100 * share:{sign}.0f} %"
