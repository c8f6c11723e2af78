"""Damaged files of all formats: a trace, or an error that says why, never anything else."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import PopmodelError
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import read

CASES = json.loads((Path(__file__).parents[2] / "data" / "dimemas_micro.json").read_text())
GOAL = """num_ranks 2
rank 0 {
a: calc 100 cpu 0
b: send 8b to 1 tag 5 nic 0
b requires a
c: recv 16b from 1 tag 6
c irequires b /* later */
d: calc 7
d requires c
}
rank 1 {
a: recv 8b from 0 tag 5
b: send 16b to 0 tag 6 // back
b requires a
}
"""
SMPI = "\n".join(
    f"{rank} {action}"
    for rank in range(2)
    for action in (
        *("init", "compute 1e6", f"irecv {1 - rank} 3 10 1", f"send {1 - rank} 3 10 1"),
        *(f"wait {1 - rank} {rank} 3", "bcast 8 0 0", "reduce 8 100 1 0", "allreduce 8 1 0"),
        *("gatherv 4 1 2 0 1 1", "alltoallv 9 1 2 9 3 4 1 1", "reducescatter 4 5 6 1"),
        *("scatter 4 4 1 6 6", "sleep 1e-3", "waitall", "finalize"),
    )
)
FILES = {
    "x.ti": SMPI,
    "x.goal": GOAL,
    "x.dim": CASES["nonblocking_allreduce_mixed"]["dim"],
    "y.dim": CASES["two_pairs_bus1"]["dim"],
}
PIECES = st.sampled_from(
    [*'0123456789 -.:\n{}[]"#/*xé', "", " 1", "nan", "inf", "-1", "1e400", "9" * 30, "\0", "rank 1"]
)
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), PIECES), min_size=1, max_size=4)


def damaged(text: str, damage: list[tuple[float, int, str]]) -> str:
    for where, length, piece in damage:
        at = int(where * len(text))
        text = text[:at] + piece + text[at + length :]
    return text


@pytest.mark.parametrize("name", FILES)
@given(damage=DAMAGE)
def test_programs(
    name: str, damage: list[tuple[float, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_text(damaged(FILES[name], damage))
    try:
        program = from_trace(read(path))
        for network in ("ideal", "smpi", "dimemas"):
            assert replay(program, PRESETS[network]).runtime >= 0
    except PopmodelError as error:
        assert str(path) in error.message or "deadlock" in error.message


@pytest.mark.parametrize("name", FILES)
def test_without_damage_they_are_replayed(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    assert replay(from_trace(read(tmp_path / name)), PRESETS["smpi"]).runtime > 0
