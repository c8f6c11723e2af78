"""``popmodel replay -o``: the replayed run as a trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel import replay
from popmodel.base.errors import UsageError

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")


def test_a_replay_is_written_as_a_trace(tmp_path: Path, popmodel: Call) -> None:
    output = tmp_path / "replayed.prv.gz"
    words = ("--network", "dimemas", "--format", "json", "-o", str(output))
    status, out, err = popmodel("replay", PURE, *words)
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["written"] == str(output)
    again = ("--from-start", "--format", "json")
    (measured,) = json.loads(popmodel("metrics", str(output), *again)[1])["runs"]
    (run,) = document["runs"]
    assert measured["runtime"] == pytest.approx(run["runtime"], abs=1e-9)
    (replayed,) = json.loads(popmodel("replay", str(output), "--network", "dimemas", *again)[1])[
        "runs"
    ]
    assert replayed["runtime"] == pytest.approx(run["runtime"], abs=1e-9)
    assert [rank["compute"] for rank in replayed["ranks"]] == pytest.approx(
        [rank["compute"] for rank in run["ranks"]], abs=1e-12
    )


def test_the_table_says_where_the_replay_was_written(
    trace: str, tmp_path: Path, popmodel: Call
) -> None:
    output = tmp_path / "replayed.prv"
    lines = popmodel("replay", trace, "-o", str(output))[1].splitlines()
    assert any(line.startswith("written ") for line in lines)
    assert {each.suffix for each in tmp_path.glob("replayed.*")} == {".prv", ".pcf", ".row"}
    status, _, err = popmodel("replay", trace, "-o", str(output))
    assert status == 2
    assert "use --force to overwrite it" in err
    assert popmodel("replay", trace, "-o", str(output), "--force")[0] == 0


def test_only_one_replay_makes_a_trace(trace: str, tmp_path: Path, popmodel: Call) -> None:
    output = tmp_path / "replayed.prv"
    status, _, err = popmodel("replay", trace, "--latency", "1us,2us", "-o", str(output))
    assert status == 2
    assert "one replay makes a trace, not 2 replays" in err
    assert not output.exists()


def test_a_trace_has_the_name_of_one(trace: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.prv or \.prv\.gz"):
        replay(trace, output=tmp_path / "replayed.trace")
