"""Agreement with Dimemas: its answers on hand-made cases and on real traces."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from oracle.script import Script

from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import read

DATA = Path(__file__).parent.parent / "data"
CASES = json.loads((DATA / "dimemas_micro.json").read_text())
TRACES = json.loads((DATA / "dimemas_traces.json").read_text())

# Links and buses that messages have to share: tests/simulator/test_contended.py.
CONTENDED = {
    "exchange_halfduplex_1_0",
    "intra_node",
    "two_pairs_bus1",
    "two_sends_outlink_1",
    "two_sends_out2_in1",
    "two_to_one_inlink_1",
}
# A Dimemas without -S, which takes the protocol from a bit of its own format.
NOT_MODELLED = {"trace_sync_bit_nosS"}
# Dimemas' computation and communication time of a task leave out the time that its rendezvous sends
# are blocked, so their sum is not the task's end.
BLOCKED_SENDERS = {"rdv_send_early_sender_end"}
MEGABYTE = 2**20
FACTORS = {1: "constant", 2: "linear", 3: "logarithmic"}


def network(
    latency: float, megabytes: float, limit: float, model: int = 1, cpu: float = 1.0
) -> Network:
    return PRESETS["dimemas"].with_(
        latency=latency,
        bandwidth=megabytes * MEGABYTE or math.inf,
        eager_threshold=limit,
        collective_cost=FACTORS[model],
        cpu_factor=cpu,
    )


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_MODELLED - CONTENDED))
def test_hand_made_case(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (tmp_path / "case.dim").write_text(case["dim"])
    net = case["net"]
    limit = math.inf if "-F" in case["opts"] else 32 * 1024
    program = from_trace(read(tmp_path / "case.dim"))
    assert program.notes == ()
    execution = replay(program, network(net["lat"], net["bw"], limit, net.get("coll", 1)))
    if name not in BLOCKED_SENDERS:
        assert execution.end.tolist() == pytest.approx(case["ends"], abs=1e-9)
    assert execution.runtime == pytest.approx(case["runtime"], abs=1e-9)


def test_cases_not_modelled_exist() -> None:
    assert set(CASES) > NOT_MODELLED | CONTENDED
    assert len(CASES) - len(NOT_MODELLED | CONTENDED) == 75


# Three senders that leave at the given times, and a Waitall for all of them: Dimemas, given the
# trace, waits for the messages in the order in which they left.
@pytest.mark.parametrize(
    ("departures", "wait", "latency", "ends"),
    [
        ((500, 100, 200), 400, 20e-6, (521, 121, 221, 521)),
        ((100, 400, 500), 90, 200e-6, (301, 601, 701, 801)),
        ((390, 300, 395), 380, 20e-6, (411, 321, 416, 441)),
    ],
)
def test_waitall_waits_for_messages_in_the_order_in_which_they_left(
    departures: tuple[int, ...], wait: int, latency: float, ends: tuple[int, ...], tmp_path: Path
) -> None:
    script = Script(4)
    posts = [script.call(3, "Irecv") for _ in departures]
    script.compute(3, wait * 1000)
    call = script.call(3, "Waitall", 900_000)
    for p, departure in enumerate(departures):
        script.compute(p, departure * 1000)
        script.message(script.call(p, "Isend"), posts[p], call, 8, tag=p)
    for p in range(4):
        script.compute(p, 1000)
    script.end()
    execution = replay(from_trace(script.read(tmp_path)), network(latency, 0, 32 * 1024))
    assert execution.end.tolist() == pytest.approx([e * 1e-6 for e in ends], abs=1e-12)


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


# Of hybrid traces, Dimemas with its simulation of OpenMP disabled is the one to compare with: the
# replay leaves parallel regions as they were.
IDEAL = [
    row
    for row in TRACES
    if row["config"] in ("ideal", "ideal_S0", "ideal_F", "ideal_cpu2", "ideal_dis_omp")
    and (row["config"] == "ideal_dis_omp") == row["trace"].startswith("bt-mz")
]


@pytest.mark.parametrize("trace", sorted({row["trace"] for row in IDEAL}))
def test_ideal_runtime_of_a_real_trace_to_the_nanosecond(
    trace: str, real_trace: Callable[[str], Path]
) -> None:
    program = from_trace(read(real_trace(trace)))
    for row in (row for row in IDEAL if row["trace"] == trace):
        limit = {"ideal_S0": 0, "ideal_F": math.inf}.get(row["config"], 32 * 1024)
        cpu = row["params"].get("cpu", 1.0)
        execution = replay(program, network(0.0, 0.0, limit, cpu=cpu))
        # Half a nanosecond is what Dimemas' print rounds away when bursts are halved.
        off = abs(execution.runtime * 1e9 - nanoseconds(row["runtime"]))
        assert off <= (0.51 if cpu != 1 else 1e-3), row["config"]
        # Ends by task, where the sums are ends: not with blocked rendezvous sends (EPOCH), and the
        # sums with nonblocking collectives exceed even the runtime.
        if cpu == 1 and limit == 32 * 1024 and not trace.startswith(("epoch", "mixnbc")):
            ends = [nanoseconds(end) for end in row["ends"]]
            assert [nanoseconds(end) for end in execution.end] == ends, row["config"]


# Without shared resources (links=0), with latency and bandwidth. The network of the other rows
# has one link per node, for which messages queue.
FLAT = [
    row
    for row in TRACES
    if "links0" in row["config"]
    and "noS" not in row["config"]
    and not row["trace"].startswith("bt-mz")
]


@pytest.mark.parametrize("trace", sorted({row["trace"] for row in FLAT}))
def test_runtime_of_a_real_trace_with_latency_and_bandwidth(
    trace: str, real_trace: Callable[[str], Path]
) -> None:
    program = from_trace(read(real_trace(trace)))
    for row in (row for row in FLAT if row["trace"] == trace):
        params = row["params"]
        limit = math.inf if row["config"].endswith("_F") else 32 * 1024
        net = network(params["lat"], params["bw"], limit, params.get("collmodel", 1))
        runtime = replay(program, net).runtime
        assert runtime == pytest.approx(row["runtime"], abs=1e-9), row["config"]
