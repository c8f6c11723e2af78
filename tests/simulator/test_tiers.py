"""Networks on which messages inside a node and between nodes cost differently."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.network.collectives import parse_selection
from popmodel.network.network import PRESETS, Network
from popmodel.network.placement import parse_mapping
from popmodel.network.point_to_point import SizeClass, Tier, Tiers
from popmodel.simulator import Program, Replayer, replay
from popmodel.simulator.program import Op, ProgramBuilder

FLAT = PRESETS["alpha-beta"].with_(latency=1e-6, bandwidth=1e9, eager_threshold=4096)
NEAR = Tier((SizeClass(100.0, 1e-6, 0.0), SizeClass(None, 2e-6, 1e-9)), 1000)
FAR = Tier((SizeClass(None, 10e-6, 2e-9),), math.inf)


def tiered(within: Tier | None = NEAR, between: Tier | None = FAR, **changes: object) -> Network:
    return Network(tiers=Tiers(within, between), **changes)


def message(size: int, nodes: list[int], late: float = 0.0) -> Program:
    program = ProgramBuilder(2, nodes)
    m = program.message(0, 1, size)
    program.do(0, Op.SEND, m)
    program.compute(1, late)
    program.do(1, Op.RECEIVE, m)
    return program.build()


@pytest.mark.parametrize(
    ("size", "nodes", "seconds"),
    [
        (100, [0, 0], 1e-6),
        (500, [0, 0], 2e-6 + 500e-9),
        (500, [0, 1], 10e-6 + 1000e-9),
        (0, [1, 0], 10e-6),
    ],
)
def test_a_message_costs_what_its_distance_and_size_say(
    size: int, nodes: list[int], seconds: float
) -> None:
    assert replay(message(size, nodes), tiered()).runtime == pytest.approx(seconds, rel=1e-12)


def test_each_tier_has_its_eager_threshold() -> None:
    late = 0.5
    assert replay(message(999, [0, 0], late), tiered()).end[0] == 0.0
    assert replay(message(1000, [0, 0], late), tiered()).end[0] > late
    assert replay(message(10**6, [0, 1], late), tiered()).end[0] == 0.0


@pytest.mark.parametrize(("nodes", "seconds"), [([0, 0, 0], 4e-6), ([0, 0, 1], 40e-6)])
def test_a_collective_pays_for_the_longest_distance_of_its_members(
    nodes: list[int], seconds: float
) -> None:
    program = ProgramBuilder(3, nodes)
    barrier = program.collective("barrier")
    for rank in range(3):
        program.do(rank, Op.COLLECTIVE, barrier)
    # fan-in and fan-out of ceil(log2 3) = 2 latencies each
    assert replay(program.build(), tiered()).runtime == pytest.approx(seconds, rel=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 10**5)), max_size=12),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.sampled_from(["dimemas", "synchronising", "rooted", "algorithm"]),
)
def test_equal_tiers_are_a_flat_network(
    messages: list[tuple[int, int, int]], nodes: list[int], reading: str
) -> None:
    program = ProgramBuilder(4, nodes)
    for sender, receiver, size in messages:
        m = program.message(sender, receiver, size)
        program.compute(sender, size * 1e-9)
        program.do(sender, Op.ISEND, m)
        program.do(receiver, Op.RECEIVE, m)
        c = program.collective("allreduce", size, size)
        for rank in range(4):
            program.do(rank, Op.COLLECTIVE, c)
    same = Tier((SizeClass(None, FLAT.latency, 1 / FLAT.bandwidth),), FLAT.eager_threshold)
    flat = FLAT.with_(collectives=reading)
    built = program.build()
    ends = replay(built, flat.with_(tiers=Tiers(same, same))).end
    assert ends == pytest.approx(replay(built, flat).end, rel=1e-12)


def test_the_document_has_both_tiers() -> None:
    found = tiered(name="m").to_dict()["tiers"]
    assert found["within"]["classes"][0] == {"upto": 100.0, "alpha": 1e-6, "beta": 0.0}
    assert found["between"]["eager_threshold"] is None
    assert "tiers" not in FLAT.to_dict()
    assert list(tiered(between=None).to_dict()["tiers"]) == ["within"]


def test_the_ideal_form_of_a_network_costs_nothing() -> None:
    ideal = tiered(cpu_factor=2.0).ideal()
    assert replay(message(10**6, [0, 1]), ideal).runtime == 0.0
    assert (ideal.cpu_factor, ideal.bandwidth) == (2.0, math.inf)


def test_other_placements_are_scenarios_like_others() -> None:
    program = message(500, [0, 0])
    names = ("block:1", "block:2", "traced")
    networks = [tiered(mapping=parse_mapping(name)) for name in names]
    found = Replayer(program).scenarios(networks)
    assert [one.runtime for one in found] == pytest.approx([11e-6, 2.5e-6, 2.5e-6])
    assert [one.network for one in found] == networks
    assert [replay(program, one).runtime for one in networks] == [one.runtime for one in found]
    placed = Replayer(program).path(networks[0])
    assert placed.tier.max() == 1
    assert Replayer(program).moments(networks[0]).last.max() == found[0].runtime * 1e9


def test_scenarios_with_other_algorithms_are_replayed_apart() -> None:
    program = ProgramBuilder(8)
    c = program.collective("allreduce", 8000, 8000)
    for rank in range(8):
        program.do(rank, Op.COLLECTIVE, c)
    replayer = Replayer(program.build())
    networks = [
        FLAT.with_(
            collectives="algorithm",
            algorithms=(parse_selection(f"allreduce={name}"),),
            latency=late,
        )
        for name in ("ring", "reduce_bcast")
        for late in (1e-6, 2e-6)
    ]
    found = [one.runtime for one in replayer.scenarios(networks)]
    assert found == [replayer.run(one).runtime for one in networks]
    assert len(set(found)) == 4
