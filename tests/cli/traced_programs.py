"""Real programs, run by ``popmodel trace``."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT, Mpi

from popmodel.machines.host.toolchain import find_compiler

Answer = tuple[int, str, str]
"""Exit status, standard output and standard error."""
Call = Callable[..., Answer]
Finished = subprocess.CompletedProcess[str]
Traced = Callable[..., Finished]

ROOT = Path(__file__).resolve().parents[2]


OPENMP = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{
    double sum = 0;
    for (int k = 0; k < 5; k++) {
#pragma omp parallel for num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 1000; i++)
            sum += i;
    }
    printf("sum %g\\n", sum);
    return count > 1 ? atoi(words[1]) : 0;
}
"""


SLEEPS = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words)
{
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) /* is out of the barrier */
        MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        puts("asleep");
    }
    fflush(stdout);
    sleep(600);
    MPI_Finalize();
}
"""


@pytest.fixture(scope="session")
def programs(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs to trace, by name."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "openmp.c").write_text(OPENMP)
    (folder / "sleeps.c").write_text(SLEEPS)
    tracer = ROOT / "tests" / "tracer" / "programs"
    examples = ROOT / "examples"
    found = {}
    for source, flags in (
        (examples / "stencil3d" / "stencil3d.c", ["-g", "-fopenmp"]),
        (examples / "cannon" / "cannon.c", ["-fopenmp"]),
        (folder / "sleeps.c", []),
        (tracer / "ends.c", []),
        (tracer / "threads.c", ["-pthread"]),
        (tracer / "teams.c", ["-fopenmp"]),
    ):
        found[source.stem] = folder / source.stem
        command = [*mpi.mpicc, "-O1", *flags, "-o", found[source.stem], source, "-lm"]
        subprocess.run(command, check=True)
    found["openmp"] = folder / "openmp"
    cc = find_compiler()
    command = [*cc.command, cc.openmp, "-o", found["openmp"], folder / "openmp.c"]
    subprocess.run(command, check=True)
    return found


@pytest.fixture
def traced(mpi: Mpi, tmp_path: Path) -> Traced:
    """Run ``popmodel trace`` as a process of its own, in an empty folder."""

    def run(*words: str | Path, options: tuple[str, ...] = (), **variables: str) -> Finished:
        command = [sys.executable, "-m", "popmodel", "trace", *options, "--", *map(str, words)]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**environment(mpi), "COUNTS": str(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=GENEROUS,
            check=False,
        )

    return run


def environment(mpi: Mpi) -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT, "MPICC": shlex.join(mpi.mpicc), "COLUMNS": "60"}


def document_of(popmodel: Call, *words: str) -> dict[str, Any]:
    status, out, _ = popmodel(*words, "--format", "json")
    assert status == 0
    document: dict[str, Any] = json.loads(out)
    return document
