"""Curves over two axes, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from popmodel.report.pictures import Axis, Chart, Charts, Curve, Spot
from popmodel.report.renderers.sheet import LINE, MARGIN, Draw, safe, text_width, words

_WIDTH, _HEIGHT = 560, 240  # of what the axes enclose
_RIGHT = 24  # room beside it, for half of the last number

Place = Callable[[float], float]


def arranged(charts: Charts) -> tuple[int, Draw]:
    """Width of a sheet with charts below each other, and what draws them."""
    left = MARGIN + 10 + max(_left(chart) for chart in charts.charts)

    def draw(y: float) -> tuple[list[str], float]:
        lines: list[str] = []
        for chart in charts.charts:
            drawn, y = _chart(chart, left, y + LINE)
            lines += drawn
        return lines, y

    right = max(_right(chart) for chart in charts.charts)
    return round(left + _WIDTH + right + MARGIN), draw


def _left(chart: Chart) -> float:
    return max(text_width(text) for _, text in chart.y.ticks)


def _right(chart: Chart) -> float:
    return max(_RIGHT, *(text_width(curve.text) + 8 for curve in chart.curves))


def _chart(chart: Chart, x: float, y: float) -> tuple[list[str], float]:
    """A chart whose plot begins at x, and where it ends."""
    y += LINE
    lines = [words(MARGIN, y, chart.title, "panel")]
    y += LINE
    lines.append(words(MARGIN, y, chart.y.title, "faint"))
    top, bottom = y + 8, y + 8 + _HEIGHT
    across, up = _scale(chart.x, x, x + _WIDTH), _scale(chart.y, bottom, top)
    for value, text in chart.y.ticks:
        lines.append(_line("grid", x, up(value), x + _WIDTH, up(value)))
        lines.append(words(x - 6, up(value) + 4, text, "end"))
    for value, text in chart.x.ticks:
        lines.append(_line("axis", across(value), bottom, across(value), bottom + 4))
        lines.append(words(across(value), bottom + LINE, text, "middle"))
    lines.append(f'<path class="axis" d="M{x:.1f} {top:.1f}V{bottom:.1f}H{x + _WIDTH:.1f}"/>')
    for number, curve in enumerate(chart.curves):
        lines += _curve(curve, f"{chart.name}-{number}", across, up)
    lines += _spots(chart.spots, chart.name, across, up, x + _WIDTH, bottom)
    foot = bottom + 2 * LINE
    return [*lines, words(x + _WIDTH / 2, foot, chart.x.title, "middle")], foot + 6


def _scale(axis: Axis, start: float, end: float) -> Place:
    return lambda value: start + (value - axis.low) / (axis.high - axis.low) * (end - start)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _curve(curve: Curve, name: str, across: Place, up: Place) -> list[str]:
    places = [(across(x), up(y)) for x, y in curve.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    lines = [f'<g id="{escape(name)}"><path class="curve" d="M{path}"/>']
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
        shape = (
            f'<path class="first" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z"/>'
            if spot.is_first
            else f'<circle class="plain" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
        )
        lines += [
            f'<g id="{escape(name)}-spot-{number}"><title>{safe(spot.told)}</title>',
            shape,
        ]
        if x + 8 + text_width(spot.text) <= end and y + LINE < bottom:
            lines.append(words(x + 8, y + LINE, spot.text))
        lines.append("</g>")
    return lines
