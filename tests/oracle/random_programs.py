"""Random programs and networks for tests of replays."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from popmodel.network.network import PRESETS
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.program import COLLECTIVES, Op, Program, Uneven


@st.composite
def programs(draw: st.DrawFn) -> Program:
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
    return with_uneven_members(draw, program.build())


def with_uneven_members(draw: st.DrawFn, program: Program) -> Program:
    """Amounts of their own for the members of some collectives that have no root."""
    chosen = [
        c for c, root in enumerate(program.collectives.root) if root < 0 and draw(st.booleans())
    ]
    arrives = (program.kind == Op.COLLECTIVE) | (program.kind == Op.ARRIVE)
    rows = np.flatnonzero(arrives & np.isin(program.target, chosen))
    amounts = [draw(st.integers(0, 999)) for _ in rows]
    bytes_ = np.array(amounts, np.int64)
    return replace(program, uneven=Uneven(rows, program.target[rows], bytes_, bytes_[::-1].copy()))


@st.composite
def networks(draw: st.DrawFn):
    return PRESETS["ideal"].with_(
        rules=draw(st.sampled_from(["alpha-beta", "dimemas"])),
        latency=draw(st.sampled_from([0.0, 1e-7, 1e-6])),
        bandwidth=draw(st.sampled_from([1e9, math.inf])),
        eager_threshold=draw(st.sampled_from([0, 1000, math.inf])),
        collectives=draw(st.sampled_from(["dimemas", "synchronising", "rooted"])),
        collective_cost=draw(st.sampled_from(["constant", "linear", "logarithmic"])),
        cpu_factor=draw(st.sampled_from([0.5, 1.0, 4.0])),
    )
