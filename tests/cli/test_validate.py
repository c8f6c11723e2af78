"""``popmodel validate``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import FEW_CALLS, LEFT_OUT

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
HYBRID = str(Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz")
SMALL = ("--set", "N=64")


@pytest.fixture
def runs(tmp_path: Path) -> str:
    path = tmp_path / "runs.csv"
    path.write_text("processes,threads,runtime\n16,4,1.30\n8,8,9.0\n")
    return str(path)


def test_a_table_of_run_times(popmodel: Call, runs: str) -> None:
    status, out, err = popmodel("validate", "stencil3d", runs)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:2] == ["application  stencil3d", "machine      sandybridge-fdr"]
    first, second = [line for line in lines if line.startswith("runtime, s ")]
    assert "1.3 " in first
    assert not first.endswith("!")
    assert second.endswith(" % !")
    assert "intervals  1 of 2 hold the measurement" in lines
    assert any(line.startswith("!  ") for line in lines)


def test_a_trace(popmodel: Call) -> None:
    status, out, _ = popmodel("validate", "stencil3d", HYBRID, *SMALL)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    assert any(line.startswith("Serial region efficiency ") for line in out.splitlines())
    assert "efficiencies  median error" in out
    others = popmodel("validate", "stencil3d", HYBRID, *SMALL, "--family", "talp")[1]
    assert "Serial region efficiency" not in others


def test_the_document_is_that_of_the_contract(popmodel: Call, runs: str) -> None:
    words = ("validate", "stencil3d", HYBRID, *SMALL, "--format", "json")
    document = json.loads(popmodel(*words)[1])
    assert document["schema"] == "popmodel/validate/1"
    keys = {"family", "metric", "processes", "threads", "predicted", "low", "high", "measured"}
    assert all(set(row) >= keys | {"covered"} for row in document["rows"])
    assert set(document["summary"]) == {"runtime", "metrics"}
    rows = list(csv.DictReader(io.StringIO(popmodel(*words[:-1], "csv")[1])))
    assert len(rows) == len(document["rows"])
    assert "| runtime, s |" in popmodel("validate", "stencil3d", runs, "--format", "markdown")[1]


def test_a_prediction_that_was_saved(popmodel: Call, tmp_path: Path) -> None:
    saved = str(tmp_path / "prediction.json")
    assert popmodel("predict", "--procs", "2", "--threads", "2", *SMALL, "-o", saved)[0] == 0
    old, new = (
        json.loads(popmodel("validate", *words, "--format", "json")[1])["rows"]
        for words in ((saved, HYBRID), ("stencil3d", HYBRID, *SMALL))
    )
    assert old == new


def test_wrong_usage_is_told(popmodel: Call, runs: str, tmp_path: Path) -> None:
    saved = str(tmp_path / "p.json")
    popmodel("predict", "--procs", "2", "--threads", "2", *SMALL, "-o", saved)
    status, _, err = popmodel("validate", saved, runs)
    assert status == 2
    assert f"{runs} is a run of 16 x 4, the prediction is for 2 x 2" in err
    status, _, err = popmodel("validate", saved, HYBRID, *SMALL)
    assert status == 2
    assert (
        "--machine, --set, --nodes and --cores-per-node do not go with a prediction that was saved"
    ) in err
    assert "hint: name the application instead, to predict anew" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is no prediction"),
        ('{"schema": "popmodel/sweep/1"}', "is no prediction"),
        ('{"schema": "popmodel/predict/1"}', "application is missing"),
        ("{", "is not JSON"),
    ],
)
def test_a_damaged_prediction_is_told(
    popmodel: Call, runs: str, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    status, out, err = popmodel("validate", str(path), runs)
    assert (status, out) == (1, "")
    assert words in err


def test_the_program_is_compared_and_what_is_left_out_said_first(
    started: str, popmodel: Call
) -> None:
    words = ("validate", "stencil3d", started, *SMALL)
    out = popmodel(*words)[1]
    assert " ".join(out.split()).startswith(LEFT_OUT)
    assert LEFT_OUT in popmodel(*words, "--format", "markdown")[1].splitlines()
    document = json.loads(popmodel(*words, "--format", "json")[1])
    (measured,) = document["measured"]
    assert (measured["source"], measured["caveats"]) == (started, [LEFT_OUT, FEW_CALLS])
    assert measured["window"]["left_out"] == {"before": 0.04, "between": 0.0, "after": 0.01}
    assert document["rows"][0]["measured"] == 0.05
    whole = json.loads(popmodel(*words, "--from-start", "--format", "json")[1])
    assert whole["rows"][0]["measured"] == 0.1


def test_run_times_of_a_table_have_no_window(popmodel: Call, runs: str) -> None:
    out = popmodel("validate", "stencil3d", runs, "--format", "json")[1]
    assert json.loads(out)["measured"] == []
