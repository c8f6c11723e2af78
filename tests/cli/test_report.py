"""``popmodel report``, and pages of other verbs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call


def test_a_report_is_written_and_its_results_are_taken_out_again(
    popmodel: Call, trace: str
) -> None:
    assert popmodel("report", trace, "-o", "report.html")[:2] == (0, "")
    text = Path("report.html").read_text()
    assert text.startswith("<!doctype html>")
    status, out, _ = popmodel("report", "report.html", "--format", "json")
    assert status == 0
    found = json.loads(out)
    assert found["schema"] == "popmodel/report/1"
    assert found["provenance"]["command"] == f"popmodel report {trace} -o report.html"
    assert popmodel("metrics", trace, "--format", "json")[1] != ""
    own = json.loads(popmodel("metrics", trace, "--format", "json")[1])
    assert found["documents"][0]["runs"] == own["runs"]


def test_splits_of_a_signature_stand_beside_a_trace(popmodel: Call, trace: str) -> None:
    signature = str(
        Path(__file__).parent.parent.parent / "popmodel/model/signature/bundled/stencil3d.toml"
    )
    words = ("report", trace, signature, "--cores", "4", "--set", "N=64", "-o", "x.html")
    assert popmodel(*words)[0] == 0
    held = json.loads(popmodel("report", "x.html", "--format", "json")[1])
    assert held["documents"][-1]["schema"] == "popmodel/splits/1"
    assert held["documents"][-1]["application"]["settings"]["N"] == 64


@pytest.mark.parametrize("profile", [("sandybridge-fdr",), ("--machine", "sandybridge-fdr"), ()])
def test_a_bundled_signature_is_an_input_by_its_name(
    profile: tuple[str, ...], popmodel: Call, trace: str
) -> None:
    words = ("report", trace, "stencil3d", *profile, "--cores", "4", "-o", "x.html")
    status, _, err = popmodel(*words)
    assert (status, err) == (0, "")
    (*_, swept) = json.loads(popmodel("report", "x.html", "--format", "json")[1])["documents"]
    assert swept["application"]["name"] == "stencil3d"
    assert swept["machine"]["name"] == "sandybridge-fdr"
