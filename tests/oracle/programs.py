"""What tests of programs say often: the operations of a process, and a message."""

from popmodel.simulator.program import Op, Program, ProgramBuilder


def operations(program: Program, process: int) -> list[str]:
    """Names of the operations of a process, in order."""
    mine = slice(program.offsets[process], program.offsets[process + 1])
    return [Op(kind).name for kind in program.kind[mine]]


def targets(program: Program, process: int) -> list[int]:
    """What each of them is about: a row of the messages or of the collectives."""
    return program.target[program.offsets[process] : program.offsets[process + 1]].tolist()


def alone(kind: str, processes: int, sent: int, received: int, root: int = 0) -> Program:
    """A program of one collective that all enter at time 0."""
    program = ProgramBuilder(processes)
    ways = processes if kind == "alltoall" else 1  # sent to one, as Extrae records it
    c = program.collective(kind, sent * ways, received, root=root)
    for p in range(processes):
        program.do(p, Op.COLLECTIVE, c)
    return program.build()
