"""Documents as data: JSON at full precision, CSV of their records, signatures as TOML."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from popmodel.base.documents import csv_cell
from popmodel.base.plain import plain
from popmodel.reports.renderers.text import clean

if TYPE_CHECKING:
    from popmodel.reports.renderers.text_tables import Style
    from popmodel.reports.views import Document, Views

_STAMP = ("popmodel", "time", "host", "command")


def render_csv(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
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


def render_json(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (all of it)
    """A document as JSON."""
    return json.dumps(encodable(document), indent=1, allow_nan=False) + "\n"


def encodable(value: Any) -> Any:
    """Plain data whose texts UTF-8 can hold: file names may have bytes that readers refuse."""
    return plain(value, _encodable)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def render_toml(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (the text alone)
    """The signature in a document: it says itself where it comes from."""
    text: str = document["signature"]
    return text
