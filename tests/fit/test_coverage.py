"""How often 90 % intervals hold the truth: many draws, counted.

Laws of one and of two terms from 2, 3, 4 and 6 points: inside, and at 4 and 16 times the processes,
where the form cannot be known from the points. With 1200 draws of each (here fewer) the intervals
held 92, 97 and 97 % with errors of 2 % that were stated, 97, 99 and 98 % of 2 % not stated, 85, 94
and 93 % of 5 % not stated. What repeats worse than 5 % needs its error stated, or repeats.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from popmodel.fit.law import law
from popmodel.fit.samples import Sample

DRAWS = 10
Truth = Callable[[float], float]
TRUTHS: dict[str, tuple[Truth, tuple[str, ...]]] = {
    "shared": (lambda p: 1 / p, ("1/P",)),
    "shared, little serial": (lambda p: 1 / p + 0.006, ("1/P",)),
    "shared, much serial": (lambda p: 1 / p + 0.04, ("1/P",)),
    "shared and a tree": (lambda p: 1 / p + 0.0025 * math.log2(p), ("1/P",)),
    "surface": (lambda p: p ** (-2 / 3), ("P**(-2/3)",)),
    "surface and serial": (lambda p: p ** (-2 / 3) + 0.1, ("P**(-2/3)",)),
    "constant": (lambda _: 1.0, ("1",)),
    "tree": (lambda p: math.log2(p), ("log2(P)",)),
    "constant and tree": (lambda p: 1 + 0.3 * math.log2(p), ("1",)),
    "no hint": (lambda p: 1 / p + 0.006, ()),
}
POINTS = ((2, 4), (2, 4, 8), (2, 4, 8, 16), (2, 4, 8, 16, 32, 64))


def held(stated: bool, noise: float, far: int) -> dict[str, float]:
    """Part of the intervals that hold the truth, by truth, at so many times the largest P."""
    rng = np.random.default_rng(15)
    found = {}
    for name, (truth, hints) in TRUTHS.items():
        inside = 0
        for processes in POINTS:
            at = processes[len(processes) // 2] if far == 1 else far * processes[-1]
            for _ in range(DRAWS):
                values = [truth(p) * math.exp(noise * rng.normal()) for p in processes]
                error = noise if stated else None
                samples = [
                    Sample(p, 1, v, {}, error) for p, v in zip(processes, values, strict=True)
                ]
                there = law(samples, hints=hints).at(at, 1)
                inside += there.low <= truth(at) <= there.high
        found[name] = inside / (DRAWS * len(POINTS))
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("stated", "noise", "far", "least", "most"),
    [
        (True, 0.02, 1, 0.87, 0.97),
        (True, 0.02, 16, 0.92, 1.0),
        (True, 0.05, 4, 0.92, 1.0),
        (False, 0.02, 4, 0.95, 1.0),
        (False, 0.05, 1, 0.8, 0.94),  # a little below 90 %: errors should be stated
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    stated: bool, noise: float, far: int, least: float, most: float
) -> None:
    found = held(stated, noise, far)
    assert least <= float(np.mean(list(found.values()))) <= most, found
    assert min(found.values()) >= 0.6, found
