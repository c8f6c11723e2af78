"""Results for other programs: JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, object]


def json_text(document: Mapping[str, Any]) -> str:
    """A document as JSON, numbers at full precision.

    An infinite quantity (the bandwidth of an ideal network) becomes the text ``"inf"``: JSON has no
    infinity, and `float` of most languages reads this one.

    Raises
    ------
    ValueError
        If the document holds NaN: a quantity that is not known must be absent or null.
    """
    return json.dumps(plain(document), indent=1, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """The same data in JSON's own types; arrays become lists and infinities text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if not math.isinf(value) else "inf" if value > 0 else "-inf"
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars, without importing NumPy
        return plain(value.tolist())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


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
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    # repr keeps a float's full precision.
    return repr(value) if isinstance(value, float) else value


def _markdown_cell(text: str) -> str:
    from popmodel.report.terminal import clean

    shown = clean(text)
    blanks = len(shown) - len(shown.lstrip(" "))
    for character in "\\|<":
        shown = shown.replace(character, f"\\{character}")
    return "&nbsp;" * blanks + shown.lstrip(" ")
