"""Tables in text, as people and programs write them: rows of cells below the names of columns.

Cells stand between commas, semicolons, tabulators or bars (CSV of any spreadsheet, Markdown,
``sacct -P``), or between blanks, in columns of fixed width where dashes say how wide. Numbers may
have decimal commas. Lines that begin with ``#`` are comments; the last one before numbers may name
the columns.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from popmodel.base.documents import csv_text, read_text
from popmodel.base.errors import FileError

REMARK = "#"
"""What a comment begins with, and the name of a column of numbers that sets nothing."""
_RULE = re.compile(r"(?=[^-=]*[-=])[-+=:|\s]+")
"""A line that only divides, as below the names of Markdown, psql and sacct."""
_SPREADSHEET = re.compile(r'"?sep=(.)"?')
_NUMBERS = re.compile(r"[-+]?\d[\d.,:]*(?:[eE][-+]?\d+)?\s*%?|[-+]?[.,]\d+")
_COMMAS = {
    "thousands": re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,})"),
    "unsure": re.compile(r"[-+]?[1-9]\d{0,2},\d{3}"),
    "decimal": re.compile(r".*,.*"),
}
"""What a comma in a number tells, the first that fits."""
_GROUPED = re.compile("[-+]?\\d{1,3}(?:[ \u00a0\u202f]\\d{3})+(?:[.,]\\d+)?")  # thousands
_MARKS = {*"|\t;,"}
_ONE_LINE = "give each column one field"

Line = tuple[int, str]
"""A line of a file, and its number from 1."""


class TableError(FileError):
    """A table of runs is damaged, or does not say what has to be known."""


class Place(NamedTuple):
    """A place in a file."""

    path: str
    line: int | None = None  # Counted from 1, where the format has lines
    # Else the entry of the document, such as ``runs[2]``; empty for the file as a whole.
    entry: str = ""

    @property
    def text(self) -> str:
        """The place for people."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    def error(self, problem: str, hint: str | None = None) -> TableError:
        """The error that something here is wrong."""
        inside = f"{self.entry}: {problem}" if self.entry else problem
        return TableError(self.path, inside, line=self.line, hint=hint)


class Row(NamedTuple):
    """One row of a table."""

    place: Place  # Where it stands
    # Its cells by what stands above them: text, or numbers. An empty text or None is nothing.
    values: dict[str, Any]
    facts: Mapping[str, Any] | None = None  # Other fields of the `MeasuredRow`


def text_rows(path: str | os.PathLike[str]) -> tuple[Place, list[str], list[Row]]:
    """Where the names of the columns of a text file stand, the names, and its rows as text."""
    place = Place(os.fspath(path))
    lines = [
        (number, line)
        for number, line in enumerate(read_text(path, TableError).split("\n"), 1)
        if line.strip()
    ]
    if not lines:
        raise place.error("is empty", "name a table with a line of names, and a line for each run")
    given = _SPREADSHEET.fullmatch(lines[0][1].strip())
    lines = lines[1:] if given else lines
    head, body = _head_and_body(lines, place)
    mark = given[1] if given else _separator(head[1], body)
    ruled = bool(body) and bool(_RULE.fullmatch(body[0][1]))
    spans = _spans(body[0][1]) if mark == " " and ruled else []
    body = [line for line in body if not _RULE.fullmatch(line[1])]
    (_, heads), *rows = _cells([head, *body], mark, spans, place) or [(1, [])]
    place = place._replace(line=head[0])
    wide = re.split(r"\s{2,}|\t", head[1].strip())
    if mark == " " and rows and not spans:
        count = len(rows[0][1])
        if len(heads) != count and len(wide) == count:
            heads = wide
        if len(heads) + 1 == count and [cells[0] for _, cells in rows] == [
            str(number) for number in range(len(rows))
        ]:
            heads = ["", *heads]  # pandas numbers the rows, and does not name the column
    read = []
    for line, cells in rows:
        while len(cells) > len(heads) and not cells[-1]:  # as spreadsheets pad their lines
            cells.pop()
        if not any(cells):
            continue
        where = place._replace(line=line)
        if len(cells) != len(heads):
            hint = f"{_ONE_LINE}; decimal points, not commas" if mark == "," else _ONE_LINE
            problem = f"has {len(cells)} fields, the header has {len(heads)}"
            raise where.error(problem, hint)
        read.append(Row(where, dict(zip(heads, cells, strict=True))))
    return place, heads, _with_points(heads, read, mark)


def _head_and_body(lines: Sequence[Line], place: Place) -> tuple[Line, list[Line]]:
    """The line that names the columns, and those below it without comments."""
    comments = [line for line in lines if line[1].lstrip().startswith(REMARK)]
    body = [line for line in lines if not line[1].lstrip().startswith(REMARK)]
    while body and _RULE.fullmatch(body[0][1]):  # the upper edge of a table
        body.pop(0)
    above = [line for line in comments if not body or line[0] < body[0][0]]
    if above and (not body or any(map(is_number, re.split(r"[\s,;|]+", body[0][1])))):
        number, line = above[-1]  # of gnuplot; what has no blank may be a name that sets nothing
        return (number, re.sub(rf"^\s*{REMARK}\s+", "", line)), body
    if not body:
        return (1, ""), []
    while len(body) > 1 and not _MARKS & {*body[0][1]} and _MARKS & {*body[1][1]}:
        body.pop(0)  # a title
    for index, (_, line) in enumerate(body[1:]):  # prose above a table of Markdown
        if "|" in body[index][1] and "|" in line and _RULE.fullmatch(line):
            return body[index], _one_table(body[index + 1 :], place)
    return body[0], body[1:]


def _separator(head: str, body: Sequence[Line]) -> str:
    """What stands between cells."""
    bare = re.sub(r'"[^"]*"', "", head)
    ruled = bool(body) and "|" in body[0][1] and bool(_RULE.fullmatch(body[0][1]))
    return next((mark for mark in "|\t;," if mark in bare), "|" if ruled else " ")


def _one_table(body: Sequence[Line], place: Place) -> list[Line]:
    """Lines of the first table in a text of Markdown; a second one is refused."""
    first = body[0][0]
    end = sum("|" in line and number - first == index for index, (number, line) in enumerate(body))
    for number, line in body[end:]:
        if "|" in line and _RULE.fullmatch(line):
            raise place._replace(line=number).error(
                "a second table begins here", "give each table a file of its own"
            )
    return list(body[:end])


def _spans(rule: str) -> list[tuple[int, int]]:
    """Where columns of fixed width begin and end, by the dashes below their names."""
    spans = [match.span() for match in re.finditer(r"-+|=+", rule)]
    return spans if len(spans) > 1 else []


def _cells(
    lines: Iterable[Line], mark: str, spans: Sequence[tuple[int, int]], place: Place
) -> list[tuple[int, list[str]]]:
    """Cells of lines, with the number of the line at which each row ends."""
    lines = list(lines)
    if spans:
        return [(number, [line[a:b].strip() for a, b in spans]) for number, line in lines]
    if mark == "|":
        rows = [(number, _of_bars(line)) for number, line in lines]
        return [(number, [cell.strip(" \t*`") for cell in cells]) for number, cells in rows]
    texts = [line.strip() if mark == " " else line for _, line in lines]
    if mark == " ":  # units stay with their names, and numbers with their units
        texts = [re.sub(r"(?<!\s)\s+(?=[\[(])", "", re.sub(r"\t", " ", text)) for text in texts]
    reader = csv.reader(texts, delimiter=mark, skipinitialspace=True, strict=False)
    rows = []
    try:
        for row in reader:
            number = lines[reader.line_num - 1][0]
            rows.append((number, [csv_text(cell.strip()) for cell in row]))
    except csv.Error as reason:
        where = place._replace(line=lines[min(reader.line_num, len(lines)) - 1][0])
        raise where.error(f"is not CSV: {reason}") from None
    return rows


def _of_bars(line: str) -> list[str]:
    """Cells between bars; those at the edges of a table are none."""
    text = line.strip()
    if text.startswith("|"):
        text = text[1:].removesuffix("|")
    return text.split("|")


def _with_points(heads: Sequence[str], rows: Sequence[Row], mark: str) -> list[Row]:
    """Rows whose numbers have decimal points, and nothing between thousands."""
    rows = [
        row._replace(
            values={
                head: re.sub(r"\s", "", cell) if _GROUPED.fullmatch(cell) else cell
                for head, cell in row.values.items()
            }
        )
        for row in rows
    ]
    numeric = set()
    for head in heads:
        cells = [cell for row in rows if (cell := row.values[head])]
        if any("," in cell for cell in cells) and all(map(_NUMBERS.fullmatch, cells)):
            numeric.add(head)
    found: dict[str, tuple[Row, str]] = {}
    for row in rows:
        for head, cell in row.values.items():
            for kind, pattern in _COMMAS.items() if head in numeric else ():
                if pattern.fullmatch(cell):
                    found.setdefault(kind, (row, cell))
                    break
            if head in numeric and "." in cell and "," not in cell:
                found.setdefault("point", (row, cell))
    hint = "write decimal points, and nothing between thousands"
    points = found.get("thousands") or found.get("point")
    if points and "decimal" in found:
        row, cell = max(points, found["decimal"], key=lambda pair: pair[0].place.line or 0)
        decimal = f"{found['decimal'][1]} has a decimal comma, {points[1]} a decimal point"
        raise row.place.error(decimal, hint)
    if list(found) == ["unsure"] and mark != ";":
        row, cell = found["unsure"]
        comma = f"{cell} may be {cell.replace(',', '.')} or {cell.replace(',', '')}"
        raise row.place.error(comma, hint)
    point, between = ("", ",") if points else (",", ".")

    def pointed(head: str, cell: str) -> str:
        if head not in numeric or "," not in cell:
            return cell
        cell = cell.replace(between, "")
        return cell.replace(point, ".") if point else cell

    return [
        row._replace(values={head: pointed(head, cell) for head, cell in row.values.items()})
        for row in rows
    ]


def as_number(text: str) -> float:
    """A finite number; NaN for what is none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, NaN and infinity included."""
    if isinstance(cell, str):
        try:
            float(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, int | float) and not isinstance(cell, bool)
