"""``popmodel replay`` with other algorithms and costs of collectives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")


def test_algorithms_of_collectives(popmodel: Call) -> None:
    words = ("replay", PURE, "--network", "alpha-beta")
    choices = ("--algorithm", "allreduce=ring", "--algorithm", "allreduce=reduce_bcast:1KiB,ring")
    out = popmodel(*words, *choices, "--algorithm", "bcast=linear")[1]
    rows = [line.split()[1:3] for line in out.splitlines() if line.endswith(" %")]
    assert rows == [
        ["allreduce=ring", "bcast=linear"],
        ["allreduce=reduce_bcast:1KiB,ring", "bcast=linear"],
    ]
    runs = json.loads(popmodel(*words, *choices, "--format", "json")[1])["runs"]
    assert {run["network"]["collectives"] for run in runs} == {"algorithm"}
    ring, doubling = (
        json.loads(popmodel(*words, "--algorithm", f"allreduce={name}", "--format", "json")[1])
        for name in ("ring", "recursive_doubling")
    )
    plain = json.loads(popmodel(*words, "--collectives", "algorithm", "--format", "json")[1])
    assert doubling["runs"][0]["runtime"] == plain["runs"][0]["runtime"]
    assert ring["runs"][0]["runtime"] == runs[0]["runtime"] != plain["runs"][0]["runtime"]


def test_algorithms_go_with_collectives_as_messages_only(popmodel: Call) -> None:
    words = ("replay", PURE, "--algorithm", "allreduce=ring", "--collectives")
    status, _, err = popmodel(*words, "dimemas")
    assert status == 2
    assert "collectives dimemas: not carried out as messages" in err
    runs = json.loads(popmodel(*words, "dimemas,algorithm", "--format", "json")[1])["runs"]
    assert [run["network"].get("algorithms") for run in runs] == [None, "allreduce=ring"]


def test_an_algorithm_that_is_none_names_the_option(popmodel: Call) -> None:
    status, _, err = popmodel("replay", PURE, "--algorithm", "allreduce=rign")
    assert status == 2
    assert "--algorithm: unknown algorithm 'rign' of allreduce" in err


def test_costs_of_collectives_by_factor_or_as_a_file_of_dimemas_says(
    tmp_path: Path, popmodel: Call
) -> None:
    file = tmp_path / "ideal.collectives"
    file.write_text("\n".join(f"{number} 0 MAX 0 MAX 1" for number in range(16)))
    words = ("replay", PURE, "--network", "dimemas", "--collective-cost")
    given = (f"constant,linear,{file}", "--format", "json")
    runs = json.loads(popmodel(*words, *given)[1])["runs"]
    assert [run["network"]["collective_cost"] for run in runs] == ["constant", "linear", str(file)]
    constant, linear, none = (run["runtime"] for run in runs)
    assert none < constant < linear
    err = popmodel(*words, "liner")[2]
    assert "unknown cost of collectives 'liner'" in err
    assert "linear" in err
