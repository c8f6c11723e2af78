"""The law of one factor along processes or threads, from its value in a few runs.

An average over the forms of all laws by the evidence of the runs (`popmodel.fit.mixture`), or over
those of the law that is asked for. The level of a loss has an even prior in its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from popmodel.efficiency.scaling import Mode
from popmodel.fit.least_squares import fit_two
from popmodel.fit.mixture import ASSUMED_DRIFT, evidence, total, weighted_quantiles
from popmodel.fit.samples import Array
from popmodel.projection.factors import EfficiencyFactor, point_errors
from popmodel.projection.forms import (
    ANCHORED,
    LAWS,
    PARAMETRIC,
    Axis,
    ProjectionForm,
    ProjectionTerm,
    settled,
    structural,
)
from popmodel.values import dataclass

TESTED = 3
"""Different configurations from which laws are told apart by points that are left out."""
DRAWS = 2000
_PRIOR: Mapping[str, float] = {"structural": 0.5, "amdahl": 0.2, "pipe": 0.2, "linear": 0.1}
_FREEDOM = 3.0  # degrees of freedom that the assumed errors are worth
_LEAST, _MOST = 1e-6, 100.0  # of 1/E - 1 at the reference
_LEVELS = np.geomspace(_LEAST, _MOST, 41)
_NEAR = np.geomspace(0.25, 4.0, 41)  # times what the points say themselves
_KEPT = 1e-5  # of the largest weight: atoms that are left out
_DRIFT = 0.03  # of an amount: exponent of what no form has
_SHOWN_FORMS = 3


@dataclass(frozen=True)
class TriedForm:
    """A law that was fitted."""

    law: str  # One of `LAWS`
    # Root mean square of the logarithm of measured over projected value, each configuration left
    # out in turn; None where there is none.
    error: float | None
    why: str  # Why there is none; empty where there is one


@dataclass(frozen=True)
class Curves:
    """One form with the levels and shares that may be."""

    form: ProjectionForm
    reference: float  # x at which its terms are 1
    levels: Array
    shares: Array
    scatter: Array  # Errors over the assumed ones, squared, times degrees of freedom
    weights: Array

    def logarithms(self, x: Array) -> Array:
        """Logarithms of E, shape (levels, x); NaN where there is no value."""
        relative = self.form.relative(x, self.reference, self.shares)
        return self.form.logarithm(self.levels[:, None], relative)


@dataclass(frozen=True)
class FittedFactor:
    """The law of a factor."""

    factor: EfficiencyFactor  # Which one
    law: str  # The likeliest law, or the one asked for
    form: str  # Its form; of structural laws the most likely ones
    # ``x0`` and ``f`` of the laws of two constants; none of structural ones.
    constants: Mapping[str, float]
    origin: str  # ``fit`` if configurations that were left out spoke for the law, else ``assumed``
    points: int  # Different configurations
    tried: tuple[TriedForm, ...]  # All laws that could be chosen, the shown one first
    _axis: Axis = field(repr=False)
    _ends: tuple[float, float] = field(repr=False)
    _curves: tuple[Curves, ...] = field(repr=False)
    _only: bool = field(repr=False)  # Whether a law was asked for
    _precision: float = field(repr=False)

    @property
    def off(self) -> float | None:
        """By what factor even the best law is off at a configuration left out; None: not tested."""
        errors = [tried.error for tried in self.tried if tried.error is not None]
        return math.exp(min(errors)) if errors else None

    def values(self, x: Array) -> Array:
        """Return the projected values, shape of x; NaN where the law has none above 0.

        The median of all laws, or of the structural ones where runs do not tell laws apart.
        """
        if self.constants and self._only:
            return _closed(self.law, self.constants, x)
        tested = self.points >= TESTED
        own = [curves for curves in self._curves if tested or curves.form.law == self.law]
        logs = np.concatenate([curves.logarithms(x) for curves in own])
        weights = np.concatenate([curves.weights for curves in own])
        logs = np.where(np.isnan(logs), -np.inf, logs)
        medians = [weighted_quantiles(column, weights, [0.5])[0] for column in logs.T]
        return np.exp(np.where(np.isfinite(medians), medians, np.nan))

    def draws(self, x: Array, generator: np.random.Generator) -> Array:
        """Draw values as they would be measured, shape (`DRAWS`, n); NaN where there is none.

        From all laws that may hold, with what none of them has, which grows with the distance from
        the measured runs, and with the scatter of runs.
        """
        weights = np.concatenate([curves.weights for curves in self._curves])
        drawn = generator.choice(len(weights), DRAWS, p=weights / weights.sum())
        logs = np.concatenate([curves.logarithms(x) for curves in self._curves])[drawn]
        freedom = _FREEDOM + self.points
        squares = np.concatenate([curves.scatter for curves in self._curves])[drawn]
        scatter = np.sqrt(squares / generator.chisquare(freedom, DRAWS))[:, None]
        low, high = self._ends
        distance = np.log(np.maximum(np.maximum(x / high, low / x), 1.0))
        drift = generator.standard_normal(DRAWS)[:, None] * distance
        if self.factor.is_limited:
            losses = np.maximum(np.expm1(-logs), 0.0) * np.exp(ASSUMED_DRIFT * drift)
            logs = -np.log1p(losses)
        else:
            level = generator.standard_normal(DRAWS)[:, None] * scatter / math.sqrt(self._precision)
            logs = logs + _DRIFT * drift + level
        by_processes = self._axis == "processes"
        processes = np.broadcast_to(x if by_processes else np.ones_like(x), logs.shape)
        with np.errstate(invalid="ignore"):
            errors = point_errors(self.factor, np.exp(logs), processes, by_processes=by_processes)
        logs = logs + errors * generator.standard_normal(logs.shape) * scatter
        found: Array = np.exp(np.minimum(logs, 0.0) if self.factor.is_limited else logs)
        return found


def fit(
    factor: EfficiencyFactor,
    x: Sequence[int],
    values: Sequence[float],
    axis: Axis,
    mode: Mode,
    law: str | None = None,
) -> FittedFactor:
    """Fit the law of a factor."""
    places, logs, errors = _pooled(factor, x, values, axis)
    forms = _forms(factor, places, axis, mode)
    if law is not None and law not in forms:
        law = LAWS[0]
    weighed = {name: _weighed(own, places, logs, errors) for name, own in forms.items()}
    scores = {
        name: math.log(_PRIOR[name]) - math.log(len(forms[name])) + np.array(evidences)
        for name, (_, evidences, _) in weighed.items()
    }
    most = max(float(own.max()) for own in scores.values())
    shares = {name: np.exp(own - most) for name, own in scores.items()}
    tested = len(places) >= TESTED
    chosen = law or (max(shares, key=lambda name: shares[name].sum()) if tested else LAWS[0])
    curves = [
        Curves(one.form, one.reference, one.levels, one.shares, one.scatter, one.weights * share)
        for name, (own, _, _) in weighed.items()
        if law in (None, name)
        for one, share in zip(own, shares[name] / most_of(shares, law), strict=True)
    ]
    own = sorted(zip(shares[chosen], forms[chosen], strict=True), key=lambda pair: -pair[0])
    likely = [form.text for share, form in own[:_SHOWN_FORMS] if share > 0.1 * own[0][0]]
    errors_of = {name: error if tested else None for name, (_, _, error) in weighed.items()}
    tried = sorted(
        (_tried(name, error) for name, error in errors_of.items()),
        key=lambda one: (one.law != chosen, math.inf if one.error is None else one.error),
    )
    return FittedFactor(
        factor,
        chosen,
        " or ".join(likely),
        _constants(chosen, places, logs, errors),
        "fit" if tested else "assumed",
        len(places),
        tuple(tried),
        axis,
        (float(places.min()), float(places.max())),
        tuple(_cut(one) for one in curves),
        law is not None,
        float((errors**-2.0).sum()),
    )


def most_of(shares: Mapping[str, Array], law: str | None) -> float:
    """Sum of the weights of forms: of all, or of the law that is asked for."""
    return sum(float(own.sum()) for name, own in shares.items() if law in (None, name))


def _cut(one: Curves) -> Curves:
    """Without what hardly can be."""
    kept = one.weights > _KEPT * max(float(one.weights.max()), _KEPT)
    rows = (one.levels[kept], one.shares[kept], one.scatter[kept], one.weights[kept])
    return Curves(one.form, one.reference, *rows)


def _tried(law: str, error: float | None) -> TriedForm:
    """What is told of a law by its error; an infinite one is none."""
    if error is None:
        return TriedForm(law, None, f"fewer than {TESTED} configurations")
    if not math.isfinite(error):
        return TriedForm(law, None, "not above 0 at a configuration left out")
    return TriedForm(law, error, "")


def _pooled(
    factor: EfficiencyFactor, x: Sequence[int], values: Sequence[float], axis: Axis
) -> tuple[Array, Array, Array]:
    """Configurations, logarithms of the mean values there, and their errors."""
    given, measured = np.array(x, dtype=np.float64), np.log(np.array(values, dtype=np.float64))
    places, where = np.unique(given, return_inverse=True)
    count = np.bincount(where)
    logs: Array = np.bincount(where, measured) / count
    by_processes = axis == "processes"
    errors = point_errors(factor, np.exp(logs), places, by_processes=by_processes)
    return places, logs, errors / np.sqrt(count)


def _reference(places: Array) -> float:
    """The configuration next to the middle, above 1 where there is one."""
    able = places[places > 1] if (places > 1).any() else places
    middle = np.log(able).mean()
    return float(able[np.abs(np.log(able) - middle).argmin()])


def _forms(
    factor: EfficiencyFactor, places: Array, axis: Axis, mode: Mode
) -> dict[str, tuple[ProjectionForm, ...]]:
    """Forms by law: those that the points can determine."""
    own = structural(factor.kind, axis, mode)
    if factor.kind in ("amount", "runtime") and len(places) >= TESTED:
        own = (*own, settled(places, axis))
    if _reference(places) == 1:  # what is 0 at 1 says nothing there
        at = np.ones(1)
        own = tuple(form for form in own if form.first(at)[0] > 0 and form.second(at)[0] > 0) or (
            ProjectionForm(
                "structural", "constant", ProjectionTerm(), ProjectionTerm(), shares=np.ones(1)
            ),
        )
    if len(places) > 1:
        return {"structural": own, **{name: (form,) for name, form in PARAMETRIC.items()}}
    if factor.is_limited and places[0] > 1:
        return {"structural": own, **{name: (form,) for name, form in ANCHORED.items()}}
    return {"structural": own}


def _weighed(
    forms: Sequence[ProjectionForm], x: Array, logs: Array, errors: Array
) -> tuple[list[Curves], list[float], float]:
    """Curves of the forms of a law, the evidence of each, and the law's error at points left out.

    Infinite where a form has no value at one of them.
    """
    reference, count, precision = _reference(x), len(x), float((errors**-2.0).sum())
    found, evidences, without, gaps = [], [], [], []
    for form in forms:
        levels, shares, prior = _grid(form, x, logs, reference)
        curves = form.logarithm(levels[:, None], form.relative(x, reference, shares))
        curves = np.where(np.isnan(curves), -np.inf, curves)
        at = evidence(curves, logs, errors, _FREEDOM, leveled=bool(form.offset))
        if not form.offset:  # the integral over the level, even within the range of all levels
            sign = -1.0 if form.is_inverse else 1.0
            levels = np.exp(sign * at.level)
            half = (_FREEDOM + count) / 2
            width = math.exp(math.lgamma(half - 0.5) - math.lgamma(half))
            width *= math.sqrt(math.pi * _FREEDOM / precision)
            prior = prior + math.log(width / math.log(_MOST / _LEAST))
        joint = at.density + prior
        one = float(total(joint))
        weights = np.exp(joint - one) if math.isfinite(one) else np.zeros(len(joint))
        squares = np.where(np.isfinite(at.misfit), at.misfit, 0.0) + _FREEDOM
        found.append(Curves(form, reference, levels, shares, squares, weights))
        evidences.append(one)
        without.append(at.without + prior[:, None])
        gaps.append(at.left_out)
    given, off = np.concatenate(without), np.concatenate(gaps)
    with np.errstate(invalid="ignore", over="ignore"):
        likely = np.exp(given - total(given, 0))
        missed = np.where(likely > 0, likely * off, 0.0).sum(axis=0)
        error = math.sqrt(float(np.mean(missed**2)))
    return found, evidences, error if math.isfinite(error) else math.inf


def _grid(
    form: ProjectionForm, x: Array, logs: Array, reference: float
) -> tuple[Array, Array, Array]:
    """Levels and shares that are tried of a form, and the logarithm of their prior."""
    shares = form.shares
    if not form.offset:
        return np.ones(len(shares)), shares, np.full(len(shares), -math.log(len(shares)))
    relative = form.relative(x, reference, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        said = np.maximum(np.expm1(-logs), 0.003) / relative  # by each point alone
    said = np.where(np.isfinite(said), said, 1.0)
    low, high = (end.clip(_LEAST, _MOST)[:, None] for end in (said.min(axis=1), said.max(axis=1)))
    near = low * _NEAR[0] * (high * _NEAR[-1] / (low * _NEAR[0])) ** np.linspace(0, 1, len(_NEAR))
    levels = np.sort(np.concatenate([np.tile(_LEVELS, (len(shares), 1)), near], axis=1), axis=1)
    width = np.gradient(np.log(levels), axis=1)
    with np.errstate(divide="ignore"):
        prior = np.log(width * levels / (1 + levels))
    spread = math.log(math.log(_MOST / _LEAST) * len(shares))
    return levels.ravel(), np.repeat(shares, levels.shape[1]), prior.ravel() - spread


def _constants(law: str, places: Array, logs: Array, errors: Array) -> dict[str, float]:
    """x0 and f of the best fit; empty for structural laws and of one configuration."""
    if law not in PARAMETRIC or len(places) < 2:
        return {}
    if law == "linear":
        values = np.exp(logs)
        columns = np.stack([places, np.ones_like(places)], axis=1) / values[:, None]
        slope, level = np.linalg.lstsq(columns / errors[:, None], 1 / errors)[0]
        return {"x0": float(level), "f": float(slope)}
    form = PARAMETRIC[law]
    first, second = form.first(places), form.second(places)
    terms = fit_two(first[None], second[None], np.exp(-logs), errors)[0][0].tolist()
    x0 = 1 / sum(terms)
    return {"x0": x0, "f": x0 * (terms[0] if law == "amdahl" else terms[1])}


def _closed(law: str, constants: Mapping[str, float], x: Array) -> Array:
    """The value of a law of two constants; NaN where it is not above 0."""
    x0, f = constants["x0"], constants["f"]
    if law == "amdahl":
        return x0 / (f + (1 - f) * x)
    if law == "pipe":
        return x0 * x / ((1 - f) + f * (2 * x - 1))
    found: Array = np.where(x0 + f * x > 0, x0 + f * x, np.nan)
    return found
