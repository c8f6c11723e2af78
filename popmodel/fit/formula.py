"""The formula of a law as signatures hold it, and the constants in it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from popmodel.fit.intervals import Spread
from popmodel.fit.model_selection import Choice
from popmodel.fit.samples import END, Interval, Points, described
from popmodel.fit.terms import Term, number
from popmodel.values import dataclass

_REACH = 2.3263478740408408 / END
FIT, ASSUMED, TRACE = "fit", "assumed", "trace"
"""Origins of constants."""


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


def formula_of(
    points: Points,
    choice: Choice,
    terms: tuple[Term, ...],
    spread: Spread,
    home: Mapping[str, float],
) -> tuple[str, dict[str, Constant]]:
    """Return the formula of a law, names of constants in braces, and the constants."""
    place, origin = described(home), FIT if choice.tested else ASSUMED
    at_home = spread.at(1.0, 1.0, {}, {})
    of_value = TRACE if len(points) == 1 else FIT
    constants = {"a": Constant(*_ends(at_home), of_value, f"value at {place}")}
    powers, beyond = dict(spread.powers), dict(spread.beyond)
    first = terms[0].relative_to(home)
    power = _only_power(terms[0]) if choice.best.size == 1 else None
    if power is not None and power[0] in {**powers, **beyond}:
        name, exponent = power
        tested = name in powers
        half = powers.pop(name) if tested else beyond.pop(name).half
        size, key = abs(exponent), _key(name)
        constants[key] = Constant(
            size, max(size - half, 0.0), size + half, origin if tested else ASSUMED,
            f"exponent of {name}",
        )  # fmt: skip
        reference = number(home[name])
        ratio = f"{reference}/{name}" if exponent < 0 else f"{name}/{reference}"
        first = f"({ratio})**{{{key}}}"
    if len(terms) == 2:
        share, shares = float(spread.shares[0]), spread.shares
        constants["b"] = Constant(
            share, float(shares.min()), float(shares.max()), origin,
            f"share of {terms[1].text} at {place}",
        )  # fmt: skip
        second = terms[1].relative_to(home)
        rest = "1 - {b}" if _largest(constants["b"]) < 1 else "max(1 - {b}, 0)"
        rest = f"({rest})" if rest[0] == "1" else rest
        inner = [f"{part}*{term}" if term != "1" else part
                 for part, term in ((rest, first), ("{b}", second))]  # fmt: skip
        factors = [f"({' + '.join(inner)})"]
    else:
        factors = [first] if first != "1" else []
    for name, half in powers.items():
        constants[_key(name)] = Constant(
            1.0, max(1 - half, 0.0), 1 + half, origin, f"1 + exponent of {name} that is left open"
        )
        factors.append(f"({name}/{number(home[name])})**({{{_key(name)}}} - 1)")
    for name, one in beyond.items():
        constants[_key(name)] = Constant(
            1.0, max(1 - one.half, 0.0), 1 + one.half,
            origin if name in points.varied else ASSUMED,
            f"1 + exponent of {name} that is left open outside of what was measured",
        )  # fmt: skip
        low, high = number(one.low), number(one.high)
        factors.append(f"max({name}/{high}, {low}/{name}, 1)**({{{_key(name)}}} - 1)")
    return "*".join(["{a}", *factors]), constants


def _largest(share: Constant) -> float:
    """The largest value that is drawn of a share: 99 % where the end of the interval is 95 %."""
    if share.low > 0:
        return share.value * math.pow(share.high / share.value, _REACH)
    return share.value + (share.high - share.value) * _REACH


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high


def _key(name: str) -> str:
    return {"P": "p", "T": "t"}.get(name, f"e_{name}")


def _only_power(term: Term) -> tuple[str, float] | None:
    """The variable that a term is a power of, if it is one of one variable."""
    if term.factors is None or len(term.factors) != 1:
        return None
    ((name, (power, logs)),) = term.factors.items()
    return None if logs else (name, float(power))
