"""Curves and spots over two axes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from popmodel.reports.pictures import Chart, Charts, Mark, Picture, PictureAxis, PictureCurve, Spot
from popmodel.reports.renderers.svg import draw

SVG = "{http://www.w3.org/2000/svg}"
AXIS = PictureAxis("x", 0.0, 10.0, ((0.0, "0"), (10.0, "10")))
STAMP = {"popmodel": "0", "time": "now", "command": "popmodel"}


def drawn(
    *spots: Spot, legend: tuple[tuple[Mark, str], ...] = (), exact: bool = False
) -> ET.Element:
    curve = PictureCurve(((0.0, 0.0), (10.0, 10.0)), exact=exact)
    chart = Chart("c", "A chart", AXIS, AXIS, (curve,), spots)
    return ET.fromstring(draw(Picture("P", (), Charts([chart], legend)), STAMP))


def paths(root: ET.Element, kind: str) -> list[str]:
    return [one.get("d", "") for one in root.iter() if one.get("class") == kind]


def test_every_mark_has_a_shape_of_its_own() -> None:
    root = drawn(*(Spot(number, 5.0, "", "", mark) for number, mark in enumerate(Mark)))
    shapes = {
        mark: [one.tag.removeprefix(SVG) for one in root.iter() if one.get("class") == mark]
        for mark in Mark
    }
    assert shapes == {
        Mark.PLAIN: ["circle"],
        Mark.MARKED: ["circle"],
        Mark.FIRST: ["path"],
        Mark.SQUARE: ["path"],
        Mark.TRIANGLE: ["path"],
    }


def test_the_interval_of_a_spot_is_a_bar_around_it() -> None:
    root = drawn(Spot(5.0, 5.0, "", "here", Mark.SQUARE, 4.0, 7.0))
    (bar,) = paths(root, "bar")
    found = re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)M", bar)
    assert found is not None
    low, high = float(found[1]), float(found[2])
    assert low - high == 0.3 * 240  # of the height of a chart
    assert paths(drawn(Spot(5.0, 5.0, "", "here")), "bar") == []


def test_the_marks_are_explained_above_the_charts() -> None:
    root = drawn(legend=((Mark.SQUARE, "used"), (Mark.TRIANGLE, "beyond")))
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts.index("used") < texts.index("beyond") < texts.index("A chart")
    assert len(paths(root, "square")) == len(paths(root, "triangle")) == 1


def test_a_line_of_what_is_exact_is_told_from_curves() -> None:
    for exact in (False, True):
        root = drawn(exact=exact)
        assert [len(paths(root, kind)) for kind in ("curve", "exact")] == [not exact, exact]
