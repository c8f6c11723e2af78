"""Predictions from a signature that was learnt from runs: anchored at them, no surer than they are.

Three candidates tell the runtime: the model of the program's parts, laws of the run as a whole
(`popmodel.fit.baselines`), and the plain rule, the time of the nearest run divided anew. Each
predicts the learnt runs that are left out; the better it does, the more it weighs. The answer is
their mean on a logarithmic scale, and draws come from their mixture, as wide as these errors ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.values import dataclass
from popmodel.fit.baselines import whole_run
from popmodel.fit.mixture import Mixture
from popmodel.fit.samples import Sample
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import END
from popmodel.model.predictor import ModelEvaluation, Study
from popmodel.model.replayed_run import ReplayAgreement
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.process_placement import ImpossibleSplit, Placement
from popmodel.model.run.work import LARGEST, RunCourse, observe
from popmodel.model.signature.application import LearntRun, Signature, check_requirements
from popmodel.model.symbols import PROGRAM
from popmodel.model.tree import Known
from popmodel.model.uncertainty import FIRST, Array, Draws, drawn_only, interval, nominal

FORM, ERROR = PROGRAM
CANDIDATES = ("parts", "whole run", "plain rule")
"""What tells the runtime: the model of the parts, laws of the whole run, the nearest run's time."""
PRIOR = np.array([0.8, 0.15, 0.05])
"""Weights of the candidates before they are tested."""
SUPERLINEAR = 2.0
"""By how much a speed-up may exceed the ratio of the cores, if runs show no more: caches."""
DISTURBED = 2.0
"""A measured time off the model by more than this factor is disturbed, or of another machine."""
WAITED = 0.1
"""Share of the time waiting for CPUs, from which a run is disturbed."""
_NEARER = 4.0  # times as much tell errors of a run that is nearer by a doubling
_UNTESTED = 0.1  # error, as a logarithm, of a candidate that nothing tests
_ALIKE, _UNLIKE = 0.05, 0.2  # errors that tell candidates apart: at least, at most, and
_TOLERANCE = 1.5  # in between so many times those of the best one
_MOST_TESTS = 4  # tests beyond these make no candidate likelier: they share what is wrong
_GROWTH = 0.5  # power of the distance, in doublings of cores, by which errors grow beyond the first
_OWN = 0.5  # of the variance, which every split has for itself
_PER_DOUBLING = 0.05  # error for each doubling of a parameter, or of threads, beyond the runs
# More work for a core than any run had may not fit into caches any more, and hardly fits better:
# the standard deviation of that, upwards, with twice as much, and what part of it downwards.
_OUTGROWN, _DOWNWARDS = 0.15, 0.5
_SIZES = 3  # from which on times may bend
_LEAST = 0.03  # error of a run
_NOTEWORTHY = 0.1  # error of a run that is left out or predicted back, from which it may be a miss
_FARTHEST_RUN = 16  # so many times the processes of the largest run are advised at most
_CONFIGURATIONS, _UNPROVEN = 3, 0.9  # with fewer numbers of P, or of T, no split is surer


@dataclass(frozen=True)
class Anchor:
    """A learnt run on the machine at hand, s."""

    run: LearntRun
    measured: float | None  # On this machine, as far as that can be known
    predicted: float  # By the model of the parts
    seconds: float  # As measured; else as predicted, with the replay of its trace for its own
    computing: float  # Of a process, by the model
    change: Array  # Of ``predicted`` in draws, as a logarithm

    @property
    def misses(self) -> dict[str, float]:
        """Logarithms of what predictions are off that miss their interval, by what they are."""
        low, high = interval(self.change)
        pairs = {
            "predicted back": self.predicted / (self.measured or self.seconds),
            "predicted from the other runs": self.run.left_out or 1.0,
        }
        return {
            text: off
            for text, off in ((text, math.log(ratio)) for text, ratio in pairs.items())
            if abs(off) > _NOTEWORTHY and not (low or 0.0) <= -off <= (high or 0.0)
        }

    def to_dict(self) -> dict[str, Any]:
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
    own: float = 0.0  # Standard deviation of what a split has beside these for itself
    least: float = -math.inf  # What sanity allows
    outside: Mapping[str, float] = field(default_factory=dict)  # Parameters: times the range seen
    outgrown: float = 0.0  # Standard deviation upwards, of more work for a core than runs had
    known: Value = 0.0  # What of the change of the parts in draws a measured run knows

    @property
    def center(self) -> float:
        """Best estimate."""
        return max(float(self.weights @ self.centers), self.least)

    def factor(self, runtime: Value, drawn: Draws, split: str, block: Value = 0.0) -> Value:
        """What the times of the model of the parts are multiplied by, in every draw.

        A ``block`` of the work that all wait for, by how much it exceeds the average, delays any
        candidate: no run behind them met one that comes in a draw alone.
        """
        if not drawn.count:
            return math.exp(self.center - self.parts)
        change = np.broadcast_to(np.log(numbers(runtime)), FIRST + drawn.count)
        change = change - change[0]
        rest = change - self.known
        spread = np.array([float(np.std(drawn_only(rest))), 0.0, 0.0])
        wider = np.sqrt(np.maximum(self.deviations**2 - spread**2, 0.0))
        share = np.array([0.5 * (1 + math.erf(z / math.sqrt(2))) for z in drawn.scores(FORM)])
        form = np.minimum(np.searchsorted(np.cumsum(self.weights), share), len(self.weights) - 1)
        off = wider[form] * math.sqrt(1 - _OWN) * drawn.scores(ERROR)
        score = drawn.scores(f"{ERROR} of {split}")
        outgrown = self.outgrown * np.where(score > 0, 1.0, _DOWNWARDS)
        own = np.hypot(wider[form] * math.sqrt(_OWN), np.hypot(self.own, outgrown))
        off = off + own * score
        met = numbers(block) > 0
        delayed = (form == 0) | (met & ~np.broadcast_to(met, change.shape)[0])
        logs = self.centers[form] + off + np.where(delayed, rest, 0.0)
        middle = float(self.weights @ self.centers)
        logs[:FIRST] = middle + self.weights[0] * rest[:FIRST]
        # what sanity allows moves all draws alike: none of their width is lost above it
        logs = np.maximum(logs + (self.center - middle), self.least)
        found: Array = np.exp(logs - self.parts - change)
        return found

    def to_dict(self) -> dict[str, Any]:
        rows = zip(CANDIDATES, np.exp(self.centers), self.weights, self.errors, strict=True)
        names = ("name", "runtime", "weight", "error")
        candidates = [dict(zip(names, row, strict=True)) for row in rows]
        return {"candidates": candidates, "outside": dict(self.outside)}


class WholeProgram:
    """What the runs behind a signature say of the program as a whole on a machine."""

    def __init__(self, signature: Signature, profile: Profile, draws: int, seed: int) -> None:
        assert signature.learnt is not None
        self.signature, self.profile, self.draws, self.seed = signature, profile, draws, seed
        self.learnt = signature.learnt
        self._replays: dict[Any, ReplayAgreement | str] = {}
        self._laws: dict[Any, tuple[Mixture | None, Array]] = {}
        self._at: dict[Any, Extrapolation] = {}

    def replay(self, study: Study, placement: Placement) -> ReplayAgreement:
        """The replay of a configuration by the model of the parts, once."""
        key = (placement, *sorted(study.values.items()))
        if key not in self._replays:
            try:
                self._replays[key] = Study.replay(study, placement)
            except NotUnrolled as reason:
                self._replays[key] = str(reason)
        found = self._replays[key]
        if isinstance(found, str):
            raise NotUnrolled(found)
        return found

    def _parts(self, study: Study, placement: Placement) -> ModelEvaluation:
        """A run by the model of the parts."""
        try:
            replay = self.replay(study, placement)
        except NotUnrolled:
            replay = None
        return Study.run(study, placement, study.sources(), agreement=replay)

    def _study(self, parameters: Mapping[str, float], draws: int = 0) -> Study:
        return Study(self.signature, self.profile, parameters, draws, self.seed)

    @cached_property
    def anchors(self) -> tuple[Anchor, ...]:
        """The runs that this machine has room for, the first those on the most cores."""
        found = []
        for run in sorted(self.learnt.runs, key=lambda one: -one.cores):
            study = self._study(run.parameters, self.draws)
            try:
                here = self._parts(study, study.admit(run.processes, run.threads))
            except PopmodelError:  # no room for it, or the machine is not known there
                continue
            predicted = nominal(here.modelled.runtime)
            measured = run.runtime if not self.profile.is_preset and run.waited <= WAITED else None
            seconds = predicted * run.ideal / run.written
            if measured is not None and 1 / DISTURBED < measured / seconds < DISTURBED:
                seconds = measured
            change = np.log(numbers(here.modelled.runtime) / predicted)
            found.append(Anchor(run, measured, predicted, seconds, _computing(here), change))
        return tuple(found)

    @cached_property
    def _quiet(self) -> tuple[Anchor, ...]:
        """The runs that tell something: those whose threads had CPUs, if there are any."""
        quiet = tuple(anchor for anchor in self.anchors if anchor.run.waited <= WAITED)
        return quiet or self.anchors

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why predictions are not to be trusted yet, a sentence each, the worst first."""
        waited = {
            f"threads of {run.name} waited for CPUs {100 * run.waited:.0f} % of the time": 1.0
            for run in self.learnt.runs
            if run.waited > WAITED
        }
        missed = {
            f"{anchor.run.name}, {text}, is {_off(off)}": abs(off)
            for anchor in self.anchors
            for text, off in anchor.misses.items()
        }
        found = {**missed, **waited}
        return tuple(sorted(found, key=lambda text: -found[text]))

    @property
    def surest(self) -> float:
        """The largest probability that runs of so few processes, or threads, allow."""
        runs = self.learnt.runs
        varied = [{run.processes for run in runs}]
        varied += [{run.threads for run in runs}] if self.learnt.openmp else []
        return 1.0 if min(map(len, varied)) >= _CONFIGURATIONS else _UNPROVEN

    def facts(self, placement: Placement | None, here: Extrapolation | None) -> dict[str, Any]:
        """What documents have of the runs, and of the candidates for one configuration."""
        largest = max(self.learnt.runs, key=lambda run: run.cores)
        threads = largest.threads
        larger = [factor * largest.processes for factor in range(2, _FARTHEST_RUN + 1)]
        processes = next((count for count in larger if self._admits(count, largest)), larger[0])
        made = {(one.run.processes, one.run.threads) for one in self._quiet}
        if placement is not None and placement.cores < processes * threads:
            asked = placement.processes, placement.threads
            processes, threads = (processes, threads) if asked in made else asked
        found: dict[str, Any] = {
            "doubts": list(self.doubts),
            "next_run": {"processes": processes, "threads": threads},
            "runs": [anchor.to_dict() for anchor in self.anchors],
        }
        return found if here is None else found | here.to_dict()

    def _admits(self, processes: int, like: LearntRun) -> bool:
        """Whether the program runs on so many processes, all else as in a run."""
        asked = self.signature.with_settings(like.parameters)
        parameters = {name: one.value for name, one in asked.inputs.items()}
        try:
            check_requirements(self.signature, processes, like.threads, parameters)
        except ImpossibleSplit:
            return False
        return True

    def at(self, study: Study, placement: Placement) -> Extrapolation | None:
        """Say what a configuration takes; None where no run tells of it."""
        if not self.anchors:
            return None
        parameters = {name: one.value for name, one in study.params.items()}
        key = (placement, *sorted(parameters.items()))
        if key not in self._at:
            self._at[key] = self._extrapolated(parameters, placement)
        return self._at[key]

    def _extrapolated(self, parameters: Mapping[str, float], placement: Placement) -> Extrapolation:
        study, anchors = self._study(parameters), self._quiet
        here = self._parts(study, placement)
        parts = math.log(nominal(here.modelled.runtime))
        moved = np.array([self._moved(anchor, study) for anchor in anchors])
        gaps = np.log([anchor.seconds / anchor.predicted for anchor in anchors])
        far = np.array([_apart(anchor.run, placement, parameters) for anchor in anchors])
        gap = float(np.average(gaps, weights=2.0**-far))
        able = np.flatnonzero(np.isfinite(moved))
        nearest = int(able[far[able].argmin()]) if len(able) else int(far.argmin())
        base = anchors[nearest].run
        law, tested = self._law(parameters, moved)
        by_law, width = self._by_law(law, study, placement, parts)
        plain = math.log(moved[nearest] * base.cores / placement.cores)
        centers = np.array([parts + gap, by_law, plain])
        left_out = np.abs(np.log([one.run.left_out or math.nan for one in anchors]))
        errors = np.vstack([np.maximum(left_out, np.abs(gaps - gap)), tested])
        squares = np.where(np.isnan(errors), _UNTESTED, errors) ** 2
        rms = np.sqrt(np.average(squares, axis=1, weights=_NEARER**-far))
        outside = self.outside(parameters)
        distance = max(abs(math.log2(placement.cores / base.cores)), 1.0)
        deviations = np.maximum(rms, _LEAST) * distance**_GROWTH
        deviations[1] = max(deviations[1], width)
        deviations = np.hypot(deviations, _PER_DOUBLING * sum(map(math.log2, outside.values())))
        deviations = np.hypot(deviations, self._bend(parameters, moved, outside))
        is_measured = anchors[nearest].measured == anchors[nearest].seconds
        growth = _computing(here) / max(anchor.computing for anchor in anchors)
        return Extrapolation(
            parts,
            np.where(np.isfinite(centers), centers, parts + gap),
            _weights(errors, deviations, np.isfinite(centers)),
            rms,
            deviations,
            _PER_DOUBLING * abs(math.log2(placement.threads / base.threads)),
            self._least(placement, parameters, moved, _computing(here)),
            outside,
            _OUTGROWN * math.sqrt(max(math.log2(growth), 0.0)),
            anchors[nearest].change if is_measured else 0.0,
        )

    def outside(self, parameters: Mapping[str, float]) -> dict[str, float]:
        """By what factor parameters are outside of those of the runs."""
        factors = {
            name: max(parameters[name] / high, low / parameters[name])
            for name, (low, high) in self.learnt.ranges.items()
        }
        return {name: factor for name, factor in factors.items() if factor > 1 + 1e-9}

    def _bend(
        self, parameters: Mapping[str, float], moved: Array, outside: Mapping[str, float]
    ) -> float:
        """How far the model is from going on as the two largest sizes do, as a logarithm.

        A law may fit all sizes though times grow ever slower, or faster, as where they cross a
        cache: then neither is sure. What repeats leave open is no bend.
        """
        names = [name for name in outside if parameters[name] > self.learnt.ranges[name][1]]
        if len(names) != 1:
            return 0.0
        (name,) = names
        bends, sure = [], []  # a split whose repeats differ tells less
        for split in {(anchor.run.processes, anchor.run.threads) for anchor in self._quiet}:
            logs: dict[float, list[tuple[float, float]]] = {}
            for anchor, there in zip(self._quiet, moved, strict=True):
                run = anchor.run
                if (run.processes, run.threads) == split and math.isfinite(there):
                    pair = math.log(anchor.seconds), math.log(there)
                    logs.setdefault(run.parameters[name], []).append(pair)
            if len(logs) < _SIZES:
                continue
            (small, below), (large, above) = sorted(logs.items())[-2:]
            by_model = np.mean([there for _, there in above])
            (low, low_error), (high, high_error) = (
                (np.mean([own for own, _ in pairs]), np.var([own for own, _ in pairs]) / len(pairs))
                for pairs in (below, above)
            )
            further = math.log(parameters[name] / large) / math.log(large / small)
            apart = high + further * (high - low) - by_model
            noise = (1 + further) ** 2 * high_error + further**2 * low_error
            bends.append(max(float(apart**2 - noise), 0.0))
            sure.append(1 / (noise + _LEAST**2))
        return math.sqrt(float(np.average(bends, weights=sure))) if bends else 0.0

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

    def _law(self, parameters: Mapping[str, float], moved: Array) -> tuple[Mixture | None, Array]:
        """The law of the whole run, and errors of it and of the plain rule at runs left out."""
        key = tuple(sorted(parameters.items()))
        if key not in self._laws:
            runs = [anchor.run for anchor in self._quiet]
            known = np.flatnonzero(np.isfinite(moved))
            errors = np.full((2, len(runs)), math.nan)
            for index in known:
                run = runs[index]
                others = [i for i in known if runs[i].configuration != run.configuration]
                if others:
                    nearest = min(others, key=lambda i: _apart(runs[i], run, run.parameters))
                    plain = moved[nearest] * runs[nearest].cores / run.cores
                    errors[1, index] = abs(math.log(plain / moved[index]))
                within = _whole_run([runs[i] for i in others], moved[others])
                if within is not None:
                    predicted = within.at(run.processes, run.threads).value
                    errors[0, index] = abs(math.log(predicted / moved[index]))
            self._laws[key] = _whole_run([runs[i] for i in known], moved[known]), errors
        return self._laws[key]

    def _by_law(
        self, law: Mixture | None, study: Study, placement: Placement, parts: float
    ) -> tuple[float, float]:
        """Runtime by the law of the whole run, and its standard deviation, as logarithms.

        Where runs do not have as many threads, the law tells of those of as many cores whose
        threads they have, and the model of the parts how this split compares with it.
        """
        if law is None:
            return math.nan, 0.0
        counts = {anchor.run.threads for anchor in self._quiet}
        threads = min(counts, key=lambda count: abs(math.log2(count / placement.threads)))
        at, there = placement, parts
        if threads != placement.threads and placement.cores % threads == 0:
            try:
                alike = study.admit(placement.cores // threads, threads)
                there = math.log(nominal(self._parts(study, alike).modelled.runtime))
                at = alike
            except PopmodelError:  # cannot be run so: the law has to tell of other threads
                pass
        found = law.at(at.processes, at.threads)
        width = math.log(found.high / found.low) / (2 * END)
        return parts + math.log(found.value) - there, width

    def _least(
        self, placement: Placement, parameters: Mapping[str, float], moved: Array, computing: float
    ) -> float:
        """The logarithm of the shortest time that makes sense.

        More work on the same cores is never faster than measured there, and a speed-up over a run
        on as many cores or fewer never above their ratio times what caches may bring. Runs on more
        cores say nothing: they may be slow for what they share, or have more work. Neither do runs
        whose threads waited for CPUs.
        """
        quiet = [anchor for anchor in self._quiet if anchor.run.waited <= WAITED]
        cores = np.array([float(anchor.run.cores) for anchor in self._quiet])
        known = np.isfinite(moved) & (cores <= placement.cores) & bool(quiet)
        cores = cores[known]
        area = moved[known] * cores
        gains = np.where(cores[:, None] < cores, area[:, None] / area, 0.0)
        least = float((area / max(SUPERLINEAR, gains.max(initial=0.0))).max(initial=0.0))
        least /= placement.cores
        for anchor in quiet:
            run = anchor.run
            same = (run.processes, run.threads) == (placement.processes, placement.threads)
            larger = all(parameters[name] >= value for name, value in run.parameters.items())
            if same and larger and computing > anchor.computing * (1 + _LEAST):
                least = max(least, anchor.seconds)
        return math.log(least) if least > 0 else -math.inf


class LearntStudy(Study):
    """A study whose runs take as long as the runs behind the signature and all candidates say."""

    def __init__(self, *given: Any, program: WholeProgram | None = None) -> None:
        super().__init__(*given)
        self.parts = Study(*given)
        self.program = program or WholeProgram(self.signature, self.profile, self.draws, self.seed)

    def _like(self, signature: Signature, settings: Mapping[str, float]) -> Study:
        same = (self.draws, self.seed, self.factors, self.allocation)
        return LearntStudy(signature, self.profile, settings, *same, program=self.program)

    def run(
        self,
        placement: Placement,
        drawn: Draws,
        overlap: str | None = None,
        agreement: ReplayAgreement | None = None,
        known: Known | None = None,
    ) -> ModelEvaluation:
        """Evaluate the model of the parts, and take all of them as much longer as they are."""
        run = self.parts.run(placement, drawn, overlap, agreement, known)
        here = self.program.at(self, placement)
        if here is None:
            return run
        split = f"{placement.processes} x {placement.threads}"
        block = self.parts.spread(placement, drawn).get(LARGEST, 0.0)
        factor = here.factor(run.modelled.runtime, drawn, split, block)
        times = ("overhead", "synchronising", "waiting", "transfer", "measured")
        longer = {name: getattr(run.work, name) * factor for name in times}
        work = run.work.computed(factor)._replace(**longer)
        course = RunCourse(
            run.course.computing * factor, run.course.ideal * factor, run.course.runtime * factor
        )
        modelled = observe(work, placement, course, has_mpi=self.has_mpi)
        return replace(run, work=work, course=course, modelled=modelled)

    def replay(self, placement: Placement) -> ReplayAgreement:
        """Put a replay beside the closed form, of the model of the parts."""
        if self.factors or self.signature is not self.program.signature:
            return self.parts.replay(placement)
        return self.program.replay(self.parts, placement)

    @property
    def surest(self) -> float:
        return self.program.surest

    @property
    def doubts(self) -> tuple[str, ...]:
        return self.program.doubts

    @property
    def outside(self) -> dict[str, float]:
        values = {name: one.value for name, one in self.params.items()}
        found = {}
        for name, factor in self.program.outside(values).items():
            low, high = self.program.learnt.ranges[name]
            above = values[name] > high
            times, end = (f"{factor:.3g}", "largest") if above else (f"1/{factor:.3g}", "smallest")
            text = f"{name} = {values[name]:g} is {times} x the {end} of the runs"
            found[f"{text} ({high if above else low:g})"] = factor
        return found

    def learnt(self, placement: Placement | None = None) -> dict[str, Any] | None:
        here = None if placement is None else self.program.at(self, placement)
        return self.program.facts(placement, here)

    def scores(self, drawn: Draws) -> dict[str, Array]:
        """Return the normal scores of all groups of uncertain quantities, and of the candidates."""
        found = super().scores(drawn)
        return found | ({name: drawn.scores(name) for name in PROGRAM} if self.draws else {})


def _off(ratio: float) -> str:
    """Say how far a prediction is off, from the logarithm of its ratio to the truth."""
    if abs(ratio) <= math.log(3):
        return f"{100 * math.expm1(ratio):+.0f} % off"
    return f"{math.exp(abs(ratio)):,.3g} times too {'long' if ratio > 0 else 'short'}"


def _computing(run: ModelEvaluation) -> float:
    """Computing of a process, s; without any, its runtime."""
    return nominal(run.work.serial + run.work.stretched) or nominal(run.modelled.runtime)


def _apart(run: LearntRun, other: LearntRun | Placement, parameters: Mapping[str, float]) -> float:
    """Doublings of processes, of threads and of parameters."""
    ratios = [run.processes / other.processes, run.threads / other.threads]
    ratios += [value / parameters[name] for name, value in run.parameters.items()]
    return sum(abs(math.log2(ratio)) for ratio in ratios)


def _whole_run(runs: Sequence[LearntRun], seconds: Array) -> Mixture | None:
    """The law of runs as a whole; None if they are of one configuration."""
    if len({(run.processes, run.threads) for run in runs}) < 2:
        return None
    pairs = zip(runs, seconds.tolist(), strict=True)
    return whole_run([Sample(run.processes, run.threads, value, {}) for run, value in pairs])


def _weights(errors: Array, deviations: Array, possible: Array) -> Array:
    """Weights of candidates by their errors at runs that are left out, and how sure they are.

    A candidate that a run does not test (nan) is as good there as the best of those tested. One
    that gives no time where the prediction is has no weight.
    """
    errors = errors[possible]
    tested = errors[:, ~np.isnan(errors).all(axis=0)]
    if not tested.size:
        tested = np.zeros((len(errors), 1))
    tested = np.where(np.isnan(tested), np.nanmin(tested, axis=0), tested)
    best = float(np.sqrt(np.mean(tested**2, axis=1)).min())
    scale = min(max(_TOLERANCE * best, _ALIKE), _UNLIKE)
    misfit = np.sum((tested / scale) ** 2, axis=1) * min(1.0, _MOST_TESTS / tested.shape[1])
    logs = np.log(PRIOR[possible] / deviations[possible]) - misfit / 2
    weights = np.zeros(len(possible))
    weights[possible] = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
