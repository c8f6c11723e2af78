"""Programs written in formats that other simulators read: SimGrid SMPI's traces, and GOAL.

A time-independent trace of SMPI (`popmodel.traces.untimed.smpi`) is one file with the actions of
all processes. Computing is written in flop at `FLOPS` per second, so that a nanosecond is one flop.
SMPI's replay knows collectives of all processes that block: others are written as the messages that
it would send for them (`popmodel.simulator.expand_collectives`). Sends that nobody waits for are
waited for at the end, as SMPI does.

In a schedule in GOAL (`popmodel.traces.untimed.goal`), which LogGOPSim simulates, each operation
needs those that its process has waited for, so that a rank does one thing after the other. Bursts
are whole nanoseconds; those of a process are off by less than one in all. GOAL has no collectives:
they are written as messages, too. It has no modes of sending, nodes or communicators either, and a
rank ends when all its messages have been sent, also those that nobody waits for.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base import files
from popmodel.base.errors import FileError, UsageError
from popmodel.base.units import plural
from popmodel.simulator.algorithms import carry_out
from popmodel.simulator.expand_collectives import Amounts, lay_out, uneven_amounts
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import COLLECTIVES, Op, Program
from popmodel.traces.trace_formats import read

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray


class ProgramFormat(NamedTuple):
    """A format that programs are written in."""

    name: str  # For people
    suffixes: tuple[str, ...]  # Of its files; each may be followed by ``.gz``
    text: Callable[[Program], Iterator[str]]  # Lines of a program
    unsaid: Callable[[Program], tuple[str, ...]]  # What they do not hold of it, a sentence each


def format_of(path: str | os.PathLike[str]) -> ProgramFormat:
    """Return the format that the name of a file asks for."""
    plain = Path(path).name.removesuffix(".gz")
    for form in FORMATS:
        if plain.endswith(form.suffixes):
            return form
    known = ", ".join(f"{' or '.join(form.suffixes)} for {form.name}" for form in FORMATS)
    raise UsageError(f"{path}: cannot tell the format from the suffix", f"use {known}, or with .gz")


def write(program: Program, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a program in the format that the file's name asks for; say what it does not hold."""
    form = format_of(path)
    if len(program.threads):
        raise UsageError(
            f"{form.name}: a process is one sequence of operations, and here "
            f"{plural(len(program.threads), 'further thread')} of processes would be lost",
            "replay the trace itself",
        )
    lines = (line.encode() for line in form.text(program))
    try:
        # What is written is read as a replay of it would.
        with files.written(path, read=lambda written: from_trace(read(written))) as file:
            if Path(path).name.endswith(".gz"):
                # without the time, equal programs are equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0, compresslevel=6) as packed:
                    packed.writelines(lines)
            else:
                file.writelines(lines)
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint="choose another path with -o") from error
    return form.unsaid(program)


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


def _unknown(program: Program) -> NDArray[np.bool_]:
    """Collectives that SMPI's replay does not know: of some processes, or that do not block."""
    unknown = program.collectives.members < program.processes
    arrives = program.kind == Op.ARRIVE
    unknown[program.target[arrives]] = True
    return np.asarray(unknown, bool)


def _unsaid_by_smpi(program: Program) -> tuple[str, ...]:
    number = int(_unknown(program).sum())
    said = (
        "collectives of some processes only, or nonblocking, written as the messages of SimGrid "
        f"SMPI: {number:,}"
    )
    return (said,) if number else ()


def smpi_text(program: Program) -> Iterator[str]:
    """Yield the lines of a time-independent trace."""
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


def _unsaid_by_goal(program: Program) -> tuple[str, ...]:
    number = len(program.collectives)
    return (f"collectives written as the messages of SimGrid SMPI: {number:,}",) if number else ()


def goal_text(program: Program) -> Iterator[str]:
    """Yield the lines of a schedule."""
    laid = lay_out(program).program
    tags = clear_tags(laid)
    yield f"num_ranks {laid.processes}\n"
    for process in range(laid.processes):
        yield f"\nrank {process} {{\n"
        yield from _goal_rank(laid, process, tags.tolist())
        yield "}\n"


def _goal_rank(program: Program, process: int, tags: list[int]) -> Iterator[str]:
    mine = slice(*program.offsets[process : process + 2].tolist())
    kinds = map(Op, program.kind[mine].tolist())
    messages = program.messages
    needed: list[int] = []  # what the next operation comes after
    begun: dict[tuple[int, bool], int] = {}  # operations that a later one waits for
    label, time, written = 0, 0.0, 0

    def line(what: str) -> str:
        return f"l{label}: {what}\n" + "".join(f"l{label} requires l{n}\n" for n in needed)

    for kind, message, burst in zip(
        kinds, program.target[mine].tolist(), program.burst[mine].tolist(), strict=True
    ):
        time += burst
        if round(time) > written:
            label += 1
            yield line(f"calc {round(time) - written}")
            needed, written = [label], round(time)
        sends = kind in (Op.SEND, Op.ISEND, Op.WAIT_SEND)
        if kind in (Op.WAIT_SEND, Op.WAIT_RECEIVE):
            needed = [*needed, begun[message, sends]]
            continue
        label += 1
        begun[message, sends] = label
        size, tag = int(messages.size[message]), tags[message]
        if sends:
            yield line(f"send {size}b to {messages.receiver[message]} tag {tag}")
        else:
            yield line(f"recv {size}b from {messages.sender[message]} tag {tag}")
        if kind in (Op.SEND, Op.RECEIVE):
            needed = [label]
    time += float(program.tail[process])
    if round(time) > written or len(needed) > 1:
        label += 1
        yield line(f"calc {round(time) - written}")


# Tags by which messages find their receives in formats that match them by nothing else.

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


FORMATS = (
    ProgramFormat("SimGrid SMPI", (".ti", ".ti.txt"), smpi_text, _unsaid_by_smpi),
    ProgramFormat("GOAL", (".goal",), goal_text, _unsaid_by_goal),
)
"""All formats."""
