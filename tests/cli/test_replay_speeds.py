"""``popmodel replay`` with ranks and regions of other speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")


def test_ranks_of_other_speeds(popmodel: Call) -> None:
    words = ("replay", PURE, "--rank-speed", "0=1", "--rank-speed", "0-1=2,3=0.5")
    same, other = json.loads(popmodel(*words, "--format", "json")[1])["runs"]
    ratios = [
        a["compute"] / b["compute"] for a, b in zip(same["ranks"], other["ranks"], strict=True)
    ]
    assert ratios == pytest.approx([2, 2, 1, 0.5])
    assert "speeds" in other["network"]
    out = popmodel(*words)[1]
    assert any(line.split()[:2] == ["2", "0-1=2,3=0.5"] for line in out.splitlines())


def test_ranks_that_are_not_there_have_no_speed(popmodel: Call) -> None:
    status, _, err = popmodel("replay", PURE, "--rank-speed", "4=2")
    assert status == 2
    assert "speed of rank 4: there are 4 ranks, from 0 to 3" in err
    assert "--rank-speed: '4' is no speed" in popmodel("replay", PURE, "--rank-speed", "4")[2]


def test_regions_of_other_speed(popmodel: Call) -> None:
    given = ("--region-speed", "before MPI_Sendrecv=2", "--format", "json")
    document = json.loads(popmodel("replay", PURE, *given)[1])
    plain = json.loads(popmodel("replay", PURE, "--format", "json")[1])
    assert document["runs"][0]["runtime"] < plain["runs"][0]["runtime"]
    assert "taken as 2 times as fast as traced" in document["notes"][0]
    status, _, err = popmodel("replay", PURE, "--region-speed", "2")
    assert (status, "'2' is no speed of a region" in err) == (2, True)


def test_a_page_of_regions_of_other_speed_has_no_sliders(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "replay.html"
    words = ("--region-speed", "before MPI_Sendrecv=2", "-o", str(path))
    assert popmodel("replay", PURE, *words)[0] == 0
    assert 'id="whatif-live"' not in path.read_text()
