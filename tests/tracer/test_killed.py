"""What a process leaves that is killed: at any instant it can be read, or nothing was recorded."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT

import popmodel
from popmodel.base.errors import PopmodelError
from popmodel.tracer.conversion import merge

from .traced import library, program

__all__ = ["library", "program"]

INSTANTS = 40

Killed = Callable[..., dict[Path, float]]


@pytest.fixture
def killed(library: Path, program: Callable[..., Path], tmp_path: Path) -> Killed:
    """Runs a program that is killed at some of its system calls.

    Gives the folders in which it recorded, and how long it was there at most, s.
    """
    killer = program("killed")

    def run(*words: str | Path, **variables: str) -> dict[Path, float]:
        def once(number: int) -> tuple[Path, float, str]:
            folder = tmp_path / str(number)
            folder.mkdir(exist_ok=True)
            settings = {"LD_PRELOAD": str(library), "POPMODEL_TRACE_DIR": str(folder), **variables}
            traced = [f"{name}={value}" for name, value in settings.items()]
            begin = time.monotonic()
            done = subprocess.run(
                [killer, str(number), "env", *traced, *words],
                env={**os.environ, **ENVIRONMENT, "OMPI_MCA_btl": "self"},
                capture_output=True,
                text=True,
                check=False,
                timeout=GENEROUS,
            )
            if done.returncode == 77:
                pytest.skip("needs the right to trace a process (ptrace)")
            return folder, time.monotonic() - begin, done.stdout

        last = int(once(10**9)[-1].split()[-1])
        before, first = 0, last
        while first - before > 1:  # it records from there on
            middle = (before + first) // 2
            before, first = (before, middle) if any(once(middle)[0].iterdir()) else (middle, first)
        numbers = random.Random(7).sample(range(first, last), INSTANTS)
        found = [once(number) for number in numbers]
        return {folder: seconds for folder, seconds, _ in found if any(folder.iterdir())}

    return run


@pytest.fixture(params=[(), ("-DWITH_MPI",)], ids=["openmp", "mpi"])
def built(request: pytest.FixtureRequest, program: Callable[..., Path]) -> Path:
    """A program with OpenMP, without and with MPI."""
    return program("placed", "-fopenmp", *request.param)


@pytest.mark.long
def test_sums_of_a_killed_process_are_read_or_there_are_none(killed: Killed, built: Path) -> None:
    told = set()
    found = killed(built, "5", POPMODEL_TRACE_SUMMARY="1")
    for folder, seconds in found.items():
        try:
            assert 0 < popmodel.check(sums=folder)["runtime"] < seconds
        except PopmodelError as error:
            told.add(error.message.replace(str(folder), "RAW"))
    assert told <= {
        "RAW: contains no sums of a run",
        "nothing to check: the run ended with MPI_Init, or as its first parallel region began",
    }


@pytest.mark.long
def test_records_of_a_killed_process_are_merged_or_there_are_none(
    killed: Killed, built: Path
) -> None:
    told = set()
    for folder in killed(built, "5"):
        try:
            assert merge(folder, folder.with_suffix(".prv")).path.exists()
        except PopmodelError as error:
            told.add(error.message.replace(str(folder), "RAW"))
    assert told <= {"RAW: contains no records of any process"}
