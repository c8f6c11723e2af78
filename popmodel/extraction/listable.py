"""A program of which lists of calls can be written: equal sizes, and requests that stay inside.

A list of calls in a signature has one size for each call, and completes what it begins. Where the
run does more than that, the program changes as little as it must, and it is said: messages whose
size varies from execution to execution get their mean size; a receive that is posted in one list
and completed in another one becomes a blocking receive where it is completed, a send a blocking
one where it is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op
from popmodel.units import count, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.simulator.program import Messages
    from popmodel.structure.structure import Structure

__all__ = ["listable", "open_before", "segments"]

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


def listable(structure: Structure) -> tuple[Structure, tuple[str, ...]]:
    """Return a structure whose program lists of calls can say, and what was changed."""
    notes: list[str] = []
    sized, varying = _mean_sizes(structure)
    if varying:
        notes.append(
            f"{plural(varying, 'message')} of {count(len(structure.program.messages))} "
            "differ in size from execution to execution: the mean of each call is kept"
        )
    program = replace(structure.program, messages=sized)
    crossing = _crossing(structure)
    number = int(np.count_nonzero(crossing))
    if number:
        notes.append(
            f"{plural(number, 'nonblocking message')} begun in one part of the program and "
            "completed in another: written as blocking calls, receives where they are completed"
        )
    structure = replace(structure, program=program)
    return (_blocking(structure, crossing) if number else structure), tuple(notes)


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


def _crossing(structure: Structure) -> NDArray[np.bool_]:
    """Messages with a request that is completed in another stretch than it is made in."""
    segment = segments(structure)
    posted = _event_of(structure, (Op.POST,))
    waited = _event_of(structure, (Op.WAIT_RECEIVE,))
    sent = _event_of(structure, (Op.ISEND,))
    completed = _event_of(structure, (Op.WAIT_SEND,))
    found = np.zeros(len(posted), dtype=bool)
    for begin, end in ((posted, waited), (sent, completed)):
        some = begin >= 0
        both = some & (end >= 0)
        found |= some & ~both
        place = structure.place
        found[both] |= (segment[place[begin[both]]] != segment[place[end[both]]]) | (
            structure.execution[begin[both]] != structure.execution[end[both]]
        )
    return found


def _blocking(structure: Structure, crossing: NDArray[np.bool_]) -> Structure:
    program, events = structure.program, structure.events
    of_message = program.kind < Op.COLLECTIVE
    mine = np.zeros(program.operations, dtype=bool)
    mine[of_message] = crossing[program.target[of_message]]
    kind = program.kind.copy()
    kind[mine & (kind == Op.ISEND)] = Op.SEND
    kind[mine & (kind == Op.WAIT_RECEIVE)] = Op.RECEIVE
    kept = ~(mine & ((kind == Op.POST) | (kind == Op.WAIT_SEND)))
    passed = np.concatenate([[0], np.cumsum(kept)])
    changed = replace(
        program,
        offsets=passed[program.offsets],
        kind=kind[kept],
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
    """Whether some process has a request open before a place: bool[places]."""
    index = np.zeros(len(structure.places), dtype=np.int64)
    total = 0
    for leaf in _leaves(structure):
        index[list(leaf)] = np.arange(total, total + len(leaf))
        total += len(leaf) + 1
    change = np.zeros(total + 2, dtype=np.int64)
    for first, last in ((Op.POST, Op.WAIT_RECEIVE), (Op.ISEND, Op.WAIT_SEND)):
        begin, end = _event_of(structure, (first,)), _event_of(structure, (last,))
        both = (begin >= 0) & (end >= 0)
        np.add.at(change, index[structure.place[begin[both]]] + 1, 1)
        np.add.at(change, index[structure.place[end[both]]] + 1, -1)
    found: NDArray[np.bool_] = (np.cumsum(change) > 0)[index]
    return found
