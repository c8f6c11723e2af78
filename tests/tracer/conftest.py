"""The tracer is tried with a real MPI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from real_mpi import Mpi, mpi

__all__ = ["library", "mpi"]

MICROBENCH = Path(__file__).resolve().parents[2] / "microbench"


@pytest.fixture(scope="session")
def library(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, built as its Makefile does, without a warning."""
    folder = tmp_path_factory.mktemp("tracer")
    mpicc = " ".join(mpi.mpicc)
    built = subprocess.run(
        ["make", "-s", "-j2", "-C", MICROBENCH, "tracer", f"MPICC={mpicc}", f"BUILD={folder}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return folder / "libpopmodel_trace.so"
