"""A square table of shaded cells, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from popmodel.reports.pictures import Cells, PictureCell
from popmodel.reports.renderers.sheet import LINE, MARGIN, Draw, safe, text_width, words

_SIDE = 448  # of the square at most
_CELL = 28  # of a cell at most
_LEAST = 440  # width of a sheet, for its title
_TOLD = 4096  # cells that are drawn one by one, each with what is in it
_SWATCH = 12


def arranged(shown: Cells) -> tuple[int, Draw]:
    """Width of a sheet with the cells, and what draws them."""
    number = max(len(shown.names), 1)
    side = min(_CELL, _SIDE / number)
    left = MARGIN + LINE + max(map(text_width, shown.names), default=0) + 6
    width = max(left + number * side + MARGIN, _LEAST)

    def draw(y: float) -> tuple[list[str], float]:
        top = y + 3 * LINE
        end = number * side
        square = f'x="{left:.1f}" y="{top:.1f}" width="{end:.1f}" height="{end:.1f}"'
        lines = [
            words(left + end / 2, y + 1.6 * LINE, shown.columns, "middle"),
            _sideways(MARGIN + LINE / 2, top + end / 2, shown.rows),
            f'<rect class="blank" {square}/>',
        ]
        for place in _labelled(shown.names, side):
            at = (place + 0.5) * side
            # Of several ranks together the first one: there is no room for both.
            lines.append(words(left + at, top - 5, shown.names[place].partition("-")[0], "middle"))
            lines.append(words(left - 6, top + at + 4, shown.names[place], "end"))
        lines += _cells(shown.cells, left, top, side)
        lines.append(f'<rect class="edge" {square}/>')
        explained, foot = _legend(shown, left, top + end + LINE + 4, width)
        return [*lines, *explained], foot

    return round(width), draw


def outlines(cells: Iterable[PictureCell]) -> dict[int, str]:
    """Path around the cells of each shade, a cell being 1 wide and high; neighbours in one go."""
    paths: dict[int, str] = {}
    ordered = sorted(cells, key=lambda cell: (cell.shade, cell.row, cell.column))
    # In a run of neighbours the column rises as fast as the place in order.
    for (shade, row, _), run in groupby(
        enumerate(ordered), key=lambda item: (item[1].shade, item[1].row, item[1].column - item[0])
    ):
        places = [cell.column for _, cell in run]
        length = len(places)
        paths[shade] = paths.get(shade, "") + f"M{places[0]} {row}h{length}v1h-{length}z"
    return paths


def _cells(cells: Sequence[PictureCell], left: float, top: float, side: float) -> list[str]:
    if len(cells) > _TOLD:
        place = f'transform="translate({left:.1f} {top:.1f}) scale({side:.6g})"'
        return [
            f'<path class="cell shade{shade}" {place} d="{path}"/>'
            for shade, path in outlines(cells).items()
        ]
    return [
        f'<rect class="cell shade{cell.shade}" x="{left + cell.column * side:.1f}" '
        f'y="{top + cell.row * side:.1f}" width="{side:.1f}" height="{side:.1f}">'
        f"<title>{safe(cell.told)}</title></rect>"
        for cell in cells
    ]


def _legend(shown: Cells, x: float, y: float, width: float) -> tuple[list[str], float]:
    """Shades, and from what value on they are used."""
    if not shown.legend:
        return [words(x, y, f"no {shown.quantity}", "faint")], y
    lines = [words(x, y, f"{shown.quantity}, from:")]
    place = x + text_width(f"{shown.quantity}, from:")
    for shade, text in shown.legend:
        room = _SWATCH + 4 + text_width(text) + 8
        if place + room > width - MARGIN / 2:
            place, y = x, y + LINE
        lines.append(
            f'<rect class="shade{shade}" x="{place:.1f}" y="{y - _SWATCH + 2:.1f}" '
            f'width="{_SWATCH}" height="{_SWATCH}"/>'
        )
        lines.append(words(place + _SWATCH + 4, y, text))
        place += room
    return lines, y + 6


def _sideways(x: float, y: float, text: str) -> str:
    turned = f'transform="rotate(-90 {x:.1f} {y:.1f})"'
    return f'<text class="sideways" x="{x:.1f}" y="{y:.1f}" {turned}>{safe(text)}</text>'


def _labelled(names: tuple[str, ...], side: float) -> range:
    """Rows and columns that there is room to name."""
    firsts = [text_width(name.partition("-")[0]) for name in names]
    room = max(max(firsts, default=0) + 6, LINE)
    return range(0, len(names), max(math.ceil(room / side), 1))
