"""Programs whose collectives are messages of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.expand_collectives import lay_out, operations
from popmodel.simulator.program import COLLECTIVES, Op, Program, ProgramBuilder

SMPI = PRESETS["smpi"]
KINDS = list(COLLECTIVES)
ROOTED = ("bcast", "reduce", "gather", "scatter")
LATENCY, TIME_PER_BYTE, HEADER = 1e-6, 1e-10, 16


def collective(kind: str, members: int, size: int = 0, root: int = 0) -> Program:
    """One collective of all processes."""
    program = ProgramBuilder(members)
    size *= members if kind == "alltoall" else 1
    made = program.collective(kind, size, size, root if kind in ROOTED else -1)
    for p in range(members):
        program.do(p, Op.COLLECTIVE, made)
    return program.build()


def message(size: int) -> float:
    return LATENCY + (size + HEADER) * TIME_PER_BYTE


@given(
    st.sampled_from(KINDS),
    st.integers(1, 20),
    st.integers(0, 19),
    st.sampled_from([8, 1000, 4000, 100_000]),
    st.booleans(),
)
def test_everyone_ends_and_hears_of_whom_it_must(
    kind: str, members: int, root: int, size: int, doubling: bool
) -> None:
    """Data flow: after its operations, in any order that messages allow, each knows enough."""
    root %= members
    todo = [list(operations(kind, members, root, rank, size, doubling)) for rank in range(members)]
    known = [{rank} for rank in range(members)]
    under_way: dict[tuple[int, int], list[set[int]]] = {}
    moved = True
    while moved:
        moved = False
        for rank, mine in enumerate(todo):
            while mine:
                op, partner, _ = mine[0]
                if op in (Op.SEND, Op.ISEND):
                    under_way.setdefault((rank, partner), []).append(set(known[rank]))
                elif op in (Op.RECEIVE, Op.WAIT_RECEIVE):
                    waiting = under_way.get((partner, rank))
                    if not waiting:
                        break
                    known[rank] |= waiting.pop(0)
                mine.pop(0)
                moved = True
    assert not any(todo), "deadlock"
    assert not any(under_way.values()), "a message that nobody receives"
    everyone = set(range(members))
    for rank in range(members):
        if kind in ("reduce", "gather"):
            assert known[rank] == everyone if rank == root else rank in known[rank]
        elif kind in ("bcast", "scatter"):
            assert root in known[rank]
        elif kind == "scan":
            assert known[rank] == set(range(rank + 1))
        else:
            assert known[rank] == everyone


def test_an_alltoall_of_few_bytes_among_many() -> None:
    bruck = sum(message(100 * parts) for parts in (8, 8, 8, 8, 1))
    assert replay(collective("alltoall", 17, 100), SMPI).runtime == pytest.approx(bruck)
    one = message(3)
    assert replay(collective("alltoall", 17, 3), SMPI).runtime == pytest.approx(one)


@pytest.mark.parametrize("members", [4, 7, 128])
def test_a_pairwise_alltoall(members: int) -> None:
    """SMPI ends with an error for 7, where Open MPI exchanges with the next, the second next ..."""
    size = 2**19
    pairwise = (members - 1) * message(size)
    assert replay(collective("alltoall", members, size), SMPI).runtime == pytest.approx(pairwise)


def test_a_process_computes_as_long_as_before() -> None:
    """Where a collective comes to nothing, its burst goes to the next operation, or to the end."""
    program = ProgramBuilder(2)
    alone = [
        program.collective("barrier", communicator=program.communicator([p])) for p in range(2)
    ]
    barrier = program.collective("barrier")
    for p in range(2):
        program.compute(p, 1e-6 * (p + 1))
        program.do(p, Op.COLLECTIVE, alone[p])
        program.compute(p, 3e-6)
        program.do(p, Op.COLLECTIVE, barrier)
        program.compute(p, 5e-6)
    program.do(1, Op.COLLECTIVE, alone[1])
    program.compute(1, 7e-6)
    built = program.build()
    laid = lay_out(built)
    assert laid.program.compute().tolist() == pytest.approx([9000, 17000])
    assert laid.program.burst[0] == 4000
    assert laid.program.tail.tolist() == pytest.approx([5000, 12000])
    assert built.kind[laid.origin].tolist() == [Op.COLLECTIVE] * len(laid.origin)
    assert (built.target[laid.origin] == barrier).all()
    execution = replay(laid.program, SMPI)
    assert execution.end[1] == pytest.approx(17e-6 + 2 * message(0))  # there and back


def test_a_nonblocking_collective_is_carried_out_where_it_is_waited_for() -> None:
    program = ProgramBuilder(2)
    waited, forgotten = program.collective("barrier"), program.collective("barrier")
    for p in range(2):
        program.do(p, Op.ARRIVE, waited)
        program.compute(p, 1e-3)
        program.do(p, Op.WAIT_COLLECTIVE, waited)
        program.do(p, Op.ARRIVE, forgotten)
    built = program.build()
    laid = lay_out(built)
    assert [Op(kind) for kind in np.unique(built.kind[laid.origin])] == [
        Op.ARRIVE,
        Op.WAIT_COLLECTIVE,
    ]
    assert laid.program.burst[0] == 1e6
    assert replay(laid.program, SMPI).runtime == pytest.approx(1e-3 + 4 * message(0))


def test_messages_of_a_process_to_itself() -> None:
    program = ProgramBuilder(1)
    sent = program.message(0, 0, 984)
    program.do(0, Op.ISEND, sent)
    program.do(0, Op.RECEIVE, sent)
    built = program.build()
    assert replay(built, SMPI.with_(latency=1.0, bandwidth=1.0)).runtime == pytest.approx(1e-7)
    assert replay(built, Network(latency=1.0)).runtime == 0
