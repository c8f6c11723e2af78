"""Shaded cells as SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from popmodel.report.pictures import Cells, Picture
from popmodel.report.renderers.svg import draw

STAMP = {"popmodel": "0", "time": "now", "command": "popmodel communication"}


def drawn(number: int) -> str:
    names = tuple(map(str, range(number)))
    values = tuple(
        tuple(float(row == column) / (row + 1) for column in range(number)) for row in range(number)
    )
    told = tuple(tuple(f"{row} to {column}" for column in names) for row in names)
    return draw(
        Picture("Bytes", ["a < b"], Cells(names, values, told, "from", "to", "darkest: 1 B")), STAMP
    )


def test_only_cells_with_something_are_drawn_darker_for_more() -> None:
    text = drawn(4)
    shades = [float(one) for one in re.findall(r'fill-opacity="([\d.]+)"', text)]
    assert shades == sorted(shades, reverse=True)
    assert len(shades) == 4
    assert "<title>2 to 2</title>" in text
    ElementTree.fromstring(text.encode())


def test_many_rows_stay_on_the_sheet_and_some_are_named() -> None:
    for number in (1, 16, 128):
        text = drawn(number)
        width = float(re.search(r'<svg [^>]*width="(\d+)"', text)[1])
        ends = [
            float(x) + float(w)
            for x, w in re.findall(r'class="cell" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', text)
        ]
        assert max(ends) < width <= 560
    labels = re.findall(r'class="end">(\d+)<', drawn(128))
    assert 4 < len(labels) < 40
