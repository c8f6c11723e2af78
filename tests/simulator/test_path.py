"""The critical path: its steps add up to the runtime, and its counts are one-sided derivatives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.drawn import networks, programs, programs_with_collectives

from popmodel.base.errors import ReplayError
from popmodel.network.network import PRESETS, Network
from popmodel.simulator.execution import PathPart
from popmodel.simulator.program import Op, Program, ProgramBuilder
from popmodel.simulator.replayer import Replayer, replays_once

NEAR = 2.0**-7 * 1e-9
"""A little further (s): no other path becomes the longest over that distance."""


def difference(replayer: Replayer, network: Network, side: str) -> float:
    """Slope of the runtime by the latency, from two replays."""
    step = NEAR if side == "right" else -NEAR
    moved = network.with_(latency=network.latency + step)
    return (replayer.run(moved).runtime - replayer.run(network).runtime) / step


def assert_explains(program: Program, network: Network, side: str) -> None:
    replayer = Replayer(program)
    try:
        runtime = replayer.run(network).runtime
    except ReplayError:
        return
    path = replayer.path(network, side)
    assert path.time.sum() / 1e9 == pytest.approx(runtime, rel=1e-9, abs=1e-15)
    assert path.runtime == runtime
    parts = path.latency_time + path.bytes_time + path.overhead
    of_messages = path.part != PathPart.COMPUTE
    assert parts[of_messages] == pytest.approx(path.time[of_messages])
    assert not parts[~of_messages].any()
    slope = difference(replayer, network, side)
    assert path.latency.sum() == pytest.approx(slope, abs=1e-2)


SIDES = st.sampled_from(["right", "left"])


# Members of different amounts are left out: the last to arrive decides, so that a little more
# latency can change what is paid by leaps.
@given(programs(uneven=False), networks(), SIDES)
def test_it_adds_up_and_its_latencies_are_the_slope(
    program: Program, network: Network, side: str
) -> None:
    assert_explains(program, network.with_(latency=network.latency + 1e-7), side)


@given(
    programs_with_collectives(),
    st.sampled_from(["alpha-beta", "dimemas"]),
    st.sampled_from([0, 1000, math.inf]),
    SIDES,
)
def test_it_leads_through_the_messages_of_collectives(
    program: Program, rules: str, eager: float, side: str
) -> None:
    network = Network(
        rules=rules, eager_threshold=eager, latency=1e-6, bandwidth=1e9, collectives="algorithm"
    )
    assert_explains(program, network, side)


def test_it_goes_from_the_late_sender_over_the_message_to_the_receiver() -> None:
    program = ProgramBuilder(2)
    m = program.message(0, 1, 1000)
    program.compute(0, 5e-6)
    program.do(0, Op.SEND, m)
    program.compute(1, 1e-6)
    program.do(1, Op.RECEIVE, m)
    program.compute(1, 2e-6)
    network = PRESETS["alpha-beta"].with_(latency=1e-6, bandwidth=1e9)
    path = Replayer(program.build()).path(network)
    assert path.part.tolist() == [PathPart.COMPUTE, PathPart.TRANSFER, PathPart.COMPUTE]
    assert path.process.tolist() == [0, 1, 1]
    assert path.source.tolist() == [0, 0, 1]
    assert path.time == pytest.approx([5000, 2000, 2000])
    assert path.bytes.tolist() == [0, 1000, 0]
    assert path.tier.tolist() == [-1, 1, -1]
    assert path.changes == 1


def test_of_equal_paths_the_asked_side_decides() -> None:
    program = ProgramBuilder(2)
    m = program.message(0, 1, 0)
    program.do(0, Op.SEND, m)
    program.compute(1, 1e-6)
    program.do(1, Op.RECEIVE, m)
    replayer = Replayer(program.build())
    network = Network(latency=1e-6)
    assert replayer.path(network, "right").latency.sum() == 1
    assert replayer.path(network, "left").latency.sum() == 0


@given(programs(), st.lists(networks(), max_size=19))
def test_many_networks_at_once_give_what_each_gives_alone(
    program: Program, several: list[Network]
) -> None:
    replayer = Replayer(program)
    alone = []
    for network in several:
        try:
            alone.append(replayer.run(network))
        except ReplayError:
            return
    together = replayer.scenarios(several)
    assert [one.network for one in together] == several
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.end, other.end)
        assert np.array_equal(one.compute, other.compute)


@given(programs(uneven=False), st.lists(networks(), max_size=11), SIDES)
def test_slopes_of_many_networks_are_those_of_their_paths(
    program: Program, several: list[Network], side: str
) -> None:
    replayer = Replayer(program)
    for along in ("latency", "bytes"):
        paths = []
        for network in several:
            try:
                paths.append(replayer.path(network, side, along))
            except ReplayError:
                return
        found = replayer.slopes(several, side, along)
        for path, (runtime, slope) in zip(paths, found, strict=True):
            counts = path.latency if along == "latency" else path.bytes
            assert runtime == path.runtime
            assert slope == pytest.approx(counts.sum(), rel=1e-9, abs=1e-9)


def test_a_deadlock_on_one_of_many_networks_is_an_error() -> None:
    program = ProgramBuilder(2)
    first, second = program.message(0, 1, 1000), program.message(1, 0, 1000)
    for p, sent, received in ((0, first, second), (1, second, first)):
        program.do(p, Op.SEND, sent)
        program.do(p, Op.RECEIVE, received)
    replayer = Replayer(program.build())
    eager, waits = Network(eager_threshold=math.inf), Network(eager_threshold=0)
    with pytest.raises(ReplayError, match="deadlock"):
        replayer.scenarios([eager, waits])
    once = replays_once(replayer, [eager, waits])  # where the others have results
    assert once(eager).runtime == 0
    with pytest.raises(ReplayError, match="deadlock"):
        once(waits)


def test_paths_whose_sums_differ_by_rounding_are_equally_long() -> None:
    # 0.1 ns + 0.2 ns is more than 0.3 ns by the last bit.
    program = ProgramBuilder(2)
    m = program.message(0, 1, 0)
    program.compute(0, 0.1e-9)
    program.do(0, Op.SEND, m)
    program.compute(1, 0.3e-9)
    program.do(1, Op.RECEIVE, m)
    replayer, network = Replayer(program.build()), PRESETS["ideal"].with_(latency=0.2e-9)
    assert replayer.path(network).latency.sum() == 1
    assert replayer.path(network, side="left").latency.sum() == 0
    assert replayer.path(network, side="left").runtime == replayer.run(network).runtime
