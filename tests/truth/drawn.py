"""Random constants, and how people state them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

_END = 1.6448536269514715  # 95 % quantile of the standard normal distribution
_FREEDOM = 5  # of Student's t: a stated 90 % interval holds the truth in about 85 % of the draws


@dataclass(frozen=True)
class Stated:
    """A number as people know it, and what it is."""

    # What is stated: best estimate and the ends of a 90 % interval.
    value: float
    low: float
    high: float
    true: float  # What the simulation uses

    def measured(self, source: str) -> dict[str, Any]:
        """As a quantity of a machine profile."""
        return {
            "value": float(f"{self.value:.6g}"),
            "low": float(f"{self.low:.6g}"),
            "high": float(f"{self.high:.6g}"),
            "origin": "measured",
            "n": 100,
            "source": source,
        }

    def toml(self, unit: str | None = None) -> str:
        """As an inline table of a signature."""
        last = "" if unit is None else f', unit = "{unit}"'
        return (
            f"{{ value = {self.value:.6g}, low = {self.low:.6g}, high = {self.high:.6g}, "
            f'origin = "user"{last} }}'
        )


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number between two, uniform in its logarithm."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def stated(rng: np.random.Generator, true: float, factor: float) -> Stated:
    """State a number with an interval that reaches `factor` to either side.

    The estimate misses the truth by a factor with heavier tails than the interval says.
    """
    reach = math.log(factor)
    miss = math.exp(reach / _END * float(rng.standard_t(_FREEDOM)))
    value = true * miss
    return Stated(value, value / factor, value * factor, true)


def known(value: Any) -> Any:
    """Return a value in which everything that is stated, however deep, is stated as it is."""
    if isinstance(value, Stated):
        ratio = value.true / value.value if value.value else 1.0
        return Stated(value.true, value.low * ratio, value.high * ratio, value.true)
    if isinstance(value, tuple):
        return tuple(known(one) for one in value)
    if isinstance(value, dict):
        return {name: known(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: known(getattr(value, one.name)) for one in fields(value)}
        )
    return value
