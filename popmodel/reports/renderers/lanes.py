"""Lanes over time, as SVG: what each process does, by colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import groupby

from popmodel.reports.pictures import Lane, PictureLanes, Timelines
from popmodel.reports.renderers.sheet import LINE, MARGIN, Draw, text_width, words

_WIDTH = 760
_HIGHEST, _LOWEST, _ROOM = 16.0, 3.0, 260.0  # of a lane, and of all lanes of a panel
_BOX = 12
_APART = 6.0  # of lines at marks

Place = Callable[[float], float]


def arranged(timelines: Timelines) -> tuple[int, Draw]:
    """Width of a sheet with panels of lanes below each other, and what draws them."""
    panels = timelines.panels
    labels = [text_width(lane.label) for panel in panels for lane in panel.lanes]
    left = MARGIN + max(labels, default=0.0) + 8

    def draw(y: float) -> tuple[list[str], float]:
        lines: list[str] = []
        for panel in panels:
            drawn, y = _panel(panel, left, y + LINE)
            lines += drawn
        return lines, y

    return round(left + _WIDTH + 24 + MARGIN), draw


def _panel(panel: PictureLanes, x: float, y: float) -> tuple[list[str], float]:
    """A panel whose lanes begin at x, and where it ends."""
    y += LINE
    lines = [words(MARGIN, y, panel.title, "panel")]
    drawn, y = _legend(panel.legend, x, y + LINE)
    lines += drawn
    height = max(_LOWEST, min(_HIGHEST, _ROOM / len(panel.lanes)))
    top = y + 8
    bottom = top + height * len(panel.lanes)
    low, high = panel.time.low, panel.time.high

    def across(time: float) -> float:
        return x + (min(max(time, low), high) - low) / (high - low) * _WIDTH

    lines.append(f'<g id="{escape(panel.name)}">')
    for kind in dict.fromkeys(panel.colours.values()):
        letters = {letter for letter, one in panel.colours.items() if one == kind}
        path = "".join(_runs(panel.lanes, letters, x, top, height))
        if path:
            thick = height - (1 if height > 4 else 0)
            lines.append(f'<path class="lane {kind}" stroke-width="{thick:g}" d="{path}"/>')
    step = max(1, round(LINE * 0.9 / height))
    for number, lane in enumerate(panel.lanes):
        if number % step == 0:
            lines.append(words(x - 6, top + (number + 0.5) * height + 4, lane.label, "end"))
    marks = "".join(f"M{at:.1f} {top - 6:.1f}V{bottom:.1f}" for at in _apart(panel.marks, across))
    if marks:
        lines.append(f'<path class="iteration" d="{marks}"/>')
    if panel.band is not None:
        begin, end = (across(at) for at in panel.band)
        lines.append(
            f'<rect class="focus" x="{begin - 1:.1f}" y="{top - 3:.1f}" '
            f'width="{max(end - begin, 1) + 2:.1f}" height="{bottom - top + 6:.1f}"/>'
        )
    lines.append("</g>")
    lines.append(f'<path class="axis" d="M{x:.1f} {bottom + 4:.1f}H{x + _WIDTH:.1f}"/>')
    for value, text in panel.time.ticks:
        at = across(value)
        lines.append(f'<path class="axis" d="M{at:.1f} {bottom + 4:.1f}v4"/>')
        lines.append(words(at, bottom + 4 + LINE, text, "middle"))
    foot = bottom + 4 + 2 * LINE
    return [*lines, words(x + _WIDTH / 2, foot, panel.time.title, "middle")], foot


def _apart(marks: Sequence[float], across: Place) -> Sequence[float]:
    """Where marks are; every second, third, ... one where all would cover the lanes."""
    places = [across(at) for at in marks]
    if len(places) < 2:
        return places
    step = (places[-1] - places[0]) / (len(places) - 1)
    return places[:: max(1, math.ceil(_APART / max(step, 0.01)))]


def _runs(
    lanes: Sequence[Lane], letters: set[str], x: float, y: float, height: float
) -> Iterator[str]:
    """Stretches of lanes that have one of some letters, as parts of a path."""
    for number, lane in enumerate(lanes):
        middle = y + (number + 0.5) * height
        wide = _WIDTH / max(len(lane.letters), 1)
        at = 0
        for mine, run in groupby(lane.letters, letters.__contains__):
            length = len(list(run))
            if mine:
                yield f"M{x + at * wide:.1f} {middle:.1f}h{length * wide:.1f}"
            at += length


def _legend(legend: Sequence[tuple[str, str]], x: float, y: float) -> tuple[list[str], float]:
    """Boxes of the colours with their meaning, in as many lines as they need."""
    lines, at = [], x
    for kind, text in legend:
        room = _BOX + 6 + text_width(text) + 14
        if at > x and at + room > x + _WIDTH:
            at, y = x, y + LINE
        lines.append(
            f'<path class="lane {kind}" stroke-width="{_BOX}" d="M{at:.1f} {y - 4:.1f}h{_BOX}"/>'
        )
        lines.append(words(at + _BOX + 6, y, text))
        at += room
    return lines, y
