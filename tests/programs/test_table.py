"""The script of the table of public programs, without those programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import counted  # noqa: E402
import recipes  # noqa: E402


def script(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, HERE / "table.py", *words, "--mpicc", "cc", "--mpicxx", "c++"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
    )


def test_what_is_missing_is_told_and_nothing_is_a_failure(tmp_path: Path) -> None:
    done = script(tmp_path, "--work", tmp_path / "work", "--mpirun", "true")
    assert done.returncode == 2
    for program in recipes.PROGRAMS:
        assert f"no sources: {tmp_path / program.folder / program.marker} is missing" in done.stderr
    assert "Left out:" in done.stdout


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("MPI_Send", "MPI_Send"),
        ("mpi_comm_rank_", "MPI_Comm_rank"),
        ("GOMP_parallel_loop_dynamic", "parallel"),
    ],
)
def test_calls_have_one_name_in_all_languages(symbol: str, name: str) -> None:
    assert counted.shown(symbol) == name


def test_differences_name_what_differs() -> None:
    one = counted.Counts(
        counted.Counter({"MPI_Send": 2, "MPI_Comm_rank": 9}), 2, 16, {"MPI_Bcast": 8}, 0
    )
    other = counted.Counts(counted.Counter({"MPI_Send": 1}), 1, 8, {"MPI_Bcast": 4}, 3)
    assert counted.differences(one, one) == []
    assert counted.differences(one, other) == [
        "MPI_Send: 2 counted, 1 in the trace",
        "MPI_Bcast: 8 bytes counted, 4 in the trace",
        "messages: 2 counted, 1 in the trace",
        "bytes of messages: 16 counted, 8 in the trace",
        "parallel regions: 0 counted, 3 in the trace",
    ]
