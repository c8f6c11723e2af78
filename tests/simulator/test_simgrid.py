"""Agreement with the replay of SimGrid SMPI on networks without contention."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracle import smpi

from popmodel.network.network import PRESETS
from popmodel.simulator import from_trace, replay
from popmodel.simulator.charges import Charges
from popmodel.simulator.engine import ends
from popmodel.trace import read

DATA = Path(__file__).parent.parent / "data" / "smpi"
ROWS = json.loads((DATA / "reference.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['app']}-{r['network']}-{r['collectives']}")
def test_every_rank_ends_when_smpi_says(row: dict) -> None:
    program = smpi.read(DATA / f"{row['app']}.ti.txt.gz", row["collectives"] == "rdb")
    latency, bandwidth = smpi.NETWORKS[row["network"]]
    messages = program.messages
    size = messages.size + smpi.HEADER
    transfer = np.where(
        messages.sender == messages.receiver, size / smpi.TO_ITSELF, latency + size / bandwidth
    )
    nothing = np.zeros(len(messages))
    charges = Charges(
        transfer=transfer * 1e9,
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
    end = ends(program, charges)
    assert end == pytest.approx(row["ends"], rel=1e-12)
    assert end.max() == pytest.approx(row["runtime"], rel=1e-12)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['app']}-{r['network']}-{r['collectives']}")
def test_the_rules_of_smpi_give_what_smpi_says(row: dict) -> None:
    """Through what a user has: the reader and the network."""
    latency, bandwidth = smpi.NETWORKS[row["network"]]
    network = PRESETS["smpi"].with_(
        latency=latency,
        bandwidth=bandwidth,
        collectives="smpi-rdb" if row["collectives"] == "rdb" else "smpi",
    )
    trace = read(DATA / f"{row['app']}.ti.txt.gz", flop_rate=smpi.FLOPS)
    execution = replay(from_trace(trace), network)
    assert execution.end == pytest.approx(row["ends"], rel=1e-11)
    assert execution.runtime == pytest.approx(row["runtime"], rel=1e-11)
