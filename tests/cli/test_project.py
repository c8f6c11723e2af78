"""``popmodel project``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from popmodel.api.project import Projected

import popmodel as package

from .conftest import write_trace

Call = Callable[..., tuple[int, str, str]]
ROWS = {4: (10.4, 0.95, 0.97), 8: (5.4, 0.92, 0.95), 16: (2.9, 0.87, 0.91)}
"""By processes: runtime, parallel and communication efficiency."""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of three runs with their efficiencies."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    head = "processes,threads,runtime,mpi.parallel_efficiency,mpi.communication_efficiency"
    lines = [f"{p},1,{r},{e},{c}" for p, (r, e, c) in ROWS.items()]
    (tmp_path / "runs.csv").write_text("\n".join([head, *lines]) + "\n")
    return "runs.csv"


def document(popmodel: Call, *words: str) -> dict[str, Any]:
    status, out, err = popmodel("predict", *words, "--format", "json")
    assert status == 0, err
    found = json.loads(out)
    assert found["schema"] == "popmodel/project/1"
    return dict(found)


def test_the_contract(table: str, popmodel: Call) -> None:
    """What other programs rely on."""
    found = document(popmodel, table, "--procs", "64,256")
    assert {row["processes"] for row in found["rows"]} == {64, 256}
    for row in found["rows"]:
        assert row["threads"] == 1
        assert row["law"] in ("structural", "amdahl", "pipe", "linear", "derived")
        assert row["value"] > 0
        if row["processes"] == 64:
            assert row["low"] <= row["value"] <= row["high"]
            assert row["why"] == ""
        else:
            assert row["low"] is row["high"] is None
            assert row["why"].startswith("256 processes are 16 times the most")
    assert [run["processes"] for run in found["runs"]] == [4, 8, 16]
    assert found["scaling"]["mode"] == "strong"
    assert found["lines"][0]["reach"] == {"low": 1.0, "high": 64.0}
    assert {one["name"] for one in found["baselines"]} >= {"amdahl", "pipe", "linear"}
    assert found["provenance"]["command"].startswith("popmodel project")


def test_baselines_have_speedups_like_the_projection(table: str, popmodel: Call) -> None:
    found = document(popmodel, table, "--procs", "64")
    values = {row["metric"]: row["value"] for row in found["rows"]}
    for one in found["baselines"]:
        assert one["speedup"] * one["runtime"] == pytest.approx(
            values["speedup"] * values["runtime"]
        )


def test_the_screen(table: str, popmodel: Call) -> None:
    status, out, _ = popmodel("predict", table, "--procs", "32,256")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["projected", "efficiencies", "strong", "scaling"]
    assert "runs   3 (4 x 1, 8 x 1, 16 x 1)" in lines
    assert "reach  intervals from 1 to 64 processes (at T = 1)" in lines
    assert any(line.startswith("32 x 1") for line in lines)
    assert any(line.strip().startswith("Load balance") and ".." in line for line in lines)
    assert "[1] 256 processes are 16 times the most that were measured; intervals reach up" in out
    assert any("error at runs left out" in line for line in lines)
    assert any(line.startswith("runtime alone") for line in lines)


def test_a_narrow_terminal(table: str, shown: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    status, out, _ = shown("predict", table, "--procs", "32")
    assert status == 0
    assert "\x1b" not in out
    body = out.split("\npopmodel 0.")[0].splitlines()
    assert max(map(len, body)) <= 60


def test_families_on_the_screen(table: str, shown: Call) -> None:
    out = shown("predict", table, "--procs", "32", "--family", "mpi-additive")[1]
    assert "MPI (additive)" in out
    assert "MPI (multiplicative)" not in out
    everything = shown("predict", table, "--procs", "32", "--family", "all")[1]
    assert "MPI (additive)" in everything and "MPI (multiplicative)" in everything


def test_csv_has_a_line_for_each_metric(table: str, shown: Call) -> None:
    out = shown("predict", table, "--procs", "32", "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["metric"] for row in rows} >= {"runtime", "speedup", "load_balance"}
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


def test_markdown(table: str, shown: Call) -> None:
    out = shown("predict", table, "--procs", "32", "--format", "markdown")[1]
    assert "| Load balance" in out.replace("&nbsp;", "").replace("  ", "")


def test_the_picture(table: str, popmodel: Call, tmp_path: Path) -> None:
    assert popmodel("predict", table, "--procs", "128", "-o", "projected.svg")[0] == 0
    text = (tmp_path / "projected.svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert text.count('class="band"') == 6
    assert text.count("<circle") == 3 * 6
    assert "Parallel efficiency" in text
    assert popmodel("predict", table, "--procs", "128", "-o", "projected.svg")[0] == 2  # exists


def test_a_law_that_is_asked_for(table: str, popmodel: Call) -> None:
    found = document(popmodel, table, "--procs", "32", "--law", "pipe")
    assert {row["law"] for row in found["rows"]} == {"pipe", "derived"}
    assert all(law["constants"].keys() == {"x0", "f"} for law in found["lines"][0]["laws"])


def test_one_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    found = document(popmodel, "two.prv", "--procs", "4")
    assert any("is assumed, not measured" in text for text in found["warnings"])
    assert {law["origin"] for law in found["lines"][0]["laws"]} == {"assumed"}
    out = popmodel("predict", "two.prv", "--procs", "4")[1]
    assert "laws, assumed" in out


def test_two_traces_and_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    write_trace(tmp_path / "four.prv", [4, 3, 4, 4], runtime=5)
    found = document(popmodel, "two.prv", "four.prv", "--procs", "8")
    assert any("cannot tell laws apart" in text for text in found["warnings"])
    part = document(popmodel, "two.prv", "four.prv", "--procs", "8", "--window", "1ms:4ms")
    assert part["runs"][0]["runtime"] < found["runs"][0]["runtime"]


def test_a_document_of_metrics_is_a_table_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    write_trace(tmp_path / "four.prv", [4, 3, 4, 4], runtime=5)
    assert popmodel("metrics", "two.prv", "four.prv", "-o", "metrics.json")[0] == 0
    traced = document(popmodel, "two.prv", "four.prv", "--procs", "8")
    again = document(popmodel, "metrics.json", "--procs", "8")
    values = {(row["family"], row["metric"]): row["value"] for row in traced["rows"]}
    for row in again["rows"]:
        assert row["value"] == pytest.approx(values[row["family"], row["metric"]], rel=1e-3)


def test_runtimes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("processes,threads,runtime\n4,1,10\n8,1,5.5\n16,1,3.2\n")
    found = document(popmodel, "t.csv", "--procs", "32")
    assert {row["metric"] for row in found["rows"]} == {"runtime", "speedup"}
    assert any("only the runtime is projected" in text for text in found["warnings"])
    status, out, _ = popmodel("predict", "t.csv", "--procs", "32")
    assert status == 0
    assert "speed-up" in out
    assert popmodel("predict", "t.csv", "--procs", "32", "-o", "t.svg")[0] == 0


def test_problems_of_several_sizes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("processes,threads,runtime,N\n4,1,10,64\n8,1,10.5,128\n")
    status, _, err = popmodel("predict", "t.csv", "--procs", "32")
    assert status == 2
    assert "runs of different problems: N is 64, 128" in err
    assert "--scaling weak" in err
    found = document(popmodel, "t.csv", "--procs", "32", "--scaling", "weak")
    assert found["rows"][0]["value"] == pytest.approx(11, rel=0.3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--procs is missing"),
        (("--procs", "0"), "--procs: must be a whole number, at least 1, not '0'"),
        (("--procs", "8,,16"), "--procs: must be a whole number, at least 1, not ''"),
        (("--procs", "8", "--threads", "x"), "--threads: must be a whole number"),
        (("--procs", "8", "--law", "gustafson"), "--law: unknown value 'gustafson'"),
        (("--procs", "8", "--scaling", "big"), "--scaling: unknown value 'big'"),
        (("--procs", "8", "--reference", "9"), "reference 9: no such run"),
        (("--procs", "8", "--family", "talp"), "family 'talp' is not projected from these runs"),
        (("--procs", "32", "--threads", "4"), "32 x 4: no run has 4 threads per process"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str, table: str, popmodel: Call) -> None:
    status, out, err = popmodel("predict", table, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert "hint:" in err


def test_without_runs(popmodel: Call) -> None:
    status, _, err = popmodel("predict", "--procs", "8")
    assert status == 2
    assert "missing argument 'RUN'" in err


def test_in_python(table: str) -> None:
    found = package.project(table, procs=32)
    assert isinstance(found, Projected)
    assert repr(found).startswith("<Projected of 3 runs: 32 x 1 ")
    frame = found.to_dataframe()
    assert set(frame.metric) >= {"runtime", "parallel_efficiency"}
    assert found.plot().svg.count('class="band"') == 6
    assert "projected efficiencies" in str(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"procs": 0}, "procs=0: must be a whole number, at least 1"),
        ({"procs": []}, "procs: no number given"),
        ({"procs": 8, "law": "x"}, "law: unknown value 'x'"),
        ({"procs": 8, "family": "mpy"}, "family 'mpy' is unknown"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], said: str, table: str) -> None:
    with pytest.raises(package.PopmodelError) as error:
        package.project(table, **arguments)
    assert error.value.message == said
