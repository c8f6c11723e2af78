"""How long ranks compute in a region: a histogram, small however many ranks there are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST = 30
_LEAST = 5


@dataclass(frozen=True)
class Durations:
    """How long ranks compute in a region, each in all its occurrences together."""

    # Of ranks that do, s.
    least: float
    most: float
    # How many do for how long: bins of equal width from the least to the most.
    counts: tuple[int, ...]
    without: int  # How many do not


def durations(time: NDArray[np.float64]) -> Durations:
    """Count ranks by how long they compute in a region.

    The number of bins is twice the cube root of the number of ranks (the rule of Rice University),
    at least 5 and at most 30; one where all take equally long.
    """
    some = time[time > 0]
    without = int(len(time) - len(some))
    if not len(some):
        return Durations(0.0, 0.0, (), without)
    least, most = float(some.min()), float(some.max())
    bins = min(max(math.ceil(2 * len(some) ** (1 / 3)), _LEAST), _MOST)
    if most - least <= np.spacing(most) * bins:  # no bin would have a width
        return Durations(least, most, (len(some),), without)
    counts, _ = np.histogram(some, bins, (least, most))
    return Durations(least, most, tuple(counts.tolist()), without)
