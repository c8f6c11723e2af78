"""What ``popmodel metrics`` analyses by default, and with ``--from-start``."""

from __future__ import annotations

import csv
import io
import json

from .conftest import FEW_CALLS, LEFT_OUT, NOT_MODELLED, Call


def test_the_start_and_the_end_of_mpi_are_left_out_and_said_first(
    started: str, popmodel: Call
) -> None:
    for words in (("--all",), ("--format", "markdown")):
        out = popmodel("metrics", started, *words)[1]
        assert f"{NOT_MODELLED} {LEFT_OUT}" in " ".join(out.split())
    assert "50 % of trace" in " ".join(popmodel("metrics", started)[1].split())
    (run,) = json.loads(popmodel("metrics", started, "--format", "json")[1])["runs"]
    assert run["caveats"] == [NOT_MODELLED, LEFT_OUT, FEW_CALLS]
    assert run["window"] == {
        "begin": 0.04,
        "end": 0.09,
        "duration": 0.05,
        "left_out": {"before": 0.04, "between": 0.0, "after": 0.01},
        "region": None,
        "occurrences": 1,
        "why": "MPI_Init to MPI_Finalize",
    }
    assert run["runtime"] == 0.05
    assert run["metrics"]["mpi"]["parallel_efficiency"] == 0.5
    rows = csv.DictReader(io.StringIO(popmodel("metrics", started, "--format", "csv")[1]))
    (row,) = rows
    assert (row["runtime"], row["ideal_runtime"]) == ("0.05", "0.025")
    assert (row["window_begin"], row["window_end"]) == ("0.04", "0.09")
    parts = ("before", "between", "after")
    assert [row[f"window_left_out_{part}"] for part in parts] == ["0.04", "0.0", "0.01"]


def test_the_whole_run_is_taken_where_it_is_asked_for(started: str, popmodel: Call) -> None:
    out = popmodel("metrics", started, "--from-start", "--format", "json")[1]
    (run,) = json.loads(out)["runs"]
    assert run["runtime"] == 0.1
    assert run["metrics"]["mpi"]["parallel_efficiency"] == 0.25
    assert run["window"]["left_out"] == {"before": 0.0, "between": 0.0, "after": 0.0}
    assert run["caveats"] == [
        NOT_MODELLED.replace("50 %", "25 %"),
        "the whole run is analysed, including 40 ms up to the end of MPI_Init and 10 ms from "
        "MPI_Finalize on",
        FEW_CALLS,
    ]
