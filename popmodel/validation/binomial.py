"""How sure a share of few is: the interval of a proportion."""

from __future__ import annotations

import math

from popmodel.machine.quantity import END


def wilson(held: float, of: int, quantile: float = END) -> tuple[float, float]:
    """Return the score interval of a proportion (E. B. Wilson, J. Am. Stat. Assoc. 22 (1927)
    209).
    """
    if of < 1 or not 0 <= held <= of:
        raise ValueError(f"{held!r} of {of!r} is no proportion")
    share, square = held / of, quantile**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = quantile / (1 + square / of)
    half *= math.sqrt(share * (1 - share) / of + square / (4 * of**2))
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)
