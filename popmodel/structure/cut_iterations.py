"""The last iteration of processes that were cut in it.

Where nothing synchronises all processes, the end of a window cuts some of them in an iteration that
others completed. What is left of it there is no repetition, and would be calls of its own behind
the loop. It is that iteration if it begins as the one before did, and if its messages are
exchanged with the same iteration of others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.structure.structure import FoundLoop, Leaf, grouped, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from popmodel.structure.common_nest import Common
    from popmodel.structure.program_events import ProgramEvents
    from popmodel.structure.structure import Nest

    Ends = NDArray[np.int64]  # int64[2, M]: events in which messages are sent, and received


def with_cut_iterations(events: ProgramEvents, ends: Ends, common: Common) -> Common:
    """The same nest with cut iterations where they belong; ``ends`` are events of messages."""
    number, order = 0, np.argsort(common.place, kind="stable")
    while number < len(known := list(_loops(common.nest))):
        found = _with_those_of(known[number], events, ends, common, order)
        if found is not common:
            common, order = found, np.argsort(found.place, kind="stable")
        number += 1
    return common


def _loops(nest: Nest) -> Iterator[FoundLoop]:
    """All loops, outer ones before those inside."""
    for node in nest:
        if isinstance(node, FoundLoop):
            yield node
            yield from _loops(node.body)


def _with_those_of(
    loop: FoundLoop,
    events: ProgramEvents,
    ends: Ends,
    common: Common,
    order: NDArray[np.int64],
) -> Common:
    """The same where what stands behind one loop is in it, if that leaves no loop behind."""
    first: dict[int, NDArray[np.int64]] = {}
    until = loop.first[1:]
    _firsts(loop.body, np.arange(until[-1] + 1), first)
    low, high = min(first), max(first)
    bounds = np.searchsorted(common.place[order], np.arange(low, high + 2)).tolist()
    turn = np.empty(bounds[-1] - bounds[0], np.int64)
    for place, (begin, end) in enumerate(pairwise(bounds), low):
        execution = common.execution[order[begin:end]]
        found = np.searchsorted(first[place], execution, side="right") - 1
        turn[begin - bounds[0] : end - bounds[0]] = found
    rows = order[bounds[0] : bounds[-1]]
    of_program = np.argsort(rows)
    rows, turn = rows[of_program], turn[of_program]
    tails = _tails(until, events, rows, turn)
    if not tails:
        return common
    turns = np.full(len(events), -1, np.int64)
    turns[rows] = turn
    tails = _that_fit(tails, ends, turns)
    return _moved(common, first, turns, tails) if tails else common


def _firsts(body: Nest, begins: NDArray[np.int64], found: dict[int, NDArray[np.int64]]) -> None:
    """The first execution of each place in each iteration of a loop, and how many there are.

    ``begins`` are those of the body that the places are in.
    """
    for node in body:
        if isinstance(node, Leaf):
            found.update(dict.fromkeys(node.places, begins))
        else:
            _firsts(node.body, node.first[begins], found)


def _tails(
    until: NDArray[np.int64],
    events: ProgramEvents,
    rows: NDArray[np.int64],
    turn: NDArray[np.int64],
) -> dict[int, NDArray[np.int64]]:
    """What ends a sequence like the begin of its last iteration, though others have another one.

    The loop has these events (``rows``, in order, each in an iteration, ``turn``) and ends after so
    many iterations (``until``, at each of its executions).
    The first event of each such tail, and those of that iteration that its events are like.
    """
    found: dict[int, NDArray[np.int64]] = {}
    if not len(rows):
        return found
    sequence = np.searchsorted(events.offsets, rows, side="right") - 1
    last = np.append(np.flatnonzero(np.diff(sequence)), len(rows) - 1)
    end = events.offsets[sequence[last] + 1]
    cut = (end > rows[last] + 1) & ~np.isin(turn[last] + 1, until)
    begin = 0
    for at, stop, is_cut in zip(last.tolist(), end.tolist(), cut.tolist(), strict=True):
        if is_cut:
            like = rows[begin : at + 1][turn[begin : at + 1] == turn[at]]
            tail = int(rows[at]) + 1
            length = stop - tail
            if length <= len(like) and np.array_equal(
                events.exact[tail:stop], events.exact[like[:length]]
            ):
                found[tail] = like[:length]
        begin = at + 1
    return found


def _that_fit(
    tails: dict[int, NDArray[np.int64]], ends: Ends, turn: NDArray[np.int64]
) -> dict[int, NDArray[np.int64]]:
    """The tails that have messages, all of them with the iteration that they are to be."""
    tail = np.full(len(turn), -1, np.int64)
    moved = turn.copy()
    for begin, like in tails.items():
        tail[begin : begin + len(like)] = begin
        moved[begin : begin + len(like)] = turn[like[0]] + 1
    sent, received = ends
    some = (tail[sent] >= 0) | (tail[received] >= 0)
    both = np.stack([sent[some], received[some]])
    wrong = set(tails) - set(tail[both].ravel().tolist())
    while True:
        for begin in wrong:
            moved[begin : begin + len(tails[begin])] = -1
        tails = {begin: like for begin, like in tails.items() if begin not in wrong}
        differ = moved[both[0]] != moved[both[1]]
        wrong = set(tail[both[:, differ]].ravel().tolist()) & set(tails)
        if not wrong:
            return tails


def _moved(
    common: Common,
    first: dict[int, NDArray[np.int64]],
    turn: NDArray[np.int64],
    tails: dict[int, NDArray[np.int64]],
) -> Common:
    """Events of tails at the places of the loop, and the nest without what is empty then."""
    place, execution = common.place.copy(), common.execution.copy()
    for tail, like in tails.items():
        for event, model in enumerate(like.tolist(), tail):
            begins, mine = first[int(common.place[model])], turn[model]
            place[event] = common.place[model]
            execution[event] = begins[mine + 1] + common.execution[model] - begins[mine]
            if execution[event] >= begins[mine + 2]:
                return common  # others repeat less in this iteration
    left = np.bincount(place, minlength=common.places) > 0
    gone = np.bincount(common.place[place != common.place], minlength=len(left)) > 0
    for loop in _loops(common.nest):
        held = [number for leaf in leaves(loop.body) for number in leaf.places]
        if gone[held].any() and left[held].any():
            return common  # how often it is repeated is not known any more
    number = (np.cumsum(left) - 1).astype(np.int32)

    def without_empty(nest: Nest) -> Nest:
        body: list[int | FoundLoop] = []
        for node in nest:
            if isinstance(node, Leaf):
                body += [int(number[each]) for each in node.places if left[each]]
            elif inside := without_empty(node.body):
                body.append(FoundLoop(node.counts, inside))
        return grouped(body)

    return common._replace(
        nest=without_empty(common.nest), place=number[place], execution=execution
    )
