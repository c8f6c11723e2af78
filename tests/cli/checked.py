"""Programs that print where their threads may run, and ``popmodel check`` of them."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT, Mpi

from popmodel.machines.host.hardware import cpu_list, parse_cpu_list
from popmodel.machines.host.toolchain import find_compiler

SOURCE = Path(__file__).resolve().parents[1] / "tracer" / "programs" / "placed.c"
OF_LAUNCHERS = ("OMPI_MCA_rmaps_base_oversubscribe", "PRTE_MCA_rmaps_default_mapping_policy")


class Answered(NamedTuple):
    """How ``popmodel check`` ended, and what it found."""

    status: int
    out: str
    err: str
    found: dict[str, Any]

    def ids(self) -> set[str]:
        """What is wrong, without what the load of this machine is."""
        return {finding["id"] for finding in self.found["findings"]} - {"foreign_load"}

    def placed(self) -> dict[int, list[str]]:
        """CPUs of the threads of each rank."""
        return {
            entry["rank"] or 0: [thread["cpus"] for thread in entry["threads"]]
            for entry in self.found["placement"]
        }

    def told(self) -> dict[int, list[str]]:
        """The same, as the program has read it in /proc."""
        found: dict[int, dict[int, str]] = {}
        for rank, thread, cpus in re.findall(r"placed (\d+) (\d+) (\S+)", self.out):
            found.setdefault(int(rank), {})[int(thread)] = cpu_list(parse_cpu_list(cpus))
        return {rank: [threads[at] for at in sorted(threads)] for rank, threads in found.items()}


Checked = Callable[..., Answered]


@pytest.fixture(scope="session")
def placed(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build the program, once for each compiler and its flags."""
    folder = tmp_path_factory.mktemp("placed")

    def build(*flags: str, mpicc: Sequence[str] | None = None) -> Path:
        words = [*(mpi.mpicc if mpicc is None else mpicc), "-O1", *flags]
        target = folder / re.sub(r"\W+", "-", " ".join(words[-60:]))[-80:] / "placed"
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            subprocess.run([*words, "-o", target, SOURCE], check=True)
        return target

    return build


@pytest.fixture
def check(mpi: Mpi, tmp_path: Path) -> Checked:
    """Run ``popmodel check`` as a process of its own."""

    def run(
        *words: str | Path,
        options: Sequence[str] = (),
        largest_file: int | None = None,
        **variables: str,
    ) -> Answered:
        output = tmp_path / "check.json"
        output.unlink(missing_ok=True)
        own = {name: value for name, value in ENVIRONMENT.items() if name not in OF_LAUNCHERS}
        command = [sys.executable, "-m", "popmodel", "check", "-o", output, *options, "--", *words]

        def limit() -> None:
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        done = subprocess.run(
            list(map(str, command)),
            preexec_fn=limit,
            cwd=tmp_path,
            env={**os.environ, **own, "PATH": _path(mpi), **variables},
            capture_output=True,
            text=True,
            timeout=GENEROUS,
            check=False,
        )
        found = json.loads(output.read_text()) if output.exists() else {}
        return Answered(done.returncode, done.stdout, done.stderr, found)

    return run


def _path(mpi: Mpi) -> str:
    return os.pathsep.join([str(Path(mpi.mpirun).parent), os.environ["PATH"]])


@pytest.fixture(scope="session")
def hydra() -> Path:
    """The launcher of MPICH, with its compiler beside it: of $TESTS_MPICH, or on the path."""
    prefix = os.environ.get("TESTS_MPICH")
    where = None if prefix is None else str(Path(prefix) / "bin")
    found = shutil.which("mpiexec.hydra", path=where)
    if found is None or not (Path(found).parent / "mpicc").exists():
        pytest.skip("needs MPICH: $TESTS_MPICH, or mpiexec.hydra on the path")
    return Path(found)


@pytest.fixture(scope="session")
def openmp_flag() -> str:
    return find_compiler().openmp


@pytest.fixture
def program(placed: Callable[..., Path], openmp_flag: str) -> Path:
    """With OpenMP alone."""
    return placed(openmp_flag)


@pytest.fixture
def mpi_program(placed: Callable[..., Path], openmp_flag: str) -> Path:
    """With MPI and OpenMP."""
    return placed("-DWITH_MPI", openmp_flag)
