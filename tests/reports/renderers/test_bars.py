"""Drawings of bars as SVG."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from popmodel.reports.pictures import Bars, Picture, PictureBar, PictureLine
from popmodel.reports.renderers import svg
from popmodel.reports.renderers.sheet import text_width

SVG = "{http://www.w3.org/2000/svg}"
WIDEST = 1310
STAMP = {"popmodel": "1", "time": "2026", "command": "popmodel"}


def draw(columns: int, *lines: PictureLine, **options: float) -> ET.Element:
    heads = [f"run {number}" for number in range(1, columns + 1)]
    picture = Picture("Bars", ["a fact"], Bars(heads, lines, **options), ["a remark"])
    return ET.fromstring(svg.draw(picture, STAMP))


def rectangles(root: ET.Element, kind: str) -> list[tuple[float, float]]:
    """Begin and end of all bars of a kind."""
    found = root.iter(f"{SVG}rect")
    return [
        (float(one.attrib["x"]), float(one.attrib["x"]) + float(one.attrib["width"]))
        for one in found
        if one.get("class") == kind
    ]


def places(root: ET.Element) -> list[tuple[str, float, float, float]]:
    """Each text, its left and right end, and its line."""
    return [
        (text, x, x + text_width(text, 16 if one.get("class") == "heading" else 12), y)
        for one in root.iter(f"{SVG}text")
        for text, x, y in [(one.text or "", float(one.attrib["x"]), float(one.attrib["y"]))]
    ]


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 20])
def test_texts_are_apart_and_inside_however_many_columns_there_are(columns: int) -> None:
    values = tuple(PictureBar(0.05 * number, f"{5 * number} %") for number in range(columns))
    root = draw(
        columns, PictureLine("efficiency", values), PictureLine("of which", values, 1), full=1.0
    )
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert width <= WIDEST
    found = places(root)
    for text, left, right, y in found:
        assert 0 <= left < right <= width, text
        assert 10 <= y <= height - 3, text
    for (one, left, right, y), (other, begin, end, below) in combinations(found, 2):
        assert abs(y - below) >= 13 or right <= begin or end <= left, f"{one!r} and {other!r}"


def test_columns_that_do_not_fit_continue_below_with_the_labels_again() -> None:
    line = PictureLine("efficiency", tuple(PictureBar(0.5, "50 %") for _ in range(20)))
    texts = [text for text, *_ in places(draw(20, line, full=1.0))]
    assert texts.count("efficiency") == 4
    assert [text for text in texts if text.startswith("run ")] == [
        f"run {number}" for number in range(1, 21)
    ]


def test_bars_are_as_long_as_their_values() -> None:
    root = draw(
        1, PictureLine("a", (PictureBar(2.0, "2 s"),)), PictureLine("b", (PictureBar(1.0, "1 s"),))
    )
    (long, short) = (end - begin for begin, end in rectangles(root, "share"))
    assert long == pytest.approx(2 * short)


def test_a_bar_ends_with_its_room() -> None:
    root = draw(1, PictureLine("a", (PictureBar(1.2, "120 %"),)), full=1.0)
    assert rectangles(root, "share") == rectangles(root, "room")


def test_what_is_worst_stands_out_and_what_is_missing_is_a_dash() -> None:
    root = draw(2, PictureLine("a", (PictureBar(1.0, "1 s", is_worst=True), None)))
    assert len(rectangles(root, "worst")) == 1
    assert rectangles(root, "share") == []
    assert [text for text, *_ in places(root)].count("-") == 1


def test_intervals_reach_from_end_to_end() -> None:
    root = draw(1, PictureLine("a", (PictureBar(2.0, "2 s", low=1.0, high=4.0),)))
    ((begin, end),) = rectangles(root, "share")
    (path,) = root.iter(f"{SVG}path")
    low, high = map(float, re.match(r"M(\S+) \S+?H([0-9.]+)M", path.attrib["d"]).groups())  # type: ignore[union-attr]
    assert low - begin == pytest.approx((end - begin) / 2, abs=0.1)
    assert high - begin == pytest.approx(2 * (end - begin), abs=0.1)


def test_texts_stand_behind_the_mark_of_what_is_exact() -> None:
    root = draw(
        1,
        PictureLine("a", (PictureBar(0.5, "0.5"),)),
        PictureLine("b", (PictureBar(2.0, "2"),)),
        exact=1.0,
    )
    (path,) = root.findall(f"{SVG}path[@class='exact']")
    mark = float(path.attrib["d"][1:].split()[0])
    (_, half), (begin, double) = rectangles(root, "share")
    assert mark - begin == pytest.approx((double - begin) / 2, abs=0.1)
    assert half < mark
    left = {text: x for text, x, *_ in places(root)}
    assert left["0.5"] > mark


def test_the_style_is_that_of_this_picture_only() -> None:
    text = svg.draw(
        Picture("Bars", [], Bars([""], [PictureLine("a", (PictureBar(1.0, "1"),))])), STAMP
    )
    style = text.partition("<style>\n")[2].partition("\n</style>")[0]
    assert all(rule.startswith(".popmodel ") for rule in style.splitlines())
    assert ET.fromstring(text).get("class") == "popmodel"
