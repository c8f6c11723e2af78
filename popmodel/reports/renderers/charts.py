"""Curves over two axes, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TypeAlias

from popmodel.reports.pictures import Chart, Charts, PictureAxis, PictureCurve, Spot
from popmodel.reports.renderers.marks import interval, legend, shape
from popmodel.reports.renderers.sheet import LINE, MARGIN, Draw, safe, text_width, words

_RIGHT = 24  # room beside the plot, for half of the last number

Size: TypeAlias = tuple[float, float]
"""Width and height of what the axes enclose."""
_SHEET: Size = 560, 240
Place = Callable[[float], float]


def arranged(charts: Charts) -> tuple[int, Draw]:
    """Width of a sheet with charts below each other, and what draws them."""
    left = MARGIN + 10 + max(_left(chart) for chart in charts.charts)

    right = max(_right(chart) for chart in charts.charts)
    width = round(left + _SHEET[0] + right + MARGIN)

    def draw(y: float) -> tuple[list[str], float]:
        lines: list[str] = []
        if charts.legend:
            lines, y = legend(charts.legend, y + LINE + 6, width)
        for chart in charts.charts:
            y += 2 * LINE
            lines.append(words(MARGIN, y, chart.title, "panel"))
            drawn, y = _chart(chart, MARGIN, left, y, _SHEET)
            lines += drawn
        return lines, y

    return width, draw


def alone(chart: Chart, size: Size) -> tuple[float, float, list[str]]:
    """A chart without its title, from the origin: width and height of all of it, and what it is."""
    left = _left(chart) + 10
    lines, bottom = _chart(chart, 0.0, left, 0.0, size)
    return left + size[0] + _right(chart), bottom, lines


def _left(chart: Chart) -> float:
    return max(text_width(text) for _, text in chart.y.ticks)


def _right(chart: Chart) -> float:
    return max([_RIGHT, *(text_width(curve.text) + 8 for curve in chart.curves)])


def _chart(chart: Chart, margin: float, x: float, y: float, size: Size) -> tuple[list[str], float]:
    """A chart whose plot begins at x, below y, and where it ends."""
    y += LINE
    lines = [words(margin, y, chart.y.title, "faint")]
    right, top, bottom = x + size[0], y + 8, y + 8 + size[1]
    across, up = _scale(chart.x, x, right), _scale(chart.y, bottom, top)
    lines += _band(chart, across, up)
    for value, text in chart.y.ticks:
        lines.append(_line("grid", x, up(value), right, up(value)))
        lines.append(words(x - 6, up(value) + 4, text, "end"))
    for value, text in chart.x.ticks:
        lines.append(_line("axis", across(value), bottom, across(value), bottom + 4))
        lines.append(words(across(value), bottom + LINE, text, "middle"))
    lines.append(f'<path class="axis" d="M{x:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}"/>')
    for number, curve in enumerate(chart.curves):
        lines += _curve(curve, f"{chart.name}-{number}", across, up)
    lines += _spots(chart.spots, chart.name, across, up, right, bottom)
    foot = bottom + 2 * LINE
    return [*lines, words(x + size[0] / 2, foot, chart.x.title, "middle")], foot + 6


def _scale(axis: PictureAxis, start: float, end: float) -> Place:
    return lambda value: start + (value - axis.low) / (axis.high - axis.low) * (end - start)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _band(chart: Chart, across: Place, up: Place) -> list[str]:
    """What lies between low and high, to the right and back."""
    if not chart.band:
        return []
    edge = [(x, low) for x, low, _ in chart.band] + [(x, high) for x, _, high in chart.band[::-1]]
    path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in edge)
    return [f'<path class="band" d="M{path}Z"/>']


def _curve(curve: PictureCurve, name: str, across: Place, up: Place) -> list[str]:
    places = [(across(x), up(y)) for x, y in curve.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    kind = "exact" if curve.exact else "curve"
    lines = [f'<g id="{escape(name)}"><path class="{kind}" d="M{path}"/>']
    if curve.dots:
        lines += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in places]
    if curve.text:
        x, y = places[-1]
        lines.append(words(x + 6, y - 6, curve.text))
    return [*lines, "</g>"]


def _spots(
    spots: Sequence[Spot], name: str, across: Place, up: Place, right: float, bottom: float
) -> list[str]:
    """Marks with texts below and right of them, where there is room before the next one."""
    lines = []
    places = [(across(spot.x), up(spot.y)) for spot in spots]
    ends = [*(x - 6 for x, _ in places[1:]), right][: len(places)]
    for number, (spot, (x, y), end) in enumerate(zip(spots, places, ends, strict=True)):
        lines.append(f'<g id="{escape(name)}-spot-{number}"><title>{safe(spot.told)}</title>')
        if spot.low is not None and spot.high is not None:
            lines.append(interval(x, up(spot.low), up(spot.high)))
        lines.append(shape(spot.mark, x, y))
        if spot.text and x + 8 + text_width(spot.text) <= end and y + LINE < bottom:
            lines.append(words(x + 8, y + LINE, spot.text))
        lines.append("</g>")
    return lines
