"""Charts and their marks inside a page: SVG that takes its colours from the style of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from popmodel.base.values import dataclass
from popmodel.reports.pictures import Chart, Charts, Mark
from popmodel.reports.renderers import charts
from popmodel.reports.renderers.marks import shape
from popmodel.reports.renderers.sheet import safe

WIDE: charts.Size = (310, 240)
SMALL: charts.Size = (200, 130)


@dataclass(frozen=True)
class PageDrawing:
    """A chart with its title, which stands outside of it."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class PageFigures:
    """Charts beside each other, and what the marks on them mean."""

    drawings: tuple[PageDrawing, ...]
    legend: tuple[tuple[Markup, str], ...] = ()


def figures(found: Charts, prefix: str, size: charts.Size = WIDE) -> PageFigures:
    """Draw charts for a page."""
    return PageFigures(
        tuple(drawing(chart, prefix, size) for chart in found.charts), legend(found.legend)
    )


def drawing(chart: Chart, prefix: str, size: charts.Size = WIDE) -> PageDrawing:
    """Draw one chart; as for `figures`."""
    named = replace(chart, name=f"{prefix}-{chart.name}")
    width, height, lines = charts.alone(named, size)
    # Text in the lines is escaped where they are made.
    return PageDrawing(
        chart.title,
        Markup(
            f'<svg class="drawing" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="'
            + safe(chart.title).replace('"', "&quot;")
            + '">'
            + "".join(lines)
            + "</svg>"
        ),
    )


def legend(entries: Sequence[tuple[Mark, str]]) -> tuple[tuple[Markup, str], ...]:
    """Marks with their meanings."""
    return tuple((sign(mark), meaning) for mark, meaning in entries)


def sign(mark: Mark) -> Markup:
    """A mark in a line of text."""
    return Markup(
        '<svg class="drawing sign" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">'
        f"{shape(mark, 8, 8)}</svg>"
    )
