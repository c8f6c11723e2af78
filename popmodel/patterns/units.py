"""Places whose messages belong together: what is sent among them is received and completed there.

Between two such groups no message is under way and no request is open on any process, at no
execution; so each can be understood, and written down, on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.patterns.grid import GridMessages
from popmodel.patterns.table import iterations
from popmodel.simulator.program import Op
from popmodel.structure.nest import FoundLoop
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.nest import Leaf
    from popmodel.structure.structure import Structure

_ENDS = (
    (Op.SEND, Op.ISEND),
    (Op.RECEIVE, Op.POST),
    (Op.WAIT_SEND,),
    (Op.WAIT_RECEIVE,),
)


@dataclass(frozen=True)
class Class:
    """Executions of a unit with the same messages."""

    executions: NDArray[np.int64]  # int64[k]: Which they are
    messages: GridMessages  # Of each of them


@dataclass(frozen=True)
class PatternUnit:
    """Places whose messages belong together."""

    places: tuple[int, ...]  # In order; those of collectives and regions among them are left out
    leaf: int | None  # The leaf that holds them all; None if they are of several
    passes: int  # How often they are passed
    # Executions by their messages, the most frequent first. Executions without any are left out.
    classes: tuple[Class, ...]
    chained: bool  # Whether processes send what depends on a message of the same execution
    # Whether all executions are taken as one, because messages are sent in one and received in
    # another.
    at_once: bool = False

    @property
    def spoken(self) -> int:
        """Executions with messages."""
        return sum(len(each.executions) for each in self.classes)

    @property
    def messages(self) -> int:
        """Of all executions."""
        return sum(len(each.executions) * len(each.messages) for each in self.classes)

    @property
    def bytes(self) -> int:
        """Of all executions."""
        return sum(len(each.executions) * int(each.messages.size.sum()) for each in self.classes)


def at_once(unit: PatternUnit) -> PatternUnit:
    """All executions of a unit as one."""
    sums = [
        GridMessages(
            *(np.tile(column, len(each.executions)) for column in vars(each.messages).values())
        )
        for each in unit.classes
    ]
    columns = (np.concatenate([getattr(one, name) for one in sums]) for name in vars(sums[0]))
    whole = Class(np.zeros(1, np.int64), GridMessages.of(*columns))
    return replace(unit, classes=(whole,), passes=1, at_once=True)


def loop_paths(structure: Structure) -> list[list[NDArray[np.int64]]]:
    """For each place the loops around it, outermost first: `iterations` of each."""
    found: list[list[NDArray[np.int64]]] = [[] for _ in structure.places]

    def walk(
        nodes: Sequence[FoundLoop | Leaf], path: list[NDArray[np.int64]], executions: int
    ) -> None:
        for node in nodes:
            if isinstance(node, FoundLoop):
                first = iterations(node, executions)
                walk(node.body, [*path, first], int(first[-1]))
            else:
                for place in node.places:
                    found[place] = path

    walk(structure.nest, [], 1)
    return found


def units(structure: Structure, *, requests: bool = True) -> list[PatternUnit]:
    """Group the places of point-to-point calls."""
    program = structure.program
    if not len(program.messages):
        return []
    ends, event = _ends(structure)
    ends = ends if requests else ends[:2]
    known = (ends >= 0).any(axis=0)
    first_place = np.where(ends >= 0, ends, len(structure.places)).min(axis=0)[known]
    last_place = ends.max(axis=0)[known]
    crossed = np.zeros(len(structure.places) + 1, np.int64)
    np.add.at(crossed, first_place, 1)
    np.add.at(crossed, last_place, -1)
    holds = np.cumsum(crossed)[:-1] > 0  # messages under way behind each place
    speaks = np.zeros(len(structure.places), bool)
    speaks[np.unique(ends[ends >= 0])] = True
    paths = loop_paths(structure)
    chains = _chains(structure, event)
    sent_at = np.where(ends[0] >= 0, ends[0], ends[1])
    order = np.argsort(sent_at, kind="stable")
    bounds = np.searchsorted(sent_at[order], np.arange(len(structure.places) + 1))
    found: list[PatternUnit] = []
    group: list[int] = []
    for place in range(len(structure.places)):
        if speaks[place]:
            group.append(place)
        if group and not holds[place]:
            found.append(_unit(structure, group, paths, order, bounds, event, chains))
            group = []
    return found


def _ends(structure: Structure) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of the send, the post and both waits of each message, and the event of its send."""
    program, events = structure.program, structure.events
    of = np.searchsorted(events.first, np.arange(program.operations), side="right") - 1
    places = np.full((len(_ENDS), len(program.messages)), -1, np.int64)
    event = np.full(len(program.messages), -1, np.int64)
    for row, kinds in enumerate(_ENDS):
        operations = np.flatnonzero(np.isin(program.kind, kinds))
        rows = program.target[operations]
        places[row, rows] = structure.place[of[operations]]
        if row < 2:
            event[rows] = np.where((row == 1) & (event[rows] >= 0), event[rows], of[operations])
    return places, event


def _unit(
    structure: Structure,
    group: Sequence[int],
    paths: Sequence[list[NDArray[np.int64]]],
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    event: NDArray[np.int64],
    chains: dict[int, set[int]],
) -> PatternUnit:
    leaves = {structure.places[place].leaf for place in group}
    depth = _common([paths[place] for place in group])
    rows, execution = [], []
    for place in group:
        mine = order[bounds[place] : bounds[place + 1]]
        at = structure.execution[event[mine]].astype(np.int64)
        for first in reversed(paths[place][depth:]):
            at = np.searchsorted(first, at, side="right") - 1
        rows.append(mine)
        execution.append(at)
    path = paths[group[0]][:depth]
    return PatternUnit(
        places=tuple(group),
        leaf=leaves.pop() if len(leaves) == 1 else None,
        passes=int(path[-1][-1]) if path else 1,
        classes=_classes(structure, np.concatenate(rows), np.concatenate(execution)),
        chained=any(not chains[place].isdisjoint(group) for place in group if place in chains),
    )


def _common(paths: Sequence[list[NDArray[np.int64]]]) -> int:
    """How many loops are around all of some places."""
    depth = 0
    while all(len(path) > depth and path[depth] is paths[0][depth] for path in paths):
        depth += 1
    return depth


def _classes(
    structure: Structure, rows: NDArray[np.int64], execution: NDArray[np.int64]
) -> tuple[Class, ...]:
    """Group executions by their messages."""
    messages = structure.program.messages
    sender, receiver = (
        each[rows].astype(np.int64) for each in (messages.sender, messages.receiver)
    )
    size = messages.size[rows]
    order = np.lexsort((size, receiver, sender, execution))
    sender, receiver, size = (each[order].astype(np.int64) for each in (sender, receiver, size))
    execution = execution[order]
    starts = np.flatnonzero(np.diff(execution, prepend=-1))
    found: dict[bytes, list[int]] = {}
    content = np.stack([sender, receiver, size], axis=1)
    bounds = [*starts.tolist(), len(execution)]
    where: dict[bytes, int] = {}
    for begin, end in pairwise(bounds):
        key = content[begin:end].tobytes()
        found.setdefault(key, []).append(int(execution[begin]))
        where.setdefault(key, begin)
    classes = []
    for key, executions in sorted(found.items(), key=lambda item: -len(item[1])):
        begin = where[key]
        end = begin + len(key) // (3 * 8)
        part = slice(begin, end)
        classes.append(
            Class(np.array(executions), GridMessages(sender[part], receiver[part], size[part]))
        )
    return tuple(classes)


def _chains(structure: Structure, event: NDArray[np.int64]) -> dict[int, set[int]]:
    """Where a process sends next after each place where it received, at the same execution.

    What it sends may depend on what it has received: the sign of a pipeline.
    """
    program, events = structure.program, structure.events
    done = np.isin(program.kind, (Op.RECEIVE, Op.WAIT_RECEIVE))
    of = np.searchsorted(events.first, np.arange(program.operations), side="right") - 1
    receives = np.zeros(len(events), bool)
    receives[of[done]] = True
    sends = np.zeros(len(events), bool)
    sends[event[event >= 0]] = True
    sequence = np.repeat(np.arange(len(events.offsets) - 1), np.diff(events.offsets))
    leaf = np.array([place.leaf for place in structure.places])
    last = np.maximum.accumulate(np.where(receives, np.arange(len(events)), -1))
    behind = np.concatenate([[-1], last[:-1]])
    at = np.flatnonzero(sends & (behind >= 0))
    before = behind[at]
    here, there = structure.place[at], structure.place[before]
    linked = (
        (sequence[at] == sequence[before])
        & (structure.execution[at] == structure.execution[before])
        & (leaf[here] == leaf[there])
        & (there < here)
    )
    found: dict[int, set[int]] = {}
    for received, sent in np.unique(
        np.stack([there[linked], here[linked]], axis=1), axis=0
    ).tolist():
        found.setdefault(received, set()).add(sent)
    return found
