"""A projection in a page: each factor over the sizes, all sizes beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import popmodel
from popmodel.base.units import format_time
from popmodel.reports.html import projection

from ..balanced import Node
from . import documents
from .documents import Document, changed, contents, document_of, rows

TRACE = Path(__file__).parent.parent.parent.parent / "examples/traces/stencil3d.2x2.prv.gz"


@pytest.fixture(scope="module")
def document() -> Document:
    return document_of(popmodel.project(TRACE, procs=[4, 16, 64]))


def drawn(*found: Document) -> Node:
    return documents.drawn(projection, *found)


def tables(shown: Node) -> dict[str, list[str]]:
    return {name: cells for one in shown.all("table") for name, cells in rows(one).items()}


def test_all_sizes_stand_beside_each_other(document: Document) -> None:
    cells = tables(drawn(document))["runtime"]
    asked = [one for one in document["rows"] if one["metric"] == "runtime"]
    assert [cells[0], cells[2], cells[4]] == [format_time(one["value"]) for one in asked]
    assert cells[1] == f"{format_time(asked[0]['low'])} .. {format_time(asked[0]['high'])}"


def test_efficiencies_have_the_values_of_the_document(document: Document) -> None:
    cells = tables(drawn(document))["MPI load balance"]
    found = [one["value"] for one in document["rows"] if one["metric"] == "mpi_load_balance"]
    assert [cells[0], cells[2], cells[4]] == [f"{100 * value:.1f}" for value in found]


def test_a_size_without_an_interval_says_why(document: Document) -> None:
    """Beyond its reach a projection has none."""
    (first, *_) = {one["why"] for one in document["rows"] if one["low"] is None}
    assert first in drawn(document).text


def test_a_metric_without_a_value_has_the_reason_in_its_place(document: Document) -> None:
    def change(one: Document) -> None:
        row = next(row for row in one["rows"] if row["metric"] == "mpi_load_balance")
        row |= {"value": None, "low": None, "high": None, "why": "the law has none above 0"}

    shown = drawn(changed(document, change))
    assert tables(shown)["MPI load balance"][0].startswith("-[")
    assert "the law has none above 0" in shown.text


def test_each_factor_has_a_curve_and_its_measured_points(document: Document) -> None:
    shown = drawn(document)
    titles = [one.text for one in shown.all("figcaption")]
    assert "MPI load balance" in titles
    assert "Speed-up" in titles
    spots = [one for one in shown.all("g") if "-spot-" in (one.attributes.get("id") or "")]
    assert len(spots) == len(titles) * len(document["runs"])


def test_laws_and_plain_extrapolations_are_told(document: Document) -> None:
    shown = drawn(document)
    assert "Amdahl's law" in tables(shown)
    for law in document["lines"][0]["laws"]:
        assert f"{law['name']}: {law['form']}" in shown.text


def test_what_is_assumed_is_a_warning(document: Document) -> None:
    warnings = [one.text for one in drawn(document).all("p") if one.has_class("warning")]
    assert warnings == document["warnings"] != []


def test_names_are_text(document: Document) -> None:
    hostile = "<script>alert(1)<script>"
    shown = drawn(changed(document, lambda one: one["runs"][0].update(source=hostile)))
    assert shown.all("script") == []
    assert shown.all("h3")[0].text.startswith(hostile)


def test_without_projections_there_is_no_section() -> None:
    assert projection.section(contents()) is None
