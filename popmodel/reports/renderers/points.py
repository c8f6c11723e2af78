"""Panels of points with intervals over categories, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from popmodel.base.values import dataclass
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Band, Mark, Panel, PicturePoint, PicturePoints
from popmodel.reports.renderers.marks import interval, legend, shape
from popmodel.reports.renderers.sheet import (
    LINE,
    MARGIN,
    Draw,
    safe,
    text_width,
    words,
    wrapped,
)

_GAP = 36  # between panels side by side
_PLOT_HEIGHT = 210
_LEAST_SLOT = 58
_LEAST_PLOT = 270


def arranged(points: PicturePoints) -> tuple[int, Draw]:
    """Width of a sheet with panels of points below each other, and what draws them."""
    layout = _layout(points.bands)

    def draw(y: float) -> tuple[list[str], float]:
        lines, y = legend(points.legend, y + LINE + 6, layout.width)
        for band in points.bands:
            drawn, y = _band(band, y + 14, layout)
            lines += drawn
        return lines, y + 6

    return layout.width, draw


@dataclass(frozen=True)
class _PointLayout:
    """Where panels stand, the same in all bands: x of the axes, width of the plots, of all."""

    axes: tuple[float, ...]
    plot: float
    width: int


def _layout(bands: Sequence[Band]) -> _PointLayout:
    plot = max(
        _LEAST_PLOT,
        *(_slot(panel) * len(panel.points) for band in bands for panel in band.panels),
    )
    columns = zip(*(band.panels for band in bands), strict=True)
    axes: list[float] = []
    x = float(MARGIN)
    for column in columns:
        axes.append(x + max(_left(panel) for panel in column))
        x = axes[-1] + plot + _GAP
    return _PointLayout(tuple(axes), plot, math.ceil(x - _GAP + MARGIN))


def _slot(panel: Panel) -> float:
    """Width of a category: room for its texts, so that they do not overlap."""
    texts = [*(point.category for point in panel.points), *panel.below]
    texts += [point.short for point in panel.points if point.mark is Mark.FIRST]
    return max([_LEAST_SLOT, *(text_width(text) + 10 for text in texts)])


def _range(panel: Panel) -> tuple[float, float]:
    """Least and largest value shown, with room around the points and for the value above one."""
    values = [
        number
        for point in panel.points
        for number in (point.value, point.low, point.high)
        if number is not None
    ]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) * 0.1 or 1.0
    return max(low - 0.08 * span, 0.0) if low >= 0 else low - 0.08 * span, high + 0.16 * span


def _tick_texts(panel: Panel) -> dict[float, str]:
    numbers = ticks(*_range(panel))
    digits = max((_digits(number) for number in numbers), default=0)
    return {number: f"{number:.{digits}f}" for number in numbers}


def _digits(number: float) -> int:
    """Digits behind the point that a round number needs."""
    return len(f"{number:.12g}".partition(".")[2]) if "e" not in f"{number:.12g}" else 12


def _left(panel: Panel) -> float:
    """Room left of the axis: for the numbers on it and for what the line below is."""
    texts = [*_tick_texts(panel).values(), panel.below_title]
    return max(text_width(text) for text in texts) + 12


def _band(band: Band, y: float, layout: _PointLayout) -> tuple[list[str], float]:
    """Panels side by side, and where they end."""
    lines: list[str] = []
    if band.heading:
        y += LINE
        lines.append(words(MARGIN, y, band.heading, "panel"))
    y += LINE + 4
    for panel, x in zip(band.panels, layout.axes, strict=True):
        lines += _panel(panel, x, y, layout.plot, band.axis)
    rows = 3 if any(panel.below for panel in band.panels) else 2
    y += 8 + _PLOT_HEIGHT + rows * LINE + 4
    for remark in band.remarks:
        for text in wrapped(remark, layout.width):
            y += LINE
            lines.append(words(MARGIN, y, text, "faint"))
    return lines, y


def _panel(panel: Panel, x: float, y: float, plot: float, axis: str) -> list[str]:
    """One panel; x is where its axis stands, y the line of its title, plot the width inside."""
    slot = plot / len(panel.points)
    top, bottom = y + 8, y + 8 + _PLOT_HEIGHT
    low, high = _range(panel)

    def at(value: float) -> float:
        return bottom - (value - low) / (high - low) * _PLOT_HEIGHT

    lines = [words(x, y, panel.title, "panel")]
    for index, point in enumerate(panel.points):
        if point.mark is not Mark.PLAIN:
            # whole pixels: no seam between neighbours
            left, right = round(x + index * slot), round(x + (index + 1) * slot)
            lines.append(
                f'<rect class="band" x="{left}" y="{top:.1f}" '
                f'width="{right - left}" height="{_PLOT_HEIGHT}"/>'
            )
    for number, text in _tick_texts(panel).items():
        lines.append(
            f'<line class="grid" x1="{x:.1f}" y1="{at(number):.1f}" '
            f'x2="{x + plot:.1f}" y2="{at(number):.1f}"/>'
        )
        lines.append(words(x - 6, at(number) + 4, text, "end"))
    lines.append(f'<path class="axis" d="M{x:.1f} {top:.1f}V{bottom:.1f}H{x + plot:.1f}"/>')
    for index, point in enumerate(panel.points):
        middle = x + (index + 0.5) * slot
        lines += _point(point, f"{panel.name}-{index}", middle, at)
        lines.append(words(middle, bottom + LINE, point.category, "middle"))
        if panel.below:
            lines.append(words(middle, bottom + 2 * LINE, panel.below[index], "middle faint"))
    if panel.below:
        lines.append(words(x - 6, bottom + 2 * LINE, panel.below_title, "end faint"))
    foot = bottom + (3 if panel.below else 2) * LINE
    return [*lines, words(x + plot / 2, foot, axis, "middle")]


def _point(point: PicturePoint, name: str, x: float, at: Any) -> list[str]:
    lines = [f'<g id="{escape(name)}"><title>{safe(point.text)}</title>']
    top = at(point.value) - 6
    if point.low is not None and point.high is not None:
        low, high = at(point.low), at(point.high)
        top = min(top, high)
        lines.append(interval(x, low, high))
    lines.append(shape(point.mark, x, at(point.value)))
    if point.mark is Mark.FIRST:
        lines.append(words(x, top - 6, point.short, "middle value"))
    return [*lines, "</g>"]
