"""Two programs side by side: do they do the same, in the same order, and in the same time?

One is that of a signature at some P and T, the other that of a trace. Where both have the same
operations in the same order, every burst of one has its counterpart in the other, and times are
compared phase by phase; else what is exchanged is compared as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program

_NAMES = {
    Op.SEND: "a blocking send to rank {partner} of {size} B",
    Op.ISEND: "a nonblocking send to rank {partner} of {size} B",
    Op.RECEIVE: "a blocking receive from rank {partner} of {size} B",
    Op.POST: "a nonblocking receive from rank {partner} of {size} B",
    Op.WAIT_RECEIVE: "waiting for {size} B from rank {partner}",
    Op.WAIT_SEND: "waiting for the send of {size} B to rank {partner}",
}


@dataclass(frozen=True)
class Exchanged:
    """What processes exchange by one kind of operation."""

    name: str  # ``messages``, or the collective
    count: int  # Messages of all processes, or collectives
    # Of all messages; of collectives what the largest member sends and receives in each, summed.
    bytes: int


@dataclass(frozen=True)
class Difference:
    """The first operation of a process that differs."""

    rank: int  # The process
    number: int  # Which of its operations, from 1
    # What each program does there; ``nothing more`` behind its last operation.
    mine: str
    other: str


def exchanged(program: Program) -> tuple[Exchanged, ...]:
    """Sum up what is exchanged: messages, then collectives by name; those in use only."""
    messages, collectives = _used(program)
    found = []
    if len(messages):
        size = int(program.messages.size[messages].sum())
        found.append(Exchanged("messages", len(messages), size))
    kinds = program.collectives.kind[collectives]
    volume = (program.collectives.sent + program.collectives.received)[collectives]
    for kind in np.unique(kinds).tolist():
        mine = kinds == kind
        found.append(Exchanged(COLLECTIVES[kind], int(mine.sum()), int(volume[mine].sum())))
    return tuple(found)


def _used(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of messages and collectives that operations are about."""
    is_message = program.kind < Op.COLLECTIVE
    is_send = is_message & ((program.kind == Op.SEND) | (program.kind == Op.ISEND))
    return (
        np.unique(program.target[is_send]).astype(np.int64),
        np.unique(program.target[~is_message]).astype(np.int64),
    )


def steps(program: Program) -> NDArray[np.int64]:
    """What each operation does, as rows of (operation, partner or members, bytes or kind).

    A wait for a send stands for the send: no network makes an isend's wait longer. Waits in a row
    are in order of these numbers: which of several requests is completed first does not matter.
    """
    kind = program.kind.astype(np.int64)
    target = program.target.astype(np.int64)
    found = np.empty((len(kind), 3), dtype=np.int64)
    found[:, 0] = kind
    of_message = kind < Op.COLLECTIVE
    rows = target[of_message]
    sends = np.isin(kind[of_message], (Op.SEND, Op.ISEND, Op.WAIT_SEND))
    messages = program.messages
    found[of_message, 1] = np.where(sends, messages.receiver[rows], messages.sender[rows])
    found[of_message, 2] = messages.size[rows]
    rows = target[~of_message]
    found[~of_message, 1] = program.collectives.members[rows]
    found[~of_message, 2] = program.collectives.kind[rows]
    waits = np.isin(kind, (Op.WAIT_RECEIVE, Op.WAIT_SEND))
    first = np.zeros(len(kind) + 1, dtype=bool)
    first[program.offsets] = True
    row = np.cumsum(~waits | ~np.append(False, waits[:-1]) | first[:-1])
    return found[np.lexsort((found[:, 2], found[:, 1], found[:, 0], row))]


def differences(mine: Program, other: Program) -> tuple[Difference, ...]:
    """Return the first operation of each process that differs; empty if all are the same."""
    one, two = steps(mine), steps(other)
    found = []
    for rank in range(min(mine.sequences, other.sequences)):
        a = one[mine.offsets[rank] : mine.offsets[rank + 1]]
        b = two[other.offsets[rank] : other.offsets[rank + 1]]
        both = min(len(a), len(b))
        unlike = np.flatnonzero((a[:both] != b[:both]).any(axis=1))
        if len(unlike) or len(a) != len(b):
            at = int(unlike[0]) if len(unlike) else both
            found.append(Difference(rank, at + 1, _said(a[at : at + 1]), _said(b[at : at + 1])))
    return tuple(found)


def _said(step: NDArray[np.int64]) -> str:
    for kind, partner, size in step.tolist():
        if kind >= Op.COLLECTIVE:
            waits = "waiting for " if kind == Op.WAIT_COLLECTIVE else ""
            return f"{waits}{COLLECTIVES[size]} of {partner} processes"
        return _NAMES[Op(kind)].format(partner=partner, size=size)
    return "nothing more"
