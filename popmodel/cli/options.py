"""Readers of the texts that options are given as."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from popmodel.base.errors import UsageError, did_you_mean


def choice(option: str, text: str, choices: Sequence[str]) -> str:
    """One of some words."""
    if text in choices:
        return text
    hint = did_you_mean(text, choices, f"choose one of {', '.join(choices)}")
    raise UsageError(f"{option}: unknown value '{text}'", hint)


def whole_number(option: str, text: str, least: int = 1) -> int:
    """A whole number."""
    number = text.strip()
    # More digits are no count of anything and may exceed what Python converts.
    if number.isascii() and number.isdigit() and len(number) <= 18 and int(number) >= least:
        return int(number)
    raise UsageError(
        f"{option}: must be a whole number, at least {least}, not '{text}'",
        f"try {option} 4",
    )


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers, of a text that has commas between them; errors as for `whole_number`."""
    return [whole_number(option, part) for part in text.split(",")]


def size(option: str, text: str) -> float:
    """Bytes, of a size such as ``2GiB``."""
    from popmodel.base.units import parse_size

    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from None


def fraction(text: str) -> float:
    """A fraction, which may be written as a percentage; NaN for what is no number."""
    number = text.strip()
    return number_of(number.removesuffix("%")) / (100 if number.endswith("%") else 1)


def number_of(text: str) -> float:
    """A number; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def settings(texts: Sequence[str], option: str = "--set") -> dict[str, float]:
    """The values that ``--set``, or another option like it, gives."""
    return _settings(option, texts)


def split_and_settings(option: str, text: str) -> tuple[int, int, dict[str, float]]:
    """A run as ``PxT`` or ``PxT,NAME=VALUE,...``: processes, threads, and parameters."""
    split, *rest = text.split(",")
    match = re.fullmatch(r"\s*([1-9][0-9]{0,17})\s*x\s*([1-9][0-9]{0,17})\s*", split)
    if match is None:
        raise UsageError(
            f"{option} {text}: '{split}' must be PROCESSESxTHREADS",
            f"try {option} 1x1, or {option} 1x1,N=256",
        )
    return int(match[1]), int(match[2]), _settings(option, rest)


def _settings(option: str, texts: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        name, sign, number = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise UsageError(f"{option} {text}: value missing", "write NAME=VALUE, such as N=4096")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is set twice", "leave one of them out")
        found[name] = _number(number, f"{option} {text}")
    return found


def spreads(text: str | None) -> dict[str, float]:
    """The spreads that ``--imbalance`` gives."""
    if text is None:
        return {}
    from popmodel.model.scale_factors import SPREADS

    found: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = (word.strip() for word in part.partition("="))
        what = f"--imbalance {part.strip()}"
        if not sign:
            raise UsageError(f"{what}: value missing", "write NAME=CV, such as persistent=0.05")
        if name not in SPREADS:
            hint = did_you_mean(name, SPREADS, f"known: {', '.join(SPREADS)}")
            raise UsageError(f"{what}: unknown name '{name}'", hint)
        if name in found:
            raise UsageError(f"{what}: {name} is given twice", "leave one of them out")
        found[name] = fraction(number)
        if not 0 <= found[name] < math.inf:
            raise UsageError(
                f"{what}: must be a number, at least 0, not '{number}'", f"try {name}=0.05"
            )
    return found


def _number(number: str, where: str) -> float:
    value = number_of(number)
    if not math.isfinite(value):
        several = "," in number and "=" in number
        hint = "give the option once for each NAME=VALUE" if several else "try N=4096"
        raise UsageError(f"{where}: must be a number, not '{number}'", hint)
    return value
