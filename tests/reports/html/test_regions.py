"""The section of regions: gains, histograms, the critical path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import page
from popmodel.reports.html.regions import section
from popmodel.reports.sensitivity_tables import flat

DATA = Path(__file__).parent.parent.parent / "data"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    made = popmodel.whatif(DATA / "mix.4.prv.gz")
    return {**flat(json.loads(json.dumps(made.to_dict()))), "sensitivity": {}}


def contents(document: dict[str, Any]) -> Contents:
    stamp = {"popmodel": "1", "host": "h", "time": "t", "command": "c", "inputs": []}
    made = [{**document, "provenance": stamp}]
    return Contents(
        {
            "schema": "popmodel/report/1",
            "title": "t",
            "documents": made,
            "left_out": [],
            "provenance": stamp,
        }
    )


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    made = section(contents(document))
    assert made is not None
    found: list[dict[str, Any]] = made.context["runs"][0]["rows"]
    return found


def test_a_run_without_computing_has_no_regions(found: dict[str, Any]) -> None:
    assert section(contents({**found, "regions": []})) is None


def test_gains_are_parts_of_the_runtime(found: dict[str, Any]) -> None:
    first, region = rows(found)[0], found["regions"][0]
    assert first["name"] == region["name"]
    assert first["gains"] == pytest.approx(
        [1 - one["runtime"] / found["runtime"] for one in region["gain"][:3]]
    )
    assert first["critical"] == pytest.approx(region["critical"] / found["runtime"])
    assert first["slowest"] == pytest.approx(
        1 - region["slowest"]["gain"][2]["runtime"] / found["runtime"]
    )


def test_a_gain_that_is_printed_as_nothing_has_no_sign(found: dict[str, Any]) -> None:
    region = {**found["regions"][0], "balanced": found["runtime"] * 1.0001}
    assert str(rows({**found, "regions": [region]})[0]["balanced"]) == "0.0"


def test_bars_are_as_high_as_their_ranks_are_many(found: dict[str, Any]) -> None:
    ranks = {"least": 1.0, "most": 2.0, "counts": [1, 0, 4, 2], "without": 3}
    (row,) = rows({**found, "regions": [{**found["regions"][0], "ranks": ranks}]})
    assert row["ranks"]["drawn"] == "M0 24v-6h5V24zM12 24v-24h5V24zM18 24v-12h5V24z"
    assert row["ranks"]["bins"] == [
        "1 rank: 1.000 s to 1.250 s",
        "4 ranks: 1.500 s to 1.750 s",
        "2 ranks: 1.750 s to 2.000 s",
    ]
    assert row["ranks"]["told"] == "7 ranks from 1.000 s to 2.000 s"
    assert row["ranks"]["without"] == "3 ranks"


def test_a_region_without_ranks_has_no_bars(found: dict[str, Any]) -> None:
    ranks = {"least": 0.0, "most": 0.0, "counts": [], "without": 4}
    (row,) = rows({**found, "regions": [{**found["regions"][0], "ranks": ranks}]})
    assert (row["ranks"]["drawn"], row["ranks"]["bins"]) == ("", [])


def test_a_region_that_hides_behind_waiting_is_told_in_words(found: dict[str, Any]) -> None:
    region = dict(found["regions"][0])
    region["gain"] = [{**one, "runtime": found["runtime"]} for one in region["gain"]]
    assert "hides behind waiting</span>" in page(contents({**found, "regions": [region]}))
    assert "hides behind waiting</span>" not in page(contents(found))


def test_regions_without_a_replay_are_summed_up(found: dict[str, Any]) -> None:
    others = found["other_regions"]["regions"]
    assert f"And {others} regions more" in page(contents(found))
    none = {"regions": 0, "share": 0.0, "critical": 0.0}
    assert "regions more" not in page(contents({**found, "other_regions": none}))


def test_names_of_regions_are_text(found: dict[str, Any]) -> None:
    region = {**found["regions"][0], "name": "<img src=x onerror=alert(1)>"}
    text = page(contents({**found, "regions": [region]}))
    assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
