"""Writes programs as time-independent traces of SimGrid SMPI (`popmodel.trace.untimed.smpi`).

One file holds the actions of all processes. Computing is written in flop at `FLOPS` per second, so
that a nanosecond is one flop. SMPI's replay knows collectives of all processes that block: others
are written as the messages that it would send for them
(`popmodel.simulator.expand_collectives`). Sends that
nobody waits for are waited for at the end, as SMPI does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from popmodel.simulator.algorithms import carry_out
from popmodel.simulator.expand_collectives import Amounts, lay_out, uneven_amounts
from popmodel.simulator.formats.tags import clear_tags
from popmodel.simulator.program import COLLECTIVES, Op, Program

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
    amounts = uneven_amounts(laid, carry_out(laid, 0)[0])
    part = laid.collectives.part().tolist()
    for process in range(laid.processes):
        yield f"{process} init\n"
        begin, end = laid.offsets[process : process + 2].tolist()
        for operation in range(begin, end):
            if burst := float(laid.burst[operation]):
                yield f"{process} compute {burst!r}\n"
            target = int(laid.target[operation])
            if laid.kind[operation] == Op.COLLECTIVE:
                about = part[target], process, amounts.get(target)
                yield f"{process} {_collective(laid, target, *about)}\n"
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


def _collective(program: Program, row: int, part: int, rank: int, amounts: Amounts | None) -> str:
    """A call, in the form with amounts for each peer where the run's has them or they differ."""
    every, count = program.collectives, program.processes
    kind = COLLECTIVES[every.kind[row]]
    root = max(int(every.root[row]), 0)
    if kind in ("init", "barrier"):  # SMPI's own init meets nobody
        return "barrier"
    if kind == "bcast":
        return f"bcast {part} {root} {_BYTE}"
    if kind == "reduce":
        return f"reduce {part} 0 {root} {_BYTE}"
    if kind in ("allreduce", "scan"):
        return f"{kind} {part} 0 {_BYTE}"
    each = -(-part // count) if kind == "reduce_scatter" else part
    out = back = [each] * count  # for each rank, and from each
    if amounts is not None:
        ranks, me = np.arange(count), np.full(count, rank)
        out = amounts.between(me, ranks).tolist()
        back = amounts.between(ranks, me).tolist()
    if kind == "reduce_scatter":
        return f"reducescatter {_listed(out)} 0 {_BYTE}"
    by_peer = amounts is not None or bool(every.by_peer[row])
    types = f"{_BYTE} {_BYTE}"
    if kind == "gather":
        return (
            f"gatherv {out[root]} {_listed(back)} {root} {types}"
            if by_peer
            else f"gather {part} {part} {root} {types}"
        )
    if kind == "scatter":
        return (
            f"scatterv {_listed(out)} {back[root]} {root} {types}"
            if by_peer
            else f"scatter {part} {part} {root} {types}"
        )
    if not by_peer:
        return f"{kind} {part} {part} {types}"
    if kind == "allgather":
        return f"allgatherv {out[rank]} {_listed(back)} {types}"
    return f"alltoallv {sum(out)} {_listed(out)} {sum(back)} {_listed(back)} {types}"


def _listed(parts: list[int]) -> str:
    return " ".join(map(str, parts))
