"""Words for formulas and their values, in the sentences that describe items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from popmodel.base.units import count, format_size, format_time

Entry: TypeAlias = Mapping[str, Any]


def equation(formula: Entry) -> str:
    """A formula and its value, such as ``3*w = 24 B``; a number alone once."""
    if formula["value"] is None:
        return str(formula["formula"])
    value = value_text(formula)
    return value if _is_number(formula["formula"]) else f"{formula['formula']} = {value}"


def symbol(formula: Entry) -> str:
    """A formula that is a number of something, with its value."""
    return equation({**formula, "unit": "1"})


def quantity(formula: Entry) -> str:
    """A formula that has a unit, with its value."""
    if formula["value"] is None:
        noun = {"B": "bytes", "s": "seconds"}[formula["unit"]]
        return f"{formula['formula']} {noun}"
    return equation(formula)


def many(formula: Entry, noun: str) -> str:
    """How many of something: ``1 store``, ``n0 iterations``."""
    plural_noun = noun if noun == "flop" else f"{noun}s"
    return f"{symbol(formula)} {noun if formula['formula'] == '1' else plural_noun}"


def value_text(entry: Entry) -> str:
    """A number with its unit."""
    value, unit = entry["value"], entry["unit"]
    if unit == "B":
        return format_size(value)
    if unit == "s":
        return format_time(value, trim=True)
    number = count(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return number if unit in (None, "1") else f"{number} {unit}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def ordinal(formula: Entry) -> str:
    if not _is_number(formula["formula"]):
        return f"({symbol(formula)})th"
    text = symbol(formula)
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending}"


def listed(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
