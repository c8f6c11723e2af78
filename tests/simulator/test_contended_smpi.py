"""Agreement with the replay of SimGrid SMPI on clusters whose links messages share."""

import json
from pathlib import Path

import numpy as np
import pytest
from oracle import smpi

from popmodel.network.point_to_point import Routes
from popmodel.simulator.costs import Charges, core
from popmodel.simulator.expand_collectives import lay_out
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.replayer import carry
from popmodel.traces import read

DATA = Path(__file__).parent.parent / "data" / "smpi"
ROWS = json.loads((DATA / "contended.json").read_text())
# Latency, s, and bandwidth, B/s, of a route: of a link up from a node and a link down to one.
NETWORKS = {"net1us_10G": (1e-6, 10e9), "net10us_1G": (10e-6, 1e9)}


def up_and_down(nodes: int, bandwidth: float) -> Routes:
    """A star: messages of a node to itself go up and come down, too, as in SimGrid's clusters."""
    sender, receiver = np.divmod(np.arange(nodes * nodes, dtype=np.int32), np.int32(nodes))
    return Routes(
        sender,
        receiver,
        np.arange(len(sender) + 1, dtype=np.int64) * 2,
        np.stack([sender, receiver + np.int32(nodes)], axis=1).reshape(-1),
        np.zeros(len(sender)),
        np.full(2 * nodes, bandwidth),
    )


@pytest.mark.long(after=8)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['app']}-{r['network']}-{r['collectives']}")
def test_every_rank_ends_when_smpi_says(row: dict) -> None:
    trace = read(DATA / f"{row['app']}.ti.txt.gz", flop_rate=smpi.FLOPS)
    program = lay_out(from_trace(trace), recursive_doubling=row["collectives"] == "rdb").program
    latency, bandwidth = NETWORKS[row["network"]]
    messages, processes = program.messages, program.processes
    size = (messages.size + smpi.HEADER).astype(np.float64)
    nothing = np.zeros(len(messages))
    charges = Charges(
        transfer=(latency + size / bandwidth) * 1e9,
        rendezvous=(messages.size >= smpi.EAGER).astype(np.uint8),
        send_overhead=nothing,
        receive_before=nothing,
        receive_after=nothing,
        sender_waits_for_transfer=True,
        collective_cost=np.empty(0),
        member_cost=np.empty(0),
        request_cost=np.empty(0),
        collective_rule=np.empty(0, np.uint8),
    )
    rows = np.arange(len(messages), dtype=np.int32)
    end = carry(
        program,
        core(program, rows, np.empty(0, np.int32)),
        None,
        charges,
        up_and_down(processes, bandwidth),
        np.ones(processes),
        busy=size / bandwidth * 1e9,
        size=size,
        node=np.arange(processes, dtype=np.int32),
    ).last
    assert end / 1e9 == pytest.approx(row["ends"], rel=1e-11)
    assert end.max() / 1e9 == pytest.approx(row["runtime"], rel=1e-11)
