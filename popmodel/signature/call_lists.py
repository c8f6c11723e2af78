"""A program of which lists of calls can be written: equal sizes, and requests that stay inside.

A list of calls in a signature has one size for each call, and completes what it begins. Where the
run does more than that, the program changes as little as it must, and it is said: messages whose
size varies from execution to execution get their mean size; a receive that is posted in an earlier
list is posted where it ends; a message that is sent in one list and received in another is received
where the first one ends; a send that is completed in another list becomes a blocking one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op
from popmodel.units import count, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.simulator.program import Messages
    from popmodel.structure.structure import Structure


_NOTHING = -1


def segments(structure: Structure) -> NDArray[np.int64]:
    """Number the stretches of point-to-point calls of a leaf: int64[places]; -1 for other places.

    Collectives and regions end them.
    """
    kind = np.zeros(len(structure.places), dtype=bool)  # whether there is more than point to point
    program, events = structure.program, structure.events
    operation = np.flatnonzero(program.kind >= Op.COLLECTIVE)
    event = np.searchsorted(events.first, operation, side="right") - 1
    kind[structure.place[event]] = True
    kind[structure.place[events.is_region]] = True
    found = np.full(len(kind), _NOTHING, dtype=np.int64)
    number = 0
    for leaf in _leaves(structure):
        number += 1
        for place in leaf:
            if kind[place]:
                number += 1
            else:
                found[place] = number
    return found


def _leaves(structure: Structure) -> list[tuple[int, ...]]:
    from popmodel.structure.nest import Leaf

    found: list[tuple[int, ...]] = []
    nodes = list(structure.nest)[::-1]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Leaf):
            found.append(node.places)
        else:
            nodes.extend(node.body[::-1])
    return found


@dataclass(frozen=True)
class Listable:
    """A run of which lists of calls can be written."""

    structure: Structure  # With the changed program
    # bool[M]: Messages that are received where the list that sends them ends.
    late: NDArray[np.bool_]
    notes: tuple[str, ...]  # What was changed


def listable(structure: Structure) -> Listable:
    """Change the program of a run as little as its lists of calls need it."""
    notes: list[str] = []
    messages = len(structure.program.messages)
    sized, varying = _mean_sizes(structure)
    if varying:
        notes.append(
            f"{plural(varying, 'message')} of {count(messages)} "
            "differ in size from execution to execution: the mean of each call is kept"
        )
    where = _Where.of(structure)
    lost, late, apart, early = where.lost(), where.late(), where.apart(), where.early()
    for found, what in (
        (lost, "across the edge of the window: left out"),
        (early, "with receives posted in an earlier part of the program: posted where they end"),
        (late, "received in another part of the program than sent: received where that one ends"),
        (apart, "sent in one part of the program and completed in another: sent blocking"),
    ):
        if found.any():
            notes.append(f"{plural(int(np.count_nonzero(found)), 'message')} {what}")
    structure = replace(structure, program=replace(structure.program, messages=sized))
    if lost.any() or late.any() or apart.any() or early.any():
        structure = _changed(structure, lost, late, apart, early)
    return Listable(structure, late, tuple(notes))


@dataclass(frozen=True)
class _Where:
    """Stretches in which a message is sent, a nonblocking send begun and completed, and received.

    Each is a number of stretch and execution, -1 for none: int64[M].
    """

    sent: NDArray[np.int64]
    begun: NDArray[np.int64]
    completed: NDArray[np.int64]
    posted: NDArray[np.int64]
    received: NDArray[np.int64]

    @classmethod
    def of(cls, structure: Structure) -> _Where:
        segment = segments(structure)
        executions = int(structure.execution.max(initial=0)) + 1

        def stretch(*kinds: Op) -> NDArray[np.int64]:
            event = _event_of(structure, kinds)
            number = np.full(len(event), _NOTHING, dtype=np.int64)
            known = event >= 0
            there = event[known]
            number[known] = segment[structure.place[there]] * executions
            number[known] += structure.execution[there]
            return number

        return cls(
            stretch(Op.SEND, Op.ISEND),
            stretch(Op.ISEND),
            stretch(Op.WAIT_SEND),
            stretch(Op.POST, Op.RECEIVE),
            stretch(Op.WAIT_RECEIVE, Op.RECEIVE),
        )

    def lost(self) -> NDArray[np.bool_]:
        """Messages of which the program holds one end only."""
        found: NDArray[np.bool_] = (self.sent < 0) != (self.posted < 0)
        return found

    def late(self) -> NDArray[np.bool_]:
        """Messages that are received elsewhere."""
        both = (self.sent >= 0) & (self.posted >= 0)
        found: NDArray[np.bool_] = both & (self.sent != self.received)
        return found

    def early(self) -> NDArray[np.bool_]:
        """Messages whose receives are posted elsewhere, but completed where they are sent."""
        both = (self.sent >= 0) & (self.sent == self.received)
        found: NDArray[np.bool_] = both & (self.posted != self.sent)
        return found

    def apart(self) -> NDArray[np.bool_]:
        """Messages whose nonblocking sends are completed elsewhere, or never."""
        found: NDArray[np.bool_] = (self.begun >= 0) & (self.begun != self.completed)
        return found


def _event_of(structure: Structure, kinds: tuple[Op, ...]) -> NDArray[np.int64]:
    """The event in which each message has an operation of some kinds; -1 for none."""
    program = structure.program
    operation = np.flatnonzero(np.isin(program.kind, kinds))
    found = np.full(len(program.messages), _NOTHING, dtype=np.int64)
    event = np.searchsorted(structure.events.first, operation, side="right") - 1
    found[program.target[operation]] = event
    return found


def _mean_sizes(structure: Structure) -> tuple[Messages, int]:
    """Sizes of messages as their means over the executions of the call that sends them."""
    messages = structure.program.messages
    sent = _event_of(structure, (Op.SEND, Op.ISEND))
    known = np.flatnonzero(sent >= 0)
    if not len(known):
        return messages, 0
    order = known[np.lexsort((known, sent[known]))]
    event = sent[order]
    first = np.concatenate([[True], event[1:] != event[:-1]])
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - start  # which message of its event
    columns = structure.place[event], messages.sender[order], messages.receiver[order], turn
    _, group = np.unique(np.stack(columns), axis=1, return_inverse=True)
    group = group.reshape(-1)
    total = np.bincount(group, messages.size[order].astype(np.float64))
    mean = np.round(total / np.bincount(group)).astype(np.int64)[group]
    size = messages.size.copy()
    size[order] = mean
    return replace(messages, size=size), int(np.count_nonzero(size != messages.size))


def _changed(
    structure: Structure,
    lost: NDArray[np.bool_],
    late: NDArray[np.bool_],
    apart: NDArray[np.bool_],
    early: NDArray[np.bool_],
) -> Structure:
    program, events = structure.program, structure.events
    rows = np.flatnonzero(program.kind < Op.COLLECTIVE)
    message, kind = program.target[rows], program.kind[rows]
    is_send = np.isin(kind, (Op.SEND, Op.ISEND, Op.WAIT_SEND))
    gone = lost[message] | (late[message] & ~is_send) | (apart[message] & (kind == Op.WAIT_SEND))
    gone |= early[message] & (kind == Op.POST)
    changed_kind = program.kind.copy()
    changed_kind[rows[early[message] & (kind == Op.WAIT_RECEIVE)]] = Op.RECEIVE
    changed_kind[rows[apart[message] & (kind == Op.ISEND)]] = Op.SEND
    kept = np.ones(program.operations, dtype=bool)
    kept[rows[gone]] = False
    passed = np.concatenate([[0], np.cumsum(kept)])
    changed = replace(
        program,
        offsets=passed[program.offsets],
        kind=changed_kind[kept],
        target=program.target[kept],
        burst=_moved(program, kept),
        call=program.call[kept],
    )
    return replace(structure, program=changed, events=replace(events, first=passed[events.first]))


def _moved(program: Program, kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Bursts of the operations that stay, with those of the left-out ones before them."""
    spent = np.concatenate([[0.0], np.cumsum(program.burst.astype(np.float64))])
    rows = np.flatnonzero(kept)
    process = np.searchsorted(program.offsets, rows, side="right") - 1
    before = np.concatenate([[0], rows[:-1] + 1])
    before = np.maximum(before, program.offsets[process])
    return np.asarray(spent[rows + 1] - spent[before], dtype=np.float64)


def open_before(structure: Structure) -> NDArray[np.bool_]:
    """Whether a request is open before a place, or a message on its way: bool[places].

    A list must not be cut there: it would hold one end of a message only.
    """
    index = np.zeros(len(structure.places), dtype=np.int64)
    total = 0
    for leaf in _leaves(structure):
        index[list(leaf)] = np.arange(total, total + len(leaf))
        total += len(leaf) + 1
    change = np.zeros(total + 2, dtype=np.int64)
    for first, last in (
        ((Op.POST,), (Op.WAIT_RECEIVE,)),
        ((Op.ISEND,), (Op.WAIT_SEND,)),
        ((Op.SEND, Op.ISEND), (Op.POST, Op.RECEIVE)),
        ((Op.SEND, Op.ISEND), (Op.WAIT_RECEIVE, Op.RECEIVE)),
    ):
        begin, end = _event_of(structure, first), _event_of(structure, last)
        both = (begin >= 0) & (end >= 0)
        one, two = index[structure.place[begin[both]]], index[structure.place[end[both]]]
        np.add.at(change, np.minimum(one, two) + 1, 1)
        np.add.at(change, np.maximum(one, two) + 1, -1)
    found: NDArray[np.bool_] = (np.cumsum(change) > 0)[index]
    return found
