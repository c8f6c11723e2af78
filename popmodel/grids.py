"""Ranges of values on the command line and in Python: ``0.1us:100us:log13``."""

from __future__ import annotations

import re
from collections.abc import Callable

from popmodel.errors import UsageError

MOST = 10_000
"""Values of one range at most."""

_HINT = "write FIRST:LAST:log13 for 13 values with equal ratios, FIRST:LAST:lin5 for equal steps"


def read_values(text: str, read: Callable[[str], float]) -> list[float]:
    """Read one value, or a range of them."""
    if ":" not in text:
        return [read(text)]
    match = re.fullmatch(r"([^:]+):([^:]+):\s*(log|lin|)(\d+)\s*", text)
    if match is None:
        raise UsageError(f"'{text}' is no range of values", _HINT)
    first, last = read(match[1].strip()), read(match[2].strip())
    by_ratio, number = match[3] == "log", int(match[4])
    if not 2 <= number <= MOST:
        raise UsageError(f"'{text}': a range has 2 to {MOST} values, not {number}", _HINT)
    if max(first, last) == float("inf"):
        raise UsageError(f"'{text}': both ends of a range must be finite", _HINT)
    if by_ratio and min(first, last) <= 0:
        raise UsageError(f"'{text}': a range of equal ratios cannot begin or end at 0", _HINT)
    if first == last:
        raise UsageError(f"'{text}': both ends of the range are the same", _HINT)
    parts = [i / (number - 1) for i in range(1, number - 1)]
    if by_ratio:
        inner = [first * (last / first) ** part for part in parts]
    else:
        inner = [first + (last - first) * part for part in parts]
    return [first, *(float(f"{value:.12g}") for value in inner), last]
