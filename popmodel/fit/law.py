"""Laws of P, T and parameters from a few points: what they are, how sure, and what would tell.

A law is the value at one of the measured configurations, its reference, times terms that are 1
there, so each constant has the unit of the quantity or none, and the constants hardly depend on
each other: ``{a}*((1 - {b})*(8/P) + {b})``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from popmodel.fit.forms import given, stays_for
from popmodel.fit.formula import ASSUMED, FIT, Constant, formula_of
from popmodel.fit.intervals import ASSUMED_DRIFT, REFUTED, Beyond, Spread, spread_of
from popmodel.fit.model_selection import Choice, Tried, choose, expected_error, reference_of
from popmodel.fit.next_point import would_tell
from popmodel.fit.samples import END, Interval, Points, Sample, described, points_of
from popmodel.fit.terms import Term, read_form
from popmodel.plain import fields_of
from popmodel.values import dataclass

_MISSES = 0.1  # relative, from which a form is said to miss points of unknown error
_PULL = 2.6  # the same in standard deviations of known errors
_SHOWN = 8  # other forms that a law tells of


@dataclass(frozen=True)
class Law:
    """How a quantity depends on P, T and parameters."""

    form: str  # As ``1/P + 1``
    formula: str  # In the grammar of signatures, with names of constants in braces
    # ``a``, the value at the reference; ``b``, the share of the second term there, if there are
    # two; ``p``, ``t`` and ``e_NAME``, exponents of P, T and parameters, which grow the interval
    # with the distance from the reference.
    constants: Mapping[str, Constant]
    # ``fit`` if the form was tested by points beyond those that determine its constants, otherwise
    # ``assumed``.
    origin: str
    reference: Mapping[str, float]  # The configuration that the constants refer to
    samples: int  # Points that it rests on
    # What it is off, relative, at each point when fitted to the others (root mean square); None
    # where there are too few points.
    error: float | None
    rejected: tuple[tuple[str, float], ...]  # Other forms with theirs, best first
    notes: tuple[str, ...]  # Contradictions, and what is not known
    # The configuration whose measurement would tell most about the form; None if forms that are as
    # good hardly differ.
    tells: Mapping[str, float] | None
    _varied: frozenset[str] = field(repr=False)
    _terms: tuple[Term, ...] = field(repr=False)
    _spread: Spread | None = field(repr=False)
    _off: float = field(default=0.0, repr=False)

    @property
    def discrepancy(self) -> float:
        """What the form is off beside the errors of points, as a logarithm.

        By what is more than chance in its error at points that are left out.
        """
        return self._off

    def at(
        self, processes: int, threads: int, parameters: Mapping[str, float] | None = None
    ) -> Interval:
        """Return the value at a configuration, with its 90 % interval."""
        if self._spread is None:
            return Interval(0.0, 0.0, 0.0)
        needed = set().union(*(term.names for term in self._terms)) & self._varied
        if missing := sorted(needed - {"P", "T", *(parameters or {})}):
            raise ValueError(f"the law depends on {', '.join(missing)}: give a value")
        there = {
            **self.reference,
            "P": float(processes),
            "T": float(threads),
            **(parameters or {}),
        }
        relative = [float(term.at(there)) / float(term.at(self.reference)) for term in self._terms]
        ratios = {name: there[name] / value for name, value in self.reference.items()}
        return self._spread.at(relative[0], relative[-1], ratios, there)

    def text(self, prefix: str = "") -> str:
        """Return the formula with names of constants that begin with a prefix."""
        return re.sub(r"\{(\w+)\}", lambda match: prefix + match[1], self.formula)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as JSON types."""
        return fields_of(self, without=("_varied", "_terms", "_spread", "_off"))


def law(
    samples: Sequence[Sample],
    forms: Sequence[str] | None = None,
    hints: Sequence[str] = (),
) -> Law:
    """Find the law of a quantity per process and execution.

    The form is the first hinted one, or else the simplest, of those that foretell each point from
    the others about as well as any does. Coefficients are not negative, and errors are relative.
    One point gives the hinted form through it, two the hinted form if they agree with it, or else
    the hinted form with a second term; what no point tested is ``assumed``.

    Examples
    --------
    >>> found = law([Sample(p, 1, 3 / p + 0.1) for p in (1, 2, 4, 8)])
    >>> found.form
    '1/P + 1'
    >>> round(found.at(64, 1).value, 3)
    0.147
    """
    points = points_of(samples)
    notes = list(points.notes)
    if not points.values.any():
        return _zero(points)
    zero = points.values == 0
    if zero.any():
        points, forms, hints = _above_zero(points, zero, forms, hints, notes)
    if len(points) == 1:
        return _of_one(points, hints or forms or ("1",), notes)
    reference = reference_of(points)
    choice = choose(points, reference, forms, hints)
    if choice is None:
        raise ValueError("no form has a value above 0 at all samples")
    best = _tidy(choice.best)
    choice = Choice(best, choice.alike, choice.tried, choice.tested)
    terms = _with_nested(points, best, hints)
    tables = [
        term.at(points.configurations) / float(term.at(points.configuration(reference)))
        for term in terms
    ]
    off = _beyond_chance(best, points)
    spread = spread_of(points, choice, tables, reference)
    if not _is_refuted(best, points):
        spread = replace(spread, half=math.hypot(spread.half, END * off))
    notes += _contradictions(points, best)
    told, telling = would_tell(points, choice, reference)
    notes += _unvaried(points, best) + telling
    found = _law(points, reference, choice, terms, spread, tuple(notes), told)
    return replace(found, _off=off)


def _beyond_chance(best: Tried, points: Points) -> float:
    """Error of a form at points that are left out, less what chance gives."""
    if not math.isfinite(best.error):
        return 0.0
    if _is_refuted(best, points):
        return best.error
    return math.sqrt(max(best.error**2 - expected_error(points) ** 2, 0.0))


def _is_refuted(best: Tried, points: Points) -> bool:
    """Whether residuals refute the errors of points, and stand for both in intervals."""
    return best.misfit > REFUTED * (len(points) - best.size)


def _tidy(best: Tried) -> Tried:
    """Drop a term that has no share."""
    if best.size == 2 and best.share in (0.0, 1.0):
        kept = best.form.terms[int(best.share)]
        form = type(best.form)((kept,), best.form.hint)
        return Tried(form, best.scale, 0.0, best.misfit, best.error, best.expected)
    return best


def _zero(points: Points) -> Law:
    reference = points.configuration(reference_of(points))
    note = () if len(points) > 1 else (f"0 at the only point, {described(reference)}",)
    return Law(
        "0", "0", {}, FIT if len(points) > 1 else ASSUMED, reference, len(points), None, (), note,
        None, frozenset(), (), None,
    )  # fmt: skip


def _above_zero(
    points: Points,
    zero: np.typing.NDArray[np.bool_],
    forms: Sequence[str] | None,
    hints: Sequence[str],
    notes: list[str],
) -> tuple[Points, Sequence[str] | None, Sequence[str]]:
    """Points above 0, and those of the forms and hints that are 0 where values are.

    One point above 0 tests no such form: it has the hinted one, as if there were no others.
    """
    empty, others = points.chosen(zero), points.chosen(~zero)

    def vanishes(text: str) -> bool:
        terms = read_form(text)
        return not any(term.at(empty.configurations).any() for term in terms) and all(
            term.at(others.configurations).all() for term in terms
        )

    possible = VANISHING if forms is None else forms
    if forms is None and len(others) == 1 and hints:
        possible = ()
    kept = [text for text in possible if vanishes(text)]
    likely = [text for text in hints if vanishes(text)]
    places = "; ".join(described(empty.configuration(row)) for row in range(len(empty)))
    if kept or likely:
        return points.chosen(~zero), [*likely, *kept], likely
    notes.append(f"0 at {places}, left out: no form is 0 there and nowhere else")
    return points.chosen(~zero), forms, hints


VANISHING = ("log2(P)", "P - 1", "1 - 1/P", "log2(T)", "T - 1", "1 - 1/T")
"""Forms tried where a quantity is 0 at some points: with one process or thread."""


def _of_one(points: Points, hints: Sequence[str], notes: list[str]) -> Law:
    """The hinted form through the only point."""
    for form in given((), (*hints, "1")):
        if all(term.at(points.configuration(0)) > 0 for term in form.terms):
            break
        notes.append(f"{form.text} is 0 at the only point")
    scale, size = math.log(points.values[0]), len(form.terms)
    best = Tried(form, scale, 0.5 if size == 2 else 0.0, 0.0, math.inf, math.inf)
    if best.size == 2:
        notes.append(f"the shares of {best.form.text} are not known from one point: halves assumed")
    choice = Choice(best, (), (), tested=False)
    half = END * float(points.errors[0])
    shares = np.array([0.5, 0.0, 1.0]) if best.size == 2 else np.zeros(1)
    names = set().union(*(term.names for term in best.form.terms)) | {"P"}
    beyond = {
        name: Beyond(float(column[0]), float(column[0]), ASSUMED_DRIFT)
        for name, column in points.configurations.items()
        if name in names
    }
    scales = np.full(len(shares), scale)
    spread = Spread(shares, scales, np.zeros(len(shares)), half, {}, beyond, 1.0)
    return _law(
        points, 0, choice, best.form.terms, spread, (*notes, *_unvaried(points, best)), None
    )


def _contradictions(points: Points, best: Tried) -> list[str]:
    """Say that the best form does not fit."""
    own = len(points) - best.size
    if own < 1:
        return []
    residual = math.sqrt(best.misfit / float((points.errors**-2.0).sum()) * len(points) / own)
    expected = expected_error(points)
    pull = math.sqrt(best.misfit / own)
    if pull > _PULL and residual > min(_MISSES, 3 * expected):
        return [
            f"no form fits: {best.form.text} is off by {100 * residual:.2g} %, "
            f"errors of the points are {100 * float(np.median(points.errors)):.2g} %"
        ]
    return []


def _unvaried(points: Points, best: Tried) -> list[str]:
    """Say which dependence is assumed because nothing was varied."""
    names = set().union(*(term.names for term in best.form.terms))
    constant = [name for name in points.configurations if name not in points.varied]
    notes = []
    for name in constant:
        if name in names or name == "P":
            how = best.form.text if name in names else "no dependence on P"
            notes.append(f"{points.known_at(name)}: {how} is assumed")
    return notes


def _law(
    points: Points,
    reference: int,
    choice: Choice,
    terms: tuple[Term, ...],
    spread: Spread,
    notes: tuple[str, ...],
    tells: Mapping[str, float] | None,
) -> Law:
    best, home = choice.best, points.configuration(reference)
    formula, constants = formula_of(points, choice, terms, spread, home)
    others = [(one.form.text, one.error) for one in choice.tried if one.form is not best.form]
    return Law(
        form=best.form.text,
        formula=formula,
        constants=constants,
        origin=FIT if choice.tested else ASSUMED,
        reference=home,
        samples=len(points),
        error=best.error if math.isfinite(best.error) else None,
        rejected=tuple(others[:_SHOWN]),
        notes=notes,
        tells=tells,
        _varied=frozenset(points.varied),
        _terms=terms,
        _spread=spread,
    )


def _with_nested(points: Points, best: Tried, hints: Sequence[str]) -> tuple[Term, ...]:
    """Terms of a law; a single one with a part that stays, which points may not rule out."""
    stays = stays_for(points, hints)
    if best.size == 2 or best.form.terms[0].text == stays.text:
        return best.form.terms
    return (*best.form.terms, stays)
