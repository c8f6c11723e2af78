"""Tags by which messages find their receives in formats that match them by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = np.iinfo(np.int32).max  # of the tags that programs give
_SENDS, _RECEIVES = (Op.SEND, Op.ISEND), (Op.RECEIVE, Op.POST)


def clear_tags(program: Program) -> NDArray[np.int64]:
    """Return tags with which each message can only be the one that it is.

    Those of the program, unless two messages of the same processes and tag are under way at the
    same time (or one of them has a tag that is none of a program, as those of collectives between
    neighbours): then those of the two processes are numbered.
    """
    messages = program.messages
    if not len(messages):
        return messages.tag
    sent, sent_until = _spans(program, _SENDS, Op.WAIT_SEND)
    received, received_until = _spans(program, _RECEIVES, Op.WAIT_RECEIVE)
    order = np.lexsort((sent, messages.tag, messages.receiver, messages.sender))
    pair = messages.sender * np.int64(program.processes) + messages.receiver
    here, there = order[:-1], order[1:]
    alike = (pair[here] == pair[there]) & (messages.tag[here] == messages.tag[there])
    at_once = (sent[there] <= sent_until[here]) | (received[there] <= received_until[here])
    foreign = (messages.tag < 0) | (messages.tag > _LARGEST)
    unclear = np.unique(np.concatenate([pair[here][alike & at_once], pair[foreign]]))
    tag = messages.tag.copy()
    rows = order[np.isin(pair[order], unclear)]
    rows = rows[np.lexsort((sent[rows], pair[rows]))]
    first = np.searchsorted(pair[rows], pair[rows], side="left")
    tag[rows] = np.arange(len(rows)) - first
    return tag


def _spans(
    program: Program, begins: tuple[Op, Op], ends: Op
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last operation of each message on one side; one that nobody waits for stays."""
    count = len(program.messages)
    first, last = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    for op in begins:
        at = np.flatnonzero(program.kind == op)
        first[program.target[at]] = at
        if op in (Op.SEND, Op.RECEIVE):
            last[program.target[at]] = at
    at = np.flatnonzero(program.kind == ends)
    last[program.target[at]] = at
    return first, last
