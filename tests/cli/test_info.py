"""``popmodel info``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data"

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


def test_the_screen(trace: str, popmodel: Call) -> None:
    status, out, err = popmodel("info", trace)
    assert (status, err) == (0, "")
    assert out.splitlines()[:-2] == [
        "trace      two.prv",
        "processes  2",
        "threads    1 per process",
        "nodes      1",
        "runtime    9.000 ms",
        "counters   none",
        "",
        "records         number",
        " events              6",
        " states              4",
        " communicators       1",
        " messages            0",
        "",
        "MPI calls     number",
        " MPI_Barrier       2",
        "",
    ]


def test_json_follows_the_contract(trace: str, popmodel: Call) -> None:
    document = json.loads(popmodel("info", trace, "--format", "json")[1])
    assert document["schema"] == "popmodel/info/1"
    assert document["trace"] == "two.prv"
    assert document["processes"] == 2
    assert document["threads"] == 1
    assert document["runtime"] == pytest.approx(0.009)
    assert document["records"]["states"] == 4
    assert document["calls"] == {"MPI_Barrier": 2}
    assert document["counters"] == []
    assert document["warnings"] == []


def test_csv_names_every_number(trace: str, popmodel: Call) -> None:
    rows = list(csv.DictReader(io.StringIO(popmodel("info", trace, "--format", "csv")[1])))
    values = {(row["group"], row["name"]): row["value"] for row in rows}
    assert values["trace", "processes"] == "2"
    assert values["calls", "MPI_Barrier"] == "2"


def test_markdown(trace: str, popmodel: Call) -> None:
    out = popmodel("info", trace, "--format", "markdown")[1]
    assert "| MPI calls | number |\n|:--|--:|\n| MPI_Barrier | 2 |\n" in out


def test_what_is_analysed_is_said_beside_the_whole(started: str, popmodel: Call) -> None:
    lines = popmodel("info", started)[1].splitlines()
    assert "runtime    100.0 ms" in lines
    assert "analysed   0.04 s to 0.09 s (MPI_Init to MPI_Finalize)" in lines
    document = json.loads(popmodel("info", started, "--format", "json")[1])
    assert document["runtime"] == 0.1
    assert document["analysed"] == {
        "begin": 0.04,
        "end": 0.09,
        "duration": 0.05,
        "left_out": {"before": 0.04, "between": 0.0, "after": 0.01},
        "region": None,
        "occurrences": 1,
        "why": "MPI_Init to MPI_Finalize",
    }
    rows = csv.DictReader(io.StringIO(popmodel("info", started, "--format", "csv")[1]))
    values = {row["name"]: row["value"] for row in rows if row["group"] == "analysed"}
    assert values == {"begin": "0.04", "end": "0.09"}


def test_sizes_of_messages(popmodel: Call) -> None:
    lines = popmodel("info", str(DATA / "cg.S.2.prv.gz"))[1].splitlines()
    (line,) = (line for line in lines if line.startswith("messages "))
    assert line == "messages   8 B to 5.469 KiB, mean 2.712 KiB; 8.9 MiB in total"


def test_messages_of_one_size(popmodel: Call) -> None:
    example = DATA.parent.parent / "examples" / "traces" / "stencil3d.2x2.prv.gz"
    assert "messages   312.5 KiB each; 61.04 MiB in total" in popmodel("info", str(example))[1]
