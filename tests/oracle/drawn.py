"""Programs and networks that hypothesis draws."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from popmodel.network.network import PRESETS
from popmodel.simulator.program import COLLECTIVES, Op, Program, ProgramBuilder, UnevenBytes


@st.composite
def programs(draw: st.DrawFn, *, uneven: bool = True) -> Program:
    """Programs of a few processes: matched operations, some of them lost or out of order."""
    processes = draw(st.integers(1, 5))
    program = ProgramBuilder(processes)
    ranks = st.integers(0, processes - 1)
    waits: list[tuple[int, Op, int]] = []
    steps: list[tuple[int, Op, int]] = []
    for _ in range(draw(st.integers(0, 12))):
        if draw(st.booleans()):
            sender, receiver = draw(ranks), draw(ranks)
            m = program.message(sender, receiver, draw(st.sampled_from([0, 10, 1000, 5000])))
            if draw(st.booleans()):
                steps.append((sender, Op.SEND, m))
            else:
                steps.append((sender, Op.ISEND, m))
                waits.append((sender, Op.WAIT_SEND, m))
            if draw(st.booleans()):
                steps.append((receiver, Op.RECEIVE, m))
            else:
                steps.append((receiver, Op.POST, m))
                waits.append((receiver, Op.WAIT_RECEIVE, m))
        else:
            kind = draw(st.sampled_from(COLLECTIVES))
            root = draw(st.one_of(st.just(-1), ranks))
            c = program.collective(kind, draw(st.integers(0, 999)), 500, root=root)
            blocking = draw(st.booleans())
            for p in range(processes):
                steps.append((p, Op.COLLECTIVE if blocking else Op.ARRIVE, c))
                if not blocking:
                    waits.append((p, Op.WAIT_COLLECTIVE, c))
        if waits and draw(st.booleans()):
            steps.append(waits.pop(draw(st.integers(0, len(waits) - 1))))
    for lost in draw(st.sets(st.integers(0, 60), max_size=1)):
        if lost < len(steps):
            del steps[lost]
    for p, op, target in steps + waits:
        program.compute(p, draw(st.integers(0, 3000)) * 1e-9)
        program.do(p, op, target)
    for p in range(processes):
        program.compute(p, draw(st.integers(0, 100)) * 1e-9)
    built = program.build()
    return with_uneven_members(draw, built) if uneven else built


def with_uneven_members(draw: st.DrawFn, program: Program) -> Program:
    """Amounts of their own for the members of some collectives that have no root."""
    chosen = [
        c for c, root in enumerate(program.collectives.root) if root < 0 and draw(st.booleans())
    ]
    arrives = (program.kind == Op.COLLECTIVE) | (program.kind == Op.ARRIVE)
    rows = np.flatnonzero(arrives & np.isin(program.target, chosen))
    amounts = [draw(st.integers(0, 999)) for _ in rows]
    bytes_ = np.array(amounts, np.int64)
    return replace(
        program, uneven=UnevenBytes(rows, program.target[rows], bytes_, bytes_[::-1].copy())
    )


@st.composite
def networks(draw: st.DrawFn):
    rules = draw(st.sampled_from(["alpha-beta", "dimemas", "smpi"]))
    return PRESETS["ideal"].with_(
        rules=rules,
        send_is_detached_thresh=draw(st.sampled_from([0, 2000])) if rules == "smpi" else 0,
        latency=draw(st.sampled_from([0.0, 1e-7, 1e-6])),
        bandwidth=draw(st.sampled_from([1e9, math.inf])),
        eager_threshold=draw(st.sampled_from([0, 1000, math.inf])),
        collectives=draw(st.sampled_from(["dimemas", "synchronising", "rooted"])),
        collective_cost=draw(st.sampled_from(["constant", "linear", "logarithmic"])),
        cpu_factor=draw(st.sampled_from([0.5, 1.0, 4.0])),
    )


@st.composite
def programs_with_collectives(draw: st.DrawFn) -> Program:
    """Collectives of several communicators, blocking or not, with messages between them."""
    processes = draw(st.integers(1, 9))
    program = ProgramBuilder(processes)
    everyone = range(processes)
    teams = [(0, list(everyone))]
    for _ in range(draw(st.integers(0, 2))):
        members = draw(st.permutations(everyone))[: draw(st.integers(1, processes))]
        teams.append((program.communicator(members), members))
    open_: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, 6))):
        for p in everyone:
            program.compute(p, draw(st.integers(0, 5000)) * 1e-9)
        if processes > 1 and draw(st.booleans()):
            m = program.message(0, 1, draw(st.sampled_from([0, 5000])))
            program.do(0, Op.SEND, m)
            program.do(1, Op.RECEIVE, m)
        number, members = draw(st.sampled_from(teams))
        sizes = st.sampled_from([0, 8, 999, 5000])
        root = draw(st.sampled_from(members))
        kind = draw(st.sampled_from(COLLECTIVES))
        c = program.collective(kind, draw(sizes), draw(sizes), root, number)
        blocking = draw(st.booleans())
        for p in members:
            program.do(p, Op.COLLECTIVE if blocking else Op.ARRIVE, c)
            if not blocking:
                open_.append((p, c))
    for p, c in open_:
        program.compute(p, draw(st.integers(0, 50)) * 1e-9)
        program.do(p, Op.WAIT_COLLECTIVE, c)
    return program.build()


def renumbered(program: Program, order: list[int]) -> Program:
    """The same program with other numbers: process p becomes order[p]."""
    new, old = np.array(order, np.int32), np.argsort(order)
    counts = np.diff(program.offsets)[old]
    parts = [np.arange(program.offsets[p], program.offsets[p + 1]) for p in old]
    rows = np.concatenate(parts).astype(np.int64)
    roots = program.collectives.root
    return replace(
        program,
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        kind=program.kind[rows],
        target=program.target[rows],
        burst=program.burst[rows],
        tail=program.tail[old],
        call=program.call[rows],
        messages=replace(
            program.messages,
            sender=new[program.messages.sender],
            receiver=new[program.messages.receiver],
        ),
        collectives=replace(
            program.collectives,
            root=np.where(roots >= 0, new[roots], roots).astype(np.int32),
        ),
        communicators={key: new[members] for key, members in program.communicators.items()},
        nodes=program.nodes[old],
    )
