"""Laws of P, T and parameters from a few points: what they are, how sure, and what would tell.

A law is an average over forms (`popmodel.fit.mixture`), told as the one of them that is nearest to
the middle of that average, so that a formula of a few constants has its value and its interval: the
value at one of the measured configurations, its reference, times terms that are 1 there, and powers
of the distance beyond the points, ``{a}*((1 - {b})*(8/P) + {b})*max(P/16, 2/P, 1)**({p} - 1)``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from popmodel.base.values import dataclass
from popmodel.fit.candidates import (
    Form,
    LawTerm,
    edged,
    given,
    is_of_grid,
    number,
    physical,
    read_form,
)
from popmodel.fit.mixture import ASSUMED_DRIFT, Mixture, mixture, weighted_quantiles
from popmodel.fit.samples import END, Array, Interval, LawPoints, Sample, described, points_of

FIT, ASSUMED, TRACE = "fit", "assumed", "trace"
"""Origins of constants."""
VANISHING = ("log2(P)", "P - 1", "1 - 1/P", "log2(T)", "T - 1", "1 - 1/T")
"""Forms tried where a quantity is 0 at some points: with one process or thread."""
_ENDS = (0.05, 0.5, 0.95)
_BEYOND = (4.0, 8.0)  # by how much farther than the points the formula has to agree
_MIDDLE = 4.0  # price of a squared distance from the middle, in standard deviations
_LIKELY = 0.02  # of the largest weight: forms that may stand for all
_RIVAL = 0.2  # and those that a run should tell apart
_FAR = 1.5  # largest half of the interval of an exponent: no law of its own is left
_LARGEST_DRAW = 2.3263478740408408 / END
_MISSES = 0.1  # relative, from which a form is said to miss points of unknown error
_PULL = 2.6  # the same in standard deviations of known errors
_SHOWN = 8  # other forms that a law tells of
_LEAST_EDGED, _LEAST_SIZES = 5, 3  # points, and sizes of the problem, for edges of caches
_WORKS = 4  # forms that the work may have then
_DIFFERENT = 0.05  # of predictions, relative, from which a measurement tells
_FURTHER = 2  # times what was measured: a further run


@dataclass(frozen=True)
class Constant:
    """A number of a law with the ends of its 90 % interval."""

    # In the unit of the quantity for ``a``, else without one.
    value: float
    low: float
    high: float
    # ``fit``, ``assumed`` where no point tested it, ``trace`` for a single measured value.
    origin: str
    meaning: str  # For people


@dataclass(frozen=True)
class Law:
    """How a quantity depends on P, T and parameters."""

    form: str  # As ``1/P + 1``
    formula: str  # In the grammar of signatures, with names of constants in braces
    # ``a``, the value at the reference; ``b``, the share of the second term there, if there are
    # two; ``p``, ``t`` and ``e_NAME``, 1 and what points leave open of exponents beyond them.
    constants: Mapping[str, Constant]
    # ``fit`` if there are points beyond those that determine its constants, otherwise ``assumed``.
    origin: str
    reference: Mapping[str, float]  # The configuration that the constants refer to
    samples: int  # Points that it rests on
    # What it is off, relative, at each point when fitted to the others (root mean square); None
    # where there are too few points.
    error: float | None
    rejected: tuple[tuple[str, float], ...]  # Other forms with theirs, the likeliest first
    notes: tuple[str, ...]  # Contradictions, what is not known, and which run would tell it
    # What the form is off at the points beside their errors, as a logarithm.
    discrepancy: float = field(default=0.0, repr=False)
    _terms: tuple[LawTerm, ...] = field(default=(), repr=False)
    _ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    def at(
        self, processes: int, threads: int, parameters: Mapping[str, float] | None = None
    ) -> Interval:
        """Return the value at a configuration, with its 90 % interval."""
        if not self.constants:
            return Interval(0.0, 0.0, 0.0)
        place = {"P": float(processes), "T": float(threads), **(parameters or {})}
        needed = set().union(*(term.names for term in self._terms))
        varied = {name for name in needed if name not in self.reference or name in self._varied}
        if missing := sorted(varied - set(place)):
            raise ValueError(f"the law depends on {', '.join(missing)}: give a value")
        low, value, high = self._ends(self._relative(place), place)
        return Interval(*(math.exp(one) for one in (value, low, high)))

    @property
    def _varied(self) -> set[str]:
        return {name for name, (low, high) in self._ranges.items() if low < high}

    def _relative(self, place: Mapping[str, float]) -> list[float]:
        """Terms over their values at the reference."""
        there = {**self.reference, **place}
        return [float(term.at(there)) / float(term.at(self.reference)) for term in self._terms]

    def _ends(
        self, relative: Sequence[float], place: Mapping[str, float]
    ) -> tuple[float, float, float]:
        """Logarithms of the ends and the value: what each constant leaves open, independently."""
        a = self.constants["a"]
        gaps = [(math.log(a.low / a.value), math.log(a.high / a.value))]
        value = math.log(a.value)
        if (b := self.constants.get("b")) is not None:
            least, middle, most = (
                math.log(max((1 - share) * relative[0] + share * relative[1], 1e-300))
                for share in (b.low, b.value, b.high)
            )
            value += middle
            gaps.append((min(least, most) - middle, max(least, most) - middle))
        else:
            value += math.log(max(relative[0], 1e-300))
        for name, (low, high) in self._ranges.items():
            power = self.constants.get(key_of(name))
            if power is not None and name in place:
                far = math.log(max(place[name] / high, low / place[name], 1.0))
                value += (power.value - 1) * far
                gaps.append(((power.low - power.value) * far, (power.high - power.value) * far))
        below, above = (math.hypot(*side) for side in zip(*gaps, strict=True))
        return value - below, value, value + above

    def text(self, prefix: str = "") -> str:
        """Return the formula with names of constants that begin with a prefix."""
        return re.sub(r"\{(\w+)\}", lambda match: prefix + match[1], self.formula)


def law(
    samples: Sequence[Sample], forms: Sequence[str] | None = None, hints: Sequence[str] = ()
) -> Law:
    """Find the law of a quantity per process and execution.

    Forms are those of physics (`popmodel.fit.candidates`) with hints first, or the given ones.
    Coefficients are not negative, and errors are relative. What no point tested is ``assumed``.

    Examples
    --------
    >>> found = law([Sample(p, 1, 3 / p + 0.1, {}, 0.01) for p in (1, 2, 4, 8)])
    >>> found.form
    '1/P + 1'
    >>> round(found.at(64, 1).value, 2)
    0.15
    """
    points = points_of(samples)
    notes = list(points.notes)
    home = points.configuration(points.middle)
    if not points.values.any():
        note = () if len(points) > 1 else (f"0 at the only point, {described(home)}",)
        origin = FIT if len(points) > 1 else ASSUMED
        return Law("0", "0", {}, origin, home, len(points), None, (), note)
    zero = points.values == 0
    if zero.any():
        points, forms, hints = _above_zero(points, zero, forms, hints, notes)
        home = points.configuration(points.middle)
    if len(points) == 1:
        candidates = given((), [_of_one(points, hints or forms or ("1",), notes)])
    else:
        candidates = physical(points, hints) if forms is None else given(forms, hints)
    average = mixture(points, candidates, home)
    if forms is None:
        average = _with_edges(average)
    likely = np.flatnonzero(average.weights >= _LIKELY * average.weights.max())
    places = _probes(points)
    ends = average.quantiles(places, _ENDS)
    shown = _nearest_the_middle(average, likely, places, ends)
    notes += [*_contradictions(average, shown), *_unvaried(points, average.forms[shown])]
    bare = _as_form(average, shown, (*notes, *_would_tell(average, shown)))
    return _with_powers(bare, points, places, ends)


def _above_zero(
    points: LawPoints,
    zero: np.typing.NDArray[np.bool_],
    forms: Sequence[str] | None,
    hints: Sequence[str],
    notes: list[str],
) -> tuple[LawPoints, Sequence[str] | None, Sequence[str]]:
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
        return others, [*likely, *kept], likely
    notes.append(f"0 at {places}, left out: no form is 0 there and nowhere else")
    return others, forms, hints


def _of_one(points: LawPoints, hints: Sequence[str], notes: list[str]) -> str:
    """The first hinted form that is above 0 at the only point."""
    for text in (*hints, "1"):
        terms = read_form(text)
        if all(term.at(points.configuration(0)) > 0 for term in terms):
            break
        notes.append(f"{text} is 0 at the only point")
    if len(terms) == 2:
        notes.append(f"the shares of {text} are not known from one point: halves assumed")
    return text


def _with_edges(average: Mixture) -> Mixture:
    """Add edges of caches, where the other forms leave more than errors allow."""
    points = average.points
    if len(points) < _LEAST_EDGED or float(average.errors.min()) <= points.expected_error:
        return average
    grows = {
        name
        for name in set(points.varied) - {"P", "T"}
        if len(np.unique(points.configurations[name])) >= _LEAST_SIZES
    }
    works = [
        form
        for form in (average.forms[i] for i in np.argsort(average.errors))
        if len(form.terms) == 1 and form.terms[0].names & grows
    ]
    more = edged(points, works[:_WORKS])
    return mixture(points, (*average.forms, *more), average.reference) if more else average


def _probes(points: LawPoints) -> dict[str, Array]:
    """Places beyond the points: by one variable after the other, from where all are largest."""
    columns = points.configurations
    names = [name for name in points.varied if not is_of_grid(name)]
    base = {name: float(column.max()) for name, column in columns.items()}
    places = [
        {**base, name: float(columns[name].max()) * factor} for name in names for factor in _BEYOND
    ]
    return {name: np.array([place[name] for place in places or [base]]) for name in base}


def _nearest_the_middle(
    average: Mixture, likely: np.typing.NDArray[np.int64], places: Mapping[str, Array], ends: Array
) -> int:
    """The form that is likely, and near to the middle of all beyond the points."""
    low, middle, high = ends.T
    gaps = (average.means(places, likely) - middle) / ((high - low) / (2 * END))
    score = np.log(average.weights[likely]) - _MIDDLE * np.mean(gaps**2, axis=1)
    return int(likely[np.argmax(np.where(np.isfinite(score), score, -np.inf))])


def _as_form(average: Mixture, shown: int, notes: Sequence[str]) -> Law:
    """An average as one of its forms, with the interval of all."""
    points, home, form = average.points, average.reference, average.forms[shown]
    place, origin = described(home), FIT if len(points) > len(form.terms) else ASSUMED
    share, level, misfit = average.best(shown)
    low, _, high = average.quantiles(home, _ENDS)[0]
    half = float(high - low) / 2
    value = TRACE if len(points) == 1 else FIT
    ends = (math.exp(level), math.exp(level - half), math.exp(level + half))
    constants = {"a": Constant(*ends, value, f"value at {place}")}
    if len(form.terms) == 2:
        least, most = weighted_quantiles(average.shares[shown], average.parts[shown], (0.05, 0.95))
        constants["b"] = Constant(
            share, min(float(least), share), max(float(most), share), origin,
            f"share of {form.terms[1].text} at {place}",
        )  # fmt: skip
    ranges = {
        name: (float(column.min()), float(column.max()))
        for name, column in points.configurations.items()
    }
    own = len(points) - len(form.terms)
    part = float((points.errors**-2.0).sum())
    excess = max(misfit / own - 1, 0.0) * len(points) / part if own > 0 else 0.0
    return Law(
        form.text, "", constants, origin, home, len(points),
        float(average.errors[shown]) if own > 0 else None,
        tuple(
            (average.forms[i].text, float(average.errors[i]))
            for i in np.argsort(-average.weights)[: _SHOWN + 1]
            if i != shown and np.isfinite(average.errors[i])
        )[:_SHOWN],
        tuple(notes), math.sqrt(excess), form.terms, ranges,
    )  # fmt: skip


def _with_powers(bare: Law, points: LawPoints, places: Mapping[str, Array], ends: Array) -> Law:
    """Add what is left open beyond the points, as powers of the distance, and the formula."""
    constants = dict(bare.constants)
    names = set().union(*(term.names for term in bare._terms)) | {"P"}
    low, _, high = ends.T
    for name in points.configurations:
        if is_of_grid(name) or (name not in points.varied and name not in names):
            continue
        below = above = ASSUMED_DRIFT
        if name in points.varied:
            sides = []
            for row in np.flatnonzero(places[name] > points.configurations[name].max()):
                place = {key: float(column[row]) for key, column in places.items()}
                least, value, most = bare._ends(bare._relative(place), place)
                far = math.log(place[name] / bare._ranges[name][1])
                sides.append(
                    [
                        math.sqrt(max(gap * abs(gap) - own**2, 0.0)) / far
                        for gap, own in (
                            (value - float(low[row]), value - least),
                            (float(high[row]) - value, most - value),
                        )
                    ]
                )
            below, above = np.minimum(np.mean(sides, axis=0), _FAR).tolist()
        constants[key_of(name)] = Constant(
            1.0, max(1 - below, 0.0), 1 + above, bare.origin if name in points.varied else ASSUMED,
            f"1 + exponent of {name} that is left open outside of what was measured",
        )  # fmt: skip
    return replace(bare, constants=constants, formula=_formula(bare, constants))


def _formula(bare: Law, constants: Mapping[str, Constant]) -> str:
    """The formula of a law, names of constants in braces."""
    terms = [term.relative_to(bare.reference) for term in bare._terms]
    factors = [terms[0]] if terms[0] != "1" else []
    if len(terms) == 2:
        b = constants["b"]
        largest = b.value + (b.high - b.value) * _LARGEST_DRAW
        if b.low > 0:
            largest = max(largest, b.value * math.pow(b.high / b.value, _LARGEST_DRAW))
        rest = "(1 - {b})" if largest < 1 else "max(1 - {b}, 0)"
        parts = zip((rest, "{b}"), terms, strict=True)
        factors = [f"({' + '.join(p if t == '1' else f'{p}*{t}' for p, t in parts)})"]
    for name, ends in bare._ranges.items():
        if key_of(name) in constants:
            low, high = map(number, ends)
            factors.append(f"max({name}/{high}, {low}/{name}, 1)**({{{key_of(name)}}} - 1)")
    return "*".join(["{a}", *factors])


def key_of(name: str) -> str:
    """Name of the constant that is the exponent of a variable."""
    return {"P": "p", "T": "t"}.get(name, f"e_{name}")


def _contradictions(average: Mixture, shown: int) -> list[str]:
    """Say that no form fits."""
    points, form = average.points, average.forms[shown]
    own = len(points) - len(form.terms)
    if own < 1:
        return []
    misfit = average.best(shown)[2]
    residual = math.sqrt(misfit / float((points.errors**-2.0).sum()) * len(points) / own)
    if math.sqrt(misfit / own) > _PULL and residual > min(_MISSES, 3 * points.expected_error):
        return [
            f"no form fits: {form.text} is off by {100 * residual:.2g} %, "
            f"errors of the points are {100 * float(np.median(points.errors)):.2g} %"
        ]
    return []


def _unvaried(points: LawPoints, form: Form) -> list[str]:
    """Say which dependence is assumed because nothing was varied."""
    names = set().union(*(term.names for term in form.terms))
    return [
        f"{points.known_at(name)}: {form.text if name in names else 'no dependence on P'} "
        "is assumed"
        for name in points.configurations
        if name not in points.varied and (name in names or name == "P")
    ]


def _would_tell(average: Mixture, shown: int) -> Iterator[str]:
    """Say at which configuration forms that are as good differ most, if they do."""
    rivals = np.flatnonzero(average.weights >= _RIVAL * average.weights[shown])
    rivals = rivals[rivals != shown]
    if not len(rivals) or not average.points.varied:
        return
    places = _further(average.points)
    curves = average.means(places, np.append(rivals, shown))
    with np.errstate(invalid="ignore"):  # both are 0 there: their logarithms do not differ
        gaps = np.nan_to_num(np.abs(curves[:-1] - curves[-1]), posinf=0.0)
    rival, row = np.unravel_index(int(gaps.argmax()), gaps.shape)
    most = float(gaps[rival, row])
    if most <= _DIFFERENT:
        return
    varied = average.points.varied
    place = described({name: float(places[name][row]) for name in places if name in varied})
    other, own = (average.forms[i].text for i in (rivals[rival], shown))
    yield (
        f"{other} fits as well as {own}: a run at {place} would tell "
        f"({100 * math.expm1(most):.0f} % apart)"
    )


def _further(points: LawPoints) -> dict[str, Array]:
    """Configurations near those measured: corners of their ranges, and one step further each.

    Parameters that change with P or T are no choice of their own.
    """
    columns = points.configurations
    names = []
    for name in points.varied:
        tied = [
            given
            for given in ("P", "T")
            if name not in ("P", "T") and np.ptp(columns[given]) > 0
            and len({*columns[given]}) == len({*zip(columns[given], columns[name], strict=True)})
        ]  # fmt: skip
        names += [] if tied else [name]
    grids = []
    for name in names:
        values = np.unique(columns[name])
        ends = (values[-1] * _FURTHER, max(values[0] / _FURTHER, 1.0))
        grids.append(np.unique([*values, *ends]))
    corners = np.array(np.meshgrid(*grids)).reshape(len(names), -1)
    home = {
        name: np.full(corners.shape[1], value) for name, value in points.configuration(0).items()
    }
    return {**home, **dict(zip(names, corners, strict=True))}
