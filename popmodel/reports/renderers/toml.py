"""Signatures as the file that other commands read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popmodel.reports.renderers.tables import Style
    from popmodel.reports.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (the text alone)
    """The signature in a document: it says itself where it comes from."""
    text: str = document["signature"]
    return text
