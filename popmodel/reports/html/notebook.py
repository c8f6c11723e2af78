"""A result as a notebook shows it: its screen as HTML, without scripts."""

from __future__ import annotations

from popmodel.reports.html.page import fragment
from popmodel.reports.html.section import Section
from popmodel.reports.renderers.html import html
from popmodel.reports.views import Document, Views


def notebook(document: Document, views: Views) -> str:
    """Return a document as HTML: what its screen shows."""
    shown = [{"body": html(views.blocks(document), heading=4, brief=True)}]
    return fragment(Section("result", "Result", {"shown": shown}, template="results"))
