"""Marks of points, as SVG: they differ by shape and filling and not by colour alone.

The blue and the orange are of M. Okabe, K. Ito, Color Universal Design, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

from popmodel.reports.pictures import Mark
from popmodel.reports.renderers.sheet import LINE, MARGIN, text_width, words


def shape(mark: Mark, x: float, y: float) -> str:
    """One mark around a place."""
    if mark is Mark.FIRST:
        return f'<path class="first" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z"/>'
    if mark is Mark.SQUARE:
        return f'<path class="square" d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"/>'
    if mark is Mark.TRIANGLE:
        return f'<path class="triangle" d="M{x:.1f} {y - 6:.1f}l6 10h-12z"/>'
    return f'<circle class="{mark}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def interval(x: float, low: float, high: float) -> str:
    """A bar with caps from one height to another."""
    return (
        f'<path class="bar" d="M{x:.1f} {low:.1f}V{high:.1f}'
        f'M{x - 5:.1f} {low:.1f}h10M{x - 5:.1f} {high:.1f}h10"/>'
    )


def legend(entries: Sequence[tuple[Mark, str]], y: float, width: float) -> tuple[list[str], float]:
    """The marks with their meanings, side by side as far as there is room."""
    lines: list[str] = []
    x = float(MARGIN)
    for mark, meaning in entries:
        room = 18 + text_width(meaning)
        if x > MARGIN and x + room > width - MARGIN:
            x, y = float(MARGIN), y + LINE
        lines += [shape(mark, x + 6, y - 4), words(x + 18, y, meaning)]
        x += room + 16
    return lines, y
