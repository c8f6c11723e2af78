"""``popmodel check`` says where threads ran, as /proc does, and what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real_mpi import Mpi

from .checked import Checked, check, hydra, openmp_flag, placed
from .traced_programs import Traced

__all__ = ["check", "hydra", "openmp_flag", "placed"]

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CPUS) != 2, reason="needs a machine of two cores")

SIZES = [(1, 1), (2, 1), (1, 2)]
OPEN_MPI = [
    *("--bind-to none", "--bind-to core", "--bind-to hwthread", "--bind-to socket"),
    *("--bind-to numa", "--cpu-set 1 --map-by :OVERSUBSCRIBE", ""),
]
OF_OPEN_MPI = [
    *((binding, *size) for binding in OPEN_MPI for size in SIZES),
    ("--map-by slot:PE=2 --bind-to core", 1, 1),
    ("--map-by slot:PE=2 --bind-to core", 1, 2),
]
HYDRA = [
    *("-bind-to none", "-bind-to core", "-bind-to hwthread", "-bind-to socket"),
    *("-bind-to numa", "-bind-to user:1,0", "-bind-to user:0,0", "-bind-to core:2", ""),
]
OPENMP: list[dict[str, str]] = [
    {},
    {"OMP_PROC_BIND": "true"},
    {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"},
    {"OMP_PLACES": "{1},{0}"},
    {"OMP_PLACES": "{0}", "OMP_PROC_BIND": "true"},
    {"GOMP_CPU_AFFINITY": "1 0"},
]


def expected(masks: list[list[str]]) -> set[str]:
    """What is wrong on two cores, by hand: masks are `0`, `1` or `0-1` for each thread."""
    own = [set(mask) - {"-"} for process in masks for mask in process]
    free = sum(len(mask) == 2 for mask in own)
    bound = {next(iter(mask)) for mask in own if len(mask) == 1}
    busy = min(2, len(bound) + free)
    wrong = set[str]()
    if len(own) > 2 and busy == 2:
        return {"oversubscribed"}
    for process in masks:
        if len(process) == 2 and len(set(process)) == 1 and process[0] != "0-1":
            wrong.add("share")
    if len(masks) == 2 and busy < 2:
        wrong.add("overlap")
    return wrong | ({"idle"} if busy < 2 else set())


@pytest.mark.parametrize(("binding", "ranks", "threads"), OF_OPEN_MPI)
@pytest.mark.long(after=1)
def test_of_open_mpi(
    binding: str,
    ranks: int,
    threads: int,
    mpi: Mpi,
    check: Checked,
    placed: Callable[..., Path],
    openmp_flag: str,
) -> None:
    program = placed("-DWITH_MPI", openmp_flag)
    found = check(
        mpi.mpirun, "-n", str(ranks), *binding.split(), program, OMP_NUM_THREADS=str(threads)
    )
    assert found.status == 0, found.err
    assert found.placed() == found.told()
    assert [len(masks) for masks in found.told().values()] == [threads] * ranks
    assert found.ids() == expected(list(found.told().values()))


@pytest.mark.parametrize(("ranks", "threads"), SIZES)
@pytest.mark.parametrize("binding", HYDRA)
@pytest.mark.long(after=1)
def test_of_mpich(
    binding: str,
    ranks: int,
    threads: int,
    hydra: Path,
    check: Checked,
    placed: Callable[..., Path],
    openmp_flag: str,
) -> None:
    path = os.pathsep.join([str(hydra.parent), os.environ["PATH"]])
    program = placed("-DWITH_MPI", openmp_flag, mpicc=[str(hydra.parent / "mpicc")])
    words = [hydra, "-n", str(ranks), *binding.split(), program]
    found = check(*words, OMP_NUM_THREADS=str(threads), PATH=path)
    assert found.status == 0, found.err
    assert found.placed() == found.told()
    assert found.ids() == expected(list(found.told().values()))


@pytest.mark.parametrize("variables", OPENMP)
@pytest.mark.parametrize("before", ["", "taskset -c 0", "taskset -c 1", "taskset -c 0,1"])
@pytest.mark.long(after=1)
def test_of_openmp_alone(
    before: str,
    variables: dict[str, str],
    check: Checked,
    placed: Callable[..., Path],
    openmp_flag: str,
) -> None:
    found = check(*before.split(), placed(openmp_flag), OMP_NUM_THREADS="2", **variables)
    assert found.status == 0, found.err
    assert found.placed() == found.told()
    assert found.ids() == expected(list(found.told().values()))


@pytest.mark.long
def test_the_better_line_of_two_threads_on_a_core_runs_and_nothing_is_wrong_with_it(
    mpi: Mpi, check: Checked, placed: Callable[..., Path], openmp_flag: str
) -> None:
    program = placed("-DWITH_MPI", openmp_flag)
    words = [mpi.mpirun, "-n", "1", "--bind-to", "core", program, "30"]
    first = check(*words, OMP_NUM_THREADS="2")
    assert first.ids() == {"share", "idle"}
    line = first.found["better"]
    assert line.endswith(f"{program} 30")
    second = check("env", *line.split())
    assert second.ids() == set(), second.found["findings"]
    assert second.found["better"] is None


def test_a_number_of_threads_that_nobody_asked_for_is_told(
    check: Checked, placed: Callable[..., Path], openmp_flag: str
) -> None:
    assert check(placed(openmp_flag)).ids() == {"unset"}


@pytest.mark.long
def test_ranks_of_other_processes_are_oversubscribed(
    mpi: Mpi, check: Checked, placed: Callable[..., Path], openmp_flag: str
) -> None:
    found = check(
        mpi.mpirun, "-n", "2", "--bind-to", "none", placed("-DWITH_MPI", openmp_flag), "5",
        OMP_NUM_THREADS="2",
    )  # fmt: skip
    assert found.ids() == {"oversubscribed"}


@pytest.mark.long
def test_a_busy_neighbour_is_told(
    check: Checked, placed: Callable[..., Path], openmp_flag: str
) -> None:
    loop = "import os; os.sched_setaffinity(0, {0})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", loop]) as neighbour:
        try:
            found = check(placed(openmp_flag), "8000", OMP_NUM_THREADS="2")
        finally:
            neighbour.kill()
    assert found.found["runtime"] > 0.5  # what the kernel's ticks tell
    (told,) = (one for one in found.found["findings"] if one["id"] == "foreign_load")
    assert "took" in told["text"]
    assert found.ids() == set()


@pytest.mark.long
def test_a_trace_ends_with_the_same_placement(
    mpi: Mpi,
    check: Checked,
    traced: Traced,
    placed: Callable[..., Path],
    openmp_flag: str,
) -> None:
    words = [mpi.mpirun, "-n", "1", "--bind-to", "core", placed("-DWITH_MPI", openmp_flag), "5"]
    (line,) = check(*words, OMP_NUM_THREADS="2").found["placed"]
    done = traced(*words, OMP_NUM_THREADS="2", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert ": ".join(line) in " ".join(done.stderr.split())
