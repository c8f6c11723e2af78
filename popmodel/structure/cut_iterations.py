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

from popmodel.structure.nest import FoundLoop, Leaf, LoopPlace, leaves, loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.common import Common
    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.flows import Ends
    from popmodel.structure.nest import Nest


def with_cut_iterations(events: ProgramEvents, ends: Ends, common: Common) -> Common:
    """The same nest with cut iterations where they belong."""
    number, known, sorted_events = 0, list(loops(common.nest)), _by_place(common)
    while number < len(known):
        found = _with_those_of(known[number], events, ends, common, *sorted_events)
        if found is not common:
            common, known, sorted_events = found, list(loops(found.nest)), _by_place(found)
        number += 1
    return common


def _by_place(common: Common) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Events by place, and the places of these."""
    order = np.argsort(common.place, kind="stable")
    return order, common.place[order]


def _with_those_of(
    loop: FoundLoop,
    events: ProgramEvents,
    ends: Ends,
    common: Common,
    order: NDArray[np.int64],
    places: NDArray[np.int32],
) -> Common:
    """The same where what stands behind one loop is in it, if that leaves no loop behind."""
    first: dict[int, NDArray[np.int64]] = {}
    until = np.cumsum(np.array(loop.counts, np.int64))
    _firsts(loop.body, np.arange(until[-1] + 1), first)
    low, high = min(first), max(first)
    bounds = np.searchsorted(places, np.arange(low, high + 2)).tolist()
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
    for each in body:
        if isinstance(each, Leaf):
            found.update(dict.fromkeys(each.places, begins))
        else:
            passed = np.concatenate([[0], np.cumsum(np.array(each.counts, np.int64))])
            _firsts(each.body, passed[begins], found)


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
    some = (tail[ends.sent] >= 0) | (tail[ends.received] >= 0)
    both = np.stack([ends.sent[some], ends.received[some]])
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
    left = np.bincount(place, minlength=len(common.places)) > 0
    gone = np.bincount(common.place[place != common.place], minlength=len(left)) > 0
    for each in loops(common.nest):
        held = [number for leaf in leaves(each.body) for number in leaf.places]
        if gone[held].any() and left[held].any():
            return common  # how often it is repeated is not known any more
    return _without_empty(common._replace(place=place, execution=execution), left)


def _without_empty(common: Common, left: NDArray[np.bool_]) -> Common:
    """The nest with those places only that are left."""
    places: list[LoopPlace] = []
    number = (np.cumsum(left) - 1).astype(np.int32)
    leaf = -1

    def of(nest: Nest) -> Nest:
        nonlocal leaf
        body: list[FoundLoop | Leaf] = []
        for each in nest:
            if isinstance(each, FoundLoop):
                inside = of(each.body)
                body += [FoundLoop(each.count, each.counts, inside)] if inside else []
                continue
            mine = [common.places[place] for place in each.places if left[place]]
            if not mine:
                continue
            if body and isinstance(body[-1], Leaf):
                body[-1] = Leaf((*body[-1].places, *number[[p.number for p in mine]].tolist()))
            else:
                leaf += 1
                body.append(Leaf(tuple(number[[p.number for p in mine]].tolist())))
            places.extend(
                LoopPlace(len(places) + i, p.name, leaf, p.is_region, p.inside)
                for i, p in enumerate(mine)
            )
        return tuple(body)

    nest = of(common.nest)
    return common._replace(nest=nest, places=tuple(places), place=number[common.place])
