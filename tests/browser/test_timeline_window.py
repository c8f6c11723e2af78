"""Efficiencies of the part of a timeline that is seen."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import popmodel
from popmodel.cli.metrics import Metrics
from popmodel.reports.html.contents import SCHEMA, Contents
from popmodel.reports.html.page import page as html
from popmodel.timeline.timeline import timeline
from popmodel.traces import read
from popmodel.traces.selection import focused

from .conftest import STENCIL, Open
from .timelines import (
    Timeline,
    state,
    words,
)

CG = Path(__file__).parents[1] / "data" / "cg.S.2.prv.gz"


@cache
def measured(begin: float, end: float) -> Metrics:
    """What the command of a window finds."""
    return popmodel.metrics(STENCIL, window=(begin, end))


@pytest.mark.long(after=2)
@pytest.mark.parametrize("family", ["mpi", "hybrid-additive", "hybrid-multiplicative", "talp"])
@pytest.mark.parametrize("fragment", ["", "t=0.2..0.7", "t=0.3..0.31&t-window=0.12..0.9"])
def test_efficiencies_of_a_window_are_those_of_the_trace(
    fragment: str, family: str, timeline_page: Timeline
) -> None:
    page = timeline_page(f"{fragment}&t-family={family}")
    command, closer = words(page, "command").split("\n")
    assert closer.startswith("popmodel report ")
    assert closer.partition("--window")[2] == command.partition("--window")[2]
    begin, end = re.findall(r"([\d.]+)s", command.partition("--window ")[2])
    assert command.startswith("popmodel metrics ")
    values = measured(float(begin), float(end)).evaluations[0][family].values
    compared = 0
    for row in page.locator(".timeline-metrics tr[data-metric]").all():
        cell = row.locator("td").first
        if "≈" in (cell.text_content() or "") or not cell.locator("data").count():
            continue
        value = float(cell.locator("data").get_attribute("value"))
        assert value == pytest.approx(values[row.get_attribute("data-metric")], abs=1e-9)
        compared += 1
    assert compared >= 3


def test_an_estimate_is_marked_and_withheld_where_it_tells_nothing(
    timeline_page: Timeline, open_page: Open, tmp_path: Path
) -> None:
    page = timeline_page("t-family=mpi")
    cell = page.locator(".timeline-metrics [data-metric=transfer_efficiency] td").first
    assert cell.text_content().startswith("≈ ")
    assert "replay" in words(page, "estimate")
    # Here the ideal replay advances by more than the run did.
    path = tmp_path / "report.html"
    stamp = {"popmodel": "1", "command": "x", "host": "h", "time": "t", "inputs": []}
    document = {"schema": SCHEMA, "title": "cg", "documents": [], "left_out": []}
    drawn = timeline(focused(read(CG))[0])
    path.write_text(html(Contents({**document, "provenance": stamp}, (drawn,))))
    early = open_page(path, "t-family=mpi&t=0.454085..0.454193")
    assert "no estimate" in early.locator(".timeline-metrics tbody").text_content()


def test_a_family_is_chosen_and_tells_what_it_lacks(timeline_page: Timeline) -> None:
    page = timeline_page()
    first = words(page, "metrics")
    page.locator(".timeline-family").select_option("mpi-additive")
    assert state(page) == {"t-family": "mpi-additive"}
    assert words(page, "metrics") != first
    assert "Global efficiency (compares with a reference run)" in words(page, "absent")
