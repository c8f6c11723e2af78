"""``popmodel predict RUN...``: measured runs carried to other sizes by laws of their factors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel as package

from .conftest import Call, write_trace

ROWS = {4: (10.4, 0.95, 0.97), 8: (5.4, 0.92, 0.95), 16: (2.9, 0.87, 0.91)}
"""By processes: runtime, parallel and communication efficiency."""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of three runs with their efficiencies."""
    monkeypatch.chdir(tmp_path)
    head = "processes,threads,runtime,mpi.parallel_efficiency,mpi.communication_efficiency"
    lines = [f"{p},1,{r},{e},{c}" for p, (r, e, c) in ROWS.items()]
    (tmp_path / "runs.csv").write_text("\n".join([head, *lines]) + "\n")
    return "runs.csv"


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Two traces of one program."""
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    write_trace(tmp_path / "four.prv", [4, 3, 4, 4], runtime=5)
    return "two.prv", "four.prv"


def document(popmodel: Call, *words: str) -> dict[str, Any]:
    status, out, err = popmodel("predict", *words, "--format", "json")
    assert status == 0, err
    return dict(json.loads(out))


def test_a_run_has_the_shape_of_one_that_a_signature_predicts(table: str, popmodel: Call) -> None:
    found = document(popmodel, table, "--procs", "64")
    assert found["schema"] == "popmodel/predict/1"
    assert (found["processes"], found["threads"]) == (64, 1)
    assert found["trust"] == {"ok": True, "why": ""}
    estimates = [found["runtime"], *found["time"].values()]
    estimates += [one for family in found["metrics"].values() for one in family.values()]
    assert all(one["low"] <= one["value"] <= one["high"] for one in estimates)
    assert sum(one["value"] for one in found["time"].values()) == pytest.approx(
        found["runtime"]["value"]
    )
    inner = found["projection"]
    assert {row["law"] for row in inner["rows"]} <= {
        *("structural", "amdahl", "pipe", "linear", "derived")
    }
    assert [run["processes"] for run in inner["runs"]] == [4, 8, 16]
    assert inner["scaling"]["mode"] == "strong"
    assert inner["lines"][0]["reach"] == {"low": 1.0, "high": 64.0}
    values = {row["metric"]: row["value"] for row in inner["rows"]}
    for one in inner["baselines"]:
        assert one["speedup"] * one["runtime"] == pytest.approx(
            values["speedup"] * values["runtime"]
        )


def test_beyond_reach_there_is_no_interval_and_no_trust(table: str, popmodel: Call) -> None:
    found = document(popmodel, table, "--procs", "256")
    assert found["trust"]["ok"] is False
    assert found["trust"]["why"].startswith("256 processes are 16 times the most")
    assert found["runtime"]["low"] is found["runtime"]["high"] is None
    assert found["trust"]["why"].startswith(found["runtime"]["why"])
    assert found["trust"]["why"].endswith("; a run of 32 x 1 would tell most")
    first = popmodel("predict", table, "--procs", "256")[1].splitlines()[0]
    assert first.startswith(" ! not to be trusted yet: 256 processes")


def test_splits_have_the_shape_of_those_of_a_signature(table: str, popmodel: Call) -> None:
    found = document(popmodel, table, "--cores", "32,64")
    assert found["schema"] == "popmodel/splits/1"
    assert [(one["processes"], one["threads"]) for one in found["candidates"]] == [
        (32, 1),
        (64, 1),
    ]
    assert found["best"] == [[32, 1], [64, 1]]
    assert {one["probability_best"] for one in found["candidates"]} == {1.0}
    assert {one["threads"] for one in found["refused"]} == {2, 4, 8, 16, 32, 64}
    assert found["trust"] == {"ok": True, "why": ""}


def test_splits_of_several_teams_are_compared_draw_by_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{p},{t},{100 / (p * t**0.5)}" for p in (2, 4, 8) for t in (1, 2, 4)]
    (tmp_path / "t.csv").write_text("\n".join(["processes,threads,runtime", *lines]) + "\n")
    found = document(popmodel, "t.csv", "--cores", "32")
    chances = {one["threads"]: one["probability_best"] for one in found["candidates"]}
    assert chances.keys() == {1, 2, 4, 8, 16}
    assert chances[1] == max(chances.values())
    assert sum(chances.values()) == pytest.approx(1)
    assert found["best"][0] == [32, 1]


def test_the_most_cores_of_an_efficiency(table: str, popmodel: Call) -> None:
    found = document(popmodel, table, "--efficiency", "0.85")
    (best,) = found["candidates"]
    assert best["parallel_efficiency"]["value"] >= 0.85
    beyond = document(popmodel, table, "--procs", str(best["processes"] + 2))
    assert beyond["metrics"]["mpi"]["parallel_efficiency"]["value"] < 0.86
    alone = popmodel("predict", table, "--efficiency", "0.999")[1]
    assert "\n-> 1 core keeps a parallel efficiency of 99.9 %, the most within reach\n" in alone


@pytest.mark.parametrize("width", [40, 50, 80])
def test_screens_fit_their_terminal(
    table: str, shown: Call, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for size in ("--procs", "--cores"):
        lines = shown("predict", table, size, "32")[1].splitlines()
        assert max(map(len, lines)) <= width


def test_a_law_that_is_asked_for(table: str, popmodel: Call) -> None:
    inner = document(popmodel, table, "--procs", "32", "--law", "pipe")["projection"]
    assert {row["law"] for row in inner["rows"]} == {"pipe", "derived"}
    assert all(law["constants"].keys() == {"x0", "f"} for law in inner["lines"][0]["laws"])


def test_laws_are_assumed_of_one_run_and_hardly_told_apart_by_two(
    traces: tuple[str, ...], popmodel: Call
) -> None:
    one = document(popmodel, traces[0], "--procs", "4")
    assert "is assumed, not measured" in one["trust"]["why"]
    assert {law["origin"] for law in one["projection"]["lines"][0]["laws"]} == {"assumed"}
    two = document(popmodel, *traces, "--procs", "8")
    assert any("cannot tell laws apart" in text for text in two["projection"]["warnings"])
    part = document(popmodel, *traces, "--procs", "8", "--window", "1ms:4ms")
    runtimes = [found["projection"]["runs"][0]["runtime"] for found in (part, two)]
    assert runtimes[0] < runtimes[1]


def test_a_document_of_metrics_is_a_table_of_runs(traces: tuple[str, ...], popmodel: Call) -> None:
    assert popmodel("metrics", *traces, "-o", "metrics.json")[0] == 0
    traced = document(popmodel, *traces, "--procs", "8")["projection"]
    again = document(popmodel, "metrics.json", "--procs", "8")["projection"]
    values = {(row["family"], row["metric"]): row["value"] for row in traced["rows"]}
    for row in again["rows"]:
        assert row["value"] == pytest.approx(values[row["family"], row["metric"]], rel=1e-3)


def test_runtimes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("processes,threads,runtime\n4,1,10\n8,1,5.5\n16,1,3.2\n")
    found = document(popmodel, "t.csv", "--procs", "32")
    assert {row["metric"] for row in found["projection"]["rows"]} == {"runtime", "speedup"}
    assert any("only the runtime is projected" in one for one in found["projection"]["warnings"])
    assert found["time"] == {}
    assert ", speed-up " in popmodel("predict", "t.csv", "--procs", "32")[1]
    assert "efficiency of these runs is not known" in popmodel(
        "predict", "t.csv", "--efficiency", "0.8"
    )[2]  # fmt: skip


def test_problems_of_several_sizes_are_one_law_of_weak_scaling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("processes,threads,runtime,N\n4,1,10,64\n8,1,10.5,128\n")
    found = document(popmodel, "t.csv", "--procs", "32", "--scaling", "weak")
    assert found["runtime"]["value"] == pytest.approx(11, rel=0.3)


def test_in_python(table: str) -> None:
    found = package.predict(table, procs=32)
    assert repr(found).startswith("<Prediction: 32 x 1 takes 1.")
    assert set(found.to_dataframe().metric) >= {"runtime", "parallel_efficiency"}
    assert 0 < found["mpi.parallel_efficiency"] < 1  # type: ignore[operator]
    for law, said in (("x", "law: unknown value 'x'"),):
        with pytest.raises(package.PopmodelError) as error:
            package.predict(table, procs=32, law=law)
        assert error.value.message == said
