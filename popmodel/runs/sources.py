"""Files of runs as they are named, with what is known of them: ``run.prv.gz:N=128,steps=10``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from popmodel.errors import UsageError

_VALUES = re.compile(r":(?=[A-Za-z_][A-Za-z_0-9]*=[^/]*$)")


def split(text: str) -> tuple[str, dict[str, str]]:
    """Split the name of a file and what is said of its runs: ``run.prv.gz:N=128,steps=10``."""
    # a name of a file may hold colons: values begin behind the last one before a NAME=
    parts = _VALUES.split(text, maxsplit=1)
    if len(parts) == 1:
        return text, {}
    found: dict[str, str] = {}
    for one in parts[1].split(","):
        name, sign, value = (part.strip() for part in one.partition("="))
        if not sign or not name or not value:
            raise UsageError(f"{text} {one}: value missing", "write NAME=VALUE, such as N=4096")
        if name in found:
            raise UsageError(f"{text} {one}: {name} is set twice", "leave one of them out")
        found[name] = value
    return parts[0], found


def numbers_of(text: str, said: Mapping[str, str]) -> dict[str, float]:
    """What is said of the runs of a file, as numbers."""
    found = {}
    for name, value in said.items():
        found[name] = as_number(value)
        if math.isnan(found[name]):
            problem = f"{text} {name}={value}: must be a number, not '{value}'"
            raise UsageError(problem, "try N=4096")
    return found


def as_number(text: str) -> float:
    """A finite number; NaN for what is none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
