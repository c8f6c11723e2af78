"""What every process does at every place of a structure, execution by execution.

The events of a run become numbers that are equal where a process does the same with the same
partners: so executions are compared without looking at their operations again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op
from popmodel.structure.nest import FoundLoop
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.nest import Leaf
    from popmodel.structure.structure import Structure

NONE = -1
"""No event: a process that passes a place without doing anything there."""

_SENDS = Op.SEND, Op.ISEND
_POSTS = Op.RECEIVE, Op.POST
_COLLECTIVES = Op.COLLECTIVE, Op.ARRIVE, Op.WAIT_COLLECTIVE
_WAITS = Op.WAIT_RECEIVE, Op.WAIT_SEND


@dataclass(frozen=True)
class PatternTable:
    """Events by place, execution and sequence."""

    structure: Structure  # Whose events they are
    # tuple of int64[S, n]: For each place the event of each sequence at each of its n executions;
    # `NONE` for none.
    event: tuple[NDArray[np.int64], ...]
    # tuple of int64[n]: For each place a number for each execution, equal where all sequences do
    # the same.
    same: tuple[NDArray[np.int64], ...]
    # int64[M]: Operation that sends each message, and that posts its receive; `NONE` outside of a
    # part.
    send: NDArray[np.int64]
    post: NDArray[np.int64]
    # Whether a process takes messages of another in another order than they are sent in.
    needs_tags: bool


def table(structure: Structure) -> PatternTable:
    """Arrange the events of a structure by place and execution."""
    program, events = structure.program, structure.events
    token = _tokens(program, events.first, events.is_region)
    passes = _executions(structure)
    sequence = np.repeat(np.arange(len(events.offsets) - 1), np.diff(events.offsets))
    order = np.argsort(structure.place, kind="stable")
    bounds = np.searchsorted(structure.place[order], np.arange(len(structure.places) + 1))
    found, same = [], []
    for place, times in enumerate(passes):
        rows = order[bounds[place] : bounds[place + 1]]
        here = np.full((len(events.offsets) - 1, times), NONE, np.int64)
        here[sequence[rows], structure.execution[rows]] = rows
        found.append(here)
        done = np.where(here >= 0, token[here], NONE)
        same.append(_equal_columns(done))
    send, post = _ends(program)
    return PatternTable(
        structure, tuple(found), tuple(same), send, post, _overtakes(program, send, post)
    )


def iterations(loop: FoundLoop, executions: int) -> NDArray[np.int64]:
    """First iteration of each execution of a loop, and behind them their number: int64[n + 1]."""
    counts = np.asarray(loop.counts, np.int64)
    if len(counts) != executions:
        counts = np.full(executions, round(loop.count), np.int64)
    return np.concatenate([[0], np.cumsum(counts)])


def _executions(structure: Structure) -> NDArray[np.int64]:
    """How often each place is passed."""
    times = np.zeros(len(structure.places), np.int64)

    def walk(nodes: Sequence[FoundLoop | Leaf], executions: int) -> None:
        for node in nodes:
            if isinstance(node, FoundLoop):
                walk(node.body, int(iterations(node, executions)[-1]))
            else:
                times[list(node.places)] = executions

    walk(structure.nest, 1)
    most = np.zeros(len(times), np.int64)
    np.maximum.at(most, structure.place, structure.execution.astype(np.int64) + 1)
    return np.maximum(times, most)


def _tokens(
    program: Program, first: NDArray[np.int64], is_region: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """A number for each event, equal where a sequence does the same: int64[E]."""
    operation = _operation_tokens(program)
    starts, lengths = first[:-1], np.diff(first)
    found = np.where(is_region, -2, -3).astype(np.int64)
    used = 0
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        at = starts[rows, None] + np.arange(length)
        waits = np.isin(program.kind[at], _WAITS)
        content = operation[at]
        begins = ~(waits & np.pad(waits, ((0, 0), (1, 0)))[:, :-1])  # the waits of a call are one
        order = np.lexsort((content, np.cumsum(begins, axis=1)))  # in whatever order they came
        content = np.take_along_axis(content, order, axis=1)
        numbers = content[:, 0] if length == 1 else _equal_columns(content.T)
        _, numbers = np.unique(numbers, return_inverse=True)
        found[rows] = numbers + used
        used += int(numbers.max()) + 1
    return found


def _operation_tokens(program: Program) -> NDArray[np.int64]:
    """A number for each operation: what, with whom, how much, with which tag."""
    messages, collectives = program.messages, program.collectives
    kind, target = program.kind, program.target
    facts = np.zeros((4, len(kind)), np.int64)
    facts[0] = kind
    about = ~np.isin(kind, _COLLECTIVES)
    rows = target[about]
    is_send = np.isin(kind[about], (*_SENDS, Op.WAIT_SEND))
    facts[1, about] = np.where(is_send, messages.receiver[rows], messages.sender[rows])
    facts[2, about], facts[3, about] = messages.size[rows], messages.tag[rows]
    rows = target[~about]
    facts[1, ~about] = collectives.communicator[rows] * 16 + collectives.kind[rows]
    facts[2, ~about] = np.maximum(collectives.sent[rows], collectives.received[rows])
    facts[3, ~about] = collectives.root[rows]
    return _equal_columns(facts)


def _equal_columns(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the columns of a table, equal ones equally: int64[columns]."""
    found = np.zeros(table.shape[1], np.int64)
    for row in table:
        _, ids = np.unique(row, return_inverse=True)
        if ids.max(initial=0) == 0:
            continue
        _, found = np.unique(found * (int(ids.max()) + 1) + ids, return_inverse=True)
    return found


def _ends(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Operation that sends each message, and the one that posts its receive."""
    ends = []
    for kinds in (_SENDS, _POSTS):
        operations = np.flatnonzero(np.isin(program.kind, kinds))
        end = np.full(len(program.messages), NONE, np.int64)
        end[program.target[operations]] = operations
        ends.append(end)
    return ends[0], ends[1]


def _overtakes(program: Program, send: NDArray[np.int64], post: NDArray[np.int64]) -> bool:
    messages = program.messages
    known = np.flatnonzero((send >= 0) & (post >= 0))
    order = known[np.lexsort((send[known], messages.receiver[known], messages.sender[known]))]
    pair = messages.sender[order].astype(np.int64) * program.sequences + messages.receiver[order]
    return bool(np.any((np.diff(pair) == 0) & (np.diff(post[order]) < 0)))
