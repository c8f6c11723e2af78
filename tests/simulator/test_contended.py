"""Replays on networks whose links messages share: Dimemas' answers, closed forms, properties."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import contended as oracle
from oracle.drawn import networks, programs, renumbered

from popmodel.base.errors import ReplayError, UsageError
from popmodel.kernel import _kernel
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import Program, replay, replayer
from popmodel.simulator import costs as core
from popmodel.simulator.costs import Charges, classes
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.simulator.replayer import Moments, Replayer
from popmodel.traces import read

DATA = Path(__file__).parent.parent / "data"
CASES = json.loads((DATA / "dimemas_micro.json").read_text())
TRACES = json.loads((DATA / "dimemas_traces.json").read_text())
MEGABYTE = 2**20
FACTORS = {1: "constant", 2: "linear", 3: "logarithmic"}


def apart(program: Program) -> Program:
    """The program with each process on a node of its own."""
    return replace(program, nodes=np.arange(program.processes, dtype=np.int32))


def in_order_of_time(program: Program, network: Network) -> Moments:
    """The replay on shared links, of a network without limits as well."""
    return Replayer(program)._shared(network, moments=True)


# -- Dimemas ---------------------------------------------------------------------------------------

HAND_MADE = {
    "exchange_duplex_1_1": {"output_links": 1, "input_links": 1},
    "exchange_halfduplex_1_0": {"input_links": 1},
    "two_pairs_bus0": {"output_links": 1, "input_links": 1},
    "two_pairs_bus1": {"output_links": 1, "input_links": 1, "buses": 1},
    "two_sends_outlink_1": {"output_links": 1, "input_links": 1},
    "two_sends_out2_in1": {"output_links": 2, "input_links": 1},
    "two_to_one_inlink_1": {"output_links": 1, "input_links": 1},
}


def hand_made(name: str, folder: Path) -> Program:
    path = folder / "case.dim"
    path.write_text(CASES[name]["dim"])
    return from_trace(read(path))


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_hand_made_case_of_dimemas(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    network = PRESETS["dimemas"].with_(
        latency=case["net"]["lat"],
        bandwidth=case["net"]["bw"] * MEGABYTE,
        eager_threshold=math.inf,
        **HAND_MADE[name],
    )
    found = replay(apart(hand_made(name, tmp_path)), network)
    assert found.end.tolist() == pytest.approx(case["ends"], abs=1e-9)
    assert found.runtime == pytest.approx(case["runtime"], abs=1e-9)


def test_the_hand_made_case_of_dimemas_inside_a_node(tmp_path: Path) -> None:
    case = CASES["intra_node"]
    network = PRESETS["dimemas"].with_(
        latency=case["net"]["ilat"],
        bandwidth=case["net"]["ibw"] * MEGABYTE,
        eager_threshold=math.inf,
        links_within=1,
    )
    found = replay(hand_made("intra_node", tmp_path), network)
    assert found.end.tolist() == pytest.approx(case["ends"], abs=1e-9)


def of_row(row: dict) -> Network:
    params = row["params"]
    return PRESETS["dimemas"].with_(
        latency=params["lat"],
        bandwidth=params["bw"] * MEGABYTE,
        collective_cost=FACTORS[params.get("collmodel", 1)],
        cpu_factor=params.get("cpu", 1.0),
        output_links=1,
        input_links=1,
        buses=params.get("buses", 0),
    )


# A link in and a link out per node: what the reference has unless it says otherwise.
LINKED = [row for row in TRACES if row["params"]["bw"] and row["params"].get("links") != 0]
# Where Dimemas read the run or the rules in another way, the largest part of its runtime that the
# replay is off: without -S bits of its own trace format say who waits for a receiver; and of a
# hybrid run it simulates the parallel regions anew.
OFF = {"noS": 0.016, "bt-mz.S.2x2": 0.004}


def cause(row: dict) -> str | None:
    if row["trace"].startswith("bt-mz"):
        return "bt-mz.S.2x2"
    return "noS" if row["config"].endswith("noS") else None


@pytest.mark.parametrize("trace", sorted({row["trace"] for row in LINKED}))
def test_dimemas_runtimes_with_links_and_buses(
    trace: str, real_trace: Callable[[str], Path]
) -> None:
    program = apart(from_trace(read(real_trace(trace))))
    rows = [row for row in LINKED if row["trace"] == trace]
    assert rows
    for row in rows:
        runtime = replay(program, of_row(row)).runtime
        if (why := cause(row)) is None:
            assert runtime == pytest.approx(row["runtime"], abs=1e-9), row["config"]
        else:
            assert runtime == pytest.approx(row["runtime"], rel=OFF[why]), row["config"]


# -- what must hold on any network -----------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@given(program=programs(), network=networks())
def test_without_limits_it_is_the_replay_without_contention(
    sharing: str, program: Program, network: Network
) -> None:
    program = apart(program)
    try:
        expected = replay(program, network).end.tolist()
    except ReplayError as error:
        with pytest.raises(ReplayError) as caught:
            in_order_of_time(program, network.with_(sharing=sharing))
        assert caught.value.message == error.message
        return
    found = in_order_of_time(program, network.with_(sharing=sharing))
    assert (found.last / 1e9).tolist() == expected


@given(programs(), networks(), st.sampled_from(["fifo", "fair"]))
def test_more_links_than_messages_change_nothing(
    program: Program, network: Network, sharing: str
) -> None:
    many = network.with_(
        **dict.fromkeys(("output_links", "input_links", "links_within", "buses"), 99),
        sharing=sharing,
    )
    for placed in (program, apart(program)):
        try:
            expected = replay(placed, network).end
        except ReplayError:
            with pytest.raises(ReplayError):
                replay(placed, many)
            continue
        assert replay(placed, many).end == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_a_message_without_bytes_takes_the_time_of_its_header() -> None:
    builder = ProgramBuilder(2, nodes=[0, 1])
    message = builder.message(0, 1, 0)
    builder.do(0, Op.SEND, message)
    builder.do(1, Op.RECEIVE, message)
    network = PRESETS["smpi"].with_(latency=0.0, bandwidth=1e9, output_links=1, sharing="fair")
    assert replay(builder.build(), network).end[1] == pytest.approx(16e-9)


# -- the plain replay as the oracle ----------------------------------------------------------------


@st.composite
def exchanges(draw: st.DrawFn) -> Program:
    """Messages between a few processes on a few nodes at times that are all different."""
    processes = draw(st.integers(2, 6))
    several = st.lists(st.integers(0, 3), min_size=processes, max_size=processes)
    nodes = draw(st.one_of(st.just(list(range(processes))), several))
    program = ProgramBuilder(processes, nodes)
    ranks = st.integers(0, processes - 1)
    waits: list[tuple[int, Op, int]] = []
    steps: list[tuple[int, Op, int]] = []
    for _ in range(draw(st.integers(1, 30))):
        sender, receiver = draw(ranks), draw(ranks)
        m = program.message(sender, receiver, draw(st.sampled_from([300, 1000, 5000, 9000])))
        blocking = sender != receiver and draw(st.integers(0, 3)) == 0
        steps.append((receiver, Op.POST, m))
        waits.append((receiver, Op.WAIT_RECEIVE, m))
        steps.append((sender, Op.SEND if blocking else Op.ISEND, m))
        if not blocking:
            waits.append((sender, Op.WAIT_SEND, m))
        if draw(st.integers(0, 7)) == 0:
            steps.append(waits.pop(draw(st.integers(0, len(waits) - 1))))
    if draw(st.booleans()):
        c = program.collective("barrier")
        steps += [(p, Op.COLLECTIVE, c) for p in range(processes)]
    # Primes: sums of some of them are no sums of others.
    for n, (p, op, target) in enumerate(steps + waits):
        program.compute(p, (draw(st.sampled_from([0, 0, 1, 9])) * 97 + n / 128 + p / 8192) * 1e-9)
        program.do(p, op, target)
    return program.build()


@st.composite
def limits(draw: st.DrawFn) -> Network:
    return PRESETS["alpha-beta"].with_(
        rules=draw(st.sampled_from(["alpha-beta", "dimemas"])),
        latency=draw(st.sampled_from([0.0, 0.3e-6])),
        send_overhead=draw(st.sampled_from([0.0, 0.11e-6])),
        receive_overhead=draw(st.sampled_from([0.0, 0.23e-6])),
        bandwidth=1e9,
        eager_threshold=draw(st.sampled_from([0, 1000, math.inf])),
        collectives="synchronising",
        output_links=draw(st.integers(0, 2)),
        input_links=draw(st.integers(0, 2)),
        buses=draw(st.integers(0, 3)),
    )


def plain(
    program: Program,
    network: Network,
    charges: Charges,
    load: dict,
    node: list[int],
    cpu: float,
) -> tuple[list[float], list[int]]:
    """What the oracle finds, with the costs that the compiled engine got."""
    found = classes(program)
    columns = {**vars(charges), **load}
    waits = columns.pop("sender_waits_for_transfer")
    of_collectives = {"collective_cost", "member_cost", "collective_rule", "request_cost"}
    costs = {
        name: column[found.collective if name in of_collectives else found.message].tolist()
        for name, column in columns.items()
        if name != "uneven_cost"
    }
    costs |= {"cpu": cpu, "sender_waits_for_transfer": waits}
    if network.sharing == "fifo":
        limit = (network.output_links, network.input_links, network.buses)
        return oracle.Replay(program, costs, oracle.Fifo(node, *limit)).run()
    far = network.bandwidth / 1e9
    both = network.output_links and network.input_links
    # Links: out of each node, into each (the same ones if half duplex), all buses.
    nodes = max(node) + 1
    capacity = [(network.output_links or network.input_links) * far] * nodes
    capacity += [network.input_links * far] * nodes + [network.buses * far]
    ways = {}
    messages = program.messages
    ends = zip(messages.sender.tolist(), messages.receiver.tolist(), strict=True)
    for row, (p, q) in enumerate(ends):
        way = [node[p], node[q] + (nodes if both else 0)] if any(capacity[:nodes]) else []
        way += [2 * nodes] * (network.buses > 0)
        if node[p] != node[q] and way:
            ways[row] = way
    size = dict(enumerate(costs["bytes"]))
    return oracle.Replay(
        program, costs, None, (ways, capacity, dict.fromkeys(size, far), size)
    ).run()


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@given(program=exchanges(), network=limits())
def test_the_compiled_engine_agrees_with_the_plain_one(
    sharing: str, program: Program, network: Network
) -> None:
    network = network.with_(sharing=sharing)
    asked: list = []
    found: list = []
    carry, kernel = replayer.carry, _kernel.replay_contended

    def asking(program, core, carried, charges, shared, cpu, *, busy, size, node, moments):
        asked.append((charges, {"busy": busy, "bytes": size}, node.tolist(), float(cpu[0])))
        load = {"busy": busy, "size": size, "node": node}
        return carry(program, core, carried, charges, shared, cpu, **load, moments=moments)

    def finding(*given, **named):
        found.append(kernel(*given, **named))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replayer, "carry", asking)
        patch.setattr(_kernel, "replay_contended", finding)
        with suppress(ReplayError):
            in_order_of_time(program, network)
    [(clock, stuck_at, *_)] = found
    end, at = plain(program, network, *asked[0])
    assert stuck_at.tolist() == at
    assert clock.tolist() == pytest.approx(end, rel=1e-9)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@given(program=exchanges(), network=limits(), data=st.data())
def test_the_numbers_of_ranks_do_not_matter(
    sharing: str, program: Program, network: Network, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(program.processes)))
    # Messages that are ready at the same time start by rank: let none be.
    apart_in_time = np.arange(program.operations) / 64 + np.sqrt(np.arange(program.operations))
    program = replace(program, burst=program.burst + apart_in_time)
    network = network.with_(sharing=sharing)
    try:
        end = replay(program, network).end
    except ReplayError:
        with pytest.raises(ReplayError):
            replay(renumbered(program, order), network)
        return
    again = replay(renumbered(program, order), network).end
    assert again[order] == pytest.approx(end, rel=1e-9)


# -- closed forms ----------------------------------------------------------------------------------

# 1 us and 1 B/ns, everything eager.
SIMPLE = PRESETS["alpha-beta"].with_(latency=1e-6, bandwidth=1e9, eager_threshold=math.inf)
ONE_EACH = SIMPLE.with_(output_links=1, input_links=1)


def all_to(receiver: int, senders: int, size: int) -> Program:
    """Senders that all send to one process at once; it is the last."""
    program = ProgramBuilder(senders + 1, range(senders + 1))
    for p in range(senders):
        m = program.message(p, receiver, size)
        program.do(p, Op.ISEND, m)
        program.do(receiver, Op.RECEIVE, m)
    return program.build()


@pytest.mark.parametrize("flows", [1, 2, 7, 100])
def test_a_link_fairly_shared_by_n_equal_messages_is_n_times_slower(flows: int) -> None:
    found = replay(all_to(flows, flows, 10**6), ONE_EACH.with_(sharing="fair"))
    assert found.runtime == pytest.approx(1e-6 + flows * 1e-3, rel=1e-12)


def test_links_inside_a_node_are_those_of_each_process() -> None:
    program = replace(all_to(2, 2, 10**6), nodes=np.zeros(3, np.int32))
    within = SIMPLE.with_(links_within=1)
    for sharing in ("fifo", "fair"):
        found = replay(program, within.with_(sharing=sharing)).runtime
        assert found == pytest.approx(1e-6 + 2e-3, rel=1e-12)
        # Links of nodes have nothing to do with it.
        assert replay(program, ONE_EACH.with_(sharing=sharing)).runtime == pytest.approx(1.001e-3)


def test_a_short_message_leaves_its_share_to_a_long_one() -> None:
    program = ProgramBuilder(3, range(3))
    long, short = program.message(0, 2, 3000), program.message(1, 2, 1000)
    program.do(0, Op.ISEND, long)
    program.do(1, Op.ISEND, short)
    program.do(2, Op.RECEIVE, short)
    program.do(2, Op.RECEIVE, long)
    network = ONE_EACH.with_(latency=0.0, sharing="fair")
    moments = Replayer(program.build()).moments(network)
    # Both at half the rate until the short one is through at 2 us; 2000 B are left then.
    assert moments.end[-2:].tolist() == pytest.approx([2000, 4000])


def test_shared_links_have_no_critical_path() -> None:
    with pytest.raises(UsageError, match="has no critical path that adds up"):
        Replayer(all_to(1, 1, 8)).path(ONE_EACH)


def test_scenarios_with_and_without_shared_links_are_single_replays() -> None:
    program = all_to(3, 3, 10**6)
    networks = [SIMPLE, ONE_EACH, SIMPLE.with_(latency=2e-6), ONE_EACH.with_(sharing="fair")]
    found = Replayer(program).scenarios(networks)
    assert [one.network for one in found] == networks
    for one in found:
        assert one.end.tolist() == replay(program, one.network).end.tolist()


def test_time_in_calls_is_found_on_shared_links() -> None:
    program = all_to(2, 2, 10**6)
    found = replay(program, ONE_EACH, places=np.empty(0, np.int32))
    assert found.time_in_calls is not None
    names = {op.name.lower(): row for op, row in zip(Op, found.time_in_calls[0], strict=True)}
    assert names["receive"] == pytest.approx(2.001e-3)
    assert names["isend"] == 0


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("sender", [2], "a process that is not there"),
        ("receiver", [-1], "a process that is not there"),
        ("receiver", [0, 1], "columns of different lengths"),
        ("busy", [], "columns of different lengths"),
        ("place", [0, 2], "a node that is not there"),
        ("pair", [1], "columns of different lengths"),
        ("route_offsets", [0, 0], "offsets do not fit the routes"),
        ("route_link", [0], "offsets do not cover the rows"),
        ("output", -1, "a number below 0"),
        ("costs", None, "not one network"),
    ],
)
def test_the_core_refuses_what_does_not_fit(
    column: str, value: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = _kernel.replay_contended

    def spoilt(program, costs, carried, **named):
        if column == "costs":
            paid = asked[0]
            costs = core.costs([paid] * len(core.filled([network])), [np.ones(2)] * 8)
        else:
            kept = getattr(named[column], "dtype", None)
            named[column] = value if kept is None else np.array(value, kept)
        return kernel(program, costs, carried, **named)

    def asking(program, plan, carried, charges: Charges, *others, **named):
        asked.append(charges)
        return carry(program, plan, carried, charges, *others, **named)

    asked: list[Charges] = []
    carry = replayer.carry
    network = PRESETS["alpha-beta"].with_(output_links=1)
    program = ProgramBuilder(2)
    m = program.message(0, 1, 1000)
    program.do(0, Op.SEND, m)
    program.do(1, Op.RECEIVE, m)
    monkeypatch.setattr(replayer, "carry", asking)
    monkeypatch.setattr(_kernel, "replay_contended", spoilt)
    with pytest.raises(ValueError, match=reason):
        in_order_of_time(program.build(), network)
