"""Documents as CSV: their records, with the columns in the order of their first appearance."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from popmodel.report.renderers.json import encodable
from popmodel.report.renderers.text import clean

if TYPE_CHECKING:
    from popmodel.report.renderers.tables import Style
    from popmodel.report.views import Document, Views

_STAMP = ("popmodel", "time", "host", "command")


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """One record per line; where it comes from is on every line, so that one cut out tells it."""
    stamp = {name: document["provenance"][name] for name in _STAMP}
    records = [{**record, **stamp} for record in views.records(document)]
    columns = dict.fromkeys(key for record in records for key in record if key not in stamp)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*columns, *stamp], restval="", lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({key: _value(item) for key, item in record.items()})
    return text.getvalue()


def _value(value: object) -> object:
    value = encodable(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return clean(value)  # many readers of CSV take any control character for a line end
    # repr keeps a float's full precision.
    return repr(value) if isinstance(value, float) else value
