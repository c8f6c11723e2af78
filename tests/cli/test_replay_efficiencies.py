"""``popmodel replay --metrics``: efficiencies of replays."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
HYBRID = str(DATA / "bt-mz.S.2x2.prv.gz")
PURE = str(DATA / "comd.4.prv.gz")


@pytest.mark.parametrize("path", [PURE, HYBRID])
def test_on_the_ideal_network_only_transfer_differs_from_the_measured_run(
    path: str, popmodel: Call
) -> None:
    words = ("--format", "json")
    document = json.loads(popmodel("replay", path, "--metrics", *words)[1])
    measured = json.loads(popmodel("metrics", path, "--family", "all", *words)[1])["runs"][0]
    found = document["runs"][0]["metrics"]
    for family, values in document["measured_metrics"].items():
        assert values == {name: measured["metrics"][family][name] for name in values}
    mpi, before = found["mpi"], measured["metrics"]["mpi"]
    assert mpi["transfer_efficiency"] == 1.0
    for name in ("load_balance", "serialisation_efficiency"):
        assert mpi[name] == pytest.approx(before[name], rel=1e-12)
    faster = measured["runtime"] / document["runs"][0]["runtime"]
    assert mpi["parallel_efficiency"] == pytest.approx(before["parallel_efficiency"] * faster)
    assert ("hybrid-additive" in found) == (path == HYBRID)
    if path == HYBRID:
        additive = found["hybrid-additive"]
        assert additive["process_transfer_efficiency"] == 1.0
        assert additive["parallel_efficiency"] == pytest.approx(
            measured["metrics"]["hybrid-additive"]["parallel_efficiency"] * faster
        )


def test_efficiencies_of_replays_stand_beside_those_of_the_measured_run(popmodel: Call) -> None:
    words = ("replay", PURE, "--latency", "1us,1ms", "--metrics")
    lines = popmodel(*words)[1].splitlines()
    head = lines.index("MPI (multiplicative)        measured  run 1  run 2")
    assert [line[:28].rstrip() for line in lines[head + 1 : head + 6]] == [
        "Parallel efficiency",
        " Load balance",
        " Communication efficiency",
        "  Serialisation efficiency",
        "  Transfer efficiency",
    ]
    assert (
        "| MPI (multiplicative) | measured | run 1 | run 2 |"
        in (popmodel(*words, "--format", "markdown")[1])
    )
    rows = list(csv.DictReader(io.StringIO(popmodel(*words, "--format", "csv")[1])))
    document = json.loads(popmodel(*words, "--format", "json")[1])
    assert (
        float(rows[-1]["mpi.transfer_efficiency"])
        == (document["runs"][1]["metrics"]["mpi"]["transfer_efficiency"])
    )


def test_without_being_asked_for_there_are_no_efficiencies(popmodel: Call) -> None:
    document = json.loads(popmodel("replay", PURE, "--format", "json")[1])
    assert "measured_metrics" not in document
    assert "metrics" not in document["runs"][0]


def test_processors_twice_as_fast_change_no_balance(popmodel: Call) -> None:
    words = ("replay", HYBRID, "--cpu-factor", "1,2", "--metrics", "--format", "json")
    one, two = json.loads(popmodel(*words)[1])["runs"]
    assert two["metrics"]["hybrid-additive"] == pytest.approx(one["metrics"]["hybrid-additive"])
    assert two["metrics"]["mpi"] == pytest.approx(one["metrics"]["mpi"])


def test_efficiencies_with_ranks_of_other_speeds(popmodel: Call) -> None:
    words = ("replay", PURE, "--rank-speed", "0=0.5", "--metrics", "--format", "json")
    document = json.loads(popmodel(*words)[1])
    ranks = [rank["compute"] for rank in document["runs"][0]["ranks"]]
    balance = document["runs"][0]["metrics"]["mpi"]["load_balance"]
    assert balance == pytest.approx(sum(ranks) / len(ranks) / max(ranks), rel=1e-3)
