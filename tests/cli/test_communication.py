"""``popmodel communication``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import popmodel as package

DATA = Path(__file__).parent.parent / "data"
COMD = str(DATA / "comd.4.prv.gz")

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


def test_the_screen(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = popmodel("communication", COMD)
    assert (status, err) == (0, "")
    _, *lines = out.splitlines()
    assert lines[:12] == [
        "processes      4 on 1 node",
        "messages       984, 20.39 MiB",
        "partners       2 per process",
        "per iteration  240 messages, 4.97 MiB (4 iterations)",
        "grid           2 x 2 periodic, 100 % of the bytes",
        "",
        "bytes from row to column",
        "    0  1  2  3",
        "0   #  #  #",
        "1   #  #     #",
        "2   #     #  #",
        "3      #  #  #",
    ]
    assert " MPI_Sendrecv     984   975 ms  20.4 MiB" in lines
    halo = "        41       984  20.4 MiB  halo on 2 x 2 periodic: 26.2 KiB along 0,"
    assert halo in lines
    assert all(len(line) <= 80 for line in lines)


def test_a_narrow_screen_loses_nothing(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.chdir(DATA)
    out = popmodel("communication", "comd.4.prv.gz")[1]
    assert all(len(line) <= 40 for line in out.splitlines())
    assert "halo on 2 x 2 periodic" in " ".join(out.split())


def test_the_document(popmodel: Call) -> None:
    document = json.loads(popmodel("communication", COMD, "--format", "json")[1])
    assert document["schema"] == "popmodel/communication/1"
    assert document["messages"] == sum(document["pairs"]["messages"]) == 984
    assert document["bytes"] == sum(document["pairs"]["bytes"])
    assert document["ranks_together"] == 1
    assert document["bytes"] == sum(size["bytes"] for size in document["sizes"])
    assert document["grids"] == [{"dims": [2, 2], "periodic": [True, True], "share": 1.0}]
    halo = max(document["patterns"], key=lambda pattern: pattern["bytes"])
    assert (halo["kind"], halo["exact"], halo["executions"]) == ("halo", True, 40)
    assert halo["calls"] == "6 MPI_Sendrecv"
    assert halo["loops"] == [4, 10]
    patterns = [one for one in document["patterns"] if one["kind"] != "collective"]
    assert sum(one["messages"] for one in patterns) == 984


def test_the_time_of_calls_is_that_of_all_threads_in_the_part() -> None:
    table = package.read(COMD).to_dataframe("calls")
    spans = table[table.name == "MPI_Sendrecv"]
    begin, end = (int(spans.entry.quantile(share)) for share in (0.25, 0.75))

    def time(**part: Any) -> float:
        calls = package.communication(COMD, **part).to_dict()["calls"]
        return next(call["time"] for call in calls if call["name"] == "MPI_Sendrecv")

    assert time() == pytest.approx(1e-9 * (spans.exit - spans.entry).sum(), rel=1e-12)
    cut = 1e-9 * (spans.exit.clip(begin, end) - spans.entry.clip(begin, end)).sum()
    assert time(window=(1e-9 * begin, 1e-9 * end)) == pytest.approx(cut, abs=1e-8)


def test_csv_has_a_line_for_each_quantity(popmodel: Call) -> None:
    out = popmodel("communication", COMD, "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    found = {(row["table"], row["name"], row["quantity"]): row["value"] for row in rows}
    assert found["call", "MPI_Sendrecv", "calls"] == "984"
    assert found["pair", "0 to 0", "messages"] == "82"
    assert {row["unit"] for row in rows} == {"1", "B", "s"}


def test_markdown_has_all_patterns_and_where_they_stand(popmodel: Call) -> None:
    out = popmodel("communication", COMD, "--format", "markdown")[1]
    assert "[6 MPI_Sendrecv; loop of 4 of 10] | 40 | 960 |" in out


def test_the_drawing(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "matrix.svg"
    assert popmodel("communication", COMD, "-o", str(path))[0] == 0
    drawing = ElementTree.parse(path).getroot()
    space = {"svg": "http://www.w3.org/2000/svg"}
    cells = [
        rect for rect in drawing.iterfind("svg:rect", space) if "cell" in rect.get("class", "")
    ]
    assert len(cells) == 12
    assert cells[0].find("svg:title", space).text == "0 to 0: 82 messages, 1.68 MiB"
    assert {"sending rank", "receiving rank"} < {
        text.text for text in drawing.iterfind("svg:text", space)
    }


def test_a_run_without_messages(trace: str, popmodel: Call) -> None:
    status, out, _ = popmodel("communication", trace)
    assert status == 0
    assert "messages   none" in out
    assert "grid       none: no process sends messages to another" in out
    assert "barrier of all: 0 B" in out
    assert "rows" not in out
    assert popmodel("communication", trace, "--format", "csv")[0] == 0
    assert popmodel("communication", trace, "-o", "none.svg")[0] == 0
    assert 'class="cell' not in Path("none.svg").read_text()
    assert "no messages" in Path("none.svg").read_text()


def test_a_part_of_the_run(popmodel: Call) -> None:
    whole = json.loads(popmodel("communication", COMD, "--format", "json")[1])
    assert whole["analysed"] is None
    part = json.loads(
        popmodel("communication", COMD, "--foa", "iterations=2", "--format", "json")[1]
    )
    assert part["analysed"]["why"].startswith("iteration 2 of 4")
    assert 0 < part["messages"] <= whole["messages"] / 4 * 1.1
    out = popmodel("communication", COMD, "--foa", "iterations=2")[1]
    assert "analysed" in out


def test_errors(popmodel: Call, trace: str) -> None:
    status, _, err = popmodel("communication", "absent.prv")
    assert (status, "absent.prv" in err) == (1, True)
    status, _, err = popmodel("communication", trace, "--window", "2s:1s")
    assert (status, "must end after it begins" in err) == (2, True)


def test_in_python() -> None:
    found = package.communication(COMD)
    told = f"<Communication of {COMD}: 4 processes, 984 messages, 20.39 MiB, grid 2 x 2, "
    assert repr(found).startswith(told)
    assert repr(found).endswith("patterns>")
    frame = found.to_dataframe()
    calls = frame[(frame.table == "call") & (frame.quantity == "calls")]
    assert calls.set_index("name").value["MPI_Sendrecv"] == 984
    assert str(found.plot()).count('class="cell ') == 12


def test_nodes_that_are_not_told_are_not_made_up(popmodel: Call) -> None:
    path = str(DATA / "smpi" / "jac2048.16.ti.txt.gz")
    out = popmodel("communication", path, "--flop-rate", "1Gflop/s")[1]
    assert "processes      16\n" in out
    document = json.loads(
        popmodel("communication", path, "--flop-rate", "1Gflop/s", "--format", "json")[1]
    )
    assert document["nodes"] is None
    assert document["within_nodes"] is None
    assert {call["time"] for call in document["calls"]} == {None}


def test_what_stays_on_a_node_is_told() -> None:
    from popmodel.reports.communication import blocks

    document = package.communication(COMD).to_dict()
    document |= {"nodes": 2, "within_nodes": {"messages": 492, "bytes": document["bytes"] // 4}}
    (facts,) = blocks(document)[1]
    assert ("processes", "4 on 2 nodes") in facts.rows
    assert ("messages", "984, 20.39 MiB; 25 % of it within nodes") in facts.rows
