"""A table of coloured figures as SVG: a tree of labels, a column for each of several runs."""

from __future__ import annotations

import math

from popmodel.reports.pictures import Figure, HeatMap
from popmodel.reports.renderers.heat import LEVELS, shade
from popmodel.reports.renderers.sheet import LINE, MARGIN, Draw, safe, text_width, words

_STEP = 22  # from one line to the next
_INDENT = 12
_LEAST = 64  # width of a column
_GAP = 2
_LEAST_WIDTH = 460
_SWATCH = 8
_MARK = 6


def arranged(shown: HeatMap) -> tuple[int, Draw]:
    """Width of a sheet with the figures, and what draws them."""
    labels = [text_width(line.label) + _INDENT * line.depth for line in shown.lines]
    left = MARGIN + max(labels, default=0.0) + 12
    texts = [text for head in shown.heads for text in head]
    texts += [figure.text for line in shown.lines for figure in line.figures]
    column = max([_LEAST, *(text_width(text) + 12 for text in texts)])
    width = max(math.ceil(left + len(shown.heads) * column + MARGIN), _LEAST_WIDTH)

    def draw(y: float) -> tuple[list[str], float]:
        height = max((len(head) for head in shown.heads), default=0)
        drawn: list[str] = []
        y += LINE / 2
        for row in range(height):
            y += LINE
            drawn += [
                words(left + column * (at + 1) - 6, y, head[row], "panel end" if not row else "end")
                for at, head in enumerate(shown.heads)
                if row < len(head)
            ]
        y += 8
        for line in shown.lines:
            if not line.figures:
                y += LINE / 2
            kind = "" if line.figures else "panel"
            drawn.append(words(MARGIN + _INDENT * line.depth, y + 15, line.label, kind))
            for at, figure in enumerate(line.figures):
                drawn += _figure(figure, left + column * at, y, column - _GAP, line.label)
            y += _STEP
        legend, y = _legend(shown.scale, left, y)
        return drawn + legend, y

    return width, draw


def _figure(figure: Figure, x: float, y: float, width: float, label: str) -> list[str]:
    """A figure on its colour; what stands out has a mark at its left edge."""
    right, base = x + width - 4, y + 15
    if figure.efficiency is None:
        return [words(right, base, figure.text, "end")]
    colour = shade(figure.efficiency)
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_STEP - 2}" '
    drawn = [
        f"<g><title>{safe(f'{label}: {figure.text}')}</title>",
        f'{box}style="fill: {colour.paper}"/>',
        f'<text class="end" style="fill: {colour.ink}" x="{right:.1f}" y="{base:.1f}">'
        f"{safe(figure.text)}</text>",
    ]
    if figure.is_worst:
        path = f"M{x:.1f} {y + _MARK:.1f}l{_MARK} 4l-{_MARK} 4z"
        drawn.append(f'<path d="{path}" style="fill: {colour.ink}"/>')
    return [*drawn, "</g>"]


def _legend(scale: str, x: float, y: float) -> tuple[list[str], float]:
    """All colours side by side, with the efficiencies at their ends."""
    y += 10
    drawn = [
        f'<rect x="{x + _SWATCH * at:.1f}" y="{y:.1f}" width="{_SWATCH}" height="10" '
        f'style="fill: {shade(level / 100).paper}"/>'
        for at, level in enumerate(LEVELS)
    ]
    y += 10 + LINE
    end = x + _SWATCH * len(LEVELS)
    drawn.append(words(MARGIN, y - LINE, scale, "faint"))
    drawn.append(words(x, y - 2, f"{LEVELS[0]} and less", "faint"))
    drawn.append(words(end, y - 2, f"{LEVELS[-1]}", "faint end"))
    return drawn, y
