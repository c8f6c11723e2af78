"""Bytes of a collective mean the same in every form of its call, and on every path."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracle.script import Script

from popmodel.network.network import Network
from popmodel.patterns.traffic import uses
from popmodel.simulator import from_trace, replay
from popmodel.trace import read

BLOCK = 1000
FORMS = {
    # plain form, form with counts: what each records of a rank (sent, received) of P members
    ("Alltoall", "Alltoallv"): ((1, "P"), ("P", "P")),
    ("Alltoall", "Alltoallw"): ((1, "P"), ("P", "P")),
    ("Allgather", "Allgatherv"): ((1, "P"), (1, "P")),
    ("Gather", "Gatherv"): ((1, "root"), (1, "root")),
    ("Scatter", "Scatterv"): (("root", 1), ("root", 1)),
    ("Reduce_scatter_block", "Reduce_scatter"): (("P", 1), ("P", 1)),
}


def recorded(folder: Path, name: str, what: tuple, processes: int) -> Path:
    """A trace in which all call a collective once, with the bytes that Extrae records."""
    script = Script(processes)
    for p in range(processes):
        amount = {1: BLOCK, "P": processes * BLOCK, "root": processes * BLOCK * (p == 0)}
        root = "root" in what and p == 0
        sent, received = (amount[one] for one in what)
        script.collective(p, name, sent=sent, received=received, root=root)
    script.end()
    path = Path(script.read(folder).path)
    return path.rename(folder / f"{name}.prv")


NETWORKS = [
    Network(),
    Network(latency=1e-6, bandwidth=1e9, collectives="algorithm"),
    Network(latency=1e-6, bandwidth=1e9, eager_threshold=0, collectives="algorithm"),
]


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("names", FORMS, ids="-".join)
def test_equal_parts_are_the_plain_form(
    names: tuple[str, str], processes: int, tmp_path: Path
) -> None:
    plain, with_counts = (
        from_trace(read(recorded(tmp_path, name, what, processes)))
        for name, what in zip(names, FORMS[names], strict=True)
    )
    for network in NETWORKS:
        assert replay(plain, network).end.tolist() == replay(with_counts, network).end.tolist()
    assert plain.collectives.part.tolist() == with_counts.collectives.part.tolist()
    assert uses(plain)[0].bytes == uses(with_counts)[0].bytes
    assert plain.uneven.operation.tolist() == with_counts.uneven.operation.tolist() == []
