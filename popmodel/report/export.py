"""Results for other programs: JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from popmodel.plain import plain
from popmodel.report.renderers.text import clean

Record = Mapping[str, object]


def json_text(document: Mapping[str, Any]) -> str:
    """A document as JSON, numbers at full precision.

    Raises
    ------
    ValueError
        If the document holds NaN or an infinity, which JSON does not know: what is not known, or
        has no limit, must be absent or null.
    TypeError
        If something in it has no form in JSON.
    """
    return json.dumps(plain(document, encodable), indent=1, allow_nan=False) + "\n"


def encodable(text: str) -> str:
    """Text as UTF-8 can hold it: file names may have bytes that strict readers refuse."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def csv_text(records: Sequence[Record], stamp: Record) -> str:
    """Records as CSV, one per line, with the columns in the order of their first appearance.

    `stamp` is the same on every line: a line cut out of the file still tells where it comes from.
    """
    columns = list(dict.fromkeys(key for record in records for key in record)) + list(stamp)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({key: _csv_value(item) for key, item in {**record, **stamp}.items()})
    return text.getvalue()


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown, first column to the left, figures to the right."""
    lines = [
        "| " + " | ".join(_markdown_cell(head) for head in heads) + " |",
        "|" + "|".join([":--"] + ["--:"] * (len(heads) - 1)) + "|",
    ]
    return lines + ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in rows]


def _csv_value(value: object) -> object:
    value = plain(value, encodable)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return clean(value)  # many readers of CSV take any control character for a line end
    # repr keeps a float's full precision.
    return repr(value) if isinstance(value, float) else value


def _markdown_cell(text: str) -> str:
    shown = clean(text)
    blanks = len(shown) - len(shown.lstrip(" "))
    for character in "\\|<":
        shown = shown.replace(character, f"\\{character}")
    return "&nbsp;" * blanks + shown.lstrip(" ")
