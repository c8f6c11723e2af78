"""Laws that carry one factor of the efficiency along processes or threads, from a few runs.

An average over the forms of all laws by the evidence of the runs (`popmodel.fit.mixture`), or over
those of the law that is asked for. Every form gives the inverse of an efficiency, ``1/E``, as two
terms that are not negative::

    1/E = offset + level ((1 - share) g(x)/g(x_ref) + share h(x)/h(x_ref))

or, of the linear law, E itself. The level of a loss has an even prior in its logarithm. Amdahl's
law, the one of pipelines and the linear one are those of C. Rosas, J. Gimenez and J. Labarta,
Supercomput. Front. Innov. 1(2) (2014) 4. The structural ones have the physical terms of each
factor: imbalance by the expected maximum of P values whose spread grows as P**H, waiting likewise
or by the filling of pipelines, transfer by messages, surfaces and collectives over an ideal runtime
that shrinks, computation by what is replicated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple

import numpy as np

from popmodel.base.values import dataclass
from popmodel.efficiency.scaling import Mode
from popmodel.fit.efficiency_factors import EfficiencyFactor, point_errors
from popmodel.fit.mixture import ASSUMED_DRIFT, evidence, total, weighted_quantiles
from popmodel.fit.samples import Array, fit_two
from popmodel.model.terms.imbalance import expected_maximum

Axis = Literal["processes", "threads"]
Term = Callable[[Array], Array]

LAWS = ("structural", "amdahl", "pipe", "linear")
"""All laws, in the order in which equally good ones are preferred."""
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
# shares of the second term at the reference that are possible
_GRID: Array = np.linspace(0.0, 1.0, 21)
_SMALL: Array = np.linspace(0.0, 1.0, 41) ** 3  # what of an amount grows is rather a small share
_SLOPES: Array = np.linspace(-1.0, 1.0, 81)
_ONLY: Array = np.ones(1)


class ProjectionForm(NamedTuple):
    """A form of a law."""

    law: str  # One of `LAWS`
    text: str  # How the loss, or the quantity, grows: ``q(P)*sqrt(P)``
    # The two terms: of x, at least 1.
    first: Term
    second: Term
    offset: int = 0  # 1 where only what exceeds 1 follows the terms, else 0
    shares: Array = _GRID
    is_inverse: bool = True  # Whether the terms give 1/E, not E
    prior: float = 1.0  # How likely it is before any run, beside other forms of its law

    def relative(self, x: Array, reference: float, share: Array) -> Array:
        """Sum of the terms, each over its value at the reference where that is not 0.

        Shape of the shares, then that of x.
        """
        at, home = share[..., None], np.array([reference])
        first, second = (
            term(x) / np.where(term(home) == 0, 1.0, term(home))
            for term in (self.first, self.second)
        )
        terms: Array = (1 - at) * first + at * second
        return terms

    def logarithm(self, level: Array, relative: Array) -> Array:
        """Logarithm of E; NaN where a linear law has no value above 0."""
        value = self.offset + level * relative
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(np.where(value > 0, value, np.nan))
        return -logs if self.is_inverse else logs


def _above(least: float, term: Term) -> Term:
    """A term that is 0 up to some x: at 1, where a single one waits for nobody."""
    return lambda x: np.where(x > least, term(x), 0.0)


def _largest(x: Array) -> Array:
    """Expected maximum q(x) of x standard normal values, between whole numbers interpolated."""

    def of(count: float) -> float:
        below = int(count)
        low = float(expected_maximum(max(below, 1)))
        if below == count:
            return low
        return low + (count - below) * (float(expected_maximum(below + 1)) - low)

    return np.array([of(count) for count in x.ravel().tolist()]).reshape(x.shape)


PARAMETRIC: Mapping[str, ProjectionForm] = {
    "amdahl": ProjectionForm("amdahl", "x0/(f + (1 - f)*x)", np.ones_like, lambda x: x),
    "pipe": ProjectionForm(
        "pipe", "x0*x/((1 - f) + f*(2*x - 1))", lambda x: 1 / x, lambda x: 2 - 1 / x
    ),
    "linear": ProjectionForm(
        "linear", "x0 + f*x", np.ones_like, lambda x: x, shares=_SLOPES, is_inverse=False
    ),
}
"""The laws of two constants."""

ANCHORED: Mapping[str, ProjectionForm] = {
    "amdahl": ProjectionForm(
        "amdahl", "1/(f + (1 - f)*x)", np.ones_like, lambda x: x - 1, 1, _ONLY
    ),
    "pipe": ProjectionForm(
        "pipe", "x/((1 - f) + f*(2*x - 1))", lambda x: 1 / x, lambda x: 1 - 1 / x, 1, _ONLY
    ),
}
"""What a single run leaves of the laws: an efficiency that is 1 at x = 1."""

Terms = Mapping[str, Term]
_WAITING: Terms = {
    "q(P)": _largest,
    "q(P)*P**(1/4)": lambda x: x ** (1 / 4) * _largest(x),
    "q(P)*sqrt(P)": lambda x: np.sqrt(x) * _largest(x),
}
# one process has work that the others have not; a pipeline
_ALONE: Terms = {"P - 1": lambda x: x - 1}
_FILLING: Terms = {"sqrt(P) - 1": lambda x: np.sqrt(x) - 1, **_ALONE}
_MESSAGES: Mapping[str, Terms] = {
    "strong": {
        "P**(1/3)": lambda x: x ** (1 / 3),
        "sqrt(P)": np.sqrt,
        "P": lambda x: x,
        "P*(1 + log2(P))": lambda x: x * (1 + np.log2(x)),
    },
    "weak": {"1 + log2(P)": lambda x: 1 + np.log2(x), "sqrt(P)": np.sqrt, "P": lambda x: x},
}
_BY_THREADS: Terms = {"1 + log2(T)": lambda x: 1 + np.log2(x), "sqrt(T)": np.sqrt, "T": lambda x: x}
_OF_TEAMS: Terms = {
    "log2(T)": np.log2,
    "T - 1": lambda x: x - 1,
    "T*log2(T)": lambda x: x * np.log2(x),
}
_AMOUNTS: Mapping[str, tuple[Term, Array]] = {
    "1/x": (lambda x: 1 / x, _SMALL),
    "log2(x)": (lambda x: 1 + np.log2(x), _SMALL),
    "x**(1/3)": (lambda x: x ** (1 / 3), _SMALL),
    "x": (lambda x: x, _SMALL),
    "(1 - 1/x)": (lambda x: 1 - 1 / x, _GRID[:-1]),  # nodes that fill, until all share their memory
}
_RUNTIMES: Mapping[str, tuple[Term, Array]] = {  # a part of the runtime that grows with x
    "sqrt(x)": (np.sqrt, _SMALL),
    "x*log2(x)": (lambda x: x * np.log2(x), _SMALL[:-1]),
    "x**(3/2)": (lambda x: x ** (3 / 2), _SMALL),
    "x**2": (lambda x: x**2, _SMALL),
    "x**2*(1 + log2(x))": (lambda x: x**2 * (1 + np.log2(x)), _SMALL),
}
_CACHES = 1.0  # the same of data that fit in caches from some x on
_CACHED: Array = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6])
_UNMET_CACHE, _GAIN = 0.25, 0.5  # how likely they fit beyond the measured only, and the most gained
_SATURATED = 2.0  # how likely a memory that is full is before any run, beside another form
# how likely one fills beyond the measured runs only, or a node has no more cores
_UNMET: Mapping[Axis, float] = {"processes": 0.15, "threads": 0.5}
_MOST_UNMET = 8.0  # times the largest of these, at most
_SHARP = (3, 12)  # exponents of its knee


def structural(kind: str, axis: Axis, mode: str) -> tuple[ProjectionForm, ...]:
    """Return the forms of a factor."""
    if kind in ("amount", "steady", "runtime"):
        more = {} if kind == "steady" else dict(_AMOUNTS)
        if kind == "runtime" and mode == "strong":
            more |= _RUNTIMES
        what = "P" if axis == "processes" else "T"
        return (
            ProjectionForm("structural", "constant", np.ones_like, np.ones_like, shares=_ONLY),
            *(
                ProjectionForm(
                    "structural", f"1 + {text.replace('x', what)}", np.ones_like, term, 0, shares
                )
                for text, (term, shares) in more.items()
            ),
        )
    along = dict(_MESSAGES[mode])
    if kind == "regions" and axis == "threads":
        along = dict(_OF_TEAMS)
    elif kind == "regions":
        along.pop("P*(1 + log2(P))", None)
    elif axis == "threads":
        along = dict(_BY_THREADS)
        if kind != "transfer":
            along.pop("T")
    elif kind in ("balance", "waiting"):
        along = {**_WAITING, **(_ALONE if kind == "balance" else _FILLING)}
    # One process waits for nobody, and a team of one loses nothing to others.
    alone = 1.0 if (kind == "regions") == (axis == "threads") else 0.0
    first = _above(alone, np.ones_like)
    forms = [ProjectionForm("structural", "constant", first, first, 1, _ONLY)]
    for text, term in along.items():
        grown = _above(alone, term)
        forms.append(ProjectionForm("structural", text, first, grown, 1, _ONLY))
        forms.append(ProjectionForm("structural", f"1 + {text}", first, grown, 1))
    return tuple(forms)


def _at_knee(full: float, filled: float, sharp: float) -> Term:
    """A term that is constant up to some x, and follows it from there to another."""
    return lambda x: (1 + (np.minimum(x, filled) / full) ** sharp) ** (1 / sharp)


def _settled(places: Array, what: str) -> ProjectionForm:
    """The form of an amount that the smallest run alone has not: it did not fill a node."""
    low, following = (f"{place:g}" for place in places[:2])
    text = f"constant from {what} = {following}, another at {low}"
    second = _above(float(places[0]), np.ones_like)
    return ProjectionForm("structural", text, np.ones_like, second, shares=_GRID[:-1])


def _saturating(places: Array, what: str) -> list[ProjectionForm]:
    """Forms of a resource that is full from some x on, between the places.

    That of one node, such as its memory, is so until the node is filled: each node has its own.
    """
    ends = [*places[2:].tolist(), 2 * float(places[-1])] if what == "P" else []
    knees = [
        (full, filled, sharp)
        for full in np.geomspace(
            math.sqrt(places[0] * places[1]), places[-1], 4 * len(places) - 5
        ).tolist()
        for filled in [*(end for end in ends if end > full), math.inf]
        for sharp in _SHARP
    ]
    return [
        ProjectionForm(
            "structural",
            f"constant, as {what} from {what} = {full:.3g}"
            + ("" if math.isinf(filled) else f" to {filled:g}"),
            np.ones_like, _at_knee(full, filled, sharp), shares=_GRID[1:],
            prior=_SATURATED / len(knees),
        )
        for full, filled, sharp in knees
    ]  # fmt: skip


def _cached(places: Array, what: str) -> list[ProjectionForm]:
    """Forms of work whose data more and more fit in caches, from some x on all of them."""
    fits = np.geomspace(places[0], 2 * places[-1], 2 * len(places)).tolist()
    return [
        ProjectionForm(
            "structural", f"1 + 1/(1 + ({what}/{fit:.3g})**2)", np.ones_like, _outside(fit),
            shares=_CACHED, prior=_CACHES / len(fits),
        )
        for fit in fits
    ]  # fmt: skip


def _outside(fit: float) -> Term:
    return lambda x: 1 / (1 + (x / fit) ** 2)


@dataclass(frozen=True)
class TriedForm:
    """A law that was fitted."""

    law: str  # One of `LAWS`
    # Root mean square of the logarithm of measured over projected value, each configuration left
    # out in turn; None where there is none.
    error: float | None
    why: str  # Why there is none; empty where there is one


class Curves(NamedTuple):
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

    def likely(self, share: float) -> Curves:
        """Without what hardly can be, at some share of all weights."""
        weights = self.weights * share
        kept = weights > _KEPT * max(float(weights.max()), _KEPT)
        rows = (self.levels, self.shares, self.scatter, weights)
        return Curves(self.form, self.reference, *(row[kept] for row in rows))


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
    _freedom: float = field(repr=False)  # Degrees of freedom of the errors of the points
    _repeated: float = field(repr=False)  # By what factor repeats differ more than assumed

    def __getstate__(self) -> dict[str, Any]:
        """What a result is written with: no curves, whose terms are functions."""
        return {**vars(self), "_curves": ()}

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
        freedom = self._freedom + self.points
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
        if self.factor.id == "runtime":
            logs = logs - self._unmet(x, generator)
        by_processes = self._axis == "processes"
        processes = np.broadcast_to(x if by_processes else np.ones_like(x), logs.shape)
        with np.errstate(invalid="ignore"):
            errors = point_errors(self.factor, np.exp(logs), processes, by_processes=by_processes)
        logs = logs + self._repeated * errors * generator.standard_normal(logs.shape) * scatter
        values: Array = np.exp(np.minimum(logs, 0.0) if self.factor.is_limited else logs)
        return values

    def _unmet(self, x: Array, generator: np.random.Generator) -> Array:
        """Logarithms of what larger runs may lose, or gain, by what none of the measured has met.

        That is a memory that fills, for a share of the time, or of threads, the cores of a node:
        constant up to some x beyond the measured ones, and in proportion to x from there on; and
        caches that the data of a process fit in. Draws by x.
        """
        full = self._ends[1] * _MOST_UNMET ** generator.uniform(0, 1, (DRAWS, 1))
        share = generator.uniform(self._axis == "threads", 1, (DRAWS, 1))
        share = share * (generator.uniform(0, 1, (DRAWS, 1)) < _UNMET[self._axis])
        slower = np.log1p(share * np.maximum(x / full - 1, 0.0))
        if self._axis == "threads":
            return slower
        fit = self._ends[1] * _MOST_UNMET ** generator.uniform(0, 1, (DRAWS, 1))
        gain = generator.uniform(0, _GAIN, (DRAWS, 1))
        gain = gain * (generator.uniform(0, 1, (DRAWS, 1)) < _UNMET_CACHE)
        beyond = 1 / (1 + (fit / x) ** 2) - 1 / (1 + (fit / self._ends[1]) ** 2)
        return slower + np.log1p(-gain * np.maximum(beyond, 0.0))


def fit_factor(
    factor: EfficiencyFactor,
    x: Sequence[int],
    values: Sequence[float],
    axis: Axis,
    mode: Mode,
    law: str | None = None,
) -> FittedFactor:
    """Fit the law of a factor."""
    measured = np.log(np.array(values, dtype=np.float64))
    places, where = np.unique(np.array(x, dtype=np.float64), return_inverse=True)
    count = np.bincount(where)
    logs: Array = np.bincount(where, measured) / count
    freedom, repeated = _FREEDOM, 1.0
    if factor.id == "runtime":
        # a repeat that was disturbed does not move the median; what they differ corrects the error
        logs = np.array([np.median(measured[where == at]) for at in range(len(places))])
        pulls = (measured - logs[where]) / factor.error
        freedom += len(where) - len(places)
        repeated = math.sqrt((_FREEDOM + float(pulls @ pulls)) / freedom)
    errors = point_errors(factor, np.exp(logs), places, by_processes=axis == "processes")
    errors = repeated * errors / np.sqrt(count)
    forms = _forms(factor, places, axis, mode)
    if law is not None and law not in forms:
        law = LAWS[0]
    weighed = {name: _weighed(own, places, logs, errors, freedom) for name, own in forms.items()}
    scores = {
        name: math.log(_PRIOR[name]) + np.log(prior / prior.sum()) + np.array(evidences)
        for name, (_, evidences, _) in weighed.items()
        for prior in [np.array([form.prior for form in forms[name]])]
    }
    most = max(float(own.max()) for own in scores.values())
    shares = {name: np.exp(own - most) for name, own in scores.items()}
    tested = len(places) >= TESTED
    chosen = law or (max(shares, key=lambda name: shares[name].sum()) if tested else LAWS[0])
    asked = [name for name in forms if law in (None, name)]
    every = sum(float(shares[name].sum()) for name in asked)
    curves = tuple(
        own.likely(share)
        for name in asked
        for own, share in zip(weighed[name][0], shares[name] / every, strict=True)
    )
    likely = sorted(zip(shares[chosen], forms[chosen], strict=True), key=lambda pair: -pair[0])
    likely = [pair for pair in likely[:_SHOWN_FORMS] if pair[0] > 0.1 * likely[0][0]]
    tried = sorted(
        (_tried(name, error if tested else None) for name, (_, _, error) in weighed.items()),
        key=lambda form: (form.law != chosen, math.inf if form.error is None else form.error),
    )
    return FittedFactor(
        factor,
        chosen,
        " or ".join(form.text for _, form in likely),
        _constants(chosen, places, logs, errors),
        "fit" if tested else "assumed",
        len(places),
        tuple(tried),
        axis,
        (float(places.min()), float(places.max())),
        curves,
        law is not None,
        float((errors**-2.0).sum()),
        freedom,
        repeated,
    )


def _tried(law: str, error: float | None) -> TriedForm:
    """A law with its error; an infinite one is none."""
    if error is None:
        return TriedForm(law, None, f"fewer than {TESTED} configurations")
    if not math.isfinite(error):
        return TriedForm(law, None, "not above 0 at a configuration left out")
    return TriedForm(law, error, "")


def _reference(places: Array) -> float:
    """The configuration next to the middle, above 1 where there is one."""
    able = places[places > 1] if (places > 1).any() else places
    middle = np.log(able).mean()
    return float(able[np.abs(np.log(able) - middle).argmin()])


def _forms(
    factor: EfficiencyFactor, places: Array, axis: Axis, mode: Mode
) -> dict[str, tuple[ProjectionForm, ...]]:
    """Forms by law: those that the points can determine."""
    own, what = structural(factor.kind, axis, mode), "P" if axis == "processes" else "T"
    if factor.kind in ("amount", "runtime") and len(places) >= TESTED:
        own = (*own, _settled(places, what))
    if factor.kind == "runtime" and mode == "strong" and len(places) >= TESTED:
        own = (*own, *_saturating(places, what), *_cached(places, what))
    if _reference(places) == 1:  # what is 0 at 1 says nothing there
        at = np.ones(1)
        own = tuple(form for form in own if form.first(at)[0] > 0 and form.second(at)[0] > 0) or (
            ProjectionForm("structural", "constant", np.ones_like, np.ones_like, shares=_ONLY),
        )
    if len(places) > 1:
        laws = {name: (form,) for name, form in PARAMETRIC.items()}
        if factor.kind == "runtime":  # what gains by caches does not gain on and on
            laws["linear"] = (laws["linear"][0]._replace(shares=_SLOPES[_SLOPES <= 0]),)
        return {"structural": own, **laws}
    if factor.is_limited and places[0] > 1:
        return {"structural": own, **{name: (form,) for name, form in ANCHORED.items()}}
    return {"structural": own}


def _weighed(
    forms: Sequence[ProjectionForm], x: Array, logs: Array, errors: Array, freedom: float
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
        at = evidence(curves, logs, errors, freedom, leveled=bool(form.offset))
        if not form.offset:  # the integral over the level, even within the range of all levels
            sign = -1.0 if form.is_inverse else 1.0
            levels = np.exp(sign * at.level)
            half = (freedom + count) / 2
            width = math.exp(math.lgamma(half - 0.5) - math.lgamma(half))
            width *= math.sqrt(math.pi * freedom / precision)
            prior = prior + math.log(width / math.log(_MOST / _LEAST))
        joint = at.density + prior
        whole = float(total(joint))
        weights = np.exp(joint - whole) if math.isfinite(whole) else np.zeros(len(joint))
        squares = np.where(np.isfinite(at.misfit), at.misfit, 0.0) + freedom
        found.append(Curves(form, reference, levels, shares, squares, weights))
        evidences.append(whole)
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
    values: Array = np.where(x0 + f * x > 0, x0 + f * x, np.nan)
    return values
