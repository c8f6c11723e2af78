"""A calibration in a page: each configuration, what was learnt, what is doubtful, what is next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.html import calibration

from ..balanced import Node
from . import documents
from .documents import Document, changed, commands, contents, document_of, table

RECORD = Path(__file__).parent.parent.parent.parent / "examples" / "validation"


CONSTANTS: dict[str, Any] = {
    "rate": {"value": 0.93, "low": 0.8, "high": 1.1, "unit": "1", "learnt": 0.79}
    | {"before": {"value": 1.0, "low": 0.5, "high": 2.0}},
    "start": {"value": None, "low": None, "high": None, "unit": "s", "learnt": 0.01}
    | {"before": {"value": 0.0126, "low": 0.0121, "high": 0.0131}},
}


@pytest.fixture(scope="module")
def document() -> Document:
    """A calibration by four traces, with constants as other signatures have them."""
    runs = [
        f"{RECORD}/traces/cannon.{split}.N={size}.1.prv.gz:N={size}"
        for size in (720, 1200)
        for split in ("1x1", "1x2")
    ]
    found = popmodel.signature(["cannon", *runs], machine=RECORD / "machine.json")
    made = document_of(found)
    return {**made["calibration"], "path": made["path"], "constants": CONSTANTS}


def drawn(*found: Document) -> Node:
    shown = [
        {"schema": "popmodel/signature-from/1", "path": one["path"], "calibration": one}
        for one in found
    ]
    return documents.drawn(calibration, *shown)


@pytest.mark.long
def test_every_configuration_left_out_has_its_errors_before_and_after(document: Document) -> None:
    (found,) = drawn(document).all("table", id="calibration-0-left-out")
    rows = found.all("tbody")[0].all("tr")
    assert [[cell.text for cell in row.all("td")][-3:] for row in rows] == [
        [
            f"{100 * one['error']:+.1f} %",
            f"{100 * one['error_before']:+.1f} %",
            f"{one['covered']} of {len(one['measured'])}",
        ]
        for one in document["left_out"]
    ]


def test_constants_stand_before_and_after(document: Document) -> None:
    found = table(drawn(document), "Constants of the signature")
    assert set(found) == set(document["constants"])
    for name, one in document["constants"].items():
        cells = found[name]
        assert cells[1] == f"{one['before']['value']:.4g}"
        assert cells[3] == ("not told" if one["value"] is None else f"{one['value']:.4g}")
        assert cells[6] == f"{100 * one['learnt']:.0f} %"


def test_what_the_runs_do_not_tell_has_no_mark(document: Document) -> None:
    shown = drawn(document)
    (found,) = (one for one in shown.all("table") if "Constants" in one.all("caption")[0].text)
    for row in found.all("tbody")[0].all("tr"):
        name = row.all("th")[0].text
        one = document["constants"][name]
        has_ratio = one["value"] is not None and one["before"]["value"] > 0 and one["value"] > 0
        assert bool(row.all("svg")) == has_ratio


def test_a_constant_of_any_sign_is_shown(document: Document) -> None:
    """What was 0 or below has no ratio to it."""
    name = next(key for key, one in document["constants"].items() if one["value"] is not None)

    def change(one: Document) -> None:
        constant = one["constants"][name]
        constant["before"] = {"value": -1.0, "low": -2.0, "high": 0.5}
        constant |= {"value": -0.5, "low": -1.0, "high": 0.1}

    cells = table(drawn(changed(document, change)), "Constants of the signature")[name]
    assert cells[1:5] == ["-1", "-2..0.5", "-0.5", "-1..0.1"]


def test_what_was_taught_of_the_machine_is_told(document: Document) -> None:
    found = table(drawn(document), "What the runs taught")
    names = {one["name"] for one in document["inputs"]}
    assert found
    assert all(any(name in label for name in names) for label in found)


def test_what_cannot_be_told_is_told(document: Document) -> None:
    told = {"inputs": [{"label": "rate", "identifiable": False, "at_bound": True, "name": "r"}]}
    text = drawn({**document, "identifiable": told}).text
    assert "not told by the runs: rate" in text
    assert "far outside of the interval that it had: rate" in text


def test_runs_that_do_not_fit_are_named(document: Document) -> None:
    suspect = {
        "source": "runs.csv",
        "line": 7,
        "processes": 2,
        "threads": 1,
        "parameters": {"N": 720.0, "w": 8.0},
        "runtime": 0.5,
        "factor": 2.04,
        "probability": 0.987,
    }
    found = table(drawn({**document, "suspect_runs": [suspect]}), "disturbed")
    assert found["2 x 1"] == ["runs.csv, line 7", "500.0 ms", "2.04 times", "99 %"]


def test_what_to_measure_next_is_told_with_its_cost(document: Document) -> None:
    run = {"processes": 4, "threads": 2, "nodes": 2, "parameters": {"N": 720.0, "w": 8.0}}
    run |= {"narrows": 0.31, "runtime": 2.5, "core_seconds": 20.0}
    found = table(drawn({**document, "measure_next": [run]}), "would narrow")
    (cells,) = found.values()
    assert cells == ["-31 %", "2", "2.50 s", "20"]
    none = drawn({**document, "measure_next": []}).text
    assert "no run that is worth its time would narrow the runtime of" in none


def test_what_was_written_can_be_predicted_with(document: Document) -> None:
    assert "keep it: add -o fitted.toml" in drawn(document).text
    written = drawn({**document, "path": "app.toml"})
    assert any(one.startswith("popmodel predict app.toml") for one in commands(written))


def test_names_are_text(document: Document) -> None:
    hostile = "<script>alert(1)</script>"
    one = next(iter(document["constants"].values()))
    shown = drawn({**document, "constants": {hostile: one}, "warnings": [hostile]})
    assert hostile in table(shown, "Constants of the signature")
    assert shown.all("script") == []


def test_without_calibrations_there_is_no_section() -> None:
    assert calibration.section(contents()) is None
