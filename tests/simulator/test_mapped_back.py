"""Moments and critical paths of programs whose collectives have several messages under way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.network.network import PRESETS
from popmodel.simulator import Replayer
from popmodel.simulator.execution import PathPart
from popmodel.simulator.expand_collectives import lay_out
from popmodel.simulator.program import Op, Program, ProgramBuilder

SMPI = PRESETS["smpi"]
KINDS = ["barrier", "allreduce", "gather", "scatter", "allgather", "alltoall", "scan"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Collectives of all processes, or of one, and messages to the next process between them."""
    processes = draw(st.integers(2, 5))
    builder = ProgramBuilder(processes)
    alone = [builder.communicator([p]) for p in range(processes)]
    for _ in range(draw(st.integers(1, 6))):
        for p in range(processes):
            builder.compute(p, draw(st.integers(0, 9)) * 1e-6)
        size = draw(st.sampled_from([8, 1000, 100_000]))
        kind = draw(st.sampled_from([*KINDS, "message", "alone", "nonblocking"]))
        if kind == "message":
            sent = builder.message(0, 1, size)
            builder.do(0, Op.SEND, sent)
            builder.do(1, Op.RECEIVE, sent)
        elif kind == "alone":
            for p in range(processes):
                builder.do(p, Op.COLLECTIVE, builder.collective("gather", communicator=alone[p]))
        elif kind == "nonblocking":
            made = builder.collective("allgather", size, size)
            for op in (Op.ARRIVE, Op.WAIT_COLLECTIVE):
                for p in range(processes):
                    builder.do(p, op, made)
                    builder.compute(p, draw(st.integers(0, 9)) * 1e-6)
        else:
            rooted = kind in ("gather", "scatter")
            made = builder.collective(kind, size, size * processes, 0 if rooted else -1)
            for p in range(processes):
                builder.do(p, Op.COLLECTIVE, made)
    for p in range(processes):
        builder.compute(p, 1e-6)
    return builder.build()


@given(programs())
def test_moments_are_those_of_the_operations(program: Program) -> None:
    replayer = Replayer(program)
    told = replayer.moments(SMPI)
    inner = Replayer(lay_out(program).program)
    assert told.last.tolist() == inner.moments(SMPI).last.tolist()
    assert replayer.run(SMPI).end.tolist() == inner.run(SMPI).end.tolist()
    for p in range(program.processes):
        mine = slice(*program.offsets[p : p + 2])
        # A process computes between the end of one operation and the begin of the next.
        gaps = told.begin[mine] - np.concatenate([[0.0], told.end[mine][:-1]])
        assert gaps == pytest.approx(program.burst[mine], abs=1e-3)
        assert np.all(told.end[mine] >= told.begin[mine] - 1e-9)


@given(programs())
def test_paths_name_what_the_program_has(program: Program) -> None:
    path = Replayer(program).path(SMPI)
    assert path.time.sum() == pytest.approx(path.runtime * 1e9, rel=1e-9)
    assert path.operation.max(initial=-1) < program.operations
    inside = path.operation >= 0
    process = np.searchsorted(program.offsets, path.operation[inside], side="right") - 1
    own = np.isin(path.part[inside], (PathPart.COMPUTE, PathPart.SEND, PathPart.MESSAGE_SEND))
    assert (process[own] == path.process[inside][own]).all()
    of_messages = np.isin(path.part, (PathPart.SEND, PathPart.RECEIVE, PathPart.TRANSFER))
    assert np.all(path.row[of_messages] < len(program.messages))
    of_collectives = np.isin(path.part, (PathPart.COLLECTIVE, PathPart.MESSAGE, PathPart.REQUEST))
    assert np.all(path.row[of_collectives] < len(program.collectives))
    about = path.operation[of_collectives]
    assert np.array_equal(program.target[about], path.row[of_collectives])
