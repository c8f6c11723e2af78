"""Agreement with the replay of SimGrid SMPI on networks without contention."""

import json
from pathlib import Path

import pytest
from oracle import smpi
from oracle.smpi_cells import cell

from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program_files import smpi_text
from popmodel.traces import read

DATA = Path(__file__).parent.parent / "data" / "smpi"
CELLS = json.loads((DATA / "cells.json").read_text())
ROWS = json.loads((DATA / "reference.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['app']}-{r['network']}-{r['collectives']}")
def test_every_rank_ends_when_smpi_says(row: dict) -> None:
    latency, bandwidth = smpi.NETWORKS[row["network"]]
    network = PRESETS["smpi"].with_(
        latency=latency,
        bandwidth=bandwidth,
        eager_threshold=smpi.EAGER,
        collectives="smpi-rdb" if row["collectives"] == "rdb" else "smpi",
    )
    program = from_trace(read(DATA / f"{row['app']}.ti.txt.gz", flop_rate=smpi.FLOPS))
    assert program.notes == ()
    execution = replay(program, network)
    assert execution.end == pytest.approx(row["ends"], rel=1e-11)
    assert execution.runtime == pytest.approx(row["runtime"], rel=1e-11)


@pytest.mark.long(after=3)
@pytest.mark.parametrize("kind", sorted({row[0] for row in CELLS}))
def test_every_collective_takes_what_smpi_says(kind: str, tmp_path: Path) -> None:
    path, wrong = tmp_path / "cell.ti", {}
    for _, processes, size, name, selector, expected in (row for row in CELLS if row[0] == kind):
        path.write_text(cell(kind, processes, size))
        latency, bandwidth = smpi.NETWORKS[name]
        network = PRESETS["smpi"].with_(
            latency=latency,
            bandwidth=bandwidth,
            collectives="smpi-rdb" if selector == "rdb" else "smpi",
        )
        runtime = replay(from_trace(read(path, flop_rate=smpi.FLOPS)), network).runtime
        if runtime != pytest.approx(expected, rel=1e-9):
            wrong[processes, size, name, selector] = runtime, expected
    assert not wrong


def late_receives(count: int, size: int) -> str:
    """A process sends without waiting, to one that receives later."""
    lines = ["0 init", "1 init"]
    for tag in range(count):
        lines += [f"0 send 1 {tag} {size}", "0 compute 20000"]
        lines += ["1 compute 20000", f"1 recv 0 {tag} {size}"]
    return "\n".join([*lines, "0 finalize", "1 finalize"]) + "\n"


# ``smpirun -replay`` by sizes and smpi/async-small-thresh (else as in `oracle.smpi_cells`).
@pytest.mark.parametrize(
    ("size", "small", "runtime"),
    [
        (1000, 0, 0.0031016),
        (1000, 65536, 0.002),
        (1000, 1000, 0.0031016),
        (1000, 1001, 0.002),
        (65535, 0, 0.0095551),
        (65536, 0, 0.0095752),
    ],
)
def test_a_message_waits_for_its_receive_from_async_small_thresh(
    size: int, small: int, runtime: float, tmp_path: Path
) -> None:
    (tmp_path / "late.ti").write_text(late_receives(100, size))
    network = PRESETS["smpi"].with_(latency=1e-5, bandwidth=1e9, eager_threshold=small)
    program = from_trace(read(tmp_path / "late.ti", flop_rate=1e9))
    assert replay(program, network).runtime == pytest.approx(runtime, rel=1e-9)


def test_the_sender_of_a_detached_message_goes_on(tmp_path: Path) -> None:
    """Below smpi/send-is-detached-thresh: SimGrid lets rank 0 end at 2 ms."""
    (tmp_path / "late.ti").write_text(late_receives(100, 1000))
    program = from_trace(read(tmp_path / "late.ti", flop_rate=1e9))
    network = PRESETS["smpi"].with_(latency=1e-5, bandwidth=1e9)
    assert replay(program, network).end == pytest.approx([0.002, 0.0031016], rel=1e-9)
    blocking = network.with_(send_is_detached_thresh=1000)
    assert replay(program, blocking).end == pytest.approx([0.0031216, 0.0031016], rel=1e-9)
    links = network.with_(output_links=1, input_links=1)
    assert replay(program, links).end == pytest.approx([0.002, 0.0031016], rel=1e-9)


# Of trace `unequal` by ``smpirun -replay`` of SimGrid 3.32 (as in `oracle.smpi_cells`), which tells
# six digits; latency .1 s, 100 kB/s.
UNEQUAL = {
    "reducescatter small": [0.11129, 0.31726, 0.23831, 0.5602, 0.46337, 0.60332, 0.43025, 0.91318],
    "reducescatter large": [
        *(2.11029, 4.22136, 6.33399, 8.44896, 10.56705, 12.68904, 14.81571, 21.2316),
    ],
    "alltoallv": [0.74016, 0.74016, 1.03016, 1.04016, 1.05016, 1.05016, 1.07016, 1.10016],
    "gatherv": [0.46218, 0.50598, 0.56148, 0.63518, 0.72708, 0.83718, 0.96548, 2.36048],
}


def unequal(kind: str, processes: int) -> str:
    """Collectives whose processes have different amounts, and arrive at different times."""
    ranks = range(processes)
    counts = [100 + 13 * rank * rank for rank in ranks]
    large = [200_000 + 13 * rank * rank for rank in ranks]
    pair = [[(i * 7 + j * 13) % 11 * 9000 for j in ranks] for i in ranks]

    def listed(values: list[int], times: int = 1) -> str:
        return " ".join(str(times * value) for value in values)

    def calls(rank: int) -> list[str]:
        sent, received = pair[rank], [row[rank] for row in pair]
        return {
            "reducescatter small": [f"reducescatter {listed(counts)} 0 6"],
            "reducescatter large": [f"reducescatter {listed(large)} 0 6"],
            "alltoallv": [
                f"alltoallv {sum(sent)} {listed(sent)} {sum(received)} {listed(received)} 6 6"
            ],
            "gatherv": [
                f"gatherv {50 * counts[rank]} {listed(counts, 50)} 1 6 6",
                f"scatterv {listed(counts, 70)} {70 * counts[rank]} 0 6 6",
                f"allgatherv {20 * counts[rank]} {listed(counts, 20)} 6",
            ],
        }[kind]

    lines = [f"{rank} init" for rank in ranks]
    for rank in ranks:
        lines += [f"{rank} compute {rank * 10_000_000}"]
        lines += [f"{rank} {call}" for call in calls(rank)]
    return "\n".join([*lines, *(f"{rank} finalize" for rank in ranks)]) + "\n"


@pytest.mark.parametrize("kind", UNEQUAL)
def test_unequal_parts_take_what_smpi_says_as_they_are_and_converted(
    kind: str, tmp_path: Path
) -> None:
    network = PRESETS["smpi"].with_(latency=0.1, bandwidth=1e5)
    path, again = tmp_path / "unequal.ti", tmp_path / "again.ti"
    for processes, expected in zip((2, 3, 4, 5, 6, 7, 8, 11), UNEQUAL[kind], strict=True):
        path.write_text(unequal(kind, processes))
        program = from_trace(read(path, flop_rate=1e9))
        again.write_text("".join(smpi_text(program)))
        for found in (program, from_trace(read(again, flop_rate=1e9))):
            assert replay(found, network).runtime == pytest.approx(expected, abs=6e-6)
