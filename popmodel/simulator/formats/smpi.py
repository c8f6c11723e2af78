"""Writes programs as time-independent traces of SimGrid SMPI (`popmodel.trace.untimed.smpi`).

One file holds the actions of all processes. Computing is written in flop at `FLOPS` per second, so
that a nanosecond is one flop. SMPI's replay knows collectives of all processes that block: others
are written as the messages that it would send for them (`popmodel.simulator.exchanges`). Sends that
nobody waits for are waited for at the end, as SMPI does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from popmodel.simulator.formats.tags import clear_tags
from popmodel.simulator.laid_out import lay_out
from popmodel.simulator.program import COLLECTIVES, Op, Program

__all__ = ["FLOPS", "text", "unsaid"]

FLOPS = 1e9
"""Flop per second at which computing is written."""
_BYTE = 6  # SimGrid's number of MPI_BYTE
_ACTIONS = {
    Op.SEND: "send",
    Op.ISEND: "isend",
    Op.RECEIVE: "recv",
    Op.POST: "irecv",
    Op.WAIT_RECEIVE: "wait",
    Op.WAIT_SEND: "wait",
}


def _unknown(program: Program) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Collectives that SMPI's replay does not know: of some processes, or that do not block."""
    found = program.collectives.members < program.processes
    arrives = program.kind == Op.ARRIVE
    found[program.target[arrives]] = True
    return np.asarray(found, bool)


def unsaid(program: Program) -> list[str]:
    """Say what of a program such a trace does not hold."""
    number = int(_unknown(program).sum())
    if not number:
        return []
    return [
        "collectives of some processes only, or nonblocking, written as the messages of SimGrid "
        f"SMPI: {number:,}"
    ]


def text(program: Program) -> Iterator[str]:
    """Yield the lines of a trace."""
    laid = lay_out(program, only=_unknown(program)).program
    tags = clear_tags(laid).tolist()
    amounts = {
        operation: (sent, received)
        for operation, sent, received in zip(
            laid.uneven.operation.tolist(),
            laid.uneven.sent.tolist(),
            laid.uneven.received.tolist(),
            strict=True,
        )
    }
    for process in range(laid.processes):
        yield f"{process} init\n"
        begin, end = laid.offsets[process : process + 2].tolist()
        for operation in range(begin, end):
            if burst := float(laid.burst[operation]):
                yield f"{process} compute {burst!r}\n"
            target = int(laid.target[operation])
            if laid.kind[operation] == Op.COLLECTIVE:
                yield f"{process} {_collective(laid, target, amounts.get(operation))}\n"
            else:
                kind = Op(laid.kind[operation])
                yield f"{process} {_message(laid, kind, target, tags[target])}\n"
        if tail := float(laid.tail[process]):
            yield f"{process} compute {tail!r}\n"
        yield f"{process} finalize\n"


def _message(program: Program, kind: Op, message: int, tag: int) -> str:
    messages = program.messages
    sender, receiver = messages.sender[message], messages.receiver[message]
    if kind in (Op.WAIT_SEND, Op.WAIT_RECEIVE):
        return f"wait {sender} {receiver} {tag}"
    partner = receiver if kind in (Op.SEND, Op.ISEND) else sender
    return f"{_ACTIONS[kind]} {partner} {tag} {messages.size[message]} {_BYTE}"


def _collective(program: Program, row: int, amounts: tuple[int, int] | None) -> str:
    every, count = program.collectives, program.processes
    kind = COLLECTIVES[every.kind[row]]
    sent, received = amounts or (int(every.sent[row]), int(every.received[row]))
    root = max(int(every.root[row]), 0)
    most = max(sent, received)
    if kind in ("init", "barrier"):  # SMPI's own init meets nobody
        return "barrier"
    if kind == "bcast":
        return f"bcast {most} {root} {_BYTE}"
    if kind == "reduce":
        return f"reduce {most} 0 {root} {_BYTE}"
    if kind in ("allreduce", "scan"):
        return f"{kind} {most} 0 {_BYTE}"
    if kind == "reduce_scatter":
        return f"reducescatter {_parts(most, count)} 0 {_BYTE}"
    if kind == "gather":
        if received % count:
            return f"gatherv {sent} {_parts(received, count)} {root} {_BYTE} {_BYTE}"
        return f"gather {sent} {received // count} {root} {_BYTE} {_BYTE}"
    if kind == "scatter":
        if sent % count:
            return f"scatterv {_parts(sent, count)} {received} {root} {_BYTE} {_BYTE}"
        return f"scatter {sent // count} {received} {root} {_BYTE} {_BYTE}"
    if kind == "alltoall" and (every.by_peer[row] or amounts or most % count):
        counts = _parts(sent, count), _parts(received, count)
        return f"alltoallv {sent} {counts[0]} {received} {counts[1]} {_BYTE} {_BYTE}"
    if kind == "alltoall":
        return f"alltoall {most // count} {most // count} {_BYTE} {_BYTE}"
    if received % count:
        return f"allgatherv {sent} {_parts(received, count)} {_BYTE}"
    return f"allgather {sent} {received // count} {_BYTE} {_BYTE}"


def _parts(size: int, count: int) -> str:
    """Bytes for each process, as even as they can be."""
    each, left = divmod(size, count)
    return " ".join(str(each + (rank < left)) for rank in range(count))
