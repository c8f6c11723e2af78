"""A square table of shaded cells, as SVG."""

from __future__ import annotations

import math

from popmodel.report.pictures import Cells
from popmodel.report.renderers.sheet import LINE, MARGIN, Draw, safe, text_width, words

_SIDE = 448  # of the square at most
_CELL = 28  # of a cell at most
_LEAST = 440  # width of a sheet, for its title


def arranged(shown: Cells) -> tuple[int, Draw]:
    """Width of a sheet with the cells, and what draws them."""
    number = max(len(shown.names), 1)
    side = min(_CELL, _SIDE / number)
    left = MARGIN + max(text_width(name) for name in (*shown.names, shown.rows)) + 6
    width = max(left + number * side + MARGIN, _LEAST)

    def draw(y: float) -> tuple[list[str], float]:
        top = y + 3 * LINE
        end = number * side
        lines = [
            words(left + end / 2, y + 1.6 * LINE, shown.columns, "middle"),
            words(left - 6, top - 5, shown.rows, "end"),
            f'<rect class="room" x="{left:.1f}" y="{top:.1f}" width="{end:.1f}" '
            f'height="{end:.1f}"/>',
        ]
        for place in _labelled(shown.names, side):
            at = (place + 0.5) * side
            lines.append(words(left + at, top - 5, shown.names[place], "middle"))
            lines.append(words(left - 6, top + at + 4, shown.names[place], "end"))
        for row, values in enumerate(shown.values):
            for column, value in enumerate(values):
                if value > 0:
                    # a small share is visible still
                    shade = 0.08 + 0.92 * math.sqrt(value)
                    lines.append(
                        f'<rect class="cell" x="{left + column * side:.1f}" '
                        f'y="{top + row * side:.1f}" width="{side:.1f}" height="{side:.1f}" '
                        f'fill-opacity="{shade:.2f}"><title>{safe(shown.told[row][column])}'
                        "</title></rect>"
                    )
        lines.append(words(left, top + end + LINE, shown.scale, "faint"))
        return lines, top + end + LINE

    return round(width), draw


def _labelled(names: tuple[str, ...], side: float) -> range:
    """Rows and columns that there is room to name."""
    room = max(max(text_width(name) for name in names) + 6, LINE)
    return range(0, len(names), max(math.ceil(room / side), 1))
