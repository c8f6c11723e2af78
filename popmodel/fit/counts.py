"""Counts by P, T and parameters that hold exactly: iterations, neighbours, messages of a tree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from popmodel.base.expressions import parse
from popmodel.fit.candidates import number
from popmodel.fit.law import ASSUMED, FIT
from popmodel.fit.samples import Array, LawPoints, Sample, described, points_of

_OF_PROCESSES = (
    "P - 1",
    "ceiling(log2(P))",
    "floor(log2(P))",
    "sqrt(P)",
    "sqrt(P) - 1",
    "P*(P - 1)",
    "P*ceiling(log2(P))",
)
_EXACT = 1e-9  # relative
_LARGEST_DENOMINATOR = 16
_SMALL_DENOMINATOR = 4
_HALF = 0.5 + 1e-9
_PROBES = (2, 3, 4, 6, 8, 9, 12, 16, 32, 64)


class Count(NamedTuple):
    """A formula that gives counts exactly."""

    text: str  # In the grammar of signatures
    # ``fit`` if points beyond those that determine its numbers agree with it, else ``assumed``.
    origin: str
    # Other formulas, no less simple, that give the same counts at all points.
    others: tuple[str, ...]
    notes: tuple[str, ...]  # What would tell them apart, and what was not varied
    is_likely: bool = False  # Whether it is a hint, or a multiple of a likely formula
    # Values of its formula, other than those that its numbers are found from, that agree.
    checks: int = 0


def exact_law(
    samples: Sequence[Sample],
    hints: Sequence[str] = (),
    likely: Sequence[str] = (),
    *,
    rounded: bool = False,
) -> Count | None:
    """Find a formula that gives counts exactly at all points.

    Tried are, in this order, the hints, a constant, a multiple of a formula (the likely ones, P, T,
    a parameter, their products, P - 1, ceiling(log2 P), sqrt P and the like), and a constant plus
    such a multiple; numbers are whole, or simple fractions.

    Examples
    --------
    >>> exact_law([Sample(p, 1, 2 * (p - 1)) for p in (2, 4, 8)]).text
    '2*(P - 1)'
    """
    points = points_of([Sample(s.processes, s.threads, s.value, s.parameters, 0) for s in samples])
    if points.notes:
        return None
    found: list[tuple[str, int]] = []  # formulas with their numbers of constants
    is_likely = False
    checks = 0
    for text, constants, shape in _formulas(points, hints, likely, rounded=rounded):
        if found and (constants > found[0][1] or text in dict(found)):
            continue
        one_of_them = text in hints or (shape in likely and constants == 1)
        if is_likely and not one_of_them:
            continue  # any other one would be chance
        is_likely = is_likely or one_of_them
        checks = checks if found else _tests(shape, points) - constants
        found.append((text, constants))
    if not found:
        return None
    (text, _), others = found[0], [other for other, _ in found[1:]]
    notes = [points.known_at(name) for name in ("P",) if name not in points.varied]
    apart = [one for one in others if _differs(text, one, points) is not None]
    if apart:
        place = _differs(text, apart[0], points)
        assert place is not None
        notes.append(f"{apart[0]} gives the same counts: {described(place)} would tell")
    origin = FIT if checks > 0 or text in hints else ASSUMED
    return Count(text, origin, tuple(apart), tuple(notes), is_likely, checks)


def _formulas(
    points: LawPoints, hints: Sequence[str], likely: Sequence[str], *, rounded: bool
) -> Iterator[tuple[str, int, str]]:
    """Formulas that give the counts, simplest first, their numbers of constants, and of what."""
    values = points.values
    for text in hints:
        if _same(_at(text, points), values):
            yield text, 0, text
    if np.ptp(values) == 0 and (whole := _simple(values[0], _LARGEST_DENOMINATOR)) is not None:
        yield number(float(whole)), 1, "1"
        return
    shapes = list(dict.fromkeys((*likely, *_shapes(points))))
    for text in shapes:
        at = _at(text, points)
        if at is None or not (at > 0).all():
            if at is not None and _same(at, values):
                yield text, 1, text
            elif at is not None and (at >= 0).all() and at.any():
                yield from _multiple(text, at[at > 0], values[at > 0], values[at == 0])
            continue
        yield from _multiple(text, at, values, values[:0])
        if rounded and text in likely:
            yield from _rounded(text, at, values)
    for text in shapes:
        at = _at(text, points)
        if at is None or np.ptp(at) == 0:
            continue
        i, j = int(at.argmin()), int(at.argmax())
        slope = _simple((values[j] - values[i]) / (at[j] - at[i]), _SMALL_DENOMINATOR)
        if slope is None:
            continue
        start = _simple(values[i] - float(slope) * at[i], _SMALL_DENOMINATOR)
        if start and _same(float(start) + float(slope) * at, values):
            yield _sum(start, slope, text), 2, text


def _rounded(text: str, at: Array, values: Array) -> Iterator[tuple[str, int, str]]:
    """The formula times a whole number, the roundest one, if that rounds to the counts."""
    least = math.ceil(float(((values - _HALF) / at).max()))
    most = math.floor(float(((values + _HALF) / at).min()))
    if 0 < least <= most:
        step = 1 << most.bit_length()
        while most // step * step < least:
            step //= 2
        yield _times(Fraction(most // step * step), text), 1, text


def _tests(shape: str, points: LawPoints) -> int:
    """How many points tell something of a formula: those at which it differs; all, of a constant.

    >>> from popmodel.fit.samples import Sample, points_of
    >>> _tests("1/P", points_of([Sample(p, t, 1.0) for p in (2, 4) for t in (1, 2)]))
    2
    """
    if shape == "1":
        return len(points)
    at = _at(shape, points)
    return 0 if at is None else len(np.unique(at))


def _multiple(text: str, at: Array, values: Array, empty: Array) -> Iterator[tuple[str, int, str]]:
    """The formula times a number, if that gives the counts."""
    factor = _simple(values[0] / at[0], _LARGEST_DENOMINATOR)
    if factor and not empty.any() and _same(float(factor) * at, values):
        yield _times(factor, text), 1, text


def _shapes(points: LawPoints) -> Iterator[str]:
    """Formulas of what was varied, simplest first."""
    varied = points.varied
    yield from varied
    if "P" in varied:
        yield from _OF_PROCESSES
    dimensions = [name for name in varied if name[0] == "P" and name[1:].isdigit()]
    yield from (f"{name} - 1" for name in dimensions)
    yield from (f"{one}*{other}" for one, other in combinations(varied, 2))
    yield from (f"{one}/{other}" for one in varied for other in varied if one != other)


def _at(text: str, points: LawPoints) -> Array | None:
    expression = parse(text)
    if not expression.names <= points.configurations.keys():
        return None
    value = np.asarray(expression.evaluate(points.configurations), dtype=np.float64)
    return np.broadcast_to(value, points.values.shape)


def _same(found: Array | None, values: Array) -> bool:
    return found is not None and bool(np.allclose(found, values, rtol=_EXACT, atol=_EXACT))


def _simple(value: float, largest: int) -> Fraction | None:
    near = Fraction(float(value)).limit_denominator(largest)
    return near if abs(float(near) - value) <= _EXACT * max(1.0, abs(value)) else None


def _times(factor: Fraction, text: str) -> str:
    if text.startswith("1/") and factor.denominator == 1:  # 8/P, not 8*1/P
        return f"{factor.numerator}{text[1:]}"
    inner = text if _is_product(text) else f"({text})"
    above = inner if factor.numerator == 1 else f"{factor.numerator}*{inner}"
    if factor == 1:
        return text
    return above if factor.denominator == 1 else f"{above}/{factor.denominator}"


def _is_product(text: str) -> bool:
    return " - " not in text or text.endswith(")")


def _sum(start: Fraction, slope: Fraction, text: str) -> str:
    shown = _times(abs(slope), text)
    if slope < 0:
        return f"{start} - {shown if abs(slope) != 1 or _is_product(text) else f'({shown})'}"
    sign = "-" if start < 0 else "+"
    return f"{shown} {sign} {abs(start)}"


def _differs(one: str, other: str, points: LawPoints) -> dict[str, float] | None:
    """A configuration at which two formulas differ; None if they do at none that is tried."""
    home = points.configuration(0)
    first, second = parse(one), parse(other)
    for name in points.varied:
        for factor in _PROBES:
            place = {**home, name: float(factor) if name in ("P", "T") else home[name] * factor}
            if abs(first.evaluate(place) - second.evaluate(place)) > _EXACT:
                return {key: place[key] for key in points.varied}
    return None
