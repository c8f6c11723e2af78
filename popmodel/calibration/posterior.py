"""A fit as a signature that predictions take: constants with new values, and what ties them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from popmodel.calibration.fit import CalibrationFit
from popmodel.calibration.problem import DISTURBED, Problem
from popmodel.machine.quantity import END, Quantity
from popmodel.machine.register import find
from popmodel.model.calibration import RESIDUAL, Calibration, root_of
from popmodel.model.form import own_deviation
from popmodel.model.laws import LAWS
from popmodel.model.residual import RESIDUALS
from popmodel.model.signature.program import Signature
from popmodel.model.speed_drift import MEANINGS
from popmodel.model.symbols import label
from popmodel.model.uncertainty import deviation_of, group, spread
from popmodel.values import dataclass

OF_ONE = " of "
"""What stands in the name of a score between a law and the split whose own error it is."""
PROGRAM = ("params", "constants", "imbalance")
"""Tables of a signature with numbers that runs may calibrate."""

Array = NDArray[np.float64]

TOLD = 0.3
"""Part of the prior deviation that must be gone for a value to count as told by the runs: of two
inputs that only act together, such as a rate and a count, each is narrowed by less."""
_BOUND = 1.5  # in ends of the interval that was stated before
_UNTOUCHED = 0.02  # of a score: what is moved and narrowed by less was not learnt


@dataclass(frozen=True)
class Told:
    """What runs tell of a quantity or a law: not of what a split has for itself."""

    name: str  # Of its score
    learnt: float  # By what part runs narrowed it, 0 to 1
    at_bound: bool  # Whether it lies far outside of the interval that was stated before

    @property
    def is_identifiable(self) -> bool:
        """Whether the runs tell enough of it for a value."""
        return self.learnt >= TOLD


def told_of(found: CalibrationFit) -> tuple[Told, ...]:
    """Return what runs tell of each quantity and law."""
    narrowed = 1 - np.sqrt(np.diag(found.covariance)) / found.problem.prior
    return tuple(
        Told(name, float(learnt), bool(abs(mean) > _BOUND * END))
        for name, learnt, mean in zip(found.problem.names, narrowed, found.means, strict=True)
        if OF_ONE not in name and not name.startswith((RESIDUAL, DISTURBED))
    )


def calibrated_signature(found: CalibrationFit, error_scale: float = 1.0) -> Signature:
    """Return the signature that runs have calibrated.

    Its constants have the values and intervals that the runs left, so that a reader sees them; what
    is known of the machine and of the laws, and how all depends on each other, is beside them. All
    of it is wider by a scale of the errors that were found.
    """
    problem, means, covariance = _widened(found, error_scale)
    kept = _taught(found)
    names = tuple(problem.names[number] for number in kept)
    covariance = covariance[np.ix_(kept, kept)]
    means = means[kept].copy()
    deviations = np.sqrt(np.diag(covariance))
    signature, scale = problem.signature, np.ones(len(names))
    tables = {"params": signature.params, "constants": signature.constants}
    tables["imbalance"] = signature.imbalance
    for number, name in enumerate(names):
        table, _, key = name.partition(".")
        if key in tables.get(table, ()):
            one = moved(tables[table][key], means[number], deviations[number])
            tables[table] = {**tables[table], key: one}
            means[number], scale[number] = 0.0, 1 / deviations[number]
    known = Calibration(
        problem.profile.name,
        problem.profile.digest,
        names,
        means,
        root_of(covariance * np.outer(scale, scale)),
        problem.own,
        found.noise,
        {name: unit for name, unit in problem.residuals.items() if name in names},
        problem.drifts,
        problem.hull,
        {run.digest: run.place for run in problem.runs},
    )
    return replace(
        signature,
        params=tables["params"],
        constants=tables["constants"],
        imbalance=tables["imbalance"],
        calibration=known,
    )


def _widened(found: CalibrationFit, scale: float) -> tuple[Problem, Array, Array]:
    """Return the problem, the means and the covariance of a fit, all deviations larger.

    Scores of what has a size of its own have larger units instead.
    """
    problem, means = found.problem, found.means
    factors = np.full(len(means), scale)
    for kind, size in problem.sizes.items():
        columns = problem.of_size(kind)
        problem = problem.with_size(kind, size * scale)
        means = np.where(columns, means / scale, means)
        factors[columns] = 1.0
    return problem, means, found.covariance * np.outer(factors, factors)


def moved(quantity: Quantity, mean: float, deviation: float) -> Quantity:
    """Return a quantity at another score, with the interval that the deviation of it leaves."""
    ends = mean + END * deviation * np.array([0.0, -1.0, 1.0])
    value, low, high = (float(one) for one in spread(quantity, ends))
    return replace(quantity, value=value, low=low, high=high, origin="fit")


def _taught(found: CalibrationFit) -> list[int]:
    """Numbers of the names that runs tell something of, and of times that may be missing."""
    relative = found.means / found.problem.prior
    narrowed = np.sqrt(np.diag(found.covariance)) / found.problem.prior
    return [
        number
        for number in range(len(relative) - len(found.problem.outliers))
        if found.problem.positive[number]
        or abs(relative[number]) > _UNTOUCHED
        or narrowed[number] < 1 - _UNTOUCHED
    ]


@dataclass(frozen=True)
class PosteriorValue:
    """A number with its 90 % interval."""

    # Best estimate, 5 % and 95 % quantile.
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Learnt:
    """An input before and after the calibration."""

    name: str  # Of its score
    label: str  # For people
    # What it belongs to: the signature, the profile, a law in all splits or in one, a time that the
    # signature lacks, or a drift of computing.
    kind: str
    unit: str  # SI unit of the numbers; empty for a factor on what was there before
    # What was known of it.
    before: PosteriorValue
    after: PosteriorValue


def learnt_values(found: CalibrationFit, signature: Signature) -> tuple[Learnt, ...]:
    """Return every input that a calibrated signature knows more of than before."""
    known = signature.calibration
    assert known is not None
    quantities = found.problem.configurations[0].study.quantities
    groups: dict[str, list[Quantity]] = {}
    for path, one in quantities.items():
        if one.is_uncertain:
            groups.setdefault(group(path), []).append(one)
    return tuple(
        _learnt(name, float(known.means[number]), float(known.deviations[number]), known, groups)
        if name.partition(".")[0] not in PROGRAM
        else _of_program(name, found.problem.signature, signature)
        for number, name in enumerate(known.names)
    )


def _of_program(name: str, before: Signature, after: Signature) -> Learnt:
    table, _, key = name.partition(".")
    old, new = (getattr(one, table)[key] for one in (before, after))
    text = label(name) if table != "imbalance" else f"{key} of the imbalance"
    return Learnt(name, text, "program", before.units.get(key, "1"), _ends(old), _ends(new))


def _ends(one: Quantity) -> PosteriorValue:
    low = one.value if one.low is None else one.low
    high = one.value if one.high is None else one.high
    return PosteriorValue(one.value, low, high)


def _learnt(
    name: str,
    mean: float,
    deviation: float,
    known: Calibration,
    groups: Mapping[str, list[Quantity]],
) -> Learnt:
    if name in RESIDUALS:
        term = RESIDUALS[name]
        unit = known.residuals[name]
        ends = (unit * max(mean + END * step * deviation, 0.0) for step in (0, -1, 1))
        return Learnt(
            name,
            term.meaning,
            "term",
            term.unit,
            PosteriorValue(0.0, 0.0, 0.0),
            PosteriorValue(*ends),
        )
    if name.startswith(RESIDUAL):
        kind, _, doubling = name.removeprefix(RESIDUAL).partition("[")
        size = known.drifts[kind].deviation
        text = f"{MEANINGS[kind]}, doubling {doubling.removesuffix(']')}"
        return Learnt(
            name, text, "drift", "", _factor(0.0, size), _factor(size * mean, size * deviation)
        )
    path, _, split = name.partition(OF_ONE)
    if path in LAWS:
        law = LAWS[path]
        if split:
            size = own_deviation(law, known.own)
            before, text = law.spread * math.sqrt(law.own), f"{law.meaning}, {split} only"
        else:
            size = before = law.spread * math.sqrt(1 - law.own)
            text = law.meaning
        kind = "split" if split else "law"
        return Learnt(
            name, text, kind, "", _factor(0.0, before), _factor(size * mean, size * deviation)
        )
    members = groups[name]
    first = members[0]
    text = label(name).removesuffix(f" ({name})")
    old = _at(first, 0.0, deviation_of(name, first))
    new = _at(first, mean, deviation)
    if len(members) > 1:  # a table: all of its entries vary together
        middle = first.value
        old, new = (
            PosteriorValue(one.value / middle, one.low / middle, one.high / middle)
            for one in (old, new)
        )
        return Learnt(name, text, "machine", "", old, new)
    parameter = find(name)
    known_unit = "" if parameter is None else parameter.unit
    return Learnt(name, text, "machine", known_unit or "1", old, new)


def _at(quantity: Quantity, mean: float, deviation: float) -> PosteriorValue:
    scores = mean + END * deviation * np.array([0.0, -1.0, 1.0])
    return PosteriorValue(*(float(one) for one in spread(quantity, scores)))


def _factor(mean: float, deviation: float) -> PosteriorValue:
    return PosteriorValue(*(math.exp(mean + END * step * deviation) for step in (0, -1, 1)))
