"""Tables of runs in CSV: what people write, what a script appends to, what convert writes."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.documents import csv_cell, csv_text, read_text
from popmodel.efficiency.aggregates import AGGREGATES
from popmodel.runs.table import (
    AGGREGATE,
    COLUMNS,
    FACTS,
    Place,
    Row,
    RunTimes,
    TableError,
    read_rows,
    row_of,
)

if TYPE_CHECKING:
    from _csv import Reader

    from popmodel.runs.measurement import MeasuredRow


def read_csv(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from a CSV file with the columns processes, threads and runtime (seconds)."""
    heads, rows = cells(path)
    return read_rows(heads, rows, parameters, Place(os.fspath(path), 1), said)


def cells(path: str | os.PathLike[str], delimiter: str = ",") -> tuple[list[str], list[Row]]:
    """Names of the columns of a file, and its rows as text; those that are empty are left out."""
    text = io.StringIO(read_text(path, TableError), newline="")
    lines = csv.reader(
        text,
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE,
        skipinitialspace=True,
    )
    try:
        heads = [csv_text(name.strip()) for name in next(lines, ())]
        return heads, list(_rows(lines, heads, os.fspath(path)))
    except csv.Error as reason:
        raise TableError(path, f"is not CSV: {reason}", line=lines.line_num) from None


def _rows(lines: Reader, heads: Sequence[str], path: str) -> Iterator[Row]:
    for line in lines:
        fields = [csv_text(field.strip()) for field in line]
        while len(fields) > len(heads) and not fields[-1]:  # as spreadsheets pad their lines
            fields.pop()
        if not any(fields):
            continue
        place = Place(path, lines.line_num)
        if len(fields) != len(heads):
            raise place.error(
                f"has {len(fields)} fields, the header has {len(heads)}",
                "give each column one field; decimal points, not commas",
            )
        yield Row(place, dict(zip(heads, fields, strict=True)))


def write_csv(
    runs: Sequence[MeasuredRow],
    provenance: Mapping[str, Any],  # noqa: ARG001 (a table has no place for it)
) -> tuple[str, tuple[str, ...]]:
    """Runs as CSV: sizes and runtime, parameters, how they were made, metrics, quantities."""
    rows = [row_of(run) for run in runs]
    every = dict.fromkeys(name for row in rows for name in row)
    parameters = [name for run in runs for name in run.parameters]
    first = dict.fromkeys([*COLUMNS, *parameters, *(name for name in FACTS if name in every)])
    last = [name for each in AGGREGATES if (name := f"{AGGREGATE}.{each}") in every]
    heads = [*first, *(name for name in every if name not in first and name not in last), *last]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(map(csv_cell, heads))
    cells_of = ([row.get(head, "") for head in heads] for row in rows)
    lines.writerows(
        [csv_cell(cell) if isinstance(cell, str) else cell for cell in line] for line in cells_of
    )
    return text.getvalue(), ()
