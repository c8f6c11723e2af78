"""Measured runs in a table that people write or a script appends to: CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from popmodel.documents import csv_text, read_text
from popmodel.measurements.place import Place, TableError
from popmodel.measurements.rows import Row, RunTimes, read_rows

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["read_table"]


def read_table(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from a CSV file with the columns processes, threads and runtime (seconds).

    Parameters
    ----------
    path : path
        The file. The unit of a time may stand behind the name of its column (``runtime [ms]``) or
        behind each number. Metrics are columns ``FAMILY.ID``, or the id alone of the additive
        hybrid family: fractions, or per cent with ``%`` behind the number or as ``[%]`` above them.
        Quantities that metrics are computed from are columns ``aggregates.NAME``.
    parameters : iterable of str or None
        Names of the application's parameters: columns with these names set them for each run; an
        empty cell leaves its run the value that holds without the column. Columns of words and
        those of `INFORMATION` set nothing, nor do those whose names begin with `REMARK`; other
        columns of numbers are refused: they would be parameters that nobody heeds. With None, which
        says that the parameters are not known, they are parameters.
    said : mapping of str to str, optional
        What columns mean, or values that hold for all rows: ``{"ranks": "processes", "N": "64"}``.

    Raises
    ------
    TableError
        If a column is missing, unknown or ambiguous, if a row has too few or too many fields, or if
        a number is wrong; names the line.
    """
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
