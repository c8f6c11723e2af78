"""Measured runs in a table that people write or a script appends to: CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from popmodel.documents import csv_text, read_text
from popmodel.runs.place import Place, TableError
from popmodel.runs.rows import Row, RunTimes, read_rows

if TYPE_CHECKING:
    from _csv import Reader


def read_table(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from a CSV file with the columns processes, threads and runtime (seconds)."""
    top = Place(os.fspath(path), 1)
    lines = csv.reader(io.StringIO(read_text(path, TableError), newline=""), skipinitialspace=True)
    try:
        heads = [csv_text(name.strip()) for name in next(lines, ())]
        rows = list(_rows(lines, heads, top.path))
    except csv.Error as reason:
        raise TableError(path, f"is not CSV: {reason}", line=lines.line_num) from None
    return read_rows(heads, rows, parameters, top, said)


def _rows(lines: Reader, heads: Sequence[str], path: str) -> Iterator[Row]:
    """Cells of each row that is not empty, by the head of their column."""
    for row in lines:
        cells = [csv_text(cell.strip()) for cell in row]
        while len(cells) > len(heads) and not cells[-1]:  # as spreadsheets pad their lines
            cells.pop()
        if not any(cells):
            continue
        place = Place(path, lines.line_num)
        if len(cells) != len(heads):
            raise place.error(
                f"has {len(cells)} fields, the header has {len(heads)}",
                "give each column one field; decimal points, not commas",
            )
        yield Row(place, dict(zip(heads, cells, strict=True)))
