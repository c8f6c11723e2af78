"""Parts of runtimes as bars: lengths are times, and numbers stand beside them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from popmodel.model.run.delays import PARTS
from popmodel.reports.html.shares import PageShare, shares


def widths(one: PageShare) -> list[float]:
    return [float(box.get("width") or "") for box in ElementTree.fromstring(one.bar)]


def test_lengths_are_times_on_one_scale() -> None:
    shown = shares(
        [
            ("16 x 1", {"parallel loops": 3.0, "messages": 1.0}),
            ("1 x 16", {"parallel loops": 1.0, "messages": 1.0}),
        ]
    )
    assert shown is not None
    long, short = (widths(one) for one in shown.rows)
    # a seam of one pixel follows each part
    assert [one + 1 for one in long] == pytest.approx([225.0, 75.0], abs=0.1)
    assert [one + 1 for one in short] == pytest.approx([75.0, 75.0], abs=0.1)


def test_each_part_has_its_time_and_its_share() -> None:
    shown = shares([("4 x 4", {"parallel loops": 0.75, "serial code": 0.25})])
    assert shown is not None
    assert [name for _, name in shown.parts] == ["parallel loops", "serial code"]
    assert shown.rows[0].cells == (("750 ms", "75.0 %", 0.75), ("250 ms", "25.0 %", 0.25))


def test_parts_that_rounding_left_below_nothing_are_no_bars() -> None:
    shown = shares([("4 x 4", {"parallel loops": 1.0, "messages": -1e-18})])
    assert shown is not None
    assert len(widths(shown.rows[0])) == 1


def test_all_parts_of_the_model_have_colours_of_their_own() -> None:
    shown = shares([("4 x 4", dict.fromkeys((*PARTS, "something else"), 1.0))])
    assert shown is not None
    colours = [box.get("class") for box in ElementTree.fromstring(shown.rows[0].bar)]
    assert len(set(colours)) == len(PARTS) + 1
    assert colours[-1] == "kind-other"


def test_without_parts_there_is_nothing() -> None:
    assert shares([]) is None
    assert shares([("4 x 4", {})]) is None
