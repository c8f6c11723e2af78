"""Reads Dimemas programs (.dim) of one thread per task, for the reference cases."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from popmodel.simulator.program import Op, Program, ProgramBuilder, UnevenBytes

Sizes = dict[tuple[int, int], tuple[int, int]]

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
    collectives, sizes = _collectives(lines, program)
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
            sync = int(rest[-1])
            part = {0: Op.ARRIVE, 2: Op.WAIT_COLLECTIVE}.get(sync, Op.COLLECTIVE)
            nth = ("waits" if sync == 2 else "calls", task)
            program.do(task, part, collectives[turn[nth]])
            turn[nth] += 1
    return _with_uneven(program.build(), sizes)


def _collectives(lines: list[list[str]], program: ProgramBuilder) -> tuple[list[int], Sizes]:
    """Collectives in the order of their calls, and what each process sends and receives in them.

    The root of a Reduce is named, that of others says so itself. A wait has sync 2.
    """
    calls: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    turn: dict[int, int] = defaultdict(int)
    for kind, task, _, *rest in lines:
        if kind == "10" and rest[-1] != "2":
            calls[turn[int(task)]].append((int(task), [int(x) for x in rest]))
            turn[int(task)] += 1
    found, sizes = [], {}
    for n in range(len(calls)):
        what = KINDS[calls[n][0][1][0]]
        ways = len(calls[n]) if what == "alltoall" else 1  # what is sent to one is recorded
        amounts = {task: (fields[4] * ways, fields[5]) for task, fields in calls[n]}
        if what == "reduce":
            root = calls[n][0][1][2]
        else:
            root = next((task for task, fields in calls[n] if fields[2]), -1)
        sent, received = (max(column) for column in zip(*amounts.values(), strict=True))
        at_root = amounts[root][0] if root >= 0 else 0
        found.append(program.collective(what, sent, received, root, root_sent=at_root))
        if root < 0 and len(set(amounts.values())) > 1:
            sizes.update({(found[-1], task): amount for task, amount in amounts.items()})
    return found, sizes


def _with_uneven(program: Program, sizes: Sizes) -> Program:
    """The program with the amounts of single members, by collective and process."""
    process = np.repeat(np.arange(program.processes), np.diff(program.offsets))
    arrives = np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE))
    rows = [r for r in np.flatnonzero(arrives) if (program.target[r], process[r]) in sizes]
    amounts = [sizes[program.target[r], process[r]] for r in rows]
    sent, received = np.array(amounts, np.int64).reshape(-1, 2).T
    uneven = UnevenBytes(np.array(rows, np.int64), program.target[rows], sent, received)
    return replace(program, uneven=uneven)
