"""What repeats in a sequence of tokens: nested loops, whose counts may vary.

Maximal repetitions become tokens of their own, whatever their counts, and the search goes on in the
shorter sequence: so loops around others whose counts drift are found, too. All in n log n
(``popmodel/kernel/runs.hpp``).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import alike, numbered
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.program_events import ProgramEvents


@dataclass(frozen=True, eq=False)
class Repetition:
    """A sequence as a nest of loops around tokens.

    Nodes are loops and tokens, numbered depth first; node 0 is the whole sequence.
    """

    token: NDArray[np.int32]  # int32[N]: Of each node; -1 for a loop
    parent: NDArray[np.int32]  # int32[N]: The loop around each node; -1 of the whole sequence
    # int64[N + 1]: Executions of loop n are rows ``offsets[n] .. offsets[n + 1]`` of `counts`.
    offsets: NDArray[np.int64]
    counts: NDArray[np.int32]  # int32[c]: How often a loop was repeated at an execution
    # int32[n]: Of each token of the sequence its node, and how many iterations of the loop around
    # it began before, all enclosing loops flattened.
    node: NDArray[np.int32]
    iteration: NDArray[np.int32]

    def counts_of(self, node: int) -> NDArray[np.int32]:
        """How often a loop was repeated, at each of its executions."""
        return self.counts[self.offsets[node] : self.offsets[node + 1]]

    @cached_property
    def children(self) -> list[list[int]]:
        """Nodes in the body of each node, in order."""
        found: list[list[int]] = [[] for _ in self.parent]
        for node, parent in enumerate(self.parent.tolist()):
            if parent >= 0:
                found[parent].append(node)
        return found


def repetition(
    tokens: NDArray[np.int32], *, alone: bool = False, shortest: bool = False
) -> Repetition:
    """Find the loops of a sequence: the longest, then those in their bodies; or the shortest first.

    Where counts vary, bodies of loops have to be known again where they stand `alone`.
    """
    return Repetition(*_kernel.repetition(tokens, alone, shortest))


def repetitions(sequences: Sequence[NDArray[np.int32]]) -> list[Repetition]:
    """Find the loops of some sequences, all in that way in which they need the fewest nodes."""
    found = [[repetition(each, alone=alone) for each in sequences] for alone in (False, True)]
    if max(map(len, sequences), default=0) <= _SHORT:
        found.append([repetition(each, alone=True, shortest=True) for each in sequences])
    return min(found, key=lambda nests: sum(len(nest.token) for nest in nests))


# Which tokens tell best what repeats: as fine as they repeat at all.
#
# Most programs repeat their messages with partners and sizes. Where sizes follow the data, or
# roots and partners take turns, tokens without them are needed, but only for those calls: what
# repeats is first found with coarser tokens for all, then each of these keeps the finest token
# that is the same at nine of ten turns.


_SHORT = 128  # tokens up to which equal counts may be chance
_STABLE = 0.9
"""Share of the iterations in which a call has to do the same for a finer token."""
_ENOUGH = 0.9
"""A finer token does if it explains this share of what a coarser one explains."""
_MOSTLY = 0.8
"""Share of the events in loops, alike on all sequences, that is enough not to try coarser ones."""
_TURNS = 3.5
"""How many times the places of coarser tokens finer ones have if their partners take turns. The
three directions of a sweep, one after the other, are one iteration."""


class RepeatedCalls(NamedTuple):
    """What repeats on the sequences of a program."""

    nests: list[Repetition]  # Of each group of sequences that do exactly the same
    first: list[int]  # The first event of the first sequence of each group
    group: list[int]  # Of each sequence


def repeated(events: ProgramEvents) -> RepeatedCalls:
    """Find what repeats on each sequence."""
    groups: dict[bytes, int] = {}
    group: list[int] = []
    first: list[int] = []
    last: list[int] = []
    bounds = events.offsets.tolist()
    for begin, end in pairwise(bounds):
        number = groups.setdefault(events.exact[begin:end].tobytes(), len(groups))
        if number == len(first):
            first.append(begin)
            last.append(end)
        group.append(number)
    stretches = [slice(*each) for each in zip(first, last, strict=True)]
    weight = events.computing + 1.0
    trials = [_trial(tokens, stretches, weight) for tokens in (events.exact, events.sized)]
    if not any(trial.agree and trial.looped >= _MOSTLY for trial in trials):
        trials += [_trial(tokens, stretches, weight) for tokens in (events.tagged, events.coarse)]
    most = max(trial.share for trial in trials)
    good = [trial for trial in trials if trial.share >= _ENOUGH * most]
    best = next((trial for trial in good if trial.agree), good[0])
    exact, sized = trials[:2]
    take_turns = sized.share >= _ENOUGH * most and exact.places > _TURNS * sized.places
    if best is exact and take_turns:
        best = sized
    if best is not exact and most > 0:
        finer = _trial(_as_fine_as_stable(events, best, stretches), stretches, weight)
        if finer.share >= _ENOUGH * best.share:
            best = finer
    return RepeatedCalls(best.nests, first, group)


class _Trial(NamedTuple):
    """What some tokens explain."""

    tokens: NDArray[np.int32]  # int32[E]
    nests: list[Repetition]  # Of each stretch of the events
    share: float  # Of the time in the largest loops
    places: int  # In these, which loops inside them repeat
    looped: float  # Share of the events in loops
    agree: bool  # Whether the largest loops of all stretches have equally many iterations


def _trial(
    tokens: NDArray[np.int32], stretches: list[slice], weight: NDArray[np.float64]
) -> _Trial:
    nests = repetitions([tokens[each] for each in stretches])
    inside, places, looped = 0.0, 0, 0
    counts: list[int] = []
    for nest, stretch in zip(nests, stretches, strict=True):
        largest, mine, all_looped = _largest(nest, weight[stretch])
        inside += float(weight[stretch][mine].sum())
        looped += all_looped
        places += len(np.unique(nest.node[mine]))
        counts.append(int(nest.counts_of(largest).sum()) if largest else 0)
    share = inside / max(float(sum(weight[each].sum() for each in stretches)), 1.0)
    total = sum(len(nest.node) for nest in nests)
    agree = len(set(counts)) == 1 and counts[0] > 0
    return _Trial(tokens, nests, share, places, looped / max(total, 1), agree)


def _largest(nest: Repetition, weight: NDArray[np.float64]) -> tuple[int, slice, int]:
    """The outermost loop that weighs most, or 0; its events; how many events are in loops."""
    outer = np.flatnonzero(nest.parent == 0)
    of = np.searchsorted(outer, nest.node, side="right") - 1
    loops = outer[nest.token[outer] < 0] if len(outer) else outer
    if not len(loops):
        return 0, slice(0, 0), 0
    in_loop = nest.token[outer[of]] < 0
    sums = np.bincount(of, weight * in_loop, len(outer))
    best = int(np.argmax(sums))
    begin, end = np.searchsorted(of, [best, best + 1]).tolist()
    return int(outer[best]), slice(begin, end), int(in_loop.sum())


def _as_fine_as_stable(
    events: ProgramEvents, trial: _Trial, stretches: list[slice]
) -> NDArray[np.int32]:
    """For each call the finest token that is the same at most iterations of the largest loop."""
    inside, turns = [], []
    passed = 0
    weight = events.before + 1.0
    for nest, stretch in zip(trial.nests, stretches, strict=True):
        largest, mine, _ = _largest(nest, weight[stretch])
        if largest:
            turn = _turns(nest, largest, nest.node[mine])
            inside.append(np.arange(stretch.start, stretch.stop)[mine])
            turns.append(turn + passed)
            passed += int(turn[-1]) + 1
    event, turn = np.concatenate(inside), np.concatenate(turns)
    token = trial.tokens[event].astype(np.int64)
    # The k-th of its kind in an iteration is one and the same call.
    rank = times_before(alike(turn, token)[1])
    found = trial.tokens.astype(np.int64)
    size = highest = int(found.max(initial=0)) + 1
    for finer in (events.sized, events.exact):
        stable = _stable(token, rank, finer[event].astype(np.int64), size)
        some = stable[trial.tokens]
        found[some] = highest + finer[some]
        highest = int(found.max()) + 1
    return numbered(found)[1].astype(np.int32)


def times_before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each value came before."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values)) - np.searchsorted(in_order, in_order)
    return rank


def _turns(nest: Repetition, loop: int, node: NDArray[np.int32]) -> NDArray[np.int64]:
    """Iteration of a loop that each of its events is in."""
    children = np.array(nest.children[loop])
    child = np.searchsorted(children, node, side="right") - 1
    back = child[1:] < child[:-1]
    again = (child[1:] == child[:-1]) & (nest.token[children[child[1:]]] >= 0)
    return np.concatenate([[0], np.cumsum(back | again)])


def _stable(
    token: NDArray[np.int64], rank: NDArray[np.int64], finer: NDArray[np.int64], size: int
) -> NDArray[np.bool_]:
    """Whether the k-th call with a token in an iteration mostly has one and the same finer one."""
    kinds, which = alike(token, rank, finer)
    often = np.bincount(which)
    call = alike(kinds[:, 0].copy(), kinds[:, 1].copy())[1]
    most = np.zeros(call.max() + 1, np.int64)
    np.maximum.at(most, call, often)
    of_call = np.zeros(len(most), np.int64)
    of_call[call] = kinds[:, 0]
    same = np.bincount(of_call, most, size)
    return same >= _STABLE * np.bincount(token, minlength=size)
