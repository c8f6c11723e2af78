"""Agreement with the replay of SimGrid SMPI on networks without contention."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracle import smpi

from popmodel.simulator.charges import Charges
from popmodel.simulator.engine import ends

DATA = Path(__file__).parent.parent / "data" / "smpi"
ROWS = json.loads((DATA / "reference.json").read_text())
# Seconds and bytes per second.
NETWORKS = {
    "net1us_10G_flat": (1e-6, 10e9),
    "net10us_1G_flat": (10e-6, 1e9),
    "netideal": (0.0, 1e18),
}
HEADER = 16  # bytes that SMPI adds to every message
EAGER = 65536
TO_ITSELF = 10e9  # B/s


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['app']}-{r['network']}-{r['collectives']}")
def test_every_rank_ends_when_smpi_says(row: dict) -> None:
    program = smpi.read(DATA / f"{row['app']}.ti.txt.gz", row["collectives"] == "rdb")
    latency, bandwidth = NETWORKS[row["network"]]
    messages = program.messages
    size = messages.size + HEADER
    transfer = np.where(
        messages.sender == messages.receiver, size / TO_ITSELF, latency + size / bandwidth
    )
    nothing = np.zeros(len(messages))
    charges = Charges(
        transfer=transfer * 1e9,
        rendezvous=(messages.size >= EAGER).astype(np.uint8),
        send_overhead=nothing,
        receive_before=nothing,
        sender_waits_for_transfer=True,
        collective_cost=np.empty(0),
        member_cost=np.empty(0),
        request_cost=np.empty(0),
        collective_rule=np.empty(0, np.uint8),
    )
    end = ends(program, charges)
    assert end == pytest.approx(row["ends"], rel=1e-12)
    assert end.max() == pytest.approx(row["runtime"], rel=1e-12)
