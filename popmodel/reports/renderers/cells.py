"""Outlines of cells of a matrix."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from popmodel.reports.pictures import PictureCell


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
