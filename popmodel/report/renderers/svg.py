"""Documents as drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popmodel.report.renderers.tables import Style
    from popmodel.report.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """The drawing of a document that has one."""
    if views.svg is None:
        raise ValueError(f"{document['schema']} cannot be plotted")
    return views.svg(document)
