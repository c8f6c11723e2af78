"""``popmodel check`` says where threads ran, as /proc does, and what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real_mpi import Mpi

from .checked import Checked, check, hydra, mpi_program, openmp_flag, placed, program
from .traced_programs import Traced

__all__ = ["check", "hydra", "mpi_program", "openmp_flag", "placed", "program"]

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
SRUN = """#!{python}
# Places tasks as Slurm does on a node of two cores: -n, -c, --cpu-bind, --export.
import os, subprocess, sys
words, given = sys.argv[1:], dict(n="1", c="1", bind="cores", export="ALL")
while words[0].startswith("-"):
    word = words.pop(0)
    name, _, value = word.lstrip("-").partition("=")
    given[dict([("cpu-bind", "bind")]).get(name, name)] = value or words.pop(0)
tasks, size, bind = int(given["n"]), int(given["c"]), given["bind"]
exported = dict(part.split("=", 1) for part in given["export"].split(",") if "=" in part)
running = []
for task in range(tasks):
    if bind.startswith("map_cpu:"):
        cpus = bind.partition(":")[2].split(",")[task:][:1]
    else:
        cpus = ["0", "1"] if bind == "none" else [str((task * size + k) % 2) for k in range(size)]
    slurm = dict(SLURM_JOB_ID="7", SLURM_STEP_ID="0", SLURM_CPUS_ON_NODE="2")
    slurm |= dict(SLURM_PROCID=str(task), SLURM_LOCALID=str(task), SLURM_NTASKS=str(tasks))
    own = dict(os.environ, **slurm, **exported)
    running.append(subprocess.Popen(["taskset", "-c", ",".join(cpus), *words], env=own))
sys.exit(max(task.wait() for task in running))
"""
OF_SLURM = [
    ("-n 1 -c 1", "2", [["0", "0"]], {"share", "idle"}),
    ("-n 2", "1", [["0"], ["1"]], set()),
    ("-n 1 -c 2", "2", [["0-1", "0-1"]], set()),
    ("-n 1 -c 2", None, [["0-1", "0-1"]], set()),
    ("-n 2 --cpu-bind=map_cpu:0,0", "1", [["0"], ["0"]], {"overlap", "idle"}),
    ("-n 2 --cpu-bind none", "1", [["0-1"], ["0-1"]], set()),
    ("-n 2 --cpu-bind=none", "2", [["0-1", "0-1"]] * 2, {"oversubscribed"}),
    ("-n 2 --cpu-bind=none", None, [["0-1", "0-1"]] * 2, {"oversubscribed", "unset"}),
]
"""Options, OMP_NUM_THREADS, the masks of the threads of each task, and what is wrong."""
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
    binding: str, ranks: int, threads: int, mpi: Mpi, check: Checked, mpi_program: Path
) -> None:
    words = (mpi.mpirun, "-n", str(ranks), *binding.split(), mpi_program)
    found = check(*words, OMP_NUM_THREADS=str(threads))
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


def test_of_the_abi_of_the_standard(
    hydra: Path, check: Checked, placed: Callable[..., Path], openmp_flag: str
) -> None:
    compiler = hydra.parent / "mpicc_abi"
    if not compiler.exists():
        pytest.skip("needs an MPI with mpicc_abi, as MPICH 5")
    program = placed("-DWITH_MPI", openmp_flag, mpicc=[str(compiler)])
    found = check(hydra, "-n", "2", program, OMP_NUM_THREADS="1")
    assert found.status == 0, found.err
    assert found.placed() == found.told()
    assert found.found["calls"]["collective"]["calls"] == 40


@pytest.mark.parametrize(("options", "threads", "masks", "wrong"), OF_SLURM)
@pytest.mark.long(after=1)
def test_of_srun(
    options: str,
    threads: str | None,
    masks: list[list[str]],
    wrong: set[str],
    check: Checked,
    program: Path,
    tmp_path: Path,
) -> None:
    """Played by a script; its tasks are processes without MPI."""
    (tmp_path / "srun").write_text(SRUN.replace("{python}", sys.executable))
    (tmp_path / "srun").chmod(0o755)
    own = {} if threads is None else {"OMP_NUM_THREADS": threads}
    found = check("./srun", *options.split(), program, **own)
    assert found.status == 0, found.err
    told = [[thread["cpus"] for thread in task["threads"]] for task in found.found["placement"]]
    assert sorted(told) == masks
    assert found.ids() == wrong
    if "share" in wrong:
        better = check("env", *found.found["better"].split())
        assert better.ids() == set()
        assert better.found["placed"][0][1] == "2 threads, bound to a CPU of its own: CPUs 0-1"


@pytest.mark.parametrize("variables", OPENMP)
@pytest.mark.parametrize("before", ["", "taskset -c 0", "taskset -c 1", "taskset -c 0,1"])
@pytest.mark.long(after=1)
def test_of_openmp_alone(
    before: str, variables: dict[str, str], check: Checked, program: Path
) -> None:
    found = check(*before.split(), program, OMP_NUM_THREADS="2", **variables)
    assert found.status == 0, found.err
    assert found.placed() == found.told()
    assert found.ids() == expected(list(found.told().values()))


@pytest.mark.long
def test_the_better_line_of_two_threads_on_a_core_runs_and_nothing_is_wrong_with_it(
    mpi: Mpi, check: Checked, mpi_program: Path
) -> None:
    words = [mpi.mpirun, "-n", "1", "--bind-to", "core", mpi_program, "30"]
    first = check(*words, OMP_NUM_THREADS="2")
    assert first.ids() == {"share", "idle"}
    line = first.found["better"]
    assert line.endswith(f"{mpi_program} 30")
    second = check("env", *line.split())
    assert second.ids() == set(), second.found["findings"]
    assert second.found["better"] is None


def test_a_number_of_threads_that_nobody_asked_for_is_told_where_they_share_cores(
    mpi: Mpi, check: Checked, program: Path, mpi_program: Path
) -> None:
    assert check(program).ids() == set()  # a thread on each core
    both = (mpi.mpirun, "-n", "2", "--bind-to", "none", mpi_program)
    assert check(*both).ids() == {"oversubscribed", "unset"}
    assert check(*both, OMP_NUM_THREADS="2").ids() == {"oversubscribed"}


@pytest.mark.long
def test_a_busy_neighbour_is_told(check: Checked, program: Path) -> None:
    loop = f"import os; os.sched_setaffinity(0, {{{CPUS[0]}}}); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) as neighbour:
        try:
            assert neighbour.stdout is not None
            neighbour.stdout.readline()  # it is at work
            found = check(program, "1.5s", OMP_NUM_THREADS="2")
        finally:
            neighbour.kill()
    (told,) = (one for one in found.found["findings"] if one["id"] == "foreign_load")
    assert "took" in told["text"]
    assert found.ids() == set()


@pytest.mark.long
def test_a_trace_ends_with_the_same_placement(
    mpi: Mpi, check: Checked, traced: Traced, mpi_program: Path
) -> None:
    words = [mpi.mpirun, "-n", "1", "--bind-to", "core", mpi_program, "5"]
    (line,) = check(*words, OMP_NUM_THREADS="2").found["placed"]
    done = traced(*words, OMP_NUM_THREADS="2", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert ": ".join(line) in " ".join(done.stderr.split())
