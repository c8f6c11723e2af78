"""Which process has the most work, and how much, is chance: its spread tells the mean only.

A prediction has the expected maximum of the works of all processes. How the cells of a run are
divided is one draw of them, the same in every step and every repetition: of few processes the one
with the most work may as well have half as much more than the others as twice as much. Runs of one
number of processes tell theirs, and nothing of another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from popmodel.expressions.elementary import Value, numbers
from popmodel.model.calibration import CHANCE
from popmodel.model.run.course import AVERAGED
from popmodel.model.terms import imbalance
from popmodel.model.uncertainty import Draws

MEANING = "chance of how much the process with the most work has"
_PERSISTENT = "persistent_cv"


def name_of(place: str) -> str:
    """Return the name of the score of a division of the work."""
    return f"{CHANCE}most_work[{place}]"


def is_chance(spread: Mapping[str, Value]) -> bool:
    """Whether processes differ by chance: not where each one's work is known."""
    return AVERAGED not in spread and bool(np.any(numbers(spread.get(_PERSISTENT, 0.0))))


def deviation(processes: int) -> float:
    """Return the standard deviation of the logarithm of what the slowest process has more to do.

    That of a log-normal distribution with the coefficient of variation of the largest of P normal
    works above their mean, whose variance is ``Var(maximum) - 1/P``.
    """
    return _deviation(processes)


@lru_cache(maxsize=256)
def _deviation(processes: int) -> float:
    if processes < 2:
        return 0.0
    mean = float(imbalance.expected_maximum(processes))
    variance = imbalance.variance_of_maximum(processes) - 1 / processes
    return math.sqrt(math.log1p(variance / mean**2))


def applied(
    spread: Mapping[str, Value], processes: int, place: str, drawn: Draws
) -> Mapping[str, Value]:
    """Return the spread of the work of processes with which the slowest has as much as it may."""
    if processes < 2 or not is_chance(spread):
        return spread
    factor: Value = np.exp(drawn.score(name_of(place)) * deviation(processes))
    return {**spread, _PERSISTENT: spread[_PERSISTENT] * factor}
