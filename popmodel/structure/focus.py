"""The part of a run that is asked for by its iterations, and a few of these that stand for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import PartError, TraceError
from popmodel.base.units import count, format_time, plural
from popmodel.traces.selection import TracePart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.iterations import Iterations
    from popmodel.structure.structure import Structure, StructureFocus
    from popmodel.traces import Trace

LEAST_ITERATIONS = 3
"""Of a focus, where there are as many."""
_WARM = 1.1
"""How much longer than usual the first iteration may be and still be one of the focus."""
_NS = 1e9
_NO_ITERATIONS = "no iterations found: nothing repeats in its MPI calls and parallel regions"
_INSTEAD = "choose a part with --window, for example --window 1s:2s"


def part_of_run(asked: TracePart, trace: Trace) -> TracePart:
    """The part of a run that is asked for, with a window of time in place of iterations."""
    if not asked.auto and asked.iterations is None:
        return asked
    from popmodel.structure.structure import LIKELY, certainty

    found = _with_iterations(trace)
    first, last = _wanted(asked, trace, found)
    number = count(len(found.iterations) - 1)
    name = f"iterations {count(first)} to {count(last)}"
    why = f"{name if first < last else f'iteration {count(first)}'} of {number}"
    begin, end = found.focus.begin, found.focus.end
    if asked.auto:
        why += ", the focus"
    else:
        begins = found.iterations.max(axis=1)
        begin, end = int(begins[first - 1]), int(begins[last])
    if found.confidence < LIKELY:
        why += f", confidence {certainty(found.confidence)}"
    return TracePart(begin, end, asked.region, why=why)


def on_sequences(
    asked: TracePart, trace: Trace
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """When the iterations that are asked for begin and end on each sequence of a run, ns.

    None where no iterations are asked for. Raises as `part_of_run`.
    """
    if not asked.auto and asked.iterations is None:
        return None
    found = _with_iterations(trace)
    first, last = _wanted(asked, trace, found)
    return found.iterations[first - 1], found.iterations[last]


def _with_iterations(trace: Trace) -> Structure:
    found, _ = structure_of(trace)
    if found.loop is None or len(found.iterations) < 2:
        raise TraceError(trace.path, _NO_ITERATIONS, hint=_INSTEAD)
    return found


def _wanted(asked: TracePart, trace: Trace, structure: Structure) -> tuple[int, int]:
    """First and last of the iterations that are asked for, from 1."""
    if asked.iterations is None:
        return structure.focus.first + 1, structure.focus.last + 1
    number = len(structure.iterations) - 1
    first, last = asked.iterations
    last = number if last is None else last
    if last > number:
        raise PartError(
            trace.path,
            f"no iteration {count(last)}: the run has {plural(number, 'iteration')}",
            hint="popmodel inspect shows them",
        )
    return first, last


def structure_of(trace: Trace) -> tuple[Structure, Trace]:
    """Structure of a run, and what it is of: the whole run, where a window of one is given."""
    from popmodel.structure.iterations import find

    pieces = trace.pieces
    whole = trace if pieces is None or len(pieces) > 1 else trace.whole or trace
    return find(whole), whole


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
    from popmodel.structure.structure import StructureFocus

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
