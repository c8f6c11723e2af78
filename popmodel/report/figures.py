"""Figures as reports write them."""

from __future__ import annotations


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction in per cent without the sign: 0.8125 is ``81.2``."""
    return f"{100 * fraction:.{digits}f}"


def loses(efficiency: float) -> bool:
    """Whether an efficiency is below 100 % as it is printed."""
    return float(percent(efficiency)) < 100
