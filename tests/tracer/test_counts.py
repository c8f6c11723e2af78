"""Numbers of MPI calls: every screen counts those that the program made."""

from __future__ import annotations

from pathlib import Path

from tracer.builder import Run

from popmodel.cli.inspect import inspect
from popmodel.cli.metrics import metrics
from popmodel.tracer.conversion import merge
from popmodel.traces import read

MADE = {
    "MPI_Allreduce": 40,
    "MPI_Comm_dup": 2,
    "MPI_Finalize": 2,
    "MPI_Init": 2,
    "MPI_Test": 5 * 20 + 5,
    "MPI_Testany": 14,
    "MPI_Waitall": 40,
}
"""Of both processes, whether they found anything or not."""


def trace_of(folder: Path) -> Path:
    """Waits for nothing, tests that were made several times, and a call that sends nothing."""
    run = Run(2)
    for rank in range(2):
        process = run.process(rank, begin=0)
        master = process.thread()
        master.call("Init", 0, 100_000)
        master.call("Comm_dup", 110_000, 120_000, a=1)
        for step in range(20):
            begin = 200_000 + 20_000 * step
            master.call("Allreduce", begin, begin + 2000, a=1, b=8, c=8)
            master.call("Waitall", begin + 4000, begin + 5000)
            if step % 2 == 0:  # four that found nothing, and one that did
                master.call("Test", begin + 7000, begin + 9000, found=1, misses=5, between=100)
            if step == 7 and rank == 0:
                master.call("Test", begin + 11_000, begin + 12_000, misses=5, between=100)
            if step == 9:
                master.call("Testany", begin + 11_000, begin + 12_000, misses=7, between=100)
        master.call("Finalize", 700_000, 800_000)
        process.end(900_000)
    return merge(run.write(folder / "raw"), folder / "x.prv").path


def test_all_screens_count_the_calls_that_were_made(tmp_path: Path) -> None:
    trace = read(trace_of(tmp_path))
    inside = {name: n for name, n in MADE.items() if name not in ("MPI_Init", "MPI_Finalize")}
    found = inspect(trace).to_dict()
    assert found["info"]["calls"] == MADE
    for part, made in (("communication", MADE), ("phases", inside)):
        assert {call["name"]: call["calls"] for call in found[part]["calls"]} == made
    (run,) = metrics(trace).to_dict()["runs"]
    assert {site["call"]: site["count"] for site in run["call_sites"]} == inside
