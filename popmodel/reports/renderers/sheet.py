"""A picture as SVG: a sheet with a title, facts, what is drawn, and remarks.

Text stays text, so that it can be searched and read aloud. As nothing here can measure text, a
character counts as `_CHARACTER` of its size, which is more than the usual sans-serif fonts need on
average; what is placed by that does not overlap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from popmodel.reports.pictures import Picture
from popmodel.reports.renderers.json import encodable
from popmodel.reports.renderers.text import clean, display_width, paragraph

_CHARACTER = 0.62
_TEXT, _HEADING = 12, 16  # sizes in pixels
LINE = 17
MARGIN = 20

_SHADES = (
    "#e3eef9", "#cfe1f2", "#b5d4e9", "#93c3df", "#6daed5", "#4b97c9", "#2f7ebc", "#1864aa",
    "#08306b",
)  # fmt: skip
# The same, from what stands out against paper.
_DARKER = (
    "#12a7a7", "#0094a6", "#0081a2", "#006d9c", "#005894", "#1c4488", "#272e79", "#2c1866",
    "#2b0052",
)  # fmt: skip
_RULES = (
    'text { font: 12px "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; fill: #222; }',
    ".heading { font-size: 16px; font-weight: bold; }",
    ".panel { font-weight: bold; }",
    ".end { text-anchor: end; }",
    ".middle { text-anchor: middle; }",
    ".faint { fill: #555; }",
    ".axis { stroke: #222; stroke-width: 1; fill: none; }",
    ".grid { stroke: #ddd; stroke-width: 1; }",
    ".band { fill: #e8f1f8; }",
    ".value { stroke: #e8f1f8; stroke-width: 4; paint-order: stroke; }",
    ".bar { stroke: #555; stroke-width: 1.5; fill: none; }",
    ".plain { fill: #fff; stroke: #555; stroke-width: 1.5; }",
    ".marked { fill: #0072b2; stroke: #0072b2; }",
    ".first { fill: #d55e00; stroke: #222; stroke-width: 1; }",
    ".square { fill: #555; stroke: #222; stroke-width: 1; }",
    ".triangle { fill: #0072b2; stroke: #222; stroke-width: 1; }",
    ".room { fill: #e8f1f8; }",
    ".share { fill: #0072b2; }",
    ".exact { stroke: #222; stroke-width: 1; stroke-dasharray: 4 3; fill: none; }",
    ".blank { fill: #f4f6f8; }",
    ".edge { fill: none; stroke: #555; stroke-width: 1; }",
    ".sideways { text-anchor: middle; }",
    ".worst { fill: #d55e00; }",
    ".curve { stroke: #0072b2; stroke-width: 2; fill: none; stroke-linejoin: round; }",
    ".dot { fill: #0072b2; }",
    ".focus { fill: none; stroke: #222; stroke-width: 2; }",
    ".iteration { stroke: #222; stroke-width: 0.6; stroke-opacity: 0.6; fill: none; }",
    ".lane { fill: none; }",
    # After M. Okabe, K. Ito, Color Universal Design, 2008.
    ".computing { stroke: #0072b2; }",
    ".parallel { stroke: #56b4e9; }",
    ".messages { stroke: #e69f00; }",
    ".collective { stroke: #d55e00; }",
    ".other { stroke: #999; }",
    ".waiting { stroke: #cc79a7; }",
    ".runtime { stroke: #009e73; }",
    ".idle { stroke: #ccc; }",
    # From light to dark in equal steps of lightness, so that greys tell the same.
    *(f".level{number} {{ stroke: {colour}; }}" for number, colour in enumerate(_SHADES, 1)),
    *(f".shade{number} {{ fill: {colour}; }}" for number, colour in enumerate(_DARKER, 1)),
)
# In a notebook, pictures share a page with other things that have rules.
_STYLE = "\n".join(f".popmodel {rule}" for rule in _RULES)


Draw: TypeAlias = Callable[[float], tuple[list[str], float]]
"""From the height at which a drawing begins to its lines and the height at which it ends."""


def sheet(
    picture: Picture, width: int, draw: Draw, remarks: Sequence[str], stamp: Mapping[str, Any]
) -> str:
    """Put what is drawn between the title and the remarks, as a self-contained SVG."""
    y: float = MARGIN
    lines: list[str] = []
    for text in wrapped(picture.title, width, _HEADING):
        y += LINE + 3
        lines.append(words(MARGIN, y, text, "heading"))
    for fact in picture.facts:
        for text in wrapped(fact, width, _TEXT):
            y += LINE
            lines.append(words(MARGIN, y, text))
    drawn, y = draw(y)
    lines += drawn
    for remark in remarks:
        for text in wrapped(remark, width, _TEXT):
            y += LINE
            lines.append(words(MARGIN, y, text, "faint"))
    height = y + MARGIN
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" class="popmodel" role="img">',
            f"<title>{safe(picture.title)}</title>",
            f"<metadata>{safe(json.dumps(encodable(stamp), allow_nan=False))}</metadata>",
            f"<style>\n{_STYLE}\n</style>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *lines,
            "</svg>\n",
        ]
    )


def text_width(text: str, size: int = _TEXT) -> float:
    """Room for a text in pixels, rather more than it needs."""
    return display_width(text) * size * _CHARACTER


def wrapped(text: str, width: float, size: int = _TEXT) -> list[str]:
    """A text in lines that a sheet of this width has room for."""
    characters = int((width - 2 * MARGIN) / (size * _CHARACTER))
    return paragraph(text, characters)


def words(x: float, y: float, text: str, kind: str = "") -> str:
    """A text at a place, of a kind that the style knows."""
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{safe(text)}</text>'


def safe(text: str) -> str:
    """Text without control characters, which XML does not allow, and without markup."""
    return escape(clean(text), quote=False)
