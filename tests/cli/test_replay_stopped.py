"""``popmodel replay`` of runs that a network stops."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
STOPS = "deadlock in the replay: 2 of 2 ranks wait forever: rank 0 in MPI_Send at "


@pytest.fixture
def mutual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two processes that send to each other first: possible only while sends are eager."""
    lines = ["#Paraver (01/01/2030 at 00:00):9_ns:1(2):1:2(1:1,1:1),1", "c:1:1:2:1:2"]
    for rank, other in ((1, 2), (2, 1)):
        where = f"{rank}:1:{rank}:1"
        lines += [
            f"1:{where}:0:2:1",
            f"1:{where}:2:8:3",
            f"1:{where}:8:9:1",
            f"2:{where}:2:50000001:1",
            f"3:{where}:2:2:{other}:1:{other}:1:6:8:100000:1",
            f"2:{where}:6:50000001:0:50000001:2",
            f"2:{where}:8:50000001:0",
        ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("mutual.prv").write_text("\n".join(lines) + "\n")
    Path("mutual.pcf").write_text("")
    return "mutual.prv"


def test_a_deadlock_on_one_network_leaves_the_others(mutual: str, popmodel: Call) -> None:
    options = ("replay", mutual, "--eager-threshold", "1MiB,10")
    status, out, err = popmodel(*options)
    assert status == 1
    lines = out.splitlines()
    assert "1        1 MiB  3.000 ns   +0.0 %" in lines
    assert "2         10 B      -[1]     -[1]" in lines
    assert "processes  2 on 1 node, 4 MPI operations" in lines
    assert any(line.startswith(f"[1] {STOPS[:40]}") for line in lines)
    assert err.startswith(f"popmodel: error: run 2 (eager threshold 10 B): {STOPS}")
    assert err.splitlines()[1].startswith("hint: records of these operations are missing")

    status, out, _ = popmodel(*options, "--format", "json")
    assert status == 1
    good, bad = json.loads(out)["runs"]
    assert "error" not in good
    assert good["runtime"] == pytest.approx(3e-9)
    assert bad["error"].startswith(STOPS)
    assert (bad["runtime"], bad["operations"], bad["ranks"]) == (None, None, [])

    rows = list(csv.DictReader(io.StringIO(popmodel(*options, "--format", "csv")[1])))
    assert [(row["rank"], row["error"][:16]) for row in rows] == [
        ("0", ""),
        ("1", ""),
        ("", STOPS[:16]),
    ]
    markdown = popmodel(*options, "--format", "markdown")[1]
    assert "| 2 | 10 B | -[1] | -[1] |\n" in markdown
    assert f"\n[1] {STOPS}" in markdown


def test_several_deadlocks_are_one_error(mutual: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", mutual, "--eager-threshold", "10", "--latency", "0,1us")
    assert status == 1
    assert "measured  9.000 ns" in out
    assert err.startswith(f"popmodel: error: run 1 (latency 0 s): {STOPS}")
    assert err.splitlines()[0].endswith("; no result for run 2 (latency 1 us) either")


def test_a_baseline_that_stops_gives_no_change(mutual: str, popmodel: Call) -> None:
    words = ("replay", mutual, "--eager-threshold", "10,1MiB", "--format", "json")
    document = json.loads(popmodel(*words)[1])
    assert document["against"] == {"what": "first", "runtime": None}
    assert [run["change"] for run in document["runs"]] == [None, None]
    lines = popmodel(*words[:-2])[1].splitlines()
    assert "2        1 MiB  3.000 ns        -" in lines
    # the ideal network stops, too: its eager threshold is below this message
    words = ("replay", mutual, "--eager-threshold", "1MiB", "--format", "json")
    assert json.loads(popmodel(*words)[1])["against"] == {"what": "ideal", "runtime": None}


def test_efficiencies_of_a_replay_that_stops_are_marked(mutual: str, popmodel: Call) -> None:
    out = popmodel("replay", mutual, "--eager-threshold", "1MiB,10", "--metrics")[1]
    (line,) = [line for line in out.splitlines() if line.startswith("Parallel efficiency")]
    assert line.endswith("  -[1]")


def test_a_deadlock_on_the_only_network_is_an_error(mutual: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", mutual, "--eager-threshold", "10")
    assert (status, out) == (1, "")
    assert err.startswith(f"popmodel: error: {STOPS}")
