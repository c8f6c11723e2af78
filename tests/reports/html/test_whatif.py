"""The section of what-ifs: its tables and what its script is given."""

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.cli.whatif import WhatIf
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import page
from popmodel.reports.html.page_whatif import section
from popmodel.reports.sensitivity_tables import flat

DATA = Path(__file__).parent.parent.parent / "data"
CG, COMD = DATA / "cg.S.2.prv.gz", DATA / "comd.4.prv.gz"


def contents(*documents: dict[str, Any]) -> Contents:
    stamp = {"popmodel": "1", "host": "h", "time": "t", "command": "c", "inputs": []}
    return Contents(
        {
            "schema": "popmodel/report/1",
            "title": "runs",
            "documents": [{**one, "provenance": stamp} for one in documents],
            "left_out": [],
            "provenance": stamp,
        }
    )


@pytest.fixture(scope="module")
def cg() -> WhatIf:
    return popmodel.whatif(CG)


@pytest.fixture(scope="module")
def found(cg: WhatIf) -> dict[str, Any]:
    return {**flat(json.loads(json.dumps(cg.to_dict()))), "sensitivity": {}}


def test_a_page_without_traces_has_no_what_ifs() -> None:
    assert section(contents()) is None


def test_a_run_that_takes_no_time_has_none(found: dict[str, Any]) -> None:
    assert section(contents({**found, "runtime": 0.0})) is None


def test_the_script_is_given_the_planes_and_their_ranges(found: dict[str, Any], cg: WhatIf) -> None:
    made = section(contents(found))
    assert made is not None
    (run,) = made.data["runs"]
    assert [one[0] for one in run["planes"]] == [
        one.constant for one in cg.sensitivity.planes.planes
    ]
    assert run["here"] == {"latency": 2e-6, "bandwidth": 10e9, "speed": 1.0}
    assert run["range"]["latency"] == (0.0, 1e-4)
    assert run["range"]["bandwidth"] == [pytest.approx(100e6), None]
    assert run["range"]["speed"] == [0.25, 4.0]
    assert run["times"]["ideal"] == cg.sensitivity.ideal_runtime
    assert run["times"]["runtime"] == cg.sensitivity.runtime


def test_ranges_hold_the_network_itself(found: dict[str, Any]) -> None:
    curves = {
        "latency": {**found["latency"], "breakpoints": [5e-6, 1e-5]},
        "inverse_bandwidth": {**found["inverse_bandwidth"], "breakpoints": [5e-10, 1e-9]},
    }
    shown = section(contents({**found, **curves}))
    assert shown is not None
    (run,) = shown.data["runs"]
    assert run["range"]["latency"] == (2e-6, 1e-5)
    assert run["range"]["bandwidth"] == [pytest.approx(1e9), pytest.approx(10e9)]


def test_it_says_how_far_the_replay_is_from_the_run(found: dict[str, Any]) -> None:
    for measured, told in (
        (None, "the trace has no measured times"),
        (0.0181, "takes 18.08 ms (-0.1 %)."),
        (0.05, "takes 18.08 ms (-63.8 %): read changes rather than times."),
    ):
        made = section(contents({**found, "measured_runtime": measured}))
        assert made is not None
        assert told in made.context["runs"][0]["measured"]


def test_only_networks_in_the_ranges_are_offered(found: dict[str, Any]) -> None:
    def offered(document: dict[str, Any]) -> list[str]:
        made = section(contents(document))
        assert made is not None
        return [one["name"] for one in made.context["runs"][0]["presets"]]

    assert offered(found) == ["ideal", "alpha-beta", "dimemas", "smpi"]
    few = {**found["latency"], "breakpoints": [1.5e-6, *found["latency"]["breakpoints"][1:]]}
    assert offered({**found, "latency": few}) == ["alpha-beta", "dimemas"]  # not below 1.5 us


def test_several_runs_have_names_of_their_own(found: dict[str, Any]) -> None:
    text = page(contents(found, popmodel.whatif(COMD).to_dict()))
    assert '<option value="0">cg.S.2</option>' in text
    assert '<option value="1">comd.4</option>' in text


def test_names_of_traces_are_text(found: dict[str, Any]) -> None:
    hostile = "</script><img src=x onerror=alert(1)>.prv"
    text = page(contents({**found, "trace": hostile}, {**found, "trace": f"b{hostile}"}))
    assert "<img" not in text
