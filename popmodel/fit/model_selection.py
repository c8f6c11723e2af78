"""The form of a law, chosen by how well it foretells each point from the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from popmodel.fit.cache_steps import edged
from popmodel.fit.forms import Factor, Form, are_off_axes, given, normal, physical, stays_for
from popmodel.fit.least_squares import Fits, fit_one, fit_two, nearest
from popmodel.fit.samples import Array, Points
from popmodel.fit.terms import read_form
from popmodel.values import dataclass

FAR_BETTER = 0.5  # error of a normal form over that of the best physical form
_MOST_INTERACTIONS = 400  # sums whose terms differ in several variables that are fitted
_LEAST_EDGED = 5  # points from which edges of caches are looked for: three numbers each
_LEAST_SIZES = 3  # of the problem: two are as well told by a power
_WORKS = 4  # forms that the work may have then
_LEAST_NORMAL = 4  # points from which a normal form is tried
_WORSE_BY_CHANCE = 1.6  # of an error of n points, over its expectation, times the root of n
_FAR_OFF = 2.0  # errors of all tested forms, over what is expected, from which others are taken
_LEAST_OTHERS = 0.01  # of a point's value that the other points determine
_CONSISTENT = 3.0  # standard deviations


@dataclass(frozen=True)
class Tried:
    """A form that was fitted to all points."""

    form: Form  # The form
    # As of `Fits`.
    scale: float
    share: float
    misfit: float
    # Root mean square of what it is off, as a logarithm, at each point when fitted to the others,
    # by the weights of the points; infinite where the others do not determine it.
    error: float
    # What that error is if the form is true: more than the errors of the points, where single
    # points determine the form.
    expected: float

    @property
    def size(self) -> int:
        """Number of its coefficients."""
        return len(self.form.terms)


@dataclass(frozen=True)
class Choice:
    """The chosen form, and those that are about as good."""

    # Of the forms that foretell the points about as well as any does, the first hinted one; or else
    # the simplest, sums with a part that stays before others.
    best: Tried
    # Other forms of no larger error; without those that contain the best as a special case.
    alike: tuple[Tried, ...]
    tried: tuple[Tried, ...]  # All, best first by error
    tested: bool  # Whether points beyond those that determine its coefficients spoke for the form


def reference_of(points: Points) -> int:
    """The point next to the middle of all on logarithmic scales; of two, the one with more P."""
    columns = np.log(np.array([points.configurations[name] for name in points.configurations]).T)
    spread = np.ptp(columns, axis=0)
    apart = (columns - (columns.max(axis=0) + columns.min(axis=0)) / 2) / np.where(
        spread > 0, spread, 1
    )
    distance = np.round((apart**2).sum(axis=1), 9)
    return int(np.lexsort((-columns[:, 1], -columns[:, 0], distance))[0])


def fitted(
    forms: Sequence[Form], points: Points, reference: int, most: int | None = None
) -> list[Tried]:
    """Fit forms to points; those that are 0 or infinite where a value is not are left out.

    Of sums of two terms at most ``most``, those that come nearest to the points, where it is given.
    """
    logs = np.log(points.values)
    tables: dict[str, Array] = {}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for term in {term.text: term for form in forms for term in form.terms}.values():
            values = term.at(points.configurations)
            if np.isfinite(values).all() and (values >= 0).all() and values[reference] > 0:
                tables[term.text] = values / values[reference]
    found = []
    for size in (1, 2):
        chosen = [
            form
            for form in forms
            if len(form.terms) == size and all(term.text in tables for term in form.terms)
        ]
        if not chosen:
            continue
        columns = [np.array([tables[form.terms[i].text] for form in chosen]) for i in range(size)]
        if size == 1:
            fits = fit_one(columns[0], logs, points.errors)
        else:
            if most is not None:
                kept = nearest(columns[0], columns[1], logs, points.errors, most)
                chosen = [chosen[row] for row in kept.tolist()]
                columns = [column[kept] for column in columns]
            fits = fit_two(columns[0], columns[1], logs, points.errors)
        found += _tried(chosen, fits, points.errors)
    return found


def _tried(forms: Sequence[Form], fits: Fits, errors: Array) -> list[Tried]:
    weights = errors**-2.0
    weights = weights / weights.sum()
    mean = (fits.left_out**2) @ weights
    expected = np.sqrt((errors**2 / np.maximum(1 - fits.leverage, _LEAST_OTHERS)) @ weights)
    columns = (fits.scale, fits.share, fits.misfit, np.sqrt(mean), expected)
    numbers = np.array(columns).T.tolist()
    return [Tried(form, *row) for form, row in zip(forms, numbers, strict=True) if row[2] < np.inf]


def choose(
    points: Points, reference: int, forms: Sequence[str] | None, hints: Sequence[str]
) -> Choice | None:
    """Choose the form of a law."""
    candidates = physical(points, hints) if forms is None else given(forms, hints)
    tried = fitted(candidates, points, reference)
    floor = expected_error(points)
    if forms is None:
        tried += _further(points, reference, hints, tried, floor)
    if not tried:
        return None
    if len(points) == 2 and hints and (found := _of_two_points(tried, hints)):
        return found
    known = sorted((one for one in tried if one.error < np.inf), key=lambda one: one.error)
    stays = stays_for(points, hints)

    def order(one: Tried) -> tuple[int, int, bool, float, float]:
        return one.form.hint, one.size, stays not in one.form.terms, one.error, one.misfit

    untested = [one for one in tried if one.error == np.inf and _is_within(one, points)]
    if not known or (untested and known[0].error > _FAR_OFF * floor):
        good = untested or tried
        best = min(good, key=order)
        return Choice(best, tuple(one for one in untested if one is not best), tuple(known), False)
    limit = max(floor, known[0].error * tolerance(len(points)))
    chance = 1 + _WORSE_BY_CHANCE / np.sqrt(len(points))
    good = [one for one in known if one.error <= max(limit, chance * one.expected)]
    likely = [one for one in untested if one.form.hint < len(hints)]
    if likely and not any(one.form.hint < len(hints) for one in good):
        # what physics suggests and all points agree with, though one of them left out would not
        best = min(likely, key=lambda one: one.misfit)
        others = (one for one in (*likely, *good) if one is not best)
        return Choice(best, tuple(one for one in others if _is_proper(one)), tuple(known), False)
    best = min(good, key=order)
    within = [one for one in good if one.size == 1 and one.form.terms[0] in best.form.terms]
    best = min(within, key=order, default=best)  # one of its terms alone will do
    alike = tuple(
        one for one in good if one is not best and not _extends(one, best) and _is_proper(one)
    )
    return Choice(best, alike, tuple(known), tested=True)


def expected_error(points: Points) -> float:
    """What a true form is off at points that are left out, at most by chance."""
    mean = len(points) / float((points.errors**-2.0).sum())
    return math.sqrt(mean) * (1 + _WORSE_BY_CHANCE / math.sqrt(len(points)))


def tolerance(count: int) -> float:
    """By what factor an error may exceed the least by chance; a few points hardly tell any."""
    return 1 + 4 / max(count - 1, 1)


def _is_within(one: Tried, points: Points) -> bool:
    """Whether residuals are about as large as the errors of the points."""
    return _is_proper(one) and one.misfit <= _CONSISTENT**2 * max(len(points) - one.size, 1)


def _is_proper(one: Tried) -> bool:
    """Whether all of its terms have a share in it."""
    return one.size == 1 or 1e-4 < one.share < 1 - 1e-4


def _extends(one: Tried, other: Tried) -> bool:
    return {term.text for term in other.form.terms} < {term.text for term in one.form.terms}


def _further(
    points: Points, reference: int, hints: Sequence[str], tried: Sequence[Tried], floor: float
) -> list[Tried]:
    """Forms that are tried only where the others leave much.

    Edges of caches, interactions, then normal forms.
    """
    best = min((one.error for one in tried), default=np.inf)
    if best <= floor:
        return []
    if found := _with_edges(points, reference, tried, best):
        return found
    if are_off_axes(points):
        forms = physical(points, hints, off_axes=True)  # thousands
        more = fitted(forms, points, reference, _MOST_INTERACTIONS)
        if min((one.error for one in more), default=np.inf) < best:
            return more
    varied = points.varied
    if len(varied) != 1 or len(points) < _LEAST_NORMAL:
        return []
    found = fitted(normal(varied[0], _fixed_factors(tried, varied[0])), points, reference)
    return [one for one in found if one.error < FAR_BETTER * best]


def _with_edges(points: Points, reference: int, tried: Sequence[Tried], best: float) -> list[Tried]:
    """Forms of work whose data leave a cache, if they foretell points far better than others do."""
    if len(points) < _LEAST_EDGED:
        return []
    grows = {
        name
        for name in set(points.varied) - {"P", "T"}
        if len(np.unique(points.configurations[name])) >= _LEAST_SIZES
    }
    single = [one for one in tried if one.size == 1 and one.form.terms[0].names & grows]
    works = [one.form for one in sorted(single, key=lambda one: one.error)[:_WORKS]]
    found = fitted(edged(points, works), points, reference)
    return [one for one in found if one.error < FAR_BETTER * best and _is_proper(one)]


def _fixed_factors(tried: Sequence[Tried], variable: str) -> Mapping[str, Factor]:
    factors = tried[0].form.terms[0].factors or {} if tried else {}
    return {name: factor for name, factor in factors.items() if name != variable}


def _of_two_points(tried: Sequence[Tried], hints: Sequence[str]) -> Choice | None:
    """The hinted form if two points agree with it, else the same with a second term.

    Two points cannot tell more: among many forms of one term some always come close.
    """
    known = tuple(sorted((one for one in tried if one.error < np.inf), key=lambda one: one.error))
    hinted = [one for one in known if one.form.hint < len(hints) and one.size == 1]
    agreeing = [one for one in hinted if one.misfit <= _CONSISTENT**2]
    if agreeing:
        best = min(agreeing, key=lambda one: one.form.hint)
        return Choice(best, tuple(one for one in agreeing if one is not best), known, tested=True)
    pairs = [one for one in tried if one.size == 2 and one.misfit <= 1 and _is_proper(one)]
    for hint in map(read_form, hints):
        with_hint = [one for one in pairs if hint[0] in one.form.terms]
        if with_hint:
            return Choice(with_hint[0], tuple(with_hint[1:]), known, tested=False)
    return None
