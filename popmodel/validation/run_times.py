"""Measured runtimes in a table that people write or a script appends to: CSV."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.documents import read_text
from popmodel.errors import FileError
from popmodel.shapes import Real, shown
from popmodel.validation.measurement import Measurement
from popmodel.values import dataclass

if TYPE_CHECKING:
    from _csv import Reader

COLUMNS = ("processes", "threads", "runtime")
_LIKE = 0.8  # a name that is as near to a known one is a misspelling of it, not another column
_HEADER = f"the first line names the columns: {','.join(COLUMNS)}"

INFORMATION = ("run", "repeat", "job", "job_id", "date", "time", "host", "comment", "note")
"""Columns that say something about a run without setting anything, whatever is in them."""
REMARK = "#"
"""What the name of any other column of numbers begins with that sets nothing."""


class TableError(FileError):
    """A table of runtimes is damaged."""


@dataclass(frozen=True)
class RunTimes:
    """A table of runtimes.

    Attributes
    ----------
    path : str
        The file.
    runs : tuple of Measurement
        One per row; rows of the same size and parameters are repeats of a run.
    parameters : tuple of str
        Columns that set parameters of the application.
    ignored : tuple of str
        Columns that have no meaning here.
    """

    path: str
    runs: tuple[Measurement, ...]
    parameters: tuple[str, ...]
    ignored: tuple[str, ...]


def read_table(path: str | os.PathLike[str], parameters: Iterable[str] = ()) -> RunTimes:
    """Read runtimes from a CSV file with the columns processes, threads and runtime (seconds).

    Parameters
    ----------
    path : path
        The file.
    parameters : iterable of str
        Names of the application's parameters: columns with these names set them for each run; an
        empty cell leaves its run the value that holds without the column. Columns of words and
        those of `INFORMATION` set nothing, nor do those whose names begin with `REMARK`; other
        columns of numbers are refused: they would be parameters that nobody heeds.

    Raises
    ------
    TableError
        If a column is missing, unknown or ambiguous, if a row has too few or too many fields, or if
        a number is wrong; names the line.
    """
    path = Path(path)
    known = [*COLUMNS, *parameters]
    lines = csv.reader(io.StringIO(read_text(path, TableError), newline=""), skipinitialspace=True)
    try:
        names = [name.strip() for name in next(lines, ())]
        _check_names(names, known, path)
        rows = [(lines.line_num, cells) for cells in _rows(lines, names, path)]
    except csv.Error as reason:
        raise TableError(path, f"is not CSV: {reason}", line=lines.line_num) from None
    if not rows:
        raise TableError(path, "has no runs", hint="write one line per run below the header")
    others = [name for name in names if name and name not in known]
    for name in others:
        _check_information(name, [cells[name] for _, cells in rows], known, path)
    set_here = tuple(name for name in names if name in known and name not in COLUMNS)
    return RunTimes(
        os.fspath(path),
        tuple(_measurement(cells, set_here, path, line) for line, cells in rows),
        set_here,
        tuple(others),
    )


def _check_names(names: Sequence[str], known: Sequence[str], path: Path) -> None:
    def near(name: str, among: Iterable[str]) -> list[str]:
        folded = {each.casefold(): each for each in among}
        return [folded[each] for each in get_close_matches(name.casefold(), folded, 1, _LIKE)]

    for name in COLUMNS:
        if name not in names:
            wrong = near(name, names)
            hint = f"rename the column {wrong[0]!r}" if wrong else _HEADER
            raise TableError(path, f"has no column {name!r}", line=1, hint=hint)
    for name in names:
        if name and names.count(name) > 1:
            raise TableError(
                path,
                f"has {names.count(name)} columns {name!r}",
                line=1,
                hint="remove or rename all but one",
            )
        if name and name not in known and (meant := near(name, known)):
            raise TableError(
                path,
                f"has an unknown column {name!r}",
                line=1,
                hint=f"did you mean {meant[0]!r}? Rename the column, or remove it",
            )


def _check_information(name: str, cells: Sequence[str], known: Sequence[str], path: Path) -> None:
    """Refuse a column of numbers that sets nothing and is not known to be information."""
    if name in INFORMATION or name.startswith(REMARK):
        return
    if any(cells) and all(not cell or _is_number(cell) for cell in cells):
        parameters = ", ".join(known[len(COLUMNS) :]) or "none"
        raise TableError(
            path,
            f"column {name!r} is not a parameter of the application ({parameters})",
            line=1,
            hint=f"name it after the parameter that it sets, or {REMARK}{name} if it sets none",
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rows(lines: Reader, names: Sequence[str], path: Path) -> Iterator[dict[str, str]]:
    """Cells of each row that is not empty, by the name of their column."""
    for row in lines:
        cells = [cell.strip() for cell in row]
        while len(cells) > len(names) and not cells[-1]:  # as spreadsheets pad their lines
            cells.pop()
        if not any(cells):
            continue
        if len(cells) != len(names):
            raise TableError(
                path,
                f"has {len(cells)} fields, the header has {len(names)}",
                line=lines.line_num,
                hint="give each column one field; decimal points, not commas",
            )
        yield dict(zip(names, cells, strict=True))


def _measurement(
    cells: Mapping[str, str], parameters: Sequence[str], path: Path, line: int
) -> Measurement:
    return Measurement(
        os.fspath(path),
        _count(cells["processes"], "processes", path, line),
        _count(cells["threads"], "threads", path, line),
        _number(cells["runtime"], "runtime must be a number of seconds above 0", path, line),
        {},
        parameters={
            name: _number(cells[name], f"{name} must be a number above 0", path, line)
            for name in parameters
            if cells[name]
        },
        line=line,
    )


def _count(text: str, name: str, path: Path, line: int) -> int:
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII):
        problem = f"{name} must be a whole number, at least 1, not {shown(text)}"
        raise TableError(path, problem, line=line)
    return int(text)


def _number(text: str, must: str, path: Path, line: int) -> float:
    try:
        value = Real(above=0).read(float(text))
    except ValueError:  # no number, or none that a run can have
        value = math.nan
    if math.isnan(value):
        raise TableError(path, f"{must}, not {shown(text)}", line=line)
    return value
