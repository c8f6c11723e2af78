"""Collectives as messages against the same messages laid out in plain Python."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.algorithms import carry_out
from oracle.drawn import programs_with_collectives
from oracle.programs import alone

from popmodel.network.collectives import parse_selection
from popmodel.network.network import PRESETS, Network
from popmodel.network.point_to_point import SizeClass, Tier, Tiers
from popmodel.simulator import algorithms, replay, replayer
from popmodel.simulator.algorithms import ALGORITHMS, AlgorithmPattern
from popmodel.simulator.costs import charge, classes, core, costs
from popmodel.simulator.program import Op, Program, ProgramBuilder
from popmodel.simulator.replayer import Replayer

ALPHA, BETA = 1e-6, 1e-9
# Every transfer keeps its sender busy: both ends of a rendezvous end with it.
EVERY = [(kind, name) for kind, names in ALGORITHMS.items() for name in names]
NETWORK = PRESETS["alpha-beta"].with_(
    latency=ALPHA, bandwidth=1 / BETA, eager_threshold=0, collectives="algorithm"
)


# -- the plain layout as the oracle ----------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_step_is_that_of_the_plain_layout(kind: str, name: str) -> None:
    """Each hop in its turn: members that are late one after the other show who waits for whom."""
    size = 150_000 if name == "chain" else 1000
    members = (*range(1, 18), 31, 32, 33)
    for processes, root in ((p, root) for p in members for root in {0, 1 % p, p - 1}):
        program = ProgramBuilder(processes)
        c = program.collective(kind, size, 3 * size, root=root)
        for p in range(processes):
            program.compute(p, (p * 7919 % 101) * 1e-6)
            program.do(p, Op.COLLECTIVE, c)
        networks = [NETWORK, NETWORK.with_(eager_threshold=math.inf)]
        assert_same(program.build(), networks, {kind: name}, f"{processes} processes, root {root}")


def assert_same(
    program: Program,
    networks: Sequence[Network],
    algorithms: Mapping[str, str] = MappingProxyType({}),
    about: str = "",
) -> None:
    selected = [f"{kind}={name}" for kind, name in algorithms.items() if kind != "init"]
    if "init" in algorithms and "barrier" not in algorithms:
        selected = [f"barrier={algorithms['init']}"]
    laid_out, carried = Replayer(carry_out(program, algorithms)), Replayer(program)
    for network in networks:
        chosen = network.with_(algorithms=tuple(map(parse_selection, selected)))
        plain, found = laid_out.run(network), carried.run(chosen)
        assert found.end.tolist() == pytest.approx(plain.end.tolist(), rel=1e-13, abs=1e-18), about


@given(
    programs_with_collectives(),
    st.sampled_from(["alpha-beta", "dimemas"]),
    st.sampled_from([0, 1000, math.inf]),
    st.sampled_from([0.0, 1e-6]),
    st.booleans(),
    st.fixed_dictionaries({k: st.sampled_from(list(v)) for k, v in ALGORITHMS.items()}),
)
def test_the_engine_carries_out_the_messages_of_the_plain_layout(
    program: Program,
    rules: str,
    eager: float,
    latency: float,
    listed: bool,
    algorithms: dict[str, str],
) -> None:
    network = NETWORK.with_(rules=rules, eager_threshold=eager, latency=latency)
    if not listed:  # as in traces without a list of communicators
        program = replace(program, communicators={})
    algorithms["barrier"] = algorithms.pop("init")
    assert_same(program, [network], algorithms | {"init": algorithms["barrier"]})


NEAR = Tier((SizeClass(None, 3e-7, 2e-10),), 2000, 1e-7, 2e-7)
FAR = Tier((SizeClass(500.0, 2e-6, 1e-9), SizeClass(None, 3e-6, 5e-10)), 100, 4e-7)


@given(
    programs_with_collectives(),
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
    st.fixed_dictionaries({k: st.sampled_from(list(v)) for k, v in ALGORITHMS.items()}),
)
def test_every_message_of_a_collective_goes_its_own_distance(
    program: Program, nodes: list[int], algorithms: dict[str, str]
) -> None:
    placed = replace(program, nodes=np.array(nodes[: program.processes], np.int32))
    algorithms["barrier"] = algorithms.pop("init")
    tiers = Tiers(NEAR, FAR)
    assert_same(placed, [NETWORK.with_(tiers=tiers)], algorithms | {"init": algorithms["barrier"]})


def test_charges_do_not_grow_with_the_square_of_the_members() -> None:
    program = ProgramBuilder(2000)
    for _ in range(3):
        c = program.collective("alltoall", 16000, 16000)
        for p in range(2000):
            program.do(p, Op.COLLECTIVE, c)
    carried, sizes = algorithms.carry_out(program.build(), 0)
    assert sizes.size.tolist() == [8]
    assert carried.algorithm.tolist() == [0, 0, 0]
    assert carried.part_charge.tolist() == [0]
    assert len(carried.group_process) == 2000


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("algorithm", 1, "collective 0 cannot be carried out as messages"),
        ("algorithm", -1, "collective 0 cannot be carried out as messages"),
        ("algorithm_offsets", 2, "offsets do not cover the rows"),
        ("part_pattern", len(AlgorithmPattern), "collective 0 cannot be carried out as messages"),
        ("part_segments", 0, "collective 0 cannot be carried out as messages"),
        ("part_charge", 1, "collective 0 cannot be carried out as messages"),
        ("part_charge", -1, "collective 0 cannot be carried out as messages"),
        ("root_rank", 4, "collective 0 cannot be carried out as messages"),
        ("root_rank", -1, "collective 0 cannot be carried out as messages"),
        ("group", 1, "collective 0 cannot be carried out as messages"),
        ("group", -1, "collective 0 cannot be carried out as messages"),
        ("group_offsets", 3, "offsets do not cover the rows"),
        ("group_process", 5, "a process takes part in a collective of others"),
        ("group_rank", 4, "a rank is not in its group"),
        ("group_rank", -1, "a rank is not in its group"),
        ("group_member", 4, "a member that is not there"),
    ],
)
def test_the_core_refuses_what_it_cannot_carry_out(
    column: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(program: Program, first: int, _selections: tuple, *, tiers: bool):
        carried, sizes = algorithms.carry_out(program, first, tiers=tiers)
        getattr(carried, column)[-1] = value
        return carried, sizes

    monkeypatch.setattr(replayer, "carry_out", spoilt)
    with pytest.raises(ValueError, match=reason):
        replay(alone("bcast", 4, 8, 8), NETWORK)


def test_ends_of_a_program_that_nobody_carries_out_are_refused() -> None:
    program = alone("bcast", 4, 8, 8)
    found = classes(program)
    paid = costs([charge(program, found, NETWORK)], [np.ones(4)])
    with pytest.raises(ValueError, match="columns of different lengths"):
        core(program, found.message, found.collective).run(paid, None)
