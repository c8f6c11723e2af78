"""Replays of Dimemas' programs on machines of its configurations, as a user asks for them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import FileError, UsageError

CASES = json.loads((Path(__file__).parent.parent / "data" / "dimemas_micro.json").read_text())
# Without -S Dimemas takes the protocol from a bit of its own format, here it depends on the size.
OTHER_PROTOCOL = {"trace_sync_bit_nosS"}
# Dimemas' computation and communication time of a task leave out the time that its rendezvous sends
# are blocked, so their sum is not the task's end.
BLOCKED_SENDERS = {"rdv_send_early_sender_end"}


def configuration(net: dict[str, Any], tasks: int, **others: Any) -> str:
    """A configuration with the values of a case; those of its file where it names none."""
    per_node = net.get("tpn", 1)
    nodes = -(-tasks // per_node)
    values = {
        "environment information": (
            *('""', 0, '""', nodes, net["bw"], net.get("buses", 0), net.get("coll", 1)),
        ),
        "multi node information": (
            *(0, nodes, '"n"', net.get("cpn", 1), others.get("speed", 1)),
            *(net.get("ilat", 0), net.get("ibw", 0), others.get("inner_buses", 0), 1, 1),
            *(net["lat"], net.get("inl", 1), net.get("outl", 1), 0.0),
        ),
        "predefined mapping information": (f'"{per_node} TASKS_PER_NODE"',),
        "configuration files": ('""', '""', f'"{others.get("collectives", "")}"', '""'),
    }
    records = (f'"{name}" {{{", ".join(map(str, row))}}};;\n' for name, row in values.items())
    return "#DIMEMAS_CONFIGURATION\n" + "".join(records)


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    """Program and configuration of a case, and the case."""
    found = CASES[request.param]
    program, machine = tmp_path / "case.dim", tmp_path / "case.cfg"
    program.write_text(found["dim"])
    machine.write_text(configuration(found["net"], len(found["ends"])))
    return program, machine, found


@pytest.mark.parametrize("case", sorted(set(CASES) - OTHER_PROTOCOL), indirect=True)
def test_every_case_is_what_dimemas_says(
    case: tuple[Path, Path, dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    program, machine, wanted = case
    limit = math.inf if "-F" in wanted["opts"] else 32 * 1024
    (outcome,) = popmodel.whatif(program, machine, eager_threshold=limit).runs
    assert outcome.execution.runtime == pytest.approx(wanted["runtime"], abs=1e-9)
    if not any(name in request.node.name for name in BLOCKED_SENDERS):
        assert outcome.execution.end.tolist() == pytest.approx(wanted["ends"], abs=1e-9)


@pytest.mark.parametrize("case", sorted(OTHER_PROTOCOL), indirect=True)
def test_a_protocol_of_the_trace_is_not_modelled(
    case: tuple[Path, Path, dict[str, Any]],
) -> None:
    program, machine, wanted = case
    (outcome,) = popmodel.whatif(program, machine).runs
    assert outcome.execution.runtime == pytest.approx(wanted["runtime"] - 0.4, abs=1e-9)


@pytest.fixture
def exchange(tmp_path: Path) -> Path:
    """A program of four tasks: 0 sends to 1, 1 to 2, and so on."""
    lines = ['#DIMEMAS:"x":1,0:4(1,1,1,1),1,0,0', "d:1:1:4:0:1:2:3"]
    for task in range(4):
        lines.append(f"1:{task}:0:0.001")
        if task:
            lines.append(f"3:{task}:0:{task - 1}:-1:1048576:7:1:0")
        if task < 3:
            lines.append(f"2:{task}:0:{task + 1}:-1:1048576:7:1:0")
    path = tmp_path / "chain.dim"
    path.write_text("\n".join(lines) + "\n")
    return path


NET = {"tpn": 2, "cpn": 2, "ilat": 1e-4, "ibw": 1000.0, "lat": 1e-3, "bw": 100.0}


def test_several_tasks_on_several_nodes_have_two_distances(exchange: Path, tmp_path: Path) -> None:
    """A message takes its latency on both sides, one after the other, and 1 MB by its distance."""
    machine = tmp_path / "x.cfg"
    machine.write_text(configuration(NET, 4))
    found = popmodel.whatif(exchange, machine, eager_threshold="inf").runs[0].execution
    near, far = 1e-4 + 1e-3, 1e-3 + 1e-2
    assert found.runtime == pytest.approx(1e-3 + near + far + near, rel=1e-9)
    assert found.network.name == str(machine)
    assert found.network.tiers is not None


def test_speed_and_options_together(exchange: Path, tmp_path: Path) -> None:
    machine = tmp_path / "x.cfg"
    machine.write_text(configuration({**NET, "tpn": 1}, 4, speed=2.0))
    asked = popmodel.whatif(exchange, [machine, "ideal"], cpu_factor=[1, 5])
    compute = [one.execution.compute.tolist() for one in asked.runs]
    assert compute == [[pytest.approx(1e-3 / factor)] * 4 for factor in (2, 10, 1, 5)]
    assert str(machine) in asked.files


def test_collectives_as_their_file_says(tmp_path: Path) -> None:
    program, machine = tmp_path / "x.dim", tmp_path / "x.cfg"
    program.write_text(CASES["coll_allreduce_LOG_P4"]["dim"])
    machine.write_text(configuration(CASES["coll_allreduce_LOG_P4"]["net"], 4, collectives="c.txt"))
    (tmp_path / "c.txt").write_text("11 CTE MAX 0 MAX 1\n")
    found = popmodel.whatif(program, machine).runs[0].execution
    latency, size = 1e-5, 1e6
    assert found.runtime == pytest.approx(1.4 + latency + size / 100 / 2**20, abs=1e-9)
    (tmp_path / "c.txt").unlink()
    with pytest.raises(FileError, match="cannot be read: no such file or directory"):
        popmodel.whatif(program, machine)


def test_machines_that_are_not_modelled(exchange: Path, tmp_path: Path) -> None:
    machine = tmp_path / "x.cfg"
    machine.write_text(configuration(NET, 4, inner_buses=1))
    with pytest.raises(FileError, match="limits the buses inside a node, which is not modelled"):
        popmodel.whatif(exchange, machine)
    text = configuration(NET, 4)
    machine.write_text(text.replace(" 1, 1, 0.001", " 1, 2, 0.001"))
    with pytest.raises(FileError, match="other numbers of input and output links inside a node"):
        popmodel.whatif(exchange, machine)
    machine.write_text(two_nodes(configuration(NET, 4), " 0.001, 1, 1,", " 0.001, 2, 2,"))
    with pytest.raises(FileError, match="has nodes that differ in more than their speed"):
        popmodel.whatif(exchange, machine)


def test_nodes_of_different_speed(exchange: Path, tmp_path: Path) -> None:
    machine = tmp_path / "x.cfg"
    text = configuration(NET, 4, speed=2.0)
    machine.write_text(two_nodes(text, '"n", 2, 2.0,', '"n", 2, 0.5,'))
    found = popmodel.whatif(exchange, machine).runs[0].execution
    assert found.compute.tolist() == [pytest.approx(1e-3 / s) for s in (2, 2, 0.5, 0.5)]


def two_nodes(text: str, first: str, second: str) -> str:
    """A configuration of two like nodes, the second of which is another one."""
    both = next(line for line in text.splitlines() if line.startswith('"multi'))
    one = both.replace("{0, 2,", "{0, 1,")
    assert first in one
    return text.replace(both, one + "\n" + one.replace(first, second))


def test_what_a_configuration_says_is_not_said_again(exchange: Path, tmp_path: Path) -> None:
    machine = tmp_path / "x.cfg"
    machine.write_text(configuration(NET, 4))
    with pytest.raises(UsageError) as caught:
        popmodel.whatif(exchange, machine, latency="5us")
    assert caught.value.message == f"latency: already set by {machine}"
    assert caught.value.hint == "leave it out, or change the configuration"
