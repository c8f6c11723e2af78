"""Collectives as messages against their closed forms, against what collectives mean, and against
the same messages laid out in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.algorithms import carry_out, exchanges
from oracle.drawn import programs_with_collectives

from popmodel.errors import ReplayError
from popmodel.network import collectives
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import algorithms, replay, replayer
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.charges import charge
from popmodel.simulator.classes import classes
from popmodel.simulator.program import COLLECTIVES, Op, Program

ALPHA, BETA = 1e-6, 1e-9
# Every transfer keeps its sender busy: both ends of a rendezvous end with it.
NETWORK = PRESETS["alpha-beta"].with_(
    latency=ALPHA, bandwidth=1 / BETA, eager_threshold=0, collectives="algorithm"
)
PROCESSES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64)
SIZES = (8, 1000, 10**6)


def alone(kind: str, processes: int, sent: int, received: int, root: int = 0) -> Program:
    """A program of one collective that all enter at time 0."""
    program = ProgramBuilder(processes)
    c = program.collective(kind, sent, received, root=root)
    for p in range(processes):
        program.do(p, Op.COLLECTIVE, c)
    return program.build()


def rounds(p: int) -> int:
    return math.ceil(math.log2(p))


CLOSED_FORMS: dict[str, Callable[[int, int], float]] = {
    "barrier": lambda p, m: collectives.barrier_dissemination(
        p, collectives.Message(m, ALPHA, BETA, 0.0)
    ),
    "bcast": lambda p, m: collectives.bcast_binomial(p, collectives.Message(m, ALPHA, BETA, 0.0)),
    "reduce": lambda p, m: collectives.reduce_binomial(p, collectives.Message(m, ALPHA, BETA, 0.0)),
    "allreduce": lambda p, m: collectives.allreduce_recursive_doubling(
        p, collectives.Message(m, ALPHA, BETA, 0.0)
    ),
    "allgather": lambda p, m: (p - 1) * (ALPHA + BETA * m),
    "alltoall": lambda p, m: (p - 1) * (ALPHA + BETA * m),
    "scan": lambda p, m: rounds(p) * (ALPHA + BETA * m),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize("kind", CLOSED_FORMS)
def test_replayed_messages_take_what_the_formula_says(kind: str, processes: int, size: int) -> None:
    runtime = replay(alone(kind, processes, size, size), NETWORK).runtime
    assert runtime == pytest.approx(CLOSED_FORMS[kind](processes, size), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize("processes", [2, 4, 8, 16, 64])
def test_trees_of_powers_of_two_move_every_part_but_the_roots(kind: str, processes: int) -> None:
    runtime = replay(alone(kind, processes, 1000, 1000), NETWORK).runtime
    expected = rounds(processes) * ALPHA + (processes - 1) * BETA * 1000
    assert runtime == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("processes", [2, 3, 5, 8])
def test_reduce_scatter_exchanges_parts(processes: int) -> None:
    size = 840 * processes
    runtime = replay(alone("reduce_scatter", processes, size, size // processes), NETWORK).runtime
    assert runtime == pytest.approx((processes - 1) * (ALPHA + BETA * 840), rel=1e-12)


@given(
    st.sampled_from([k for k in COLLECTIVES if k != "scan"]),
    st.integers(1, 40),
    st.integers(0, 39),
)
def test_every_rank_hears_of_what_it_has_to(kind: str, members: int, root: int) -> None:
    """Knowledge spreads along the messages as the data of the collective does."""
    root %= members
    steps = [exchanges(kind, members, root, r) for r in range(members)]
    knows = [{r} for r in range(members)]
    at = [0] * members
    sent: dict[tuple[int, int], list[set[int]]] = {}
    offered = set()
    moved = True
    while moved:
        moved = False
        for r in range(members):
            while at[r] < len(steps[r]):
                to, source, _ = steps[r][at[r]]
                if to >= 0 and (r, at[r]) not in offered:
                    offered.add((r, at[r]))
                    sent.setdefault((r, to), []).append(set(knows[r]))
                if source >= 0:
                    if not sent.get((source, r)):
                        break
                    knows[r] |= sent[source, r].pop(0)
                at[r] += 1
                moved = True
    assert at == [len(mine) for mine in steps]
    everyone = set(range(members))
    if kind in ("bcast", "scatter"):
        assert all(root in k for k in knows)
    elif kind in ("reduce", "gather"):
        assert knows[root] == everyone
    else:
        assert all(k == everyone for k in knows)


def test_a_scan_hears_of_all_lower_ranks() -> None:
    assert [len(exchanges("scan", 8, 0, r)) for r in range(8)] == [3, 3, 3, 3, 3, 3, 3, 3]


# -- the plain layout as the oracle ----------------------------------------------------------------


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize("processes", [*range(1, 18), 31, 32, 33])
def test_every_step_is_that_of_the_plain_layout(kind: str, processes: int) -> None:
    """Each hop in its turn: members that are late one after the other show who waits for whom."""
    for root in {0, 1 % processes, processes - 1}:
        program = ProgramBuilder(processes)
        c = program.collective(kind, 1000, 3000, root=root)
        for p in range(processes):
            program.compute(p, (p * 7919 % 101) * 1e-6)
            program.do(p, Op.COLLECTIVE, c)
        for network in (NETWORK, NETWORK.with_(eager_threshold=math.inf)):
            assert_same(program.build(), network)


def assert_same(program: Program, network: Network) -> None:
    plain = replay(carry_out(program), network)
    found = replay(program, network)
    assert found.end.tolist() == pytest.approx(plain.end.tolist(), rel=1e-13, abs=1e-18)


@settings(max_examples=300, deadline=None)
@given(
    programs_with_collectives(),
    st.sampled_from(["alpha-beta", "dimemas"]),
    st.sampled_from([0, 1000, math.inf]),
    st.sampled_from([0.0, 1e-6]),
    st.booleans(),
)
def test_the_engine_carries_out_the_messages_of_the_plain_layout(
    program: Program, rules: str, eager: float, latency: float, listed: bool
) -> None:
    network = NETWORK.with_(rules=rules, eager_threshold=eager, latency=latency)
    if not listed:  # as in traces without a list of communicators
        program = replace(program, communicators={})
    assert_same(program, network)


def test_charges_do_not_grow_with_the_square_of_the_members() -> None:
    program = ProgramBuilder(2000)
    for _ in range(3):
        c = program.collective("alltoall", 8, 8)
        for p in range(2000):
            program.do(p, Op.COLLECTIVE, c)
    carried, sizes = algorithms.carry_out(program.build(), 0)
    assert sizes.tolist() == [8]
    assert carried.collective_charge.tolist() == [0, 0, 0]
    assert len(carried.group_process) == 2000


def test_an_all_to_all_that_lacks_a_member_is_named() -> None:
    program = ProgramBuilder(6)
    c = program.collective("alltoall", 8, 8)
    for p in range(5):
        program.do(p, Op.COLLECTIVE, c)
    with pytest.raises(ReplayError) as caught:
        replay(program.build(), NETWORK)
    assert "5 of 6 ranks wait forever" in caught.value.message
    assert "alltoall of 6 members on all ranks" in caught.value.message


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("collective_kind", 11, "collective 0 cannot be carried out as messages"),
        ("collective_charge", 1, "collective 0 cannot be carried out as messages"),
        ("collective_charge", -1, "collective 0 cannot be carried out as messages"),
        ("root_rank", 4, "collective 0 cannot be carried out as messages"),
        ("root_rank", -1, "collective 0 cannot be carried out as messages"),
        ("group", 1, "collective 0 cannot be carried out as messages"),
        ("group", -1, "collective 0 cannot be carried out as messages"),
        ("group_offsets", 3, "offsets do not cover the rows"),
        ("group_process", 5, "a process takes part in a collective of others"),
        ("group_rank", 4, "a rank is not in its group"),
        ("group_rank", -1, "a rank is not in its group"),
    ],
)
def test_the_core_refuses_what_it_cannot_carry_out(
    column: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(program: Program, first: int):
        carried, sizes = algorithms.carry_out(program, first)
        getattr(carried, column)[-1] = value
        return carried, sizes

    monkeypatch.setattr(replayer, "carry_out", spoilt)
    with pytest.raises(ValueError, match=reason):
        replay(alone("bcast", 4, 8, 8), NETWORK)


@pytest.mark.parametrize("column", ["root_rank", "group", "collective_charge", "group_rank"])
def test_the_core_refuses_columns_of_different_lengths(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(program: Program, first: int):
        carried, sizes = algorithms.carry_out(program, first)
        return replace(carried, **{column: getattr(carried, column)[:-1]}), sizes

    monkeypatch.setattr(replayer, "carry_out", short)
    with pytest.raises(ValueError, match="columns of different lengths"):
        replay(alone("bcast", 4, 8, 8), NETWORK)


def test_ends_of_a_program_that_nobody_carries_out_are_refused() -> None:
    program = alone("bcast", 4, 8, 8)
    found = classes(program)
    core = replayer.core(program, found.message, found.collective)
    costs = replayer.costs([charge(program, found, NETWORK)], [np.ones(4)])
    with pytest.raises(ValueError, match="columns of different lengths"):
        core.run(costs, None)


# -- programs that are laid out --------------------------------------------------------------------


def test_bursts_of_collectives_of_one_member_move_on() -> None:
    program = ProgramBuilder(2)
    alone_ = program.communicator([0])
    c = program.collective("allreduce", 8, 8, communicator=alone_)
    program.compute(0, 1.0)
    program.do(0, Op.COLLECTIVE, c)
    program.compute(0, 2.0)
    m = program.message(0, 1, 8)
    program.do(0, Op.SEND, m)
    program.do(1, Op.RECEIVE, m)
    program.compute(0, 0.5)
    expanded = carry_out(program.build())
    assert expanded.operations == 2
    assert expanded.compute().tolist() == [3.5e9, 0.0]
    ideal = PRESETS["ideal"].with_(collectives="algorithm")
    assert replay(expanded, ideal).end.tolist() == [3.5, 3.0]
    assert replay(program.build(), ideal).end.tolist() == [3.5, 3.0]


def test_a_nonblocking_collective_exchanges_in_its_wait() -> None:
    program = ProgramBuilder(2)
    c = program.collective("allreduce", 8, 8)
    for p, (before, between) in enumerate([(1, 5), (4, 1)]):
        program.compute(p, before)
        program.do(p, Op.ARRIVE, c)
        program.compute(p, between)
        program.do(p, Op.WAIT_COLLECTIVE, c)
    ideal = PRESETS["ideal"].with_(collectives="algorithm", eager_threshold=0)
    assert replay(program.build(), ideal).end.tolist() == [6, 6]


def test_roots_are_ranks_of_their_communicator() -> None:
    program = ProgramBuilder(4)
    odd = program.communicator([3, 1])
    c = program.collective("bcast", 1000, 1000, root=1, communicator=odd)
    program.compute(1, 2.0)
    for p in (1, 3):
        program.do(p, Op.COLLECTIVE, c)
    expanded = carry_out(program.build())
    assert expanded.messages.sender.tolist() == [1]
    assert expanded.messages.receiver.tolist() == [3]


def test_members_of_an_unknown_communicator_are_those_that_take_part() -> None:
    program = ProgramBuilder(4)
    odd = program.communicator([1, 3])
    first, second = (
        program.collective("bcast", 1000, 1000, root=3, communicator=odd) for _ in range(2)
    )
    everyone = program.collective("barrier")
    for p in range(4):
        if p % 2:
            program.do(p, Op.COLLECTIVE, first)
            program.do(p, Op.ARRIVE, second)
            program.do(p, Op.WAIT_COLLECTIVE, second)
        program.do(p, Op.COLLECTIVE, everyone)
    known = program.build()
    expanded = carry_out(replace(known, communicators={}))
    assert expanded.messages.sender[:2].tolist() == [3, 3]
    assert expanded.messages.receiver[:2].tolist() == [1, 1]
    assert expanded.target.tolist() == carry_out(known).target.tolist()
