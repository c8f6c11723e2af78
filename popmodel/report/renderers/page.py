"""Documents as pages: HTML files that need no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.report.html.contents import alone
from popmodel.report.html.page import page

if TYPE_CHECKING:
    from popmodel.report.renderers.tables import Style
    from popmodel.report.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """A document as a page of its own."""
    return page((views.contents or alone)(document))
