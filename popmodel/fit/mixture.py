"""What a few points leave open: an average over all forms that a law may have.

A form is one term or a share of each of two, times a level. The level has a flat prior in its
logarithm and is integrated out, as is the scale of the errors, whose prior is the stated one (a
scaled inverse chi-square, so that the likelihood of points is Student's). Shares are on a grid of
their own for each form, refined where the points tell them. The weight of a form is its prior times
its evidence: the density of the points, each foretold from those before, whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.values import dataclass
from popmodel.fit.candidates import Form
from popmodel.fit.samples import END, Array, Interval, LawPoints

ASSUMED_DRIFT = 0.15
"""Half of the interval of the exponent of a variable that was never varied: assumed; work per
process as P**-0.85 to P**-1.15, a factor of 1.23 at four times the processes."""
_LOGITS = 6.0  # of shares: from 1/400
_EVEN = 0.5  # of the prior of shares is even in the share, the rest in its logit
_SHARES = 31
_TOLD = 14.0  # of the logarithm of the posterior below the best, from where shares are negligible
_STEP = 0.5  # of the logarithm of the density, next to its maximum, that is refined
_REFINEMENTS = 6
_KEPT = 1e-5  # of the largest weight: atoms that are left out of quantiles
_NODES = (np.arange(15) + 0.5) / 15
_AT_ONCE = 2_000_000  # numbers, to bound memory
_COARSE = 7
_MOST_FORMS = 400


class FormEvidence(NamedTuple):
    """What points say of curves of known shape; arrays of the shape of the curves but the last."""

    level: Array  # Logarithm of the level that fits best
    misfit: Array  # Sum of squares of the residuals over the errors of the points
    density: Array  # Logarithm of the density of the points, up to a constant that all share
    left_out: Array  # By point: residual from the level of the others
    without: Array  # By point: logarithm of the density of the others


def evidence(
    curves: Array, logs: Array, errors: Array, freedom: float, *, leveled: bool = False
) -> FormEvidence:
    """Weigh curves, logarithms of a law but for its level, by points (last axis).

    ``leveled`` curves have their level. What is not finite cannot be.
    """
    weights = errors**-2.0
    part = weights / weights.sum()
    count = len(logs) if leveled else len(logs) - 1
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = logs - curves
        level = np.zeros(gaps.shape[:-1]) if leveled else gaps @ part
        residual = gaps - level[..., None]
        misfit = residual**2 @ weights
        able = np.isfinite(misfit)
        misfit = np.where(able, misfit, np.inf)
        residual = np.where(able[..., None], residual, np.inf)
        rest = np.ones_like(part) if leveled else np.maximum(1 - part, 1e-12)
        others = np.maximum(misfit[..., None] - weights * residual**2 / rest, 0.0)
        others = np.where(able[..., None], others, np.inf)

    def density(squares: Array, number: int) -> Array:
        found: Array = -(freedom + number) / 2 * np.log1p(squares / freedom)
        return found

    return FormEvidence(
        np.where(able, level, 0.0), misfit, density(misfit, count), residual / rest,
        density(others, count - 1),
    )  # fmt: skip


def total(logs: Array, axis: int = -1) -> Array:
    """Logarithm of the sum of numbers given by their logarithms."""
    most = logs.max(axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        found: Array = np.log(np.exp(logs - most).sum(axis=axis)) + most.squeeze(axis)
    return found


def weighted_quantiles(values: Array, weights: Array, at: Sequence[float]) -> Array:
    """Quantiles of atoms with weights."""
    order = np.lexsort((weights, values.round(12)))  # rounding orders no equal ones
    below = np.cumsum(weights[order]) - weights[order] / 2
    found: Array = np.interp(np.asarray(at) * weights.sum(), below, values[order])
    return found


@dataclass(frozen=True)
class Mixture:
    """All forms that were tried, by how likely the points make them."""

    points: LawPoints
    forms: tuple[Form, ...]
    reference: Mapping[str, float]  # Where terms are 1
    weights: Array  # By form; together 1
    # By form and share.
    shares: Array
    parts: Array  # Weights; together those of the form
    levels: Array  # Logarithms of the value at the reference
    misfits: Array
    # By form.
    errors: Array  # Root mean square of what it is off at points left out; as a logarithm

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the scale of errors."""
        return self.points.freedom + len(self.points) - 1

    def at(
        self, processes: int, threads: int, parameters: Mapping[str, float] | None = None
    ) -> Interval:
        """Return the median at a configuration, with its 90 % interval."""
        points = self.points
        place = {"P": float(processes), "T": float(threads), **(parameters or {})}
        if missing := [name for name in points.varied if name not in place]:
            raise ValueError(f"runtimes depend on {', '.join(missing)}: give a value")
        home = points.configuration(0)
        named = set().union(*(term.names for form in self.forms for term in form.terms))
        for name in set(place) & set(home) - set(points.varied) - {"P", "T"} - named:
            if place[name] != home[name]:
                raise ValueError(f"{points.known_at(name)}: no law of the runtime tells of others")
        low, value, high = self.quantiles({**home, **place})[0].tolist()
        return Interval(math.exp(value), math.exp(low), math.exp(high))

    def curves(self, configurations: Mapping[str, Any], forms: Any = slice(None)) -> Array:
        """Logarithms of the law at configurations, by form, share and configuration."""
        chosen = np.arange(len(self.forms))[forms]
        first, second = _columns([self.forms[i] for i in chosen], configurations, self.reference)
        found: Array = _curves(first, second, self.shares[chosen])
        found += self.levels[chosen][..., None]
        return found

    def means(self, configurations: Mapping[str, Any], forms: Any = slice(None)) -> Array:
        """Logarithm of each form at configurations, on average over its shares."""
        curves, parts = self.curves(configurations, forms), self.parts[forms][..., None]
        with np.errstate(invalid="ignore"):
            weighted = np.where(parts > 0, parts * curves, 0.0).sum(axis=1)
            found: Array = weighted / self.parts[forms].sum(axis=1)[:, None]
        return found

    def best(self, form: int) -> tuple[float, float, float]:
        """Share, level and misfit in the middle of what points leave open of a form."""
        share = weighted_quantiles(self.shares[form], self.parts[form], [0.5])
        home = _columns(self.forms[form : form + 1], self.points.configurations, self.reference)
        curve = _curves(*home, share[None])[0]
        points = self.points
        at = evidence(curve, np.log(points.values), points.errors, points.freedom)
        return float(share[0]), float(at.level[0]), float(at.misfit[0])

    def scatter(self) -> Array:
        """Standard deviation of the logarithm of the value of each form and share.

        What residuals have beyond the errors of the points is the form's: no number of points
        averages it out.
        """
        points, count = self.points, len(self.points)
        precision = float((points.errors**-2.0).sum())
        finite = np.where(np.isfinite(self.misfits), self.misfits, 0.0)
        own = np.maximum(finite / count - 1, 0.0) * count
        found: Array = np.sqrt(((points.freedom + finite) / self.freedom + own) / precision)
        return found

    def assumed(self, configurations: Mapping[str, Any]) -> Array:
        """Standard deviation of the logarithm by variables that were never varied."""
        points = self.points
        far = [
            ASSUMED_DRIFT / END * np.log(np.asarray(configurations[name]) / column[0])
            for name, column in points.configurations.items()
            if name in configurations and name not in points.varied
        ]
        return np.asarray(np.sqrt(np.sum(np.square(far), axis=0)))

    def quantiles(
        self, configurations: Mapping[str, Any], at: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> Array:
        """Quantiles of the logarithm of the value at configurations, shape (k, quantiles)."""
        from scipy.special import stdtrit

        able = np.flatnonzero(self.weights > _KEPT * self.weights.max())
        curves = self.curves(configurations, able)
        parts, scatter = self.parts[able], self.scatter()[able]
        assumed = np.broadcast_to(self.assumed(configurations), curves.shape[2:])
        nodes = stdtrit(self.freedom, _NODES)
        found = []
        for place in range(curves.shape[2]):
            likely = (parts > _KEPT * parts.max()) & np.isfinite(curves[..., place])
            width = np.hypot(scatter[likely], assumed[place])
            values = curves[..., place][likely][:, None] + width[:, None] * nodes
            weights = np.repeat(parts[likely] / len(nodes), len(nodes))
            found.append(weighted_quantiles(values.ravel(), weights, at))
        return np.array(found)


def mixture(points: LawPoints, forms: Sequence[Form], reference: Mapping[str, float]) -> Mixture:
    """Weigh forms by points; those that have no value above 0 at some point are left out."""
    first, second = _columns(forms, points.configurations, reference)
    with np.errstate(invalid="ignore"):
        able = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
        able &= (first + second > 0).all(axis=1) & (first >= 0).all(axis=1)
        able &= (second >= 0).all(axis=1)
    kept = np.flatnonzero(able).tolist()
    if not kept:
        raise ValueError("no form has a value above 0 at all samples")
    logs, prior = np.log(points.values), np.array([form.prior for form in forms])
    if len(kept) > _MOST_FORMS:
        coarse = np.broadcast_to(_grid(_COARSE), (len(kept), _COARSE))
        rough = _by_shares(first[kept], second[kept], coarse, logs, points)
        score = rough.density.max(axis=1) + prior[kept]
        best = np.argsort(-score, kind="stable")[:_MOST_FORMS]
        kept = sorted(kept[i] for i in best.tolist())
    first, second, prior = first[kept], second[kept], prior[kept]
    single = np.array([len(forms[i].terms) == 1 for i in kept])
    logits = np.tile(np.linspace(-_LOGITS, _LOGITS, _SHARES), (len(kept), 1))
    evidences = _by_shares(first, second, _shares(logits, single), logs, points)
    for _ in range(_REFINEMENTS):
        best = np.clip(evidences.density.argmax(axis=1), 1, _SHARES - 2)
        around = np.stack([np.arange(len(best)), best])
        steps = [
            np.abs(evidences.density[*around] - evidences.density[around[0], best + i])
            for i in (-1, 1)
        ]
        rows = np.flatnonzero(~single & (np.maximum(*steps) > _STEP))
        if not len(rows):
            break
        logits[rows] = _refined(logits[rows], evidences.density[rows], best[rows])
        finer = _by_shares(first[rows], second[rows], _shares(logits[rows], False), logs, points)
        for own, new in zip(evidences, finer, strict=True):
            own[rows] = new
    shares = _shares(logits, single)
    at_share = _log_prior(logits, single)
    joint = evidences.density + at_share
    of_form = total(joint)
    score = np.where(np.isfinite(of_form), prior + of_form, -np.inf)
    weights = np.exp(score - score.max())
    weights /= weights.sum()
    with np.errstate(invalid="ignore", over="ignore"):
        likely = evidences.without + at_share[..., None]
        likely = np.exp(likely - total(likely, 1)[:, None])
        off = np.where(likely > 0, likely * evidences.left_out, 0.0).sum(axis=1)
        part = points.errors**-2.0
        errors = np.sqrt(off**2 @ part / part.sum())
        parts = np.nan_to_num(np.exp(joint - of_form[:, None]) * weights[:, None])
    return Mixture(
        points, tuple(forms[i] for i in kept), reference, weights, shares, parts,
        evidences.level, evidences.misfit, np.where(np.isfinite(errors), errors, np.inf),
    )  # fmt: skip


def _columns(
    forms: Sequence[Form], configurations: Mapping[str, Any], reference: Mapping[str, float]
) -> tuple[Array, Array]:
    """First and second terms of forms over those at the reference, shape (forms, points)."""
    tables: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for term in {term.text: term for form in forms for term in form.terms}.values():
            tables[term.text] = np.atleast_1d(term.at(configurations)) / term.at(reference)
    return (
        np.array([tables[form.terms[0].text] for form in forms]),
        np.array([tables[form.terms[-1].text] for form in forms]),
    )


def _curves(first: Array, second: Array, shares: Array) -> Array:
    at = shares[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.log((1 - at) * first[:, None, :] + at * second[:, None, :])
    return found


def _by_shares(
    first: Array, second: Array, shares: Array, logs: Array, points: LawPoints
) -> FormEvidence:
    step = max(_AT_ONCE // (shares.shape[1] * len(logs)), 1)
    found = [
        evidence(
            _curves(first[i : i + step], second[i : i + step], shares[i : i + step]),
            logs, points.errors, points.freedom,
        )
        for i in range(0, len(first), step)
    ]  # fmt: skip
    return FormEvidence(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _refined(logits: Array, density: Array, best: Any) -> Array:
    """Grids that are half about where the density is not negligible, half next to its maximum."""
    rows, half = np.arange(len(logits)), _SHARES // 2
    near = density > density.max(axis=1, keepdims=True) - _TOLD
    low = np.maximum(near.argmax(axis=1) - 1, 0)
    high = np.minimum(_SHARES - near[:, ::-1].argmax(axis=1), _SHARES - 1)
    wide = np.linspace(logits[rows, low], logits[rows, high], _SHARES - half, axis=1)
    fine = np.linspace(logits[rows, best - 1], logits[rows, best + 1], half, axis=1)
    return np.sort(np.concatenate([wide, fine], axis=1), axis=1)


def _grid(count: int) -> Array:
    return 1 / (1 + np.exp(-np.linspace(-_LOGITS, _LOGITS, count)))


def _shares(logits: Array, single: Any) -> Array:
    """Shares of the second term; 0 for forms of one."""
    found: Array = np.where(np.atleast_1d(single)[:, None], 0.0, 1 / (1 + np.exp(-logits)))
    return found


def _log_prior(logits: Array, single: Array) -> Array:
    """Logarithm of the prior of each share of a grid; of forms of one term all in the first."""
    width = np.gradient(logits, axis=1)
    share = 1 / (1 + np.exp(-logits))
    with np.errstate(divide="ignore"):  # of grid points that coincide
        prior = np.log(width * (_EVEN * share * (1 - share) + (1 - _EVEN) / (2 * _LOGITS)))
    alone = np.where(np.arange(logits.shape[1]) == 0, 0.0, -np.inf)
    found: Array = np.where(single[:, None], alone, prior)
    return found
