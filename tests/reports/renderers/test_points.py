"""Drawings as SVG."""

from __future__ import annotations

import json
import math
import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Band, Mark, Panel, Picture, PicturePoint, PicturePoints
from popmodel.reports.renderers import svg
from popmodel.reports.renderers.sheet import text_width

SVG = "{http://www.w3.org/2000/svg}"
STAMP = {"popmodel": "1", "time": "2026", "command": "popmodel"}
LEGEND = [(Mark.FIRST, "this one"), (Mark.MARKED, "or one of these"), (Mark.PLAIN, "others")]


def point(
    category: str, value: float, mark: Mark = Mark.PLAIN, spread: float = 0.1
) -> PicturePoint:
    low, high = value * (1 - spread), value * (1 + spread)
    interval = (low, high) if spread else (None, None)
    return PicturePoint(
        category, value, *interval, f"{category}: {value:g}", f"{value:.4g} s", mark
    )


def band(*points: PicturePoint, heading: str = "64 cores") -> Band:
    below = tuple("100 %" for _ in points)
    panels = (Panel("a", "Runtime (s)", points, below, "P(best)"), Panel("b", "PE (%)", points))
    return Band(heading, panels, "processes x threads", ("Not possible: 1 x 64: too many",))


def draw(*bands: Band, title: str = "a drawing") -> ET.Element:
    picture = Picture(title, ["machine m"], PicturePoints(LEGEND, bands), ["a remark"])
    return ET.fromstring(svg.draw(picture, STAMP))


def boxes(root: ET.Element) -> list[tuple[str, float, float, float, float]]:
    """Text, and left, right, top and bottom of the room it needs."""
    found = []
    for element in root.iter(f"{SVG}text"):
        text, kind = element.text or "", element.get("class", "")
        width = text_width(text, 16 if "heading" in kind else 12)
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        left = x - width if "end" in kind else x - width / 2 if "middle" in kind else x
        found.append((text, left, left + width, y - 10, y + 3))
    return found


@pytest.mark.parametrize("count", [1, 2, 5, 12])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 123456.0])
def test_no_text_lies_on_another_or_outside(count: int, scale: float) -> None:
    points = [
        point(f"{2**20 >> i} x {2**i}", scale * (1 + 0.1 * i), Mark.FIRST if i == 0 else Mark.PLAIN)
        for i in range(count)
    ]
    root = draw(band(*points), band(*points[:1], heading="1 core"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text, left, right, top, bottom in boxes(root):
        assert left >= 0, text
        assert right <= width, text
        assert top >= 0, text
        assert bottom <= height, text
    for one, other in combinations(boxes(root), 2):
        apart = one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
        assert apart, (one, other)


def test_every_point_is_there_with_its_interval_and_words() -> None:
    points = [point("8 x 1", 2.0, Mark.MARKED), point("4 x 2", 1.0, Mark.FIRST), point("2 x 4", 3)]
    root = draw(band(*points))
    groups = root.findall(f"{SVG}g")
    assert [group.get("id") for group in groups] == ["a-0", "a-1", "a-2", "b-0", "b-1", "b-2"]
    assert [group.findtext(f"{SVG}title") for group in groups[:3]] == [
        "8 x 1: 2",
        "4 x 2: 1",
        "2 x 4: 3",
    ]
    assert [len(group.findall(f"{SVG}path[@class='bar']")) for group in groups] == [1] * 6
    assert len(root.findall(f"{SVG}rect[@class='band']")) == 2 * 2


def test_larger_values_stand_higher_and_bars_reach_to_their_interval() -> None:
    root = draw(band(point("8 x 1", 2.0), point("4 x 2", 1.0)))
    first, second = root.findall(f"{SVG}g")[:2]
    heights = []
    for group, value in ((first, 2.0), (second, 1.0)):
        (circle,) = group.findall(f"{SVG}circle")
        (bar,) = group.findall(f"{SVG}path[@class='bar']")
        low, high = map(float, re.match(r"M\S+ (\S+)V([\d.]+)M", bar.attrib["d"]).groups())  # type: ignore[union-attr]
        y = float(circle.attrib["cy"])
        assert low - y == pytest.approx(y - high, abs=0.11)
        heights.append((y, (low - high) / (0.2 * value)))
    assert heights[0][0] < heights[1][0]
    assert heights[0][1] == pytest.approx(heights[1][1], abs=0.6)  # one scale for both


def test_what_comes_from_outside_is_no_markup() -> None:
    evil = 'x<script>&"]]>\x07\ud800'
    root = draw(band(point(evil, 1.0, Mark.FIRST), heading=evil), title=evil)
    assert root.findtext(f"{SVG}title") == 'x<script>&"]]> ?'
    assert root.find(f".//{SVG}script") is None


def test_provenance_is_in_the_metadata() -> None:
    root = draw(band(point("1 x 1", 1.0)))
    assert json.loads(root.findtext(f"{SVG}metadata") or "") == STAMP
    assert root.findall(f"{SVG}text")[-1].text == "popmodel 1, 2026: popmodel"


def test_a_value_without_interval_and_values_that_are_all_the_same() -> None:
    root = draw(band(point("8 x 1", 1.0, spread=0.0), point("4 x 2", 1.0, spread=0.0)))
    assert root.find(f".//{SVG}path[@class='bar']") is None
    assert draw(band(point("1 x 1", 0.0, spread=0.0))) is not None


@given(
    st.floats(-1e6, 1e6, allow_nan=False), st.floats(1e-6, 1e6, allow_nan=False, exclude_min=True)
)
def test_ticks_are_round_and_few(low: float, span: float) -> None:
    high = low + span
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return
    numbers = ticks(low, high)
    assert 2 <= len(numbers) <= 7
    slack = 1e-6 * (high - low)
    assert all(low - slack <= number <= high + slack for number in numbers)
    step = numbers[1] - numbers[0]
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert any(mantissa == pytest.approx(round_, rel=1e-5) for round_ in (1, 2, 5))
