"""Reads Dimemas programs (.dim) of one thread per task, for the reference cases."""

from __future__ import annotations

from collections import defaultdict

from popmodel.replay.build import ProgramBuilder
from popmodel.replay.program import Op, Program

KINDS = {0: "barrier", 1: "bcast", 8: "alltoall", 10: "reduce", 11: "allreduce"}


def read(text: str) -> Program:
    """Program of a .dim file; sends match receives of the same ends and tag in order."""
    lines = [line.split(":") for line in text.splitlines() if line[:1] in "123" or line[:2] == "10"]
    count = 1 + max(int(fields[1]) for fields in lines)
    program = ProgramBuilder(count)
    messages: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for kind, task, _, *rest in lines:
        if kind == "2":
            to, _, size, tag, *_ = (int(x) for x in rest)
            messages[int(task), to, tag].append(program.message(int(task), to, size, tag))
    turn: dict[tuple, int] = defaultdict(int)
    collectives: dict[int, int] = {}
    for kind, name, _, *rest in lines:
        task = int(name)
        if kind == "1":
            program.compute(task, float(rest[0]))
        elif kind == "2":
            to, _, _, tag, _, mode = (int(x) for x in rest)
            key = (task, to, tag)
            op = Op.ISEND if mode & 2 else Op.SEND
            program.do(task, op, messages[key][turn[op, key]])
            turn[op, key] += 1
        elif kind == "3":
            source, _, _, tag, _, mode = (int(x) for x in rest)
            key = (source, task, tag)
            op = (Op.RECEIVE, Op.POST, Op.WAIT_RECEIVE)[mode]
            program.do(task, op, messages[key][turn[op, key]])
            turn[op, key] += 1
        else:
            what, _, root, _, sent, received, _ = (int(x) for x in rest)
            n = turn["collective", task]
            turn["collective", task] += 1
            if n not in collectives:
                collectives[n] = program.collective(
                    KINDS[what], sent, received, root, root_sent=sent
                )
            program.do(task, Op.COLLECTIVE, collectives[n])
    return program.build()
