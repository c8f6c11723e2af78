"""The loop nest that all sequences have in common, and where each event stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.simulator.program import Op
from popmodel.structure.cut_iterations import with_cut_iterations
from popmodel.structure.flows import ends_of, flows_of
from popmodel.structure.merge import MergeNode, merged, tree_of
from popmodel.structure.nest import FoundLoop, Leaf, LoopPlace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.nest import Nest
    from popmodel.structure.repetition import RepeatedCalls, Repetition


_MOST = 3_000
"""Loops and calls of a sequence that are told one by one; half of those of all sequences."""


class Common(NamedTuple):
    """A nest common to all sequences."""

    nest: Nest
    places: tuple[LoopPlace, ...]
    # int32[E]: Place of each event, and how many times it was passed before.
    place: NDArray[np.int32]
    execution: NDArray[np.int32]


def common_nest(program: Program, events: ProgramEvents, repeats: RepeatedCalls) -> Common | None:
    """What of the loops of each sequence is the same; None where they have too much of their own.

    Bodies are compared pair by pair: it takes too long where calls hardly ever repeat.
    """
    if max((len(each.token) for each in repeats.nests), default=0) > _MOST:
        return None
    receives = np.zeros(len(events), bool)
    acts = np.diff(events.first) > 0
    receives[acts] = program.kind[events.first[:-1][acts]] == Op.RECEIVE
    firsts = [_firsts(*each) for each in zip(repeats.nests, repeats.first, strict=True)]
    ends = ends_of(program, events)
    flows = flows_of(events, repeats, ends)
    trees = [
        tree_of(each, _tokens(events, receives, event), flow.tolist(), group)
        for group, (each, event, flow) in enumerate(zip(repeats.nests, firsts, flows, strict=True))
    ]
    order = sorted(range(len(trees)), key=lambda group: -trees[group].size())
    root = trees[order[0]]
    for group in order[1:]:
        root = merged(root, trees[group])
        if root.size() > 2 * _MOST:
            return None
    return with_cut_iterations(events, ends, _Numbering(events, repeats, firsts).of(root))


def _firsts(found: Repetition, begin: int) -> NDArray[np.int64]:
    """The first event of each node of a sequence that begins with this one; 0 of loops."""
    event = np.zeros(len(found.token), np.int64)
    event[found.node[::-1]] = np.arange(begin, begin + len(found.node))[::-1]
    return event


def _tokens(
    events: ProgramEvents, receives: NDArray[np.bool_], event: NDArray[np.int64]
) -> tuple[list[int], list[int], list[int], list[bool]]:
    """Tokens of each node, and whether it is a blocking receive: those of its first event."""
    if not len(events):
        return [0], [0], [0], [False]
    coarse, tagged, exact = (
        column[event].tolist() for column in (events.coarse, events.tagged, events.exact)
    )
    return coarse, tagged, exact, receives[event].tolist()


class _Numbering:
    """Numbers places, and counts their executions."""

    def __init__(
        self, events: ProgramEvents, repeats: RepeatedCalls, firsts: list[NDArray[np.int64]]
    ) -> None:
        self._events, self._found, self._first = events, repeats.nests, firsts
        self._of_sequence = repeats.group
        self._places: list[LoopPlace] = []
        self._leaf = 0
        self._place = [np.zeros(len(each.token), np.int32) for each in repeats.nests]
        # Iterations of the loop around each node, in terms of the common nest.
        self._turns: list[dict[int, NDArray[np.int64]]] = [{} for _ in repeats.nests]

    def of(self, root: MergeNode) -> Common:
        """The numbered nest."""
        turns = {group: np.zeros(1, np.int64) for group in root.local}
        nest = self._body(root, turns, 1)
        place = np.empty(len(self._events), np.int32)
        execution = np.empty(len(self._events), np.int32)
        bounds = self._events.offsets.tolist()
        for group, begin, end in zip(self._of_sequence, bounds[:-1], bounds[1:], strict=True):
            each = self._found[group]
            place[begin:end] = self._place[group][each.node]
            execution[begin:end] = self._executions(group)
        return Common(nest, tuple(self._places), place, execution)

    def _executions(self, group: int) -> NDArray[np.int64]:
        """Execution of each event of a group, node by node."""
        each = self._found[group]
        execution = np.empty(len(each.node), np.int64)
        order = np.argsort(each.node, kind="stable")
        bounds = np.searchsorted(each.node[order], np.arange(len(each.token) + 1)).tolist()
        for node, turns in self._turns[group].items():
            rows = order[bounds[node] : bounds[node + 1]]
            execution[rows] = turns[each.iteration[rows]]
        return execution

    def _body(self, node: MergeNode, turns: dict[int, NDArray[np.int64]], executions: int) -> Nest:
        """The body of a node, executed so many times; `turns` are those of each group."""
        body: list[FoundLoop | Leaf] = []
        places: list[int] = []
        for child in node.children:
            if child.is_loop:
                self._close(places, body)
                body.append(self._loop(child, turns, executions))
            else:
                places.append(self._add(child, turns))
        self._close(places, body)
        return tuple(body)

    def _close(self, places: list[int], body: list[FoundLoop | Leaf]) -> None:
        if places:
            body.append(Leaf(tuple(places)))
            places.clear()
            self._leaf += 1

    def _add(self, node: MergeNode, turns: dict[int, NDArray[np.int64]]) -> int:
        number = len(self._places)
        for group, mine in node.local.items():
            self._place[group][mine] = number
            self._turns[group][mine] = turns[group]
        group, mine = next(iter(node.local.items()))
        event = int(self._first[group][mine])
        events = self._events
        self._places.append(
            LoopPlace(
                number,
                events.names[events.name[event]],
                self._leaf,
                bool(events.is_region[event]),
                events.insides[events.inside[event]],
            )
        )
        return number

    def _loop(
        self, node: MergeNode, turns: dict[int, NDArray[np.int64]], executions: int
    ) -> FoundLoop:
        counts = np.zeros(executions, np.int64)
        mine = {
            group: self._found[group].counts_of(local).astype(np.int64)
            for group, local in node.local.items()
        }
        for group, times in mine.items():
            np.maximum.at(counts, turns[group], times)
        before = np.cumsum(counts) - counts
        inner = {
            group: np.repeat(before[turns[group]] - (np.cumsum(times) - times), times)
            + np.arange(times.sum())
            for group, times in mine.items()
        }
        body = self._body(node, inner, int(counts.sum()))
        return FoundLoop(float(counts.mean()), tuple(counts.tolist()), body)
