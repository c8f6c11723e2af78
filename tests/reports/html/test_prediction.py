"""A predicted run in a page: its time, what would help, what is uncertain, how to launch it."""

from __future__ import annotations

import pytest

import popmodel
from popmodel.base.units import format_time
from popmodel.reports.html import prediction

from ..balanced import Node
from . import documents
from .documents import Document, commands, contents, document_of, table


@pytest.fixture(scope="module")
def document() -> Document:
    return document_of(popmodel.predict("stencil3d", procs=4, threads=4, draws=60))


def drawn(*found: Document) -> Node:
    return documents.drawn(prediction, *found)


def test_the_runtime_and_its_parts_stand_in_order_of_their_size(document: Document) -> None:
    found = table(drawn(document), "Where the time")
    parts = sorted(document["time"], key=lambda name: -document["time"][name]["value"])
    assert list(found) == ["runtime", *parts]
    for name, one in [("runtime", document["runtime"]), *document["time"].items()]:
        assert found[name][0] == format_time(one["value"])
        assert found[name][2] == (
            f"{format_time(one['low'], digits=3)} .. {format_time(one['high'], digits=3)}"
        )


def test_what_would_help_is_told_in_per_cent_and_seconds(document: Document) -> None:
    found = table(drawn(document), "What would help")
    assert list(found) == list(document["remedies"])
    for name, change in document["remedies"].items():
        saved = format_time(-change * document["runtime"]["value"], digits=3)
        assert found[name][:2] == [f"{100 * change:+.1f} %", saved]


def test_what_the_interval_comes_from_is_told_with_its_share(document: Document) -> None:
    found = table(drawn(document), "interval of the runtime comes from")
    assert [cells[0] for cells in found.values()] == [
        f"{100 * share:.0f} %" for share in document["doubtful"].values()
    ]
    for name, path in zip(found, document["doubtful"], strict=True):
        assert path in name


def test_the_run_can_be_launched_and_what_is_uncertain_measured(document: Document) -> None:
    found = commands(drawn(document))
    assert {document["launch"], document["launch_mpirun"], document["measure"]} <= found


def test_a_prediction_without_intervals_has_no_uncertainty(document: Document) -> None:
    shown = drawn(document_of(popmodel.predict("stencil3d", procs=4, threads=4, draws=0)))
    assert "interval of the runtime comes from" not in shown.text
    assert table(shown, "Where the time")["runtime"][2] == "-"
    assert "interval of the runtime comes from" in drawn(document).text


def test_a_loop_that_nothing_helps_has_no_remedies(document: Document) -> None:
    assert "What would help" not in drawn({**document, "remedies": {}}).text


def test_several_predictions_stand_below_each_other(document: Document) -> None:
    shown = drawn(document, {**document, "processes": 8})
    titles = [one.text for one in shown.all("h3")]
    assert [title.partition(", ")[2] for title in titles] == [
        "4 processes x 4 threads",
        "8 processes x 4 threads",
    ]


def test_names_are_text(document: Document) -> None:
    hostile = "<script>alert(1)</script>"
    shown = drawn({**document, "remedies": {hostile: -0.1}, "notes": [hostile]})
    assert hostile in table(shown, "What would help")
    assert shown.all("script") == []


def test_without_predictions_there_is_no_section() -> None:
    assert prediction.section(contents()) is None
