"""Heat maps as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from popmodel.reports.pictures import Figure, HeatLine, HeatMap, Picture
from popmodel.reports.renderers.heat import LEVELS, shade
from popmodel.reports.renderers.svg import draw

STAMP = {"popmodel": "1", "time": "now", "command": "popmodel report"}
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: HeatLine, heads: tuple[tuple[str, ...], ...] = (("run", "2 x 1"),)) -> str:
    return draw(Picture("Efficiencies", [], HeatMap(heads, lines, "colours, %")), STAMP)


def fills(text: str) -> list[str]:
    found = ElementTree.fromstring(text.encode()).iter(f"{SVG}rect")
    return [one.attrib["style"] for one in found if "style" in one.attrib]


def test_a_figure_stands_on_its_colour() -> None:
    text = drawn(HeatLine("LB", (Figure("62.0", 0.62),), 1))
    colour = shade(0.62)
    assert fills(text)[0] == f"fill: {colour.paper}"
    assert f'style="fill: {colour.ink}"' in text
    assert "<title>LB: 62.0</title>" in text


def test_the_scale_has_all_colours() -> None:
    assert len(fills(drawn(HeatLine("heading")))) == len(LEVELS)


def test_a_figure_without_efficiency_has_no_colour() -> None:
    text = drawn(HeatLine("speed-up", (Figure("3.8"),)))
    assert len(fills(text)) == len(LEVELS)
    assert ">3.8</text>" in text


def test_what_stands_out_has_a_mark_that_is_no_colour() -> None:
    plain, marked = (Figure("9", 0.9, is_worst=worst) for worst in (False, True))
    assert drawn(HeatLine("a", (plain,))).count("<path") == 0
    assert drawn(HeatLine("a", (marked,))).count("<path") == 1


def test_names_are_text() -> None:
    name = '</text><script>alert("1")</script>'
    text = drawn(HeatLine(name, (Figure(name, 0.5),)), heads=((name,),))
    assert not list(ElementTree.fromstring(text.encode()).iter(f"{SVG}script"))


def test_columns_are_as_wide_as_their_texts() -> None:
    def width(text: str) -> float:
        return float(ElementTree.fromstring(text.encode()).attrib["width"])

    short, long = (
        drawn(HeatLine("a", (Figure("1", 1.0),)), heads=((n,),)) for n in ("x", "x" * 99)
    )
    assert width(long) > width(short) + 300
