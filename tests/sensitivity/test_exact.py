"""Runtime and derivatives against a linear program, a plain replay, and replays of the engine."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import derivatives, linear_program

from popmodel.base.errors import UsageError
from popmodel.network.network import PRESETS, Network
from popmodel.network.point_to_point import SizeClass, Tier, Tiers
from popmodel.sensitivity.piecewise_linear import LinearPieces, pieces
from popmodel.sensitivity.runtime_planes import RuntimeCurve, Runtimes, network_at, runtime_planes
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import NONE_UNEVEN, Op, Program, ProgramBuilder
from popmodel.simulator.replayer import Replayer
from popmodel.traces import read

OWN = ("bt-mz.S.2x2", "cg.S.2", "comd.4", "ft.S.4", "is.S.4", "mix.4", "mixnbc.4", "mixpers.4")
SHARED = ("epoch_4proc", "lu.S.4", "mg.S.4")
READINGS = ("dimemas", "rooted", "algorithm")
# Of no round numbers: paths of equal length are a matter of chance.
NETWORK = PRESETS["alpha-beta"].with_(latency=3.2137e-6, bandwidth=1.2347e9)


@pytest.fixture(scope="session")
def program_of(real_trace: Callable[[str], Path]) -> Callable[[str], Program]:
    """The program of a real trace, of convex runtime."""

    @cache
    def find(name: str) -> Program:
        return replace(from_trace(read(real_trace(name))), uneven=NONE_UNEVEN)

    return find


@pytest.mark.long(after=2)
@pytest.mark.parametrize("rules", ["alpha-beta", "dimemas"])
@pytest.mark.parametrize("name", [*OWN, *SHARED])
def test_runtime_and_derivatives_are_those_of_the_linear_program(
    name: str, rules: str, program_of: Callable[[str], Program]
) -> None:
    program = program_of(name)
    replayer = Replayer(program)
    for reading in READINGS:
        network = NETWORK.with_(rules=rules, collectives=reading)
        solved = linear_program.runtime(program, network)
        carried = derivatives.runtime(program, network)
        found = Runtimes(replayer, network).touch(network.latency, 1 / network.bandwidth)
        for one in (carried, (found.runtime, found.by_latency, found.by_gap)):
            assert one == pytest.approx(solved, rel=1e-9), reading


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["comd.4", "cg.S.2", "mixnbc.4", "lu.S.4"])
def test_the_envelope_of_breakpoints_is_the_runtime_at_1000_latencies(
    name: str, program_of: Callable[[str], Program]
) -> None:
    replayer = Replayer(program_of(name))
    curve = RuntimeCurve(Runtimes(replayer, NETWORK), "latency", 1 / NETWORK.bandwidth)
    found = pieces(curve, 0, 1e-4)
    assert len(found.breakpoints) >= 4
    assert found.error == 0
    generator = random.Random(name)
    latencies = [generator.random() * 1e-4 for _ in range(1000)]
    runs = replayer.scenarios([NETWORK.with_(latency=one) for one in latencies])
    for latency, run in zip(latencies, runs, strict=True):
        assert found(latency) == pytest.approx(run.runtime, rel=1e-9)


@pytest.mark.parametrize("name", ["comd.4", "mix.4"])
def test_the_envelope_over_the_time_per_byte_is_the_runtime(
    name: str, program_of: Callable[[str], Program]
) -> None:
    replayer = Replayer(program_of(name))
    found = pieces(RuntimeCurve(Runtimes(replayer, NETWORK), "bytes", NETWORK.latency), 0, 1e-8)
    assert len(found.breakpoints) >= 4
    generator = random.Random(name)
    gaps = [generator.random() * 1e-8 for _ in range(100)]
    runs = replayer.scenarios([NETWORK.with_(bandwidth=1 / one) for one in gaps])
    for gap, run in zip(gaps, runs, strict=True):
        assert found(gap) == pytest.approx(run.runtime, rel=1e-9)


@pytest.mark.parametrize("name", ["comd.4", "cg.S.2", "mixnbc.4"])
def test_derivatives_are_differences_inside_a_piece(
    name: str, program_of: Callable[[str], Program]
) -> None:
    program = program_of(name)
    curve = RuntimeCurve(Runtimes(Replayer(program), NETWORK), "latency", 1 / NETWORK.bandwidth)
    found = pieces(curve, 1e-6, 1e-5)
    longest = max(range(len(found.slopes)), key=lambda i: found.points[i + 1] - found.points[i])
    low, high = found.points[longest], found.points[longest + 1]
    one, other = (low + (high - low) * share for share in (0.25, 0.75))
    ends = [replay(program, NETWORK.with_(latency=at)).runtime for at in (one, other)]
    assert (ends[1] - ends[0]) / (other - one) == pytest.approx(found.slopes[longest], rel=1e-6)


@pytest.mark.parametrize("rules", ["alpha-beta", "dimemas"])
@pytest.mark.parametrize("name", [*OWN, *SHARED])
def test_shares_add_up_to_the_runtime(
    name: str, rules: str, program_of: Callable[[str], Program]
) -> None:
    program = program_of(name)
    replayer = Replayer(program)
    for reading in READINGS:
        network = NETWORK.with_(rules=rules, collectives=reading, cpu_factor=1.7)
        found = Runtimes(replayer, network).shares()
        assert found.runtime == pytest.approx(replay(program, network).runtime, rel=1e-9)
        assert found.latency == pytest.approx(
            network.latency * found.distances[-1].latencies, rel=1e-9
        )
        assert found.bandwidth == pytest.approx(
            found.distances[-1].bytes / network.bandwidth, rel=1e-9
        )


RANGES = ((0.0, 1e-4), (0.0, 1e-8), (0.25, 4.0))


def test_a_breakpoint_has_a_derivative_to_each_side() -> None:
    # rank 1 waits for a message or computes for as long
    builder = ProgramBuilder(2)
    message = builder.message(0, 1, 1000)
    builder.do(0, Op.SEND, message)
    builder.compute(1, 5e-6)
    builder.do(1, Op.RECEIVE, message)
    runtimes = Runtimes(Replayer(builder.build()), PRESETS["ideal"])
    right = runtimes.touch(5e-6, 0.0)
    left = runtimes.touch(5e-6, 0.0, from_right=False)
    assert (right.runtime, right.by_latency, right.by_gap) == (5e-6, 1, 1000)
    assert (left.runtime, left.by_latency, left.by_gap) == (5e-6, 0, 0)
    found = pieces(RuntimeCurve(runtimes, "latency", 0.0), 0, 1e-5)
    assert found.points == pytest.approx((0, 5e-6, 1e-5))
    assert found.slopes == (0, 1)


TIERS = Tiers(
    Tier((SizeClass(None, 0.5e-6, 1e-10),), 4096),
    # the second class begins above the first: a message never takes less than a shorter one
    Tier((SizeClass(10_000, 2e-6, 4e-10), SizeClass(None, 1e-6, 3e-10)), 40_000),
)
TWO_TIERS = Network(
    name="two tiers",
    latency=2e-6,
    bandwidth=1 / 3e-10,
    tiers=TIERS,
)


def test_between_nodes_latency_and_time_per_byte_change_for_all_sizes_alike() -> None:
    changed = network_at(TWO_TIERS, 5e-6, 6e-10)
    assert changed.tiers is not None
    assert changed.tiers.between is not None
    assert changed.tiers.within == TIERS.within
    assert [one.alpha for one in changed.tiers.between.classes] == pytest.approx([5e-6, 4e-6])
    assert [one.beta for one in changed.tiers.between.classes] == pytest.approx([8e-10, 6e-10])
    same = network_at(TWO_TIERS, 2e-6, 1 / TWO_TIERS.bandwidth)
    assert same == TWO_TIERS


def test_networks_on_which_no_bandwidth_or_latency_can_change_are_refused() -> None:
    free = replace(TIERS, between=Tier((SizeClass(None, 1e-6, 0.0),), 4096))
    with pytest.raises(UsageError, match="the sizes of messages cost nothing"):
        network_at(TWO_TIERS.with_(tiers=free), 1e-6, 1e-9)
    with pytest.raises(UsageError, match="Dimemas charge one latency for all distances"):
        network_at(TWO_TIERS.with_(rules="dimemas"), 1e-6, 1e-9)


def test_derivatives_on_tiers_are_differences() -> None:
    builder = ProgramBuilder(3, nodes=(0, 0, 1))
    for to, size in ((1, 2000), (2, 5000), (2, 10_500), (2, 100_000)):
        message = builder.message(0, to, size)
        builder.do(0, Op.ISEND, message)
        builder.do(to, Op.RECEIVE, message)
        builder.do(0, Op.WAIT_SEND, message)
    program = builder.build()
    runtimes = Runtimes(Replayer(program), TWO_TIERS)
    latency, gap = TWO_TIERS.latency, 1 / TWO_TIERS.bandwidth
    found = runtimes.touch(latency, gap)

    def runtime(latency: float, gap: float) -> float:
        return replay(program, network_at(TWO_TIERS, latency, gap)).runtime

    more = 1e-3
    by_latency = (runtime(latency * (1 + more), gap) - found.runtime) / (latency * more)
    by_gap = (runtime(latency, gap * (1 + more)) - found.runtime) / (gap * more)
    assert found.by_latency == pytest.approx(by_latency, rel=1e-9)
    assert found.by_gap == pytest.approx(by_gap, rel=1e-9)
    over = pieces(RuntimeCurve(runtimes, "bytes", latency), 0, 1e-8)
    for share in (0.0, 0.01, 0.1, 0.5, 1.0):
        assert over(share * 1e-8) == pytest.approx(runtime(latency, share * 1e-8), rel=1e-9)
    shares = runtimes.shares()
    assert [one.name for one in shares.distances] == ["within", "between"]
    assert shares.runtime == pytest.approx(replay(program, TWO_TIERS).runtime, rel=1e-12)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Ranks that send around and meet in collectives, without a deadlock: all in one order."""
    ranks = draw(st.integers(2, 4))
    builder = ProgramBuilder(ranks, nodes=[draw(st.integers(0, 1)) for _ in range(ranks)])
    root = st.integers(0, ranks - 1)
    for _ in range(draw(st.integers(1, 12))):
        for rank in range(ranks):
            builder.compute(rank, draw(st.integers(0, 50)) * 1e-6)
        what = draw(st.sampled_from(["message", "nonblocking", "collective", "later"]))
        if what == "collective" or what == "later":
            kind = draw(st.sampled_from(["barrier", "bcast", "reduce", "allreduce", "alltoall"]))
            size = draw(st.integers(0, 100_000))
            c = builder.collective(kind, size, size, root=draw(root), root_sent=size)
            for rank in range(ranks):
                builder.do(rank, Op.COLLECTIVE if what == "collective" else Op.ARRIVE, c)
                if what == "later":
                    builder.compute(rank, draw(st.integers(0, 30)) * 1e-6)
                    builder.do(rank, Op.WAIT_COLLECTIVE, c)
            continue
        sender, receiver = draw(root), draw(root)
        message = builder.message(sender, receiver, draw(st.integers(0, 100_000)))
        if what == "nonblocking" or sender == receiver:
            builder.do(receiver, Op.POST, message)
            builder.do(sender, Op.ISEND, message)
            builder.compute(receiver, draw(st.integers(0, 30)) * 1e-6)
            builder.do(receiver, Op.WAIT_RECEIVE, message)
            builder.do(sender, Op.WAIT_SEND, message)
        else:
            builder.do(sender, Op.SEND, message)
            builder.do(receiver, Op.RECEIVE, message)
    return builder.build()


POINTS = st.tuples(st.floats(0, 1e-4), st.floats(0, 1e-8), st.floats(0.25, 4))
NETWORKS = st.builds(
    lambda rules, collectives: TWO_TIERS.with_(
        rules=rules or "alpha-beta", collectives=collectives, tiers=None if rules else TIERS
    ),
    st.sampled_from(["alpha-beta", "dimemas", None]),
    st.sampled_from(READINGS),
)


@given(programs(), NETWORKS, POINTS, POINTS, st.floats(0, 1))
def test_the_runtime_is_convex_and_does_not_fall(
    program: Program,
    network: Network,
    one: tuple[float, float, float],
    other: tuple[float, float, float],
    share: float,
) -> None:
    between = tuple(x + share * (y - x) for x, y in zip(one, other, strict=True))
    more = tuple(map(max, one, other))
    networks = [network_at(network, *point) for point in (one, other, between, more)]
    first, second, middle, most = (run.runtime for run in Replayer(program).scenarios(networks))
    assert middle <= (first + share * (second - first)) * (1 + 1e-12)
    assert max(first, second) <= most * (1 + 1e-12)


@given(programs(), NETWORKS, POINTS, POINTS)
def test_a_tangent_lies_nowhere_above_the_runtime(
    program: Program,
    network: Network,
    at: tuple[float, float, float],
    elsewhere: tuple[float, float, float],
) -> None:
    runtimes = Runtimes(Replayer(program), network)
    plane = runtimes.plane(at)
    assert plane(*at) == pytest.approx(runtimes.heights([at])[0], rel=1e-11, abs=1e-15)
    assert plane(*elsewhere) <= runtimes.heights([elsewhere])[0] * (1 + 1e-11)


@given(programs(), NETWORKS)
def test_pieces_of_random_programs_are_their_runtime(program: Program, network: Network) -> None:
    replayer = Replayer(program)
    runtimes = Runtimes(replayer, network)
    over: list[tuple[LinearPieces, Callable[[float], tuple[float, float]], float]] = [
        (pieces(RuntimeCurve(runtimes, "latency", 2e-10), 0, 1e-4), lambda x: (x, 2e-10), 1e-4),
        (pieces(RuntimeCurve(runtimes, "bytes", 3e-6), 0, 1e-8), lambda y: (3e-6, y), 1e-8),
    ]
    for found, point, high in over:
        places = [high * k / 20 for k in range(21)]
        runs = replayer.scenarios([network_at(network, *point(at)) for at in places])
        for at, run in zip(places, runs, strict=True):
            assert found(at) == pytest.approx(run.runtime, rel=1e-9, abs=1e-15)


@given(programs(), NETWORKS, POINTS)
def test_planes_of_random_programs_are_their_runtime(
    program: Program, network: Network, point: tuple[float, float, float]
) -> None:
    busy = network.with_(send_overhead=0.3e-6, receive_overhead=0.2e-6)
    found = runtime_planes(Runtimes(Replayer(program), busy), *RANGES, error=1e-3)
    runtime = replay(program, network_at(busy, *point)).runtime
    assert found.error <= 1e-3
    assert found(*point) <= runtime * (1 + 1e-11) + 1e-15
    assert found(*point) >= runtime * (1 - found.error - 1e-11)


@given(programs(), NETWORKS.filter(lambda one: one.tiers is None))
def test_random_programs_agree_with_the_linear_program(program: Program, network: Network) -> None:
    odd = network.with_(latency=2.7183e-6, bandwidth=3.1416e9)
    solved = linear_program.runtime(program, odd)
    right = Runtimes(Replayer(program), odd).touch(odd.latency, 1 / odd.bandwidth)
    assert right.runtime == pytest.approx(solved.runtime, rel=1e-9)
    sides = [derivatives.runtime(program, odd, side) for side in (-1, 1)]
    assert right.by_latency == pytest.approx(sides[1].latency, abs=1e-9)
    # equally long paths: what the solver pays is between the derivatives of both sides
    assert sides[0].latency - 1e-6 <= solved.latency <= sides[1].latency + 1e-6
