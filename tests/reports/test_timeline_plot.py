"""A run over time as a drawing."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from popmodel.reports.pictures import Timelines
from popmodel.reports.renderers.svg import draw
from popmodel.reports.timeline_plot import COLUMNS, ROWS, picture
from popmodel.timeline.lanes import KINDS
from popmodel.timeline.timeline import LIMITS, Timeline, timeline
from popmodel.traces import read
from popmodel.traces.selection import focused

DATA = Path(__file__).parent.parent / "data"
STAMP = {"popmodel": "1", "time": "now", "command": "popmodel convert"}


def shown(name: str, rows: int = ROWS) -> Timeline:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    return timeline(trace, limits=dataclasses.replace(LIMITS, rows=rows, columns=COLUMNS))


def test_the_run_is_above_its_replay_on_one_axis() -> None:
    found = shown("bt-mz.S.2x2")
    drawn = picture(found)
    assert isinstance(drawn.shown, Timelines)
    measured, ideal = drawn.shown.panels
    assert measured.time.high - measured.time.low == pytest.approx(ideal.time.high)
    assert (measured.time.title, ideal.time.low) == ("time, ms", 0)
    assert measured.time.low == pytest.approx(found.begin / 1e6)
    for panel, lanes in ((measured, found.measured), (ideal, found.ideal)):
        assert lanes is not None
        letters = np.array([list(lane.letters) for lane in panel.lanes], dtype=np.int64)
        assert (letters == lanes.kind).all()
        assert [lane.label for lane in panel.lanes] == list(found.rows.labels)
    assert ideal.title == "Replayed: no latency, infinite bandwidth, 43.13 ms"
    assert len(measured.marks) == 60


def test_every_colour_that_is_drawn_is_explained() -> None:
    drawn = picture(shown("bt-mz.S.2x2"))
    assert isinstance(drawn.shown, Timelines)
    for panel in drawn.shown.panels:
        letters = set("".join(lane.letters for lane in panel.lanes)) - {"0"}
        assert letters <= set(panel.colours)
        assert [kind for kind, _ in panel.legend] == list(panel.colours.values())


def test_no_two_kinds_share_a_colour() -> None:
    from popmodel.reports.timeline_plot import _COLOURS

    assert set(_COLOURS) == {kind.id for kind in KINDS} - {"none"}
    assert len(set(_COLOURS.values())) == len(_COLOURS)
    text = draw(picture(shown("is.S.4")), STAMP)
    for colour in _COLOURS.values():
        assert f".popmodel .{colour} {{ stroke" in text


def test_what_shares_a_lane_is_said() -> None:
    drawn = picture(shown("comd.4", rows=2))
    assert "Up to 2 neighbouring ranks to a row." in drawn.remarks


def test_it_is_a_picture() -> None:
    text = draw(picture(shown("mix.4")), STAMP)
    assert ET.fromstring(text).tag.endswith("svg")
    assert len(text) < 100_000
