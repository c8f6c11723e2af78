"""What tests of programs say often: the operations of a process, and a message."""

from __future__ import annotations

from oracle.script import Script
from popmodel.simulator.program import Op, Program, ProgramBuilder


def operations(program: Program, process: int) -> list[str]:
    """Names of the operations of a process, in order."""
    mine = slice(program.offsets[process], program.offsets[process + 1])
    return [Op(kind).name for kind in program.kind[mine]]


def targets(program: Program, process: int) -> list[int]:
    """What each of them is about: a row of the messages or of the collectives."""
    return program.target[program.offsets[process] : program.offsets[process + 1]].tolist()


def send_and_receive(script: Script, size: int = 8, send: str = "Send") -> None:
    """Let rank 0 send after 500 ns what rank 1 waits for from 100 ns on."""
    script.compute(0, 500)
    sent = script.call(0, send)
    script.compute(1, 100)
    received = script.call(1, "Recv", 600)
    script.message(sent, received, received, size)


def alone(kind: str, processes: int, sent: int, received: int, root: int = 0) -> Program:
    """A program of one collective that all enter at time 0."""
    program = ProgramBuilder(processes)
    ways = processes if kind == "alltoall" else 1  # sent to one, as Extrae records it
    c = program.collective(kind, sent * ways, received, root=root)
    for p in range(processes):
        program.do(p, Op.COLLECTIVE, c)
    return program.build()
