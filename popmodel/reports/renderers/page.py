"""Documents as pages: HTML files that need no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.reports.html.contents import alone
from popmodel.reports.html.page import page

if TYPE_CHECKING:
    from popmodel.reports.renderers.tables import Style
    from popmodel.reports.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """A document as a page of its own."""
    return page((views.contents or alone)(document))
