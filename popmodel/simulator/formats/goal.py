"""Writes programs as schedules in GOAL, which LogGOPSim simulates (`popmodel.trace.untimed.goal`).

Each operation needs those that its process has waited for, so that a rank does one thing after the
other. Bursts are whole nanoseconds; those of a process are off by less than one in all. GOAL
has no collectives: they are written as the messages that SimGrid SMPI sends
(`popmodel.simulator.expand_collectives`). It has no modes of sending, nodes or communicators
either, and a
rank ends when all its messages have been sent, also those that nobody waits for.
"""

from __future__ import annotations

from collections.abc import Iterator

from popmodel.simulator.expand_collectives import lay_out
from popmodel.simulator.formats.tags import clear_tags
from popmodel.simulator.program import Op, Program


def unsaid(program: Program) -> list[str]:
    """Say what of a program a schedule does not hold."""
    number = len(program.collectives)
    return [f"collectives written as the messages of SimGrid SMPI: {number:,}"] if number else []


def text(program: Program) -> Iterator[str]:
    """Yield the lines of a schedule."""
    laid = lay_out(program).program
    tags = clear_tags(laid)
    yield f"num_ranks {laid.processes}\n"
    for process in range(laid.processes):
        yield f"\nrank {process} {{\n"
        yield from _rank(laid, process, tags.tolist())
        yield "}\n"


def _rank(program: Program, process: int, tags: list[int]) -> Iterator[str]:
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
