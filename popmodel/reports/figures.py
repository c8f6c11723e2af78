"""Figures as reports write them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from popmodel.base.units import format_time

_TICKS = 6


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction in per cent without the sign: 0.8125 is ``81.2``."""
    return f"{100 * fraction:.{digits}f}"


def loses(efficiency: float) -> bool:
    """Whether an efficiency is below 100 % as it is printed."""
    return float(percent(efficiency)) < 100


def describe_team(threads: int | Sequence[int]) -> str:
    """Threads per process: ``4``, or ``1..4`` where processes differ."""
    if isinstance(threads, int):
        return str(threads)
    least, most = min(threads), max(threads)
    return str(least) if least == most else f"{least}..{most}"


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers, 1, 2 or 5 times a power of ten apart, from low to high.

    Examples
    --------
    >>> ticks(1.13, 1.48)
    [1.2, 1.3, 1.4]
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    digits = max(0, -math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, digits) for number in range(first, last + 1)]


def time_range(low: float, high: float) -> str:
    """From one time to another, the unit once if it is the same."""
    first, last = format_time(low, digits=3), format_time(high, digits=3)
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} .. {last}"
