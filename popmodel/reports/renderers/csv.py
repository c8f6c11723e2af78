"""Documents as CSV: their records, with the columns in the order of their first appearance."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from popmodel.base.documents import csv_cell
from popmodel.reports.renderers.json import encodable
from popmodel.reports.renderers.text import clean

if TYPE_CHECKING:
    from popmodel.reports.renderers.tables import Style
    from popmodel.reports.views import Document, Views

_STAMP = ("popmodel", "time", "host", "command")


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """One record per line; where all of them come from stands in the first, in the last columns."""
    records = views.records(document)
    stamp = {name: document["provenance"][name] for name in _STAMP}
    columns = dict.fromkeys(key for record in records for key in record if key not in stamp)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_value, [*columns, *stamp]))
    origin: list[object] = list(stamp.values())
    for record in records:
        writer.writerow(map(_value, [*map(record.get, columns), *origin]))
        origin = [None] * len(stamp)
    return text.getvalue()


def _value(value: object) -> object:
    value = encodable(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # many readers of CSV take any control character for a line end
        return csv_cell(clean(value))
    # repr keeps a float's full precision.
    return repr(value) if isinstance(value, float) else value
