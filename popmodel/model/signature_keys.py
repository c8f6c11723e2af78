"""What every key of a signature means: in which unit its formula is, and in which range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from popmodel.model.program import (
    Collective,
    Halo,
    Item,
    Loop,
    Parallel,
    Pipeline,
    PointToPoint,
    Serial,
    Shift,
    Task,
)
from popmodel.model.toml_lines import Path


@dataclass(frozen=True)
class Unit:
    """A product of powers of byte and second; whatever is counted is a pure number."""

    bytes: Fraction = Fraction(0)
    seconds: Fraction = Fraction(0)

    def times(self, other: Unit) -> Unit:
        """Give the unit of a product."""
        return Unit(self.bytes + other.bytes, self.seconds + other.seconds)

    def power(self, exponent: Fraction) -> Unit:
        """Give the unit of a power."""
        return Unit(self.bytes * exponent, self.seconds * exponent)

    def __str__(self) -> str:
        powers = [("B", self.bytes), ("s", self.seconds)]
        above = "*".join(_power(name, power) for name, power in powers if power > 0)
        below = "/".join(_power(name, -power) for name, power in powers if power < 0)
        return f"{above or '1'}/{below}" if below else above or "1"

    @property
    def noun(self) -> str:
        """What a value of this unit is, in words."""
        return {"1": "a number", "B": "bytes", "s": "seconds"}.get(str(self), str(self))


NUMBER = Unit()
BYTE = Unit(bytes=Fraction(1))
SECOND = Unit(seconds=Fraction(1))


@dataclass(frozen=True)
class Rule:
    """What holds for the formula of a key.

    Attributes
    ----------
    unit : Unit or None
        Unit of its value; None for a condition.
    low, high : float
        Range of its value.
    above : bool
        Whether the value has to be above `low`, not only at it.
    """

    unit: Unit | None = NUMBER
    low: float = -math.inf
    above: bool = False
    high: float = math.inf

    @property
    def range(self) -> str:
        """The range in words that follow "should be"."""
        least = f"{'above' if self.above else 'at least'} {self.low:g}"
        return least if math.isinf(self.high) else f"between {self.low:g} and {self.high:g}"


_COUNT = Rule(low=0, above=True)
_MAY_BE_NONE = Rule(low=0)
_SIZE = Rule(BYTE, low=0)
_TIME = Rule(SECOND, low=0)

SECTIONS: Mapping[str, Rule] = {
    "decomp.global": _COUNT,
    "decomp.grid": Rule(low=1),
    "limits.require": Rule(None),
    "limits.memory_per_rank": Rule(BYTE, low=0, above=True),
}
"""Rules of the formulas before the program; those of ``let`` may be anything."""

ITEMS: Mapping[str, Rule] = {
    "every": _COUNT,
    "count": _COUNT,
    "trip": _COUNT,
    "inner": _COUNT,
    "flops": _MAY_BE_NONE,
    "loads": _MAY_BE_NONE,
    "stores": _MAY_BE_NONE,
    "bytes": _SIZE,
    "bytes.*": _SIZE,
    "constructs.*": _MAY_BE_NONE,
    "chunk": Rule(low=1),
    "critical.entries": _MAY_BE_NONE,
    "critical.seconds": _TIME,
    "seconds": _TIME,
    "span": _TIME,
    "width": _COUNT,
    "bytes_per_cell": Rule(BYTE, low=0, above=True),
    "overlap": Rule(low=0, high=1),
    "by": Rule(),
    "to": Rule(),
    "blocks": _COUNT,
}
"""Rules of the formulas of items; a key means the same in every kind."""

KINDS: Mapping[type[Item], str] = {
    Loop: "loop",
    Serial: "serial",
    Parallel: "parallel",
    Task: "task",
    Halo: "halo",
    Pipeline: "pipeline",
    Shift: "shift",
    PointToPoint: "p2p",
    Collective: "collective",
}
"""How the kinds of items are written."""


def key_of(path: Path) -> tuple[str, str]:
    """Split the place of a formula into its section or kind of item, and the key in it.

    Parameters
    ----------
    path : path
        Such as ``("program", 0, "body", 2, "parallel", "bytes", "MEM")``.

    Returns
    -------
    section : str
        ``parallel``; or ``let``, ``decomp``, ``limits``.
    key : str
        ``bytes.MEM``.
    """
    numbers = [index for index, part in enumerate(path) if isinstance(part, int)]
    inside = path[numbers[-1] + 1 :] if path[0] == "program" else path
    section, *keys = (part for part in inside if isinstance(part, str))
    return section, ".".join(keys)


def rule_of(path: Path) -> Rule | None:
    """Give what holds for the formula at a place; None for a name that `let` defines.

    Raises
    ------
    KeyError
        If the key has no rule: every key that the reader knows needs one.
    """
    section, key = key_of(path)
    if section == "let":
        return None
    if path[0] != "program":
        return SECTIONS[f"{section}.{key}"]
    return ITEMS[key] if key in ITEMS else ITEMS[f"{key.split('.')[0]}.*"]


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})"
