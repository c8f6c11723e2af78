"""How it is found out how ranks are started, with launchers made up and with a real one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from patience import clock_that_leaps

from popmodel.machines.host import hardware, launcher, processes
from popmodel.machines.host.launcher import LaunchError, LaunchWay, call
from popmodel.machines.host.toolchain import Compiler, Mpi, ToolchainError, find_mpi

HELLO = r"""
n=1
for word; do
  [ "$before" = -n ] && n=$word
  before=$word
done
i=0
while [ $i -lt $n ]; do
  echo "{\"hello\":$i,\"ranks\":${size:-$n},\"host\":\"h\",\"library\":\"L\"}"
  i=$((i+1))
done
"""
"""A launcher that starts whatever it is asked to."""

BUILDS = 'while [ "$1" != -o ]; do shift; done; echo > "$2"; chmod +x "$2"'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_WORKED", {})
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    cores(monkeypatch, 2)


def cores(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let this machine have that many cores."""
    machine = hardware.read({"affinity": f"0-{number - 1}"})
    monkeypatch.setattr(hardware, "here", lambda: machine)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def made_up(folder: Path, launcher: str, library: str = "Open MPI", version: str = "5.0.11") -> Mpi:
    """An MPI whose launcher is a script."""
    compiler = Compiler((script(folder / "mpicc", BUILDS),), "mpicc 1", "-fopenmp")
    mpirun = script(folder / "mpirun", launcher)
    return Mpi(compiler, ((mpirun,),), library, version, "0123", "user")


@pytest.mark.usefixtures("two_cores")
def test_ranks_are_bound_where_that_works(tmp_path: Path) -> None:
    mpi = made_up(tmp_path, f"{HELLO}\necho $* > {tmp_path}/words")
    assert launcher.probe(mpi) == LaunchWay(mpi.launchers[0], "bound")
    assert (tmp_path / "words").read_text().startswith("--map-by slot:PE=1 --bind-to core -n 2 /")


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    ("refused", "manner"), [("*core*", "free"), ("*core*|'--bind-to none'*", "crowded")]
)
def test_flags_that_are_refused_are_left_out(tmp_path: Path, refused: str, manner: str) -> None:
    mpi = made_up(tmp_path, f'case "$*" in {refused}) echo no; exit 1;; esac\n{HELLO}')
    assert launcher.probe(mpi).manner == manner


@pytest.mark.usefixtures("two_cores")
def test_what_worked_is_remembered_until_it_is_forgotten(tmp_path: Path) -> None:
    mpi = made_up(tmp_path, f"echo called >> {tmp_path}/calls\n{HELLO}")

    def calls() -> int:
        return (tmp_path / "calls").read_text().count("called")

    first = launcher.probe(mpi)
    assert (launcher.probe(mpi), calls()) == (first, 1)
    # another setting of the launcher may want another way
    launcher.probe(mpi, {**os.environ, "OMPI_MCA_rmaps": "x"})
    assert calls() == 2
    launcher.forget(mpi)
    launcher.probe(mpi)
    assert calls() == 3


def failure(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> LaunchError:
    with pytest.raises(LaunchError) as raised:
        launcher.probe(mpi, environment)
    return raised.value


@pytest.mark.usefixtures("two_cores")
def test_a_launcher_of_another_mpi(tmp_path: Path) -> None:
    mpi = made_up(tmp_path, f"size=1\n{HELLO}", "MPICH", "4.1")
    error = failure(mpi)
    assert error.message == (
        "1 rank starts, 2 do not: mpirun started 2 separate one-rank programs instead of 2 "
        "ranks: it does not belong to MPICH 4.1"
    )
    assert error.hint == "give the launcher of this MPI, for example --launcher 'srun --mpi=pmix'"


@pytest.mark.usefixtures("two_cores")
def test_a_launcher_with_room_for_one(tmp_path: Path) -> None:
    refuses = 'case "$*" in *"-n 2"*) echo There are not enough slots; exit 1;; esac'
    error = failure(made_up(tmp_path, f"{refuses}\n{HELLO}"))
    assert error.message == (
        "1 rank starts, 2 do not: mpirun does not have enough slots for 2 ranks: There are not "
        "enough slots"
    )
    assert error.hint == "use fewer with --ranks, or request more from the batch system"


@pytest.mark.usefixtures("two_cores")
def test_a_launcher_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "time", clock_that_leaps((tmp_path / "calls").exists))
    error = failure(made_up(tmp_path, f"echo called >> {tmp_path}/calls; exec sleep 600"))
    assert error.message == "mpirun did not start 2 ranks within 60 s; it printed nothing"
    assert error.hint == (
        "the ranks may not reach each other (network interface, firewall): try other "
        "launcher options with --launcher"
    )
    assert (tmp_path / "calls").read_text() == "called\n"


def test_no_launcher_at_all(tmp_path: Path) -> None:
    mpi = made_up(tmp_path, HELLO)
    bare = Mpi(mpi.compiler, (), mpi.library, mpi.version, mpi.identity, mpi.origin)
    error = failure(bare)
    assert error.message == (
        "Open MPI 5.0.11: found neither mpirun nor mpiexec, and this is not a batch job"
    )
    assert error.hint == (
        "run it in a job (popmodel machine measure --script slurm), or give the launcher: "
        "--launcher"
    )


def test_one_core_is_asked_for_one_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cores(monkeypatch, 1)
    mpi = made_up(tmp_path, f'case "$*" in *"-n 2"*) exit 1;; esac\n{HELLO}')
    assert launcher.probe(mpi).manner == "bound"


# What each launcher is told


def words(library: str, version: str, manner: launcher.Manner, threads: int = 1) -> str:
    way = LaunchWay(("mpirun",), manner)
    compiler = Compiler(("mpicc",), "1", "-fopenmp")
    mpi = Mpi(compiler, (("mpirun",),), library, version, "0", "user")
    return " ".join(call(way, mpi, 4, threads, {})[0])


@pytest.mark.parametrize(
    ("library", "version", "manner", "command"),
    [
        ("Open MPI", "4.1.4", "bound", "mpirun --map-by slot:PE=2 --bind-to core -n 4"),
        ("Open MPI", "4.1.4", "crowded", "mpirun --oversubscribe --bind-to none -n 4"),
        ("Open MPI", "5.0.11", "crowded", "mpirun --map-by :OVERSUBSCRIBE --bind-to none -n 4"),
        ("Open MPI", "5.0.11", "free", "mpirun --bind-to none -n 4"),
        ("Open MPI", "5.0.11", "given", "mpirun -n 4"),
        ("MPICH", "4.1", "bound", "mpirun -bind-to core:2 -n 4"),
        ("MPICH", "4.1", "free", "mpirun -n 4"),
        ("Intel MPI", "2021.9", "bound", "mpirun -n 4"),
        ("MPI", "standard 3.1", "bound", "mpirun -n 4"),
    ],
)
def test_flags(library: str, version: str, manner: launcher.Manner, command: str) -> None:
    assert words(library, version, manner, threads=2) == command


def made(library: str, launcher: str = "mpirun") -> Mpi:
    compiler = Compiler(("mpicc",), "1", "-fopenmp")
    return Mpi(compiler, ((launcher,),), library, "5.0", "0", "user")


@pytest.mark.parametrize(
    ("manner", "command"),
    [
        ("bound", "srun --cpu-bind=cores -c 2 -n 4"),
        ("free", "srun --cpu-bind=none -c 2 -n 4"),
        ("crowded", "srun --cpu-bind=none --overcommit -c 2 -n 4"),
    ],
)
def test_flags_of_slurm(manner: launcher.Manner, command: str) -> None:
    begun = call(LaunchWay(("srun",), manner), made("Open MPI", "srun"), 4, 2, {})
    assert " ".join(begun[0]) == command


def test_slurm_is_tried_with_its_interfaces() -> None:
    tried = {way.launcher for way in launcher.ways(made("Open MPI", "srun"))}
    assert tried == {("srun",), ("srun", "--mpi=pmix"), ("srun", "--mpi=pmi2")}


def test_intel_mpi_binds_by_variables() -> None:
    way, mpi = LaunchWay(("mpirun",), "bound"), made("Intel MPI")
    assert call(way, mpi, 2, 1, {})[1] == {
        "I_MPI_PIN": "1",
        "I_MPI_PIN_DOMAIN": "core",
    }
    assert call(way, mpi, 2, 4, {})[1]["I_MPI_PIN_DOMAIN"] == "omp"
    assert call(LaunchWay(("mpirun",), "free"), mpi, 2, 4, {})[1] == {"I_MPI_PIN": "0"}


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_root_is_allowed_only_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, user: int, allowed: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    begun = call(LaunchWay(("mpirun",), "given"), made("Open MPI"), 2, 1, {})
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in begun[1]) is allowed
    assert call(LaunchWay(("mpirun",), "given"), made("MPICH"), 2, 1, {})[1] == {}


def test_open_mpi_is_told_to_take_the_variables_of_openmp_along() -> None:
    environment = {"OMP_NUM_THREADS": "2", "PATH": "/bin", "OMP_PLACES": "cores"}
    begun = call(LaunchWay(("mpirun",), "free"), made("Open MPI"), 2, 1, environment)
    assert " ".join(begun[0]) == "mpirun --bind-to none -x OMP_NUM_THREADS -x OMP_PLACES -n 2"


# A real MPI


def test_a_real_mpi_starts_ranks_as_this_user() -> None:
    try:
        mpi = find_mpi()
    except ToolchainError as error:
        pytest.skip(f"{error.message}; {error.hint}")
    way = launcher.probe(mpi)
    assert way in launcher.ways(mpi)
