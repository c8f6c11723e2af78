"""Stretches of point-to-point calls of which lists can be written: what begins and ends there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op
from popmodel.structure.structure import leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
    for leaf in leaves(structure.nest):
        number += 1
        for place in leaf.places:
            if kind[place]:
                number += 1
            else:
                found[place] = number
    return found


def _event_of(structure: Structure, kinds: tuple[Op, ...]) -> NDArray[np.int64]:
    """The event in which each message has an operation of some kinds; -1 for none."""
    program = structure.program
    operation = np.flatnonzero(np.isin(program.kind, kinds))
    found = np.full(len(program.messages), _NOTHING, dtype=np.int64)
    event = np.searchsorted(structure.events.first, operation, side="right") - 1
    found[program.target[operation]] = event
    return found


def with_mean_sizes(structure: Structure) -> Structure:
    """Give messages their mean size over the executions of the call that sends them."""
    messages = structure.program.messages
    sent = _event_of(structure, (Op.SEND, Op.ISEND))
    known = np.flatnonzero(sent >= 0)
    if not len(known):
        return structure
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
    program = replace(structure.program, messages=replace(messages, size=size))
    return replace(structure, program=program)


def messages_at(structure: Structure, events: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the messages sent in events, which are given for each place, -1 for none."""
    first = structure.events.first
    event = np.concatenate([one.ravel() for one in events])
    event = event[event >= 0]
    count = first[event + 1] - first[event]
    operation = np.repeat(first[event] - (np.cumsum(count) - count), count) + np.arange(count.sum())
    sends = np.isin(structure.program.kind[operation], (Op.SEND, Op.ISEND))
    sent: NDArray[np.int64] = structure.program.target[operation[sends]].astype(np.int64)
    return sent


def within_stretches(structure: Structure) -> tuple[Structure, NDArray[np.bool_]]:
    """Leave out messages that begin in one stretch and end in another: bool[M] says which."""
    program, events = structure.program, structure.events
    segment = segments(structure)
    executions = int(structure.execution.max(initial=0)) + 1

    def stretch(*kinds: Op) -> NDArray[np.int64]:
        event = _event_of(structure, kinds)
        known = event[event >= 0]
        found = np.full(len(event), _NOTHING, dtype=np.int64)
        found[event >= 0] = segment[structure.place[known]] * executions
        found[event >= 0] += structure.execution[known]
        return found

    sent, begun = stretch(Op.SEND, Op.ISEND), stretch(Op.ISEND)
    crossing = (sent != stretch(Op.POST, Op.RECEIVE)) | (begun != stretch(Op.WAIT_SEND))
    crossing |= sent != stretch(Op.WAIT_RECEIVE, Op.RECEIVE)
    rows = np.flatnonzero(program.kind < Op.COLLECTIVE)
    kept = np.ones(program.operations, dtype=bool)
    kept[rows[crossing[program.target[rows]]]] = False
    passed = np.concatenate([[0], np.cumsum(kept)])
    whole = replace(
        program,
        offsets=passed[program.offsets],
        kind=program.kind[kept],
        target=program.target[kept],
        burst=program.burst[kept],  # of what is computed the events know
        call=program.call[kept],
    )
    first = passed[events.first]
    return replace(structure, program=whole, events=replace(events, first=first)), crossing


def open_before(structure: Structure) -> NDArray[np.bool_]:
    """Whether a request is open before a place, or a message on its way: bool[places].

    A list must not be cut there: it would hold one end of a message only.
    """
    index = np.zeros(len(structure.places), dtype=np.int64)
    total = 0
    for leaf in leaves(structure.nest):
        index[list(leaf.places)] = np.arange(total, total + len(leaf.places))
        total += len(leaf.places) + 1
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
