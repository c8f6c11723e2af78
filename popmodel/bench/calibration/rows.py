"""What the end of a loop costs a core, and up to how many turns it foresees it.

Rows of a few turns, one after the other, take their turns and what is between rows. A core that
has seen a loop end after a few turns foresees its end; from some number of turns on it does not,
and what it had begun beyond the end is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import quantiles
from popmodel.bench.calibration.intervals import LEVEL, median, p10
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.bench.samples import SampleResult

Array = NDArray[np.float64]

_FEWEST = 5
"""Lengths of rows that tell a pace, what is between rows, and a loss from some length on."""
_SEEN = 3.0
"""Cycles that have to be lost before it shows from which length on they are."""


def calibrate(measured: MeasuredResults) -> dict[str, Any]:
    """Return ``branch_miss`` and ``predicted_trip`` of the section ``core``, if they are told."""
    turns, groups = of_launches(measured)
    if not groups:
        return {}
    each = np.array([_cycles(results) for results in groups])
    losses = np.array([loss(turns, one)[0] for one in each])
    _, last = loss(turns, np.median(each, axis=0))
    batches = sum(result.seconds.size for results in groups for result in results[1:])
    # programs differ in it as launches and builds do, by where their loops lie: all of them count
    low, high = quantiles(losses, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    section: dict[str, Any] = {
        "branch_miss": {
            "value": round(float(np.median(losses)), 2),
            "low": round(low, 2),
            "high": round(high, 2),
            "origin": "measured",
            "n": batches,
            "source": "rows of more turns over the line through rows of fewer, p10; the interval "
            "holds the launches",
        }
    }
    if section["branch_miss"]["value"] >= _SEEN:
        lasts = [last, *(loss(turns, one)[1] for one in each)]
        section["predicted_trip"] = {
            "value": round(math.sqrt(turns[last] * turns[last + 1]), 1),
            "low": float(turns[min(lasts)]),
            "high": float(turns[max(lasts) + 1]),
            "origin": "measured",
            "n": batches,
            "source": "number of turns between which rows begin to lose cycles",
        }
    return section


def of_launches(measured: MeasuredResults) -> tuple[list[int], list[tuple[SampleResult, ...]]]:
    """Return the lengths of rows, and the clock and the rows of these lengths of every launch.

    No launch where too few lengths were measured.
    """
    turns = measured.values("row", "turns")
    threads = measured.values("clock", "threads")
    if len(turns) < _FEWEST or not threads:
        return turns, []
    jobs = [("clock", {"threads": threads[0]}), *(("row", {"turns": count}) for count in turns)]
    return turns, measured.together(*jobs)


def instructions_per_cycle(turns: Sequence[int], results: Sequence[SampleResult]) -> float:
    """Return the instructions of rows per cycle between their ends."""
    clock, *rows = results
    counted = float(rows[0].facts["work"])
    rate = float(clock.facts["work"]) / p10(clock.seconds)
    return counted / _fitted(turns, np.array([median(row.seconds) * rate for row in rows]))[0]


def _cycles(results: Sequence[SampleResult]) -> Array:
    """Cycles of a row, by the clock of the same launch: the first of the results."""
    clock, *rows = results
    rate = float(clock.facts["work"]) / p10(clock.seconds)
    return np.array([p10(row.seconds) * rate for row in rows])


def loss(turns: Sequence[int], cycles: Array) -> tuple[float, int]:
    """Return the cycles that longer rows lose, and the index of the longest that does not.

    Least squares of ``cycles = pace turns + between + lost [turns > n]`` over all n, where the
    error of a time grows as its root; none is lost where each would be less than nothing.
    """
    _, lost, last = _fitted(turns, cycles)
    return max(lost, 0.0), last


def _fitted(turns: Sequence[int], cycles: Array) -> tuple[float, float, int]:
    """Cycles of a turn, those that longer rows lose, and the longest that does not; see `loss`."""
    lengths = np.asarray(turns, np.float64)
    weights = 1 / np.sqrt(cycles)

    def fitted(last: int) -> tuple[float, tuple[float, float, int]]:
        longer = (lengths > turns[last]).astype(np.float64)
        terms = np.stack([lengths, np.ones_like(lengths), longer], axis=1) * weights[:, None]
        law, *_ = np.linalg.lstsq(terms, cycles * weights, rcond=None)
        misses = terms @ law - cycles * weights
        return float(misses @ misses), (float(law[0]), float(law[2]), last)

    # two lengths at least on either side: one alone would be met exactly
    tried = [fitted(last) for last in range(1, len(turns) - 2)]
    _, best = min([one for one in tried if one[1][1] >= 0] or tried)
    return best
