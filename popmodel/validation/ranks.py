"""Whether two lists of numbers have the same order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def kendall(some: Sequence[float], others: Sequence[float]) -> float | None:
    """Return the rank correlation tau-b of M. G. Kendall (Biometrika 33 (1945) 239), -1 to 1.

    Ties are those of either list; None if one of them has nothing else, or has fewer than two.
    """
    agreeing = 0
    untied = [0, 0]
    for (a, b), (c, d) in itertools.combinations(zip(some, others, strict=True), 2):
        first, second = _sign(a - c), _sign(b - d)
        agreeing += first * second
        untied[0] += first != 0
        untied[1] += second != 0
    if not all(untied):
        return None
    return agreeing / math.sqrt(untied[0] * untied[1])


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
