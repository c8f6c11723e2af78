"""Measured runs beside the model of them, at any scores of the uncertain inputs.

Of a run its runtime is compared, or the parts that it adds up to: the losses of the additive hybrid
family and the useful time of a process. A run whose efficiencies are known says which part of a
prediction is wrong, one of which only the runtime is known says that something is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import FileError, PopmodelError
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.values import dataclass
from popmodel.efficiency.evaluation import TERMS_FAMILY
from popmodel.efficiency.hierarchy import load_families
from popmodel.fit.samples import Array
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import Quantity, Topology
from popmodel.model.model_error import (
    DRIFTS,
    RESIDUALS,
    Residual,
    doublings,
    drift_places,
    split_label,
)
from popmodel.model.predictor import ModelEvaluation, Study
from popmodel.model.replayed_run import ReplayAgreement
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.process_placement import WHOLE, Allocation, Placement
from popmodel.model.run.work import ModelledObservables
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import LOOPS
from popmodel.model.uncertainty import (
    FIRST,
    RESIDUAL,
    Calibration,
    Draws,
    Drift,
    deviation_of,
    nominal,
    score_bounds,
)
from popmodel.runs.measurement import LEAST_NOISE, NOISE_OF_LOSS, MeasuredRow

RUNTIME, USEFUL = "runtime", "useful"
LOSSES = (
    "process_load_balance",
    "process_serialisation_efficiency",
    "process_transfer_efficiency",
    "openmp_region_efficiency",
    "serial_region_efficiency",
)
"""Leaves of `TERMS_FAMILY`, whose losses and the useful time add up to the runtime."""
_BETWEEN = LOSSES[1:3]  # those that one process does not have
_TOP = "parallel_efficiency"
WILD = 0.7
"""Standard deviation of the logarithm of the time of a disturbed run: a factor of two."""
DISTURBED = "disturbed"
OWN = "own"
"""What every configuration has for itself of the error of the law of loops."""
_DRIFT = 0.03  # over a doubling, to begin with
_SAME_PLACE = 0.1  # doublings
POSSIBLE = 0.3
"""Standard deviation of the score of a residual term for which the runs do not ask."""
_SHARE = 0.1  # of the runtime: a residual term where it is looked at
_FARTHER = 4.0  # times as many processes, or threads, as were measured, where that is


class Part(NamedTuple):
    """A measured part of the runtime of a run."""

    name: str  # `RUNTIME`, `USEFUL`, or one of `LOSSES`
    seconds: float  # What was measured
    # How much it varies from run to run: standard deviations as multiples of that of the logarithm
    # of the runtime, of the part and of the runtime.
    relative: float
    absolute: float


def parts_of(run: MeasuredRow) -> tuple[Part, ...]:
    """Return what a run says: its parts where they are all known, or else its runtime and some.

    Parts that are all known add up to the runtime, which would count twice beside them.
    """
    known = run.metrics.get(TERMS_FAMILY, {})
    parts = []
    if _TOP in known:
        parts.append(Part(USEFUL, known[_TOP] * run.runtime, 1.0, 0.0))
    parts += [
        Part(name, (1 - known[name]) * run.runtime, NOISE_OF_LOSS, LEAST_NOISE)
        for name in LOSSES
        if name in known
    ]
    there = {part.name for part in parts}
    without = _BETWEEN if run.processes == 1 else ()
    if all(name in there or name in without for name in (USEFUL, *LOSSES)):
        return tuple(parts)
    return (Part(RUNTIME, run.runtime, 1.0, 0.0), *parts)


def _modelled_parts(run: ModelledObservables, names: Sequence[str], size: int) -> dict[str, Array]:
    """The parts of a modelled run, s; float64[size] each."""
    runtime = np.broadcast_to(numbers(run.runtime), (size,))
    values = load_families()[TERMS_FAMILY].evaluate_samples(run.aggregates, run.absent).values
    parts = {RUNTIME: runtime}
    for name in names:
        if name == USEFUL:
            parts[name] = np.broadcast_to(numbers(values[_TOP]), (size,)) * runtime
        elif name in values:
            parts[name] = (1 - np.broadcast_to(numbers(values[name]), (size,))) * runtime
        elif name != RUNTIME:
            parts[name] = np.zeros(size)  # a program without messages loses nothing by them
    return parts


class Chosen(Draws):
    """Values of uncertain quantities at scores that somebody has chosen."""

    def __init__(
        self,
        quantities: Mapping[str, Quantity],
        points: Mapping[str, Array],
        size: int,
        factors: Mapping[str, Value],
        calibration: Calibration,
    ) -> None:
        super().__init__(quantities, max(size - FIRST, 1), 0, factors, calibration)
        self._points = points
        self._nothing = np.zeros(size)

    def scores(self, name: str) -> Array:
        """Return the chosen scores of a name."""
        return self._points.get(name, self._nothing)


@dataclass(frozen=True)
class Configuration:
    """Runs of one split with the same parameters."""

    study: Study  # The program with these parameters
    placement: Placement  # P and T
    runs: tuple[int, ...]  # Numbers of the runs
    # What a replay says of its delays; None where nothing can be replayed.
    agreement: ReplayAgreement | None = None

    @property
    def values(self) -> dict[str, float]:
        """P, T, nodes and parameters."""
        at = self.placement
        split = {"P": float(at.processes), "T": float(at.threads), "nodes": float(at.nodes)}
        return {**self.study.values, **split}

    def replayed(self, calibration: Calibration) -> Configuration:
        """Return the configuration with the replay of what was learnt so far."""
        known = replace(self.study.signature, calibration=calibration)
        try:
            return replace(self, agreement=self.study.with_signature(known).replay(self.placement))
        except NotUnrolled:
            return replace(self, agreement=None)


@dataclass(frozen=True)
class Problem:
    """All that a calibration rests on."""

    # Program and machine before the calibration.
    signature: Signature
    profile: Profile
    runs: tuple[MeasuredRow, ...]  # The measured runs
    parts: tuple[tuple[Part, ...], ...]  # What of each run is compared
    configurations: tuple[Configuration, ...]  # Each with the numbers of its runs
    # Of the scores that the runs depend on: groups of quantities, laws, laws of one split, and
    # residual terms, in this order.
    names: tuple[str, ...]
    prior: Array  # float64[names]: Standard deviations of the scores before anything was measured
    # Residual terms that the runs may tell, and what one standard deviation of their score is.
    residuals: Mapping[str, float]
    drifts: Mapping[str, Drift]  # Slow changes of the speed of computing
    # Size of what every configuration has for itself of the error of the law of loops.
    own: float = 1.0
    # Runs that something may have disturbed: all of their times are longer by one more factor,
    # whose logarithm has a score of its own.
    outliers: tuple[int, ...] = ()
    in_part: tuple[int, ...] = ()  # Those of them of which not even the shares of the time count

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which scores cannot be below 0: those of residual terms, which take time."""
        return np.array([name in self.residuals for name in self.names])

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The least and the largest that the scores may be: numbers keep to what their keys allow.

        float64[names] each.
        """
        quantities = self.configurations[0].study.quantities
        ends = [
            score_bounds(quantities[name]) if name in quantities else (-math.inf, math.inf)
            for name in self.names
        ]
        low, high = np.array(ends).reshape(-1, 2).T
        return np.where(self.positive, 0.0, low), high

    @property
    def hull(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of P, T, nodes and parameters."""
        return _hull(self.configurations)

    @property
    def unlearnt(self) -> Calibration:
        """A calibration that has learnt nothing: laws and residual terms at their scores."""
        count = len(self.names)
        return Calibration(
            self.profile.name,
            self.profile.digest,
            self.names,
            np.zeros(count),
            np.eye(count),
            self.own,
            residuals=self.residuals,
            drifts=self.drifts,
            hull=self.hull,
        )

    def modelled(
        self, points: Array, others: Sequence[Configuration] | None = None
    ) -> list[dict[str, Array]]:
        """Return the parts of every configuration, s, at some scores."""
        unlearnt = self.unlearnt
        by_name = {name: points[:, column] for column, name in enumerate(self.names)}
        found = []
        for configuration in self.configurations if others is None else others:
            study = configuration.study
            drawn = Chosen(study.quantities, by_name, len(points), study.factors, unlearnt)
            run = study.run(configuration.placement, drawn, agreement=configuration.agreement)
            names = [part.name for number in configuration.runs for part in self.parts[number]]
            found.append(_modelled_parts(run.modelled, list(dict.fromkeys(names)), len(points)))
        return found

    def with_outlier(self, number: int, *, in_part: bool) -> Problem:
        """Return the problem in which something may have disturbed one more run, or parts of it."""
        return replace(
            self,
            names=(*self.names, f"{DISTURBED}[{number}]"),
            prior=np.append(self.prior, WILD),
            outliers=(*self.outliers, number),
            in_part=(*self.in_part, number) if in_part else self.in_part,
        )

    def longer(self, number: int, points: Array) -> Array:
        """Return by what factor something disturbed a run, at some scores."""
        if number not in self.outliers:
            return np.ones(len(points))
        factor: Array = np.exp(points[:, self.names.index(f"{DISTURBED}[{number}]")])
        return factor

    @property
    def sizes(self) -> dict[str, float]:
        """How large the errors are that runs have for themselves, by `OWN` and kinds of drift."""
        return {OWN: self.own, **{kind: drift.deviation for kind, drift in self.drifts.items()}}

    def of_size(self, kind: str) -> NDArray[np.bool_]:
        """Which scores have that size."""
        within = f"{LOOPS.path} of " if kind == OWN else f"{RESIDUAL}{kind}["
        return np.array([within in name for name in self.names])

    def with_size(self, kind: str, size: float) -> Problem:
        """Return the problem with errors of another size."""
        if kind == OWN:
            return replace(self, own=size)
        drift = self.drifts[kind]._replace(deviation=size)
        return replace(self, drifts={**self.drifts, kind: drift})

    def with_names(self, kept: NDArray[np.bool_]) -> Problem:
        """Return the problem with some of the names; the others stay at their score of 0."""
        names = tuple(name for name, keep in zip(self.names, kept, strict=True) if keep)
        units = {name: unit for name, unit in self.residuals.items() if name in names}
        return replace(self, names=names, prior=self.prior[kept], residuals=units)

    def replayed(self, means: Array) -> Problem:
        """Return the problem with replays at some scores."""
        count = len(self.names)
        known = replace(self.unlearnt, means=means, root=np.zeros((count, count)))
        return replace(
            self, configurations=tuple(each.replayed(known) for each in self.configurations)
        )


def problem(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    settings: Mapping[str, float],
    allocation: Allocation = WHOLE,
) -> Problem:
    """Put measured runs beside the model, ready to be fitted."""
    plain = replace(signature, calibration=None)
    by_key: dict[tuple[object, ...], Configuration] = {}
    for number, run in enumerate(runs):
        try:
            study = Study(
                plain, profile, {**settings, **run.parameters}, FIRST, 0, allocation=allocation
            )
            # whether a run names a parameter or leaves it at what the signature says
            key = (run.processes, run.threads, *sorted(study.values.items()))
            if key not in by_key:
                placement = study.admit_or_advise(run.processes, run.threads)
                by_key[key] = Configuration(study, placement, ())
        except FileError:
            raise
        except PopmodelError as error:
            raise FileError(run.source, error.message, line=run.line, hint=error.hint) from error
        by_key[key] = replace(by_key[key], runs=(*by_key[key].runs, number))
    configurations = tuple(by_key.values())
    best = [each.study.run(each.placement, each.study.sources(draws=0)) for each in configurations]
    terms = missing_terms([each.placement for each in configurations], best, profile.topology)
    drifts, doublings = _drifts(
        [
            drift_places(run.work, each.placement)
            for run, each in zip(best, configurations, strict=True)
        ]
    )
    names = (*_names(configurations), *terms, *doublings)
    quantities = configurations[0].study.quantities
    prior = [
        terms[name].prior
        if name in terms
        else deviation_of(name, quantities[name])
        if name in quantities
        else 1.0
        for name in names
    ]
    return Problem(
        plain,
        profile,
        tuple(runs),
        tuple(parts_of(run) for run in runs),
        configurations,
        names,
        np.array(prior),
        {name: term.unit for name, term in terms.items()},
        drifts,
    )


def _drifts(along: Sequence[Mapping[str, float]]) -> tuple[dict[str, Drift], tuple[str, ...]]:
    """Drifts along which runs differ, from the middle of them, and names of their doublings.

    One doubling more than runs pass, as constants may move them.
    """
    drifts: dict[str, Drift] = {}
    names: dict[str, None] = {}
    for kind in DRIFTS:
        at = sorted(places[kind] for places in along if kind in places)
        if at and at[-1] - at[0] > _SAME_PLACE:
            drifts[kind] = Drift(_DRIFT, (at[0] + at[-1]) / 2)
    for places in along:
        for kind, drift in drifts.items():
            if kind in places:
                way = places[kind] - drift.origin
                farther = drift.origin + way + math.copysign(1.0, way)
                names |= {name: None for name, _ in doublings(kind, drift, farther)}
    return drifts, tuple(names)


def _names(configurations: Sequence[Configuration]) -> tuple[str, ...]:
    """Names of the scores of quantities, of laws, and of laws in one split."""
    groups: dict[str, None] = {}
    laws: dict[str, None] = {}
    own: dict[str, None] = {}
    hull = _hull(configurations)
    for each in configurations:
        drawn = each.study.sources()
        run = each.study.run(each.placement, drawn)
        groups |= dict.fromkeys(each.study.scores(drawn))
        split = split_label(each.placement, each.study.values, hull)
        laws |= dict.fromkeys(run.form.quantities)
        own |= dict.fromkeys(f"{path} of {split}" for path in run.form.quantities)
    return (*sorted(groups), *sorted(laws), *own)


def _hull(configurations: Sequence[Configuration]) -> dict[str, tuple[float, float]]:
    every = [each.values for each in configurations]
    return {
        name: (min(values[name] for values in every), max(values[name] for values in every))
        for name in every[0]
    }


# How large the times may be that a signature lacks, before anything was measured of the program.
# A term that has a shape in some of the runs is as large as these allow. One that none of them has
# (no team of theirs spans two memory domains, all were on one node) may be there all the same:
# nothing speaks against it, and it grows where nobody measured.


class MissingTerm(NamedTuple):
    """A residual term beside the runs."""

    unit: float  # What one standard deviation of its score is, in the unit of the term
    is_seen: bool  # Whether it has a shape in some run

    @property
    def prior(self) -> float:
        """Standard deviation of its score, unless runs ask for it."""
        return POSSIBLE if self.is_seen else 1.0


def missing_terms(
    placements: Sequence[Placement], runs: Sequence[ModelEvaluation], topology: Topology
) -> dict[str, MissingTerm]:
    """Return the residual terms that a program may have on a machine.

    One standard deviation is `_SHARE` of the runtime where the term is largest: a time in a run of
    `_FARTHER` times as many processes as that, which computes so much less, a part of the loops in
    the run itself. What grew faster would make runs impossible that people make every day. A term
    that no run has is looked at in runs that are `_FARTHER` times as large.
    """
    found = {}
    for name, term in RESIDUALS.items():
        shapes = [term.shape(placement) for placement in placements]
        is_seen = any(shapes)
        if not is_seen and not term.is_possible(topology):
            continue
        largest = max(
            _part(term, shape, run, is_seen=is_seen)
            for shape, run in zip(shapes, runs, strict=True)
            if shape or not is_seen
        )
        if largest > 0 and math.isfinite(largest):
            found[name] = MissingTerm(_SHARE / largest, is_seen)
    return found


def _part(term: Residual, shape: float, run: ModelEvaluation, *, is_seen: bool) -> float:
    """Part of the runtime that a term with amplitude 1 takes where it is looked at."""
    is_farther = term.unit == "s" or not is_seen
    there = term.grown(shape, _FARTHER) if is_farther else shape
    after = term.added(run.work, there)
    seconds = nominal(after.transfer + after.stretched) - nominal(
        run.work.transfer + run.work.stretched
    )
    shorter = _FARTHER if is_farther and term.is_fixed else 1.0
    return seconds * shorter / nominal(run.modelled.runtime)
