"""The law of one factor along processes or threads, from its value in a few runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from popmodel.efficiency.scaling import Mode
from popmodel.fit.least_squares import fit_two
from popmodel.fit.mixture import ASSUMED_DRIFT
from popmodel.fit.samples import Array
from popmodel.projection.factors import Factor, point_errors
from popmodel.projection.forms import (
    ANCHORED,
    LAWS,
    PARAMETRIC,
    Axis,
    Form,
    Term,
    settled,
    structural,
)
from popmodel.projection.posterior import Posterior, posterior
from popmodel.values import dataclass

TESTED = 3
"""Different configurations from which laws are told apart by points that are left out."""
DRAWS = 2000
_PRIOR: Mapping[str, float] = {"structural": 0.5, "amdahl": 0.2, "pipe": 0.2, "linear": 0.1}
_OWN = 0.5  # least weight of the law that is shown, in intervals
_ALIKE = 1.5  # error over the least one, up to which a law that is preferred is taken
_DRIFT = 0.03  # of an amount: exponent of what no form has
_MEDIAN_DRAWS = 400
_SHOWN_FORMS = 3


@dataclass(frozen=True)
class Tried:
    """A law that was fitted."""

    law: str  # One of `LAWS`
    # Root mean square of the logarithm of measured over projected value, each configuration left
    # out in turn; None where there is none.
    error: float | None
    why: str  # Why there is none; empty where there is one


@dataclass(frozen=True)
class Fitted:
    """The law of a factor."""

    factor: Factor  # Which one
    law: str  # The chosen law
    form: str  # Its form; of structural laws the most likely ones
    # ``x0`` and ``f`` of the laws of two constants; none of structural ones.
    constants: Mapping[str, float]
    origin: str  # ``fit`` if configurations that were left out spoke for the law, else ``assumed``
    points: int  # Different configurations
    tried: tuple[Tried, ...]  # All laws that could be chosen, best first
    _axis: Axis = field(repr=False)
    _ends: tuple[float, float] = field(repr=False)
    _best: tuple[Posterior, ...] = field(repr=False)
    _all: tuple[tuple[Posterior, int], ...] = field(repr=False)

    @property
    def off(self) -> float | None:
        """By what factor even the best law is off at a configuration left out; None: not tested."""
        errors = [one.error for one in self.tried if one.error is not None]
        return math.exp(min(errors)) if errors else None

    def values(self, x: Array) -> Array:
        """Return the projected values, shape of x; NaN where the law has none above 0."""
        if self.constants:
            return _closed(self.law, self.constants, x)
        logs = np.concatenate([one.logarithms(x) for one in self._best])
        found: Array = np.exp(np.median(logs, axis=0))
        return found

    def draws(self, x: Array, generator: np.random.Generator) -> Array:
        """Draw values as they would be measured, shape (`DRAWS`, n); NaN where there is none.

        From all laws that may hold, with what none of them has, which grows with the distance from
        the measured runs, and with the scatter of runs.
        """
        logs = np.concatenate([one.logarithms(x)[:count] for one, count in self._all])
        scatter = np.concatenate([one.scatter[:count] for one, count in self._all])
        order = generator.permutation(len(logs))
        logs, scatter = logs[order], scatter[order]
        low, high = self._ends
        distance = np.log(np.maximum(np.maximum(x / high, low / x), 1.0))
        drift = generator.standard_normal(len(logs))[:, None] * distance
        if self.factor.is_limited:
            losses = np.maximum(np.expm1(-logs), 0.0) * np.exp(ASSUMED_DRIFT * drift)
            logs = -np.log1p(losses)
        else:
            logs = logs + _DRIFT * drift
        by_processes = self._axis == "processes"
        processes = np.broadcast_to(x if by_processes else np.ones_like(x), logs.shape)
        with np.errstate(invalid="ignore"):
            errors = point_errors(self.factor, np.exp(logs), processes, by_processes=by_processes)
        chance = generator.standard_normal(logs.shape) * scatter[:, None]
        logs = logs + errors * chance
        if self.factor.is_limited:
            logs = np.minimum(logs, 0.0)
        found: Array = np.exp(logs)
        return found


def fit(
    factor: Factor,
    x: Sequence[int],
    values: Sequence[float],
    axis: Axis,
    mode: Mode,
    law: str | None = None,
) -> Fitted:
    """Fit the law of a factor."""
    places, logs, errors = _pooled(factor, x, values, axis)
    reference = _reference(places)
    forms = _forms(factor, places, axis, mode)
    tested = len(places) >= TESTED
    errors_of = {
        name: _left_out(name, forms[name], places, logs, errors) if tested else None
        for name in forms
    }
    if law is not None and law not in forms:
        law = LAWS[0]
    chosen = law or _choice(errors_of, float(errors.mean()))
    found = {
        name: [posterior(form, places, logs, errors, reference, DRAWS) for form in own]
        for name, own in forms.items()
        if law in (None, name)
    }
    weights = _weights(found, chosen)
    best = [(one, weight) for one, weight in weights if one.form.law == chosen]
    alone = _counts([weight for _, weight in best], DRAWS)
    constants = _constants(chosen, places, logs, errors)
    likely = sorted(best, key=lambda pair: -pair[1])[:_SHOWN_FORMS]
    likely = [pair for pair in likely if pair[1] > 0.1 * likely[0][1]]
    tried = sorted(
        (_tried(name, errors_of[name]) for name in forms),
        key=lambda one: (one.law != chosen, math.inf if one.error is None else one.error),
    )
    return Fitted(
        factor,
        chosen,
        " or ".join(one.form.text for one, _ in likely),
        constants,
        "fit" if tested else "assumed",
        len(places),
        tuple(tried),
        axis,
        (float(places.min()), float(places.max())),
        tuple(_cut(one, count) for (one, _), count in zip(best, alone, strict=True) if count),
        tuple(
            (one, count)
            for (one, _), count in zip(
                weights, _counts([weight for _, weight in weights], DRAWS), strict=True
            )
            if count
        ),
    )


def _tried(law: str, error: float | None) -> Tried:
    """What is told of a law by its error; an infinite one is none."""
    if error is None:
        return Tried(law, None, f"fewer than {TESTED} configurations")
    if not math.isfinite(error):
        return Tried(law, None, "not above 0 at a configuration left out")
    return Tried(law, error, "")


def _pooled(
    factor: Factor, x: Sequence[int], values: Sequence[float], axis: Axis
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


def _forms(factor: Factor, places: Array, axis: Axis, mode: Mode) -> dict[str, tuple[Form, ...]]:
    """Forms by law: those that the points can determine."""
    own = structural(factor.kind, axis, mode)
    if factor.kind in ("amount", "runtime") and len(places) >= TESTED:
        own = (*own, settled(places, axis))
    if _reference(places) == 1:  # what is 0 at 1 says nothing there
        at = np.ones(1)
        own = tuple(form for form in own if form.first(at)[0] > 0 and form.second(at)[0] > 0) or (
            Form("structural", "constant", Term(), Term(), shares=np.ones(1)),
        )
    if len(places) > 1:
        return {"structural": own, **{name: (form,) for name, form in PARAMETRIC.items()}}
    if factor.is_limited and places[0] > 1:
        return {"structural": own, **{name: (form,) for name, form in ANCHORED.items()}}
    return {"structural": own}


def _choice(errors: Mapping[str, float | None], expected: float) -> str:
    """The first law that is about as good as the best."""
    known = {
        name: error for name, error in errors.items() if error is not None and math.isfinite(error)
    }
    if not known:
        return LAWS[0]
    limit = max(expected, _ALIKE * min(known.values()))
    return next(name for name in LAWS if known.get(name, math.inf) <= limit)


def _left_out(law: str, forms: Sequence[Form], places: Array, logs: Array, errors: Array) -> float:
    """Root mean square of what a law is off at each configuration, fitted to the others."""
    gaps = []
    for row in range(len(places)):
        kept = np.arange(len(places)) != row
        others = places[kept], logs[kept], errors[kept]
        reference = _reference(others[0])
        constants = _constants(law, *others)
        there = places[row : row + 1]
        if constants:
            value = _closed(law, constants, there)[0]
            gaps.append(math.log(value) - logs[row] if value > 0 else math.inf)
            continue
        found = [posterior(form, *others, reference, _MEDIAN_DRAWS) for form in forms]
        weights = np.exp([one.evidence - max(each.evidence for each in found) for one in found])
        counts = _counts(weights.tolist(), _MEDIAN_DRAWS)
        drawn = [one.logarithms(there)[:n, 0] for one, n in zip(found, counts, strict=True)]
        gaps.append(float(np.median(np.concatenate(drawn))) - logs[row])
    return math.sqrt(float(np.mean(np.square(gaps))))


def _weights(
    found: Mapping[str, Sequence[Posterior]], chosen: str
) -> list[tuple[Posterior, float]]:
    """The weight of each form: by its evidence, at least half for the law that is shown."""
    most = max(one.evidence for own in found.values() for one in own)
    weighed = [
        (one, _PRIOR[law] / len(own) * math.exp(one.evidence - most))
        for law, own in found.items()
        for one in own
    ]
    total = sum(weight for _, weight in weighed)
    mine = sum(weight for one, weight in weighed if one.form.law == chosen)
    return [
        (
            one,
            (1 - _OWN) * weight / total + (_OWN * weight / mine if one.form.law == chosen else 0.0),
        )
        for one, weight in weighed
    ]


def _counts(weights: Sequence[float], draws: int) -> list[int]:
    """How many of so many draws each has, by its weight; together all of them."""
    edges = np.rint(np.cumsum(weights) / sum(weights) * draws).astype(int)
    counts: list[int] = np.diff(edges, prepend=0).tolist()
    return counts


def _cut(one: Posterior, count: int) -> Posterior:
    return Posterior(
        one.form,
        one.reference,
        one.levels[:count],
        one.shares[:count],
        one.scatter[:count],
        one.evidence,
    )


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
