"""``popmodel explain``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_a_metric_of_one_family(popmodel: Call) -> None:
    status, out, err = popmodel("explain", "mpi-additive.load_balance")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Load balance (mpi-additive.load_balance)"
    assert lines[1].startswith("meaning  One minus the share of the runtime")
    assert "formula  1 - (max(useful of masters) - Avg(useful of" in lines
    assert "part of  Parallel efficiency = Load balance + Communication" in lines
    assert any(line.startswith("if low   ") for line in lines)
    assert any(line.startswith("source   POP additive metrics guide") for line in lines)
    assert max(map(len, lines)) <= 60


def test_a_metric_of_several_families(popmodel: Call) -> None:
    heads = [
        line for line in popmodel("explain", "openmp_load_balance")[1].splitlines() if "(" in line
    ]
    assert "OpenMP load balance (hybrid-additive.openmp_load_balance)" in heads
    assert "OpenMP load balance (talp.openmp_load_balance)" in heads


def test_all_metrics_are_listed(popmodel: Call) -> None:
    out = popmodel("explain")[1]
    lines = out.splitlines()
    assert lines[0] == "mpi: MPI (multiplicative)"
    assert "   global_efficiency" in lines
    assert "     load_balance" in lines
    assert "popmodel explain FAMILY or METRIC says more" in lines
    assert max(map(len, lines)) <= 60


def test_a_family(popmodel: Call) -> None:
    status, out, err = popmodel("explain", "mpi")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "mpi: MPI (multiplicative)"
    assert lines[1].startswith("use     Programs with MPI only.")
    assert any(line.startswith("source  POP Standard Metrics") for line in lines)
    assert "  parallel_efficiency: Share of the time of the processes" in lines
    assert "    load_balance: How evenly the useful time is spread over" in lines
    assert "popmodel explain mpi.METRIC says more" in lines
    assert max(map(len, lines)) <= 60
    document = json.loads(popmodel("explain", "mpi", "--format", "json")[1])
    (family,) = document["families"]
    assert family["metrics"][2]["metric"] == "load_balance"
    assert family["metrics"][2]["meaning"].startswith("How evenly the useful time")
    markdown = popmodel("explain", "mpi", "--format", "markdown")[1]
    assert "| load_balance | How evenly the useful time is spread over the processes |" in markdown


def test_other_formats(popmodel: Call) -> None:
    one = json.loads(popmodel("explain", "mpi.load_balance", "--format", "json")[1])
    assert one["schema"] == "popmodel/explain/1"
    assert one["metric"] == "load_balance"
    assert [each["family"] for each in one["definitions"]] == ["mpi"]
    every = json.loads(popmodel("explain", "--format", "json")[1])
    assert [family["family"] for family in every["families"]][:2] == ["mpi", "mpi-additive"]
    rows = list(csv.DictReader(io.StringIO(popmodel("explain", "--format", "csv")[1])))
    assert ("talp", "mpi_load_balance") in {(row["family"], row["metric"]) for row in rows}
    rows = list(csv.DictReader(io.StringIO(popmodel("explain", "speedup", "--format", "csv")[1])))
    assert [row["family"] for row in rows] == ["scaling"]
    markdown = popmodel("explain", "speedup", "--format", "markdown")[1]
    assert markdown.startswith("## Speed-up (scaling)\n")
    listed = popmodel("explain", "--format", "markdown")[1]
    assert "## MPI (multiplicative)\n" in listed
    assert "| Global efficiency | global_efficiency | How well the run uses" in listed


def test_an_unknown_metric_is_answered_by_near_ones(popmodel: Call) -> None:
    status, out, err = popmodel("explain", "load_balanc")
    assert (status, out) == (2, "")
    assert err.startswith("popmodel: error: no metric is called 'load_balanc'\nhint: did you mean ")
    assert "load_balance" in err
    _, _, err = popmodel("explain", "nothing")
    assert err == (
        "popmodel: error: no metric is called 'nothing'\n"
        "hint: popmodel explain lists families and metrics\n"
    )
