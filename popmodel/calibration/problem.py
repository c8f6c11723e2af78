"""Measured runs beside the model of them, at any scores of the uncertain inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from popmodel.calibration.missing_terms import Lacking, lacking
from popmodel.calibration.observables import Part, modelled, parts_of
from popmodel.errors import FileError, PopmodelError
from popmodel.expressions.elementary import Value
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.model import speed_drift
from popmodel.model.calibration import RESIDUAL, Calibration, Drift
from popmodel.model.form import where
from popmodel.model.laws import LOOPS
from popmodel.model.replayed.agreement import ReplayAgreement
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.placement import WHOLE, Allocation, Placement
from popmodel.model.signature.program import Signature
from popmodel.model.study import Study
from popmodel.model.uncertainty import FIRST, Draws, deviation_of, score_bounds
from popmodel.runs.measurement import MeasuredRow
from popmodel.values import dataclass

Array = NDArray[np.float64]


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
    def law(self) -> Calibration:
        """Return a calibration that has learnt nothing: laws and residual terms at their scores."""
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
        law = self.law
        by_name = {name: points[:, column] for column, name in enumerate(self.names)}
        found = []
        for one in self.configurations if others is None else others:
            study = one.study
            drawn = Chosen(study.quantities, by_name, len(points), study.factors, law)
            run = study.run(one.placement, drawn, agreement=one.agreement)
            names = [part.name for number in one.runs for part in self.parts[number]]
            found.append(modelled(run.modelled, list(dict.fromkeys(names)), len(points)))
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
        found: Array = np.exp(points[:, self.names.index(f"{DISTURBED}[{number}]")])
        return found

    @property
    def sizes(self) -> dict[str, float]:
        """How large the errors are that runs have for themselves, by `OWN` and kinds of drift."""
        return {OWN: self.own, **{kind: one.deviation for kind, one in self.drifts.items()}}

    def of_size(self, kind: str) -> NDArray[np.bool_]:
        """Which scores have that size."""
        within = f"{LOOPS.path} of " if kind == OWN else f"{RESIDUAL}{kind}["
        return np.array([within in name for name in self.names])

    def with_size(self, kind: str, size: float) -> Problem:
        """Return the problem with errors of another size."""
        if kind == OWN:
            return replace(self, own=size)
        return replace(
            self, drifts={**self.drifts, kind: replace(self.drifts[kind], deviation=size)}
        )

    def with_names(self, kept: NDArray[np.bool_]) -> Problem:
        """Return the problem with some of the names; the others stay at their score of 0."""
        names = tuple(name for name, keep in zip(self.names, kept, strict=True) if keep)
        units = {name: unit for name, unit in self.residuals.items() if name in names}
        return replace(self, names=names, prior=self.prior[kept], residuals=units)

    def replayed(self, means: Array) -> Problem:
        """Return the problem with replays at some scores."""
        count = len(self.names)
        known = replace(self.law, means=means, root=np.zeros((count, count)))
        return replace(
            self, configurations=tuple(one.replayed(known) for one in self.configurations)
        )


WILD = 0.7
"""Standard deviation of the logarithm of the time of a disturbed run: a factor of two."""
DISTURBED = "disturbed"
OWN = "own"
"""What every configuration has for itself of the error of the law of loops."""
_DRIFT = 0.03  # over a doubling, to begin with
_SAME_PLACE = 0.1  # doublings


def problem(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    settings: Mapping[str, float],
    allocation: Allocation = WHOLE,
) -> Problem:
    """Put measured runs beside the model, ready to be fitted."""
    plain = replace(signature, calibration=None)
    configurations: dict[tuple[object, ...], Configuration] = {}
    for number, run in enumerate(runs):
        try:
            study = Study(
                plain, profile, {**settings, **run.parameters}, FIRST, 0, allocation=allocation
            )
            # whether a run names a parameter or leaves it at what the signature says
            key = (run.processes, run.threads, *sorted(study.values.items()))
            if key not in configurations:
                placement = study.admit_or_advise(run.processes, run.threads)
                configurations[key] = Configuration(study, placement, ())
        except FileError:
            raise
        except PopmodelError as error:
            raise FileError(run.source, error.message, line=run.line, hint=error.hint) from error
        one = configurations[key]
        configurations[key] = replace(one, runs=(*one.runs, number))
    return _of(plain, profile, runs, tuple(configurations.values()))


def _of(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    configurations: tuple[Configuration, ...],
) -> Problem:
    """Name all that the runs of these configurations depend on."""
    best = [one.study.run(one.placement, one.study.sources(draws=0)) for one in configurations]
    along = [
        speed_drift.along(run.work, one.placement)
        for run, one in zip(best, configurations, strict=True)
    ]
    terms = lacking([one.placement for one in configurations], best, profile.topology)
    drifts = _drifts(along)
    names = (*_names(configurations, terms), *_doublings(along, drifts))
    deviations = [_deviation(name, configurations[0].study, terms) for name in names]
    return Problem(
        signature,
        profile,
        tuple(runs),
        tuple(parts_of(run) for run in runs),
        configurations,
        names,
        np.array(deviations),
        {name: one.unit for name, one in terms.items()},
        drifts,
    )


def _drifts(along: Sequence[Mapping[str, float]]) -> dict[str, Drift]:
    """Drifts along which runs differ, from the middle of them."""
    found = {}
    for kind in speed_drift.MEANINGS:
        at = sorted(places[kind] for places in along if kind in places)
        if at and at[-1] - at[0] > _SAME_PLACE:
            found[kind] = Drift(_DRIFT, (at[0] + at[-1]) / 2)
    return found


def _doublings(
    along: Sequence[Mapping[str, float]], drifts: Mapping[str, Drift]
) -> tuple[str, ...]:
    """Names of the doublings of drifts that runs pass; one more, as constants may move them."""
    names: dict[str, None] = {}
    for places in along:
        for kind, one in drifts.items():
            if kind in places:
                way = places[kind] - one.origin
                farther = one.origin + way + math.copysign(1.0, way)
                names |= {name: None for name, _ in speed_drift.passed(kind, one, farther)}
    return tuple(names)


def _names(configurations: Sequence[Configuration], residuals: Iterable[str]) -> tuple[str, ...]:
    """Names of the scores that runs depend on."""
    groups: dict[str, None] = {}
    laws: dict[str, None] = {}
    own: dict[str, None] = {}
    hull = _hull(configurations)
    for one in configurations:
        drawn = one.study.sources()
        run = one.study.run(one.placement, drawn)
        groups |= dict.fromkeys(one.study.scores(drawn))
        split = where(one.placement, one.study.values, hull)
        laws |= dict.fromkeys(run.form.quantities)
        own |= dict.fromkeys(f"{path} of {split}" for path in run.form.quantities)
    return (*sorted(groups), *sorted(laws), *own, *residuals)


def _deviation(name: str, study: Study, terms: Mapping[str, Lacking]) -> float:
    """Standard deviation of a score before anything was measured of the program."""
    if name in terms:
        return terms[name].prior
    quantity = study.quantities.get(name)
    return 1.0 if quantity is None else deviation_of(name, quantity)


def _hull(configurations: Sequence[Configuration]) -> dict[str, tuple[float, float]]:
    every = [one.values for one in configurations]
    return {
        name: (min(one[name] for one in every), max(one[name] for one in every))
        for name in every[0]
    }
