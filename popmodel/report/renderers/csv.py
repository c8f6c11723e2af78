"""Documents as CSV: their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.report.export import csv_text

if TYPE_CHECKING:
    from popmodel.report.renderers.tables import Style
    from popmodel.report.views import Document, Views

_STAMP = ("popmodel", "time", "host", "command")


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """One record per line, with where it comes from."""
    stamp = document["provenance"]
    return csv_text(views.records(document), {name: stamp[name] for name in _STAMP})
