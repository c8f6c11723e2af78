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
    assert "terms: sweeps over splits" in lines
    assert "popmodel docs grammar: the keys of signatures" in lines
    assert max(map(len, lines)) <= 60


def test_a_family(popmodel: Call) -> None:
    status, out, err = popmodel("explain", "mpi")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "mpi: MPI (multiplicative)"
    assert lines[1].startswith("use     Programs with MPI only.")
    assert any(line.startswith("source  POP Standard Metrics") for line in lines)
    assert "  parallel_efficiency: Share of the time of the processes" in lines
    assert "    load_balance: How evenly useful time is spread over the" in lines
    assert "popmodel explain mpi.METRIC explains a metric" in lines
    assert max(map(len, lines)) <= 60
    document = json.loads(popmodel("explain", "mpi", "--format", "json")[1])
    (family,) = document["families"]
    assert family["metrics"][2]["metric"] == "load_balance"
    assert family["metrics"][2]["meaning"].startswith("How evenly useful time")
    markdown = popmodel("explain", "mpi", "--format", "markdown")[1]
    assert "    - load_balance: How evenly useful time is spread over the processes\n" in markdown


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
    assert markdown.startswith("### Speed-up (scaling.speedup)\n\n- **meaning**: ")
    listed = popmodel("explain", "--format", "markdown")[1]
    assert "### mpi: MPI (multiplicative)\n" in listed
    assert "- global_efficiency\n  - parallel_efficiency\n" in listed


def test_an_unknown_name_is_answered_by_near_ones(popmodel: Call) -> None:
    status, out, err = popmodel("explain", "load_balanc")
    assert (status, out) == (2, "")
    assert err.startswith("popmodel: error: unknown name 'load_balanc'\nhint: did you mean ")
    assert "load_balance" in err
    assert "hint: did you mean memory.bsat" in popmodel("explain", "memory.bsut")[2]
    _, _, err = popmodel("explain", "xyzzy")
    assert err == (
        "popmodel: error: unknown name 'xyzzy'\nhint: popmodel explain lists all names\n"
    )


def test_a_word_of_a_screen(popmodel: Call) -> None:
    status, out, err = popmodel("explain", "expected", "loss")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "expected loss (sweeps over splits)"
    assert "also     expected regret, regret" in out
    document = json.loads(popmodel("explain", "memory.bsat", "--format", "json")[1])
    assert (document["metric"], document["definitions"]) == (None, [])
    (word,) = document["words"]
    assert (word["name"], word["unit"]) == ("memory.bsat", "B/s")
    assert word["measure"] == "popmodel bench -o machine.json"
    rows = list(csv.DictReader(io.StringIO(popmodel("explain", "e_mt", "--format", "csv")[1])))
    assert [row["name"] for row in rows] == ["e_mt"]
    markdown = popmodel("explain", "e_mt", "--format", "markdown")[1]
    assert markdown.startswith("### e_mt (predictions)\n")


@pytest.mark.parametrize("width", ["40", "60", "80"])
@pytest.mark.parametrize("name", [None, "T", "memory.bsat", "equally good", "bytes"])
def test_the_screen_fits(
    name: str | None, width: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = popmodel("explain", *([] if name is None else [name]))[1].split("\n\npopmodel 0.")[0]
    words = max(map(len, out.split()))
    assert max(map(len, out.splitlines())) <= max(int(width), words + 12)
