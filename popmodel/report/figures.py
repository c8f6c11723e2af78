"""Figures as reports write them."""

from __future__ import annotations

from collections.abc import Sequence


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
