"""When iterations begin and end on each sequence, and what happens in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.structure.nest import Leaf
from popmodel.structure.structure import StructureFocus
from popmodel.units import format_time, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.common import Common
    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.nest import FoundLoop, Nest

_LONG = 2.0
"""How many times the usual computing at its begin the first iteration may have; what is more
belongs to the initialisation."""


@dataclass(frozen=True, eq=False)
class Iterations:
    """Iterations of a loop."""

    # int64[n + 1, S]: When each begins on each sequence, and the last ends, ns. An iteration begins
    # where the last event of the one before ends; a sequence without an event in one passes it in
    # no time.
    begin: NDArray[np.int64]
    of: NDArray[np.int64]  # int64[E]: Iteration that each event is in, or -1
    compute: NDArray[np.float64]  # float64[n, S]: Computing in each, regions included, ns

    @property
    def lasting(self) -> NDArray[np.float64]:
        """Duration of each, the mean of all sequences, ns: float64[n]."""
        mean: NDArray[np.float64] = np.diff(self.begin, axis=0).mean(axis=1)
        return mean


def iterations_of(events: ProgramEvents, common: Common, loop: FoundLoop, begin: int) -> Iterations:
    """Iterations of a loop at the top of a nest."""
    of = iteration_of_events(common, loop)
    sequences, count = len(events.offsets) - 1, sum(loop.counts)
    inside = np.flatnonzero(of >= 0)
    sequence, iteration = events.sequence[inside], of[inside]
    before = _ends_before(events, begin)
    late = np.iinfo(np.int64).max
    since = np.full((count, sequences), late)
    np.minimum.at(since, (iteration, sequence), np.minimum(before, events.begin)[inside])
    until = np.full(sequences, begin, np.int64)
    np.maximum.at(until, sequence, events.end[inside])
    time = events.before + np.where(events.is_region, events.end - events.begin, 0)
    compute = np.zeros((count, sequences))
    np.add.at(compute, (iteration, sequence), time[inside])
    _cut_the_first(events, common, since, compute, inside, sequence, iteration)
    edges = np.concatenate([since, until[None, :]])
    filled = np.minimum.accumulate(edges[::-1], axis=0)[::-1]
    # A sequence without an event in the loop is in it for no time at all.
    none = ~np.isin(np.arange(sequences), sequence)
    filled[:, none] = filled[0, ~none].min(initial=late)
    return Iterations(filled, of, compute)


def _ends_before(events: ProgramEvents, begin: int) -> NDArray[np.int64]:
    """When all events before each one on its sequence have ended, ns."""
    shift = events.sequence * (int(events.end.max(initial=begin)) - begin + 1)
    ends = np.maximum.accumulate(np.append(begin, events.end + shift)[: len(events)])
    return np.maximum(ends - shift, begin)


def _cut_the_first(
    events: ProgramEvents,
    common: Common,
    since: NDArray[np.int64],
    compute: NDArray[np.float64],
    inside: NDArray[np.int64],
    sequence: NDArray[np.int64],
    iteration: NDArray[np.int64],
) -> None:
    """Leave the computing of the initialisation out of the first iteration."""
    if len(since) < 3:
        return
    new = np.diff(sequence, prepend=-1) != 0
    new |= np.diff(iteration, prepend=-1) != 0
    firsts = np.flatnonzero(new)
    event, sequence, iteration = inside[firsts], sequence[firsts], iteration[firsts]
    bounds = np.searchsorted(sequence, np.arange(since.shape[1] + 1))
    for mine in np.flatnonzero(iteration == 0).tolist():
        first = event[mine]
        own = slice(*bounds[sequence[mine] : sequence[mine] + 2])
        alike = (iteration[own] > 0) & (common.place[event[own]] == common.place[first])
        if not alike.any():
            continue
        usual = float(np.median(events.before[event[own][alike]]))
        surplus = float(events.before[first]) - usual
        if surplus > (_LONG - 1.0) * max(usual, 1.0):
            since[0, sequence[mine]] = events.begin[first] - round(usual)
            compute[0, sequence[mine]] -= surplus


def iteration_of_events(common: Common, loop: FoundLoop) -> NDArray[np.int64]:
    """Iteration of a loop that each event is in, or -1: int64[E]."""
    turns = [np.empty(0, np.int64)] * len(common.places)

    def descend(body: Nest, turn: NDArray[np.int64]) -> None:
        for each in body:
            if isinstance(each, Leaf):
                for place in each.places:
                    turns[place] = turn
            else:
                descend(each.body, np.repeat(turn, each.counts))

    descend(loop.body, np.arange(sum(loop.counts)))
    length = np.array([len(each) for each in turns], np.int64)
    begin = np.cumsum(length) - length
    flat = np.concatenate([*turns, np.array([-1])])
    inside = length[common.place] > 0
    found: NDArray[np.int64] = flat[
        np.where(inside, begin[common.place] + common.execution, len(flat) - 1)
    ]
    return found


# The focus of analysis: a few iterations that stand for all of them.


_FEW = 3
"""Iterations of a focus, at least, where there are as many."""
_WARM = 1.1
"""How much longer than usual the first iteration may be and still be one of the focus."""
_NS = 1e9


def focus_of(found: Iterations, kinds: NDArray[np.int64]) -> StructureFocus:
    """Choose the iterations that are nearest to the median.

    Windows of a few iterations that follow one another, with as many as it takes until the kinds
    of iterations come round, are compared in duration, load balance and share of computing: each
    counts with its relative difference to the median of all iterations.
    """
    count = len(kinds)
    lasting, compute = found.lasting, found.compute
    skipped = int(count > _FEW and lasting[0] > _WARM * float(np.median(lasting[1:])))
    cycle = _cycle(kinds[skipped:])
    length = min(cycle * -(-_FEW // cycle), count - skipped)
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
