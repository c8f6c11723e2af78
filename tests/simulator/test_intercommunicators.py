"""Collectives of which a trace does not list the members: of intercommunicators."""

from pathlib import Path

import pytest
from oracle.script import Script

from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace


def program(folder: Path, name: str):
    """Ranks 0 to 3 meet on communicator 7, of which the trace tells nothing; rank 4 does not."""
    script = Script(5)
    for p in range(5):
        script.compute(p, (p + 1) * 1000)
        if p < 4:
            script.collective(p, name, communicator=7, sent=8, received=8)
        script.compute(p, 100)
    script.end()
    return from_trace(script.read(folder))


@pytest.mark.parametrize("name", ["Barrier", "Allreduce", "Alltoall", "Bcast"])
def test_all_that_call_take_part(name: str, tmp_path: Path) -> None:
    made = program(tmp_path, name)
    assert made.collectives.members.tolist() == [4]
    ends = replay(made, PRESETS["ideal"]).end
    assert ends == pytest.approx([4.1e-6] * 4 + [5.1e-6])


@pytest.mark.parametrize("reading", ["dimemas", "synchronising", "rooted", "algorithm"])
def test_every_reading_takes_them_as_members_of_one_group(reading: str, tmp_path: Path) -> None:
    network = PRESETS["alpha-beta"].with_(collectives=reading)
    ends = replay(program(tmp_path, "Allreduce"), network).end
    assert (ends[:4] > 4.1e-6).all()
    assert ends[4] == pytest.approx(5.1e-6)
