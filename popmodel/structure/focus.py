"""The focus of analysis: a few iterations that stand for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.units import format_time, plural
from popmodel.structure.structure import StructureFocus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.iterations import Iterations

LEAST_ITERATIONS = 3
"""Of a focus, where there are as many."""
_WARM = 1.1
"""How much longer than usual the first iteration may be and still be one of the focus."""
_NS = 1e9


def focus_of(found: Iterations, kinds: NDArray[np.int64]) -> StructureFocus:
    """Choose the iterations that are nearest to the median.

    Windows of at least `LEAST_ITERATIONS` that follow one another, of whole cycles where kinds of
    iterations come round, are compared in duration, load balance and share of computing: each
    counts with its relative difference to the median of all iterations. A window that no time of
    all processes lies in is doubled, up to all iterations.
    """
    count = len(kinds)
    lasting, compute = found.lasting, found.compute
    skipped = int(count > LEAST_ITERATIONS and lasting[0] > _WARM * float(np.median(lasting[1:])))
    cycle = _cycle(kinds[skipped:])
    length = min(cycle * -(-LEAST_ITERATIONS // cycle), count - skipped)
    while True:
        first = skipped + _nearest(lasting[skipped:], compute[skipped:], kinds[skipped:], length)
        begin = int(found.begin[first].max())
        end = int(found.begin[first + length].min())
        if end > begin or length == count - skipped:
            break
        length = min(2 * length, count - skipped)
    if end <= begin:
        begin, end = int(found.begin[first].min()), int(found.begin[first + length].max())
        shared = "all that any process has of them, as they share no time"
    else:
        shared = "what all processes share of them"
    last = first + length - 1
    usual = float(np.median(lasting))
    mine = float(lasting[first : last + 1].mean())
    why = "nearest to the median in duration, balance and computing"
    why += f" ({format_time(mine / _NS)} each, median {format_time(usual / _NS)})"
    if skipped:
        why += "; the first is a warm-up"
    if cycle > 1:
        why += f"; kinds of iterations come round every {plural(cycle, 'iteration')}"
    return StructureFocus(begin, end, first, last, f"{why}; {shared}")


def _cycle(kinds: NDArray[np.int64]) -> int:
    """After how many iterations their kinds come round; 1 if they never do."""
    for cycle in range(1, len(kinds) // 2 + 1):
        same = np.mean(kinds[cycle:] == kinds[:-cycle])
        if same >= 0.9:
            return cycle
    return 1


def _nearest(
    lasting: NDArray[np.float64],
    compute: NDArray[np.float64],
    kinds: NDArray[np.int64],
    length: int,
) -> int:
    """The first of so many iterations that are together nearest to the median of all."""
    mean, most = compute.mean(axis=1), compute.max(axis=1)
    balance = np.where(most > 0, mean / np.where(most > 0, most, 1.0), 1.0)
    share = mean / np.maximum(lasting, 1.0)
    distance = np.zeros(len(lasting) - length + 1)
    for values in (lasting, balance, share):
        sums = np.concatenate([[0.0], np.cumsum(values)])
        windows = (sums[length:] - sums[:-length]) / length
        usual = _usual(values, kinds)
        distance += np.abs(windows - usual) / max(abs(usual), 1e-12)
    return int(np.argmin(np.round(distance, 12)))


def _usual(values: NDArray[np.float64], kinds: NDArray[np.int64]) -> float:
    """Median of each kind, with the weight of its number."""
    medians = np.empty(len(values))
    for kind in np.flatnonzero(np.bincount(kinds)).tolist():
        medians[kinds == kind] = np.median(values[kinds == kind])
    return float(medians.mean())
