"""Documents as JSON: what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.report.export import json_text

if TYPE_CHECKING:
    from popmodel.report.renderers.tables import Style
    from popmodel.report.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (all of it)
    """The document itself."""
    return json_text(document)
