"""Charts inside a page: their ids, their colours, their words."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from popmodel.reports.html.drawings import figures, legend
from popmodel.reports.pictures import Chart, Charts, Mark, PictureAxis, PictureCurve, Spot

AXIS = PictureAxis("seconds", 0.0, 2.0, ((0.0, "0"), (1.0, "1"), (2.0, "2")))


def chart(title: str = "Runtime", told: str = "16 x 4") -> Chart:
    return Chart(
        "runtime",
        title,
        AXIS,
        AXIS,
        (PictureCurve(((0.0, 0.0), (2.0, 2.0)), exact=True),),
        (Spot(1.0, 1.5, "", told, Mark.TRIANGLE, 1.0, 2.0),),
        ((0.0, 0.5, 1.0), (2.0, 1.5, 2.0)),
    )


def svg(shown: Chart, prefix: str = "one") -> ElementTree.Element:
    return ElementTree.fromstring(figures(Charts((shown,)), prefix).drawings[0].svg)


def test_ids_are_of_the_page_and_not_of_the_chart() -> None:
    ids = [
        element.get("id") for prefix in ("one", "two") for element in svg(chart(), prefix).iter()
    ]
    known = [one for one in ids if one]
    assert len(set(known)) == len(known) == 4
    assert all(one.startswith(("one-", "two-")) for one in known)


def test_colours_are_those_of_the_page() -> None:
    text = figures(Charts((chart(),), [(Mark.FIRST, "best")]), "one").drawings[0].svg
    assert not re.search(r"#[0-9a-f]{3}|style=|<style|fill=|stroke=", text)


def test_names_are_text_wherever_they_stand() -> None:
    hostile = "\"'><script>&\x00"
    shown = svg(chart(hostile, hostile))
    assert shown.get("aria-label") == "\"'><script>& "
    titles = [element.text for element in shown.iter("title")]
    assert titles == ["\"'><script>& "]
    assert not list(shown.iter("script"))


def test_the_title_stands_outside_once() -> None:
    (drawn,) = figures(Charts((chart("Runtime of all"),)), "one").drawings
    assert drawn.title == "Runtime of all"
    assert "Runtime of all" not in [one.text for one in ElementTree.fromstring(drawn.svg).iter()]


def test_all_of_a_chart_is_inside_of_its_frame() -> None:
    shown = svg(chart())
    _, _, width, height = map(float, (shown.get("viewBox") or "").split())
    for element in shown.iter("text"):
        assert 0 <= float(element.get("x") or "") <= width
        assert 0 <= float(element.get("y") or "") <= height


def test_a_legend_shows_every_mark() -> None:
    entries = legend([(mark, mark.value) for mark in Mark])
    assert [meaning for _, meaning in entries] == [mark.value for mark in Mark]
    shapes = {ElementTree.fromstring(sign)[0].get("class") for sign, _ in entries}
    assert shapes == {mark.value for mark in Mark}
