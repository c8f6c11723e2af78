"""Places whose messages belong together: what is sent among them is received and completed there.

Between two such groups no message is under way and no request is open on any process, at no
execution; so each can be understood, and written down, on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import alike
from popmodel.base.values import dataclass
from popmodel.simulator.program import Op
from popmodel.structure.pattern_kinds import as_messages, extents_of, joined, readings
from popmodel.structure.structure import FoundLoop, loops_around

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure

_ENDS = (
    (Op.SEND, Op.ISEND),
    (Op.RECEIVE, Op.POST),
    (Op.WAIT_SEND,),
    (Op.WAIT_RECEIVE,),
)


class GroupMessages(NamedTuple):
    """Executions of a group with the same messages."""

    executions: NDArray[np.int64]  # int64[k]: Which they are
    messages: NDArray[np.void]  # `MESSAGES`[m]: Of each of them, in order


@dataclass(frozen=True)
class MessageGroup:
    """Places whose messages belong together."""

    places: tuple[int, ...]  # In order; those of collectives and regions among them are left out
    leaf: int | None  # The leaf that holds them all; None if they are of several
    passes: int  # How often they are passed
    # Executions by their messages, the most frequent first. Executions without any are left out.
    classes: tuple[GroupMessages, ...]
    chained: bool  # Whether processes send what depends on a message of the same execution


def message_groups(structure: Structure, processes: int) -> list[MessageGroup]:
    """Group places; what only open requests hold together is divided if no pattern generates it."""
    smaller: dict[int, MessageGroup] = {}
    for group in closed_groups(structure, requests=False):
        smaller |= dict.fromkeys(group.places, group)
    found: list[MessageGroup] = []
    for group in closed_groups(structure):
        inside = list({id(part): part for p in group.places if (part := smaller.get(p))}.values())
        found += inside if len(inside) > 1 and not _is_pattern(group, processes) else [group]
    return _all_pairs(found, processes)


def _is_pattern(group: MessageGroup, processes: int) -> bool:
    """Whether a group is one pattern, whose messages are there once."""
    for each in group.classes:
        first = readings(each.messages, processes, tuple(extents_of(processes)))[0]
        if first.kind == "list" or not first.even or "times" in first.facts:
            return False
    return True


def _all_pairs(groups: Sequence[MessageGroup], processes: int) -> list[MessageGroup]:
    """Make one group of exchanges that follow each other and together are those of all pairs."""
    found: list[MessageGroup] = []
    run: list[MessageGroup] = []
    for group, following in zip(groups, (*groups[1:], None), strict=False):
        run.append(group)
        if following is not None and _follows(group, following):
            continue
        if len(run) >= processes - 1 >= 2:
            messages = joined(*(each.classes[0].messages for each in run))
            if readings(messages, processes, ())[0].kind == "pairwise":
                places = tuple(place for each in run for place in each.places)
                classes = (GroupMessages(group.classes[0].executions, messages),)
                run = [replace(run[0], places=places, classes=classes, chained=False)]
        found += run
        run = []
    return found


def _follows(group: MessageGroup, other: MessageGroup) -> bool:
    """Whether a group stands right behind another and is carried out as often."""
    return (
        group.leaf is not None
        and group.leaf == other.leaf
        and group.places[-1] + 1 == other.places[0]
        and len(group.classes) == len(other.classes) == 1
        and len(group.classes[0].messages) == len(other.classes[0].messages)
        and np.array_equal(group.classes[0].executions, other.classes[0].executions)
    )


def closed_groups(structure: Structure, *, requests: bool = True) -> list[MessageGroup]:
    """Group the places of point-to-point calls that no message, and no open request, leaves."""
    if not len(structure.program.messages):
        return []
    places = len(structure.places)
    ends, event = _ends(structure)
    ends = ends if requests else ends[:2]
    known = (ends >= 0).any(axis=0)
    crossed = np.zeros(places + 1, np.int64)
    np.add.at(crossed, np.where(ends >= 0, ends, places).min(axis=0)[known], 1)
    np.add.at(crossed, ends.max(axis=0)[known], -1)
    is_held = np.cumsum(crossed)[:-1] > 0  # whether messages are under way behind each place
    speaks = np.zeros(places, bool)
    speaks[np.unique(ends[ends >= 0])] = True
    around = loops_around(structure.nest)
    chains = _chains(structure, event)
    sent_at = np.where(ends[0] >= 0, ends[0], ends[1])
    order = np.argsort(sent_at, kind="stable")
    bounds = np.searchsorted(sent_at[order], np.arange(places + 1))
    found: list[MessageGroup] = []
    group: list[int] = []
    for place in range(places):
        if speaks[place]:
            group.append(place)
        if group and not is_held[place]:
            rows = [order[bounds[each] : bounds[each + 1]] for each in group]
            found.append(_group(structure, group, around, rows, event, chains))
            group = []
    return found


def _ends(structure: Structure) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of the send, the post and both waits of each message, and the event of its send."""
    ends = [structure.events.of_messages(structure.program, *kinds) for kinds in _ENDS]
    places = [np.where(event >= 0, structure.place[event], -1) for event in ends]
    return np.stack(places), np.where(ends[0] >= 0, ends[0], ends[1])


def _group(
    structure: Structure,
    places: Sequence[int],
    around: Sequence[tuple[FoundLoop, ...]],
    rows: Sequence[NDArray[np.int64]],
    event: NDArray[np.int64],
    chains: dict[int, set[int]],
) -> MessageGroup:
    """Some places with the messages that are sent at each of them."""
    paths = [around[place] for place in places]
    common = 0  # loops around all of them
    while all(len(path) > common and path[common] is paths[0][common] for path in paths):
        common += 1
    execution = []
    for path, mine in zip(paths, rows, strict=True):
        at = structure.execution[event[mine]].astype(np.int64)
        for loop in reversed(path[common:]):
            at = np.searchsorted(loop.first, at, side="right") - 1
        execution.append(at)
    leaves = {structure.places[place].leaf for place in places}
    return MessageGroup(
        places=tuple(places),
        leaf=leaves.pop() if len(leaves) == 1 else None,
        passes=int(paths[0][common - 1].first[-1]) if common else 1,
        classes=_classes(structure, np.concatenate(rows), np.concatenate(execution)),
        chained=any(not chains[place].isdisjoint(places) for place in places if place in chains),
    )


def _classes(
    structure: Structure, rows: NDArray[np.int64], execution: NDArray[np.int64]
) -> tuple[GroupMessages, ...]:
    """Group executions by their messages."""
    every = structure.program.messages
    order = np.lexsort((every.size[rows], every.receiver[rows], every.sender[rows], execution))
    rows, execution = rows[order], execution[order]
    messages = as_messages(every.sender[rows], every.receiver[rows], every.size[rows])
    bounds = [*np.flatnonzero(np.diff(execution, prepend=-1)).tolist(), len(execution)]
    equal: dict[bytes, list[int]] = {}  # where executions with the same messages begin
    for begin, end in pairwise(bounds):
        equal.setdefault(messages[begin:end].tobytes(), []).append(begin)
    ends = dict(pairwise(bounds))
    return tuple(
        GroupMessages(execution[starts], messages[starts[0] : ends[starts[0]]])
        for starts in sorted(equal.values(), key=lambda starts: -len(starts))
    )


def _chains(structure: Structure, event: NDArray[np.int64]) -> dict[int, set[int]]:
    """Where a process sends next after each place where it received, at the same execution.

    What it sends may depend on what it has received: the sign of a pipeline.
    """
    program, events = structure.program, structure.events
    done = np.isin(program.kind, (Op.RECEIVE, Op.WAIT_RECEIVE))
    of = events.of_operation
    receives = np.zeros(len(events), bool)
    receives[of[done]] = True
    sends = np.zeros(len(events), bool)
    sends[event[event >= 0]] = True
    sequence = events.sequence
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
    pairs, _ = alike(there[linked].astype(np.int64), here[linked].astype(np.int64))
    for received, sent in pairs.tolist():
        found.setdefault(received, set()).add(sent)
    return found
