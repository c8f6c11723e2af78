"""CPU time of senders and receivers: LogGP's o, on flat networks and on those of machines."""

import json
from pathlib import Path

import numpy as np
import pytest

from popmodel.machines import profile
from popmodel.machines.profile_comparison import network_of
from popmodel.network.collectives import NAMES, parse_selection
from popmodel.network.network import PRESETS, Network
from popmodel.network.point_to_point import SizeClass, Tier, Tiers, by_size
from popmodel.simulator import PathPart, Program, Replayer, replay
from popmodel.simulator.program import Op, ProgramBuilder

ROOT = Path(__file__).parent.parent.parent
MACHINE = profile.load(ROOT / "examples" / "profiles" / "two-core-vm.json")
LOGGP = PRESETS["alpha-beta"].with_(
    latency=5e-6, bandwidth=1e9, send_overhead=1e-6, receive_overhead=2e-6
)
SIZES = (0, 1, 8, 2048, 2049, 100_000, 524288, 524289, 10**7)


def messages(count: int, size: int, late: float = 0.0) -> Program:
    """Messages from one process to another, sent without blocking and all waited for."""
    program = ProgramBuilder(2)
    made = [program.message(0, 1, size) for _ in range(count)]
    program.compute(1, late)
    for op, process in ((Op.POST, 1), (Op.ISEND, 0), (Op.WAIT_RECEIVE, 1)):
        for message in made:
            program.do(process, op, message)
    return program.build()


def test_a_message_takes_overhead_latency_size_and_overhead() -> None:
    found = replay(messages(1, 1000), LOGGP)
    assert found.end.tolist() == pytest.approx([1e-6, 1e-6 + 5e-6 + 1e-6 + 2e-6])


def test_further_messages_take_the_larger_overhead_more() -> None:
    found = replay(messages(4, 1000), LOGGP)
    assert found.end.tolist() == pytest.approx([4e-6, 9e-6 + 3 * 2e-6])


def test_a_message_that_has_arrived_takes_its_receiver_the_overhead() -> None:
    assert replay(messages(1, 8, late=1.0), LOGGP).end[1] == pytest.approx(1.0 + 2e-6)


def test_both_ends_of_a_rendezvous_end_with_the_transfer_but_for_the_overhead() -> None:
    program = ProgramBuilder(2)
    m = program.message(0, 1, 10**6)
    program.do(0, Op.SEND, m)
    program.compute(1, 0.5)
    program.do(1, Op.RECEIVE, m)
    end = 0.5 + 5e-6 + 1e-3
    assert replay(program.build(), LOGGP).end.tolist() == pytest.approx([end, end + 2e-6])


def test_a_message_of_a_process_to_itself_takes_none() -> None:
    program = ProgramBuilder(1)
    m = program.message(0, 0, 8)
    for op in (Op.POST, Op.ISEND, Op.WAIT_RECEIVE):
        program.do(0, op, m)
    assert replay(program.build(), LOGGP).runtime == 0


def test_collectives_pay_the_whole_message() -> None:
    program = ProgramBuilder(4)
    c = program.collective("barrier")
    for p in range(4):
        program.do(p, Op.COLLECTIVE, c)
    # fan-in and fan-out of log2 4 messages each, or as many rounds of a dissemination
    assert replay(program.build(), LOGGP).runtime == pytest.approx(4 * 8e-6)
    rounds = LOGGP.with_(collectives="algorithm")
    assert replay(program.build(), rounds).runtime == pytest.approx(2 * 8e-6)


@pytest.mark.parametrize("size", SIZES)
def test_one_message_on_a_machine_takes_what_was_measured(size: int) -> None:
    network = network_of(MACHINE, np.zeros(2, np.int32))
    assert network.tiers is not None
    assert network.tiers.within is not None
    assert network.tiers.within.send_overhead == MACHINE.get("net.intra.os").value
    assert network.tiers.within.receive_overhead == MACHINE.get("net.intra.or").value
    classes = [
        SizeClass(
            MACHINE.document["net"]["intra"]["classes"][i].get("upto"),
            *(MACHINE.get(f"net.intra.classes[{i}].{key}").value for key in ("alpha", "beta")),
        )
        for i in range(len(MACHINE.class_bounds("intra")))
    ]
    found = replay(messages(1, size), network).runtime
    assert found == pytest.approx(by_size(size, classes), rel=1e-12)


def test_overheads_longer_than_the_latency_are_paid(tmp_path: Path) -> None:
    document = json.loads(Path(MACHINE.path).read_text())
    document["net"]["intra"]["os"]["value"] = document["net"]["intra"]["os"]["high"] = 1e-3
    path = tmp_path / "slow.json"
    path.write_text(json.dumps(document))
    network = network_of(profile.load(path), np.zeros(2, np.int32))
    expected = 1e-3 + MACHINE.get("net.intra.or").value
    assert replay(messages(1, 0), network).runtime == pytest.approx(expected)


def test_ideal_networks_have_no_overheads() -> None:
    ideal = LOGGP.ideal()
    assert (ideal.send_overhead, ideal.receive_overhead) == (0, 0)
    assert "send_overhead" not in Network().to_dict()
    assert LOGGP.to_dict()["send_overhead"] == 1e-6


def test_the_critical_path_names_overheads() -> None:
    path = Replayer(messages(3, 1000)).path(LOGGP)
    assert path.time.sum() == pytest.approx(1e3 + 6e3 + 3 * 2e3)  # ns
    assert path.overhead.sum() == pytest.approx(1e3 + 3 * 2e3)
    assert path.part.tolist() == [PathPart.SEND, PathPart.TRANSFER, *[PathPart.RECEIVE] * 3]


@pytest.mark.parametrize("reading", ["algorithm", "dimemas"])
@pytest.mark.parametrize("kind", ["allreduce", "reduce"])
def test_steps_of_every_algorithm_add_up_to_the_runtime(kind: str, reading: str) -> None:
    program = ProgramBuilder(6, nodes=[0, 0, 1, 1, 2, 2])
    c = program.collective(kind, 10**5, 10**5, root=2, root_sent=10**5)
    for p in range(6):
        program.compute(p, p * 7 % 5 * 1e-5)
        program.do(p, Op.COLLECTIVE, c)
    tier = Tier((SizeClass(None, 1e-6, 1e-9),), 1000, 1e-7, 2e-7)
    tiers = Tiers(tier, Tier((SizeClass(None, 3e-6, 2e-9),), 1000, 3e-7, 2e-7))
    replayer = Replayer(program.build())
    for name in NAMES[kind] if reading == "algorithm" else ("",):
        algorithms = (parse_selection(f"{kind}={name}"),) if name else ()
        network = Network(tiers=tiers, collectives=reading, algorithms=algorithms)
        for side in ("left", "right"):
            path = replayer.path(network, side)
            assert path.time.sum() == pytest.approx(replayer.run(network).runtime * 1e9)
            assert (path.overhead > 0).any()
