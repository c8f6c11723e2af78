"""Results that have no drawing of their own on a page: their tables, as the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from popmodel.reports.html.contents import Contents, alone
from popmodel.reports.html.section import Section
from popmodel.reports.registry import views_of
from popmodel.reports.renderers.html import html

TITLES: Mapping[str, str] = {
    "predict": "Prediction",
    "splits": "Splits into processes and threads",
    "calibrate": "Calibration",
    "signature": "Signature",
    "validate": "Predicted and measured",
}
"""Kinds of documents, in the order on the page, and what their sections are headed by."""


def sections(contents: Contents) -> Iterator[Section]:
    """A section for each kind."""
    for kind, title in TITLES.items():
        shown = [
            {"title": alone(one).title, "body": html(views_of(one).blocks(one), heading=4)}
            for one in contents.of(kind)
        ]
        if shown:
            yield Section(kind, title, {"shown": shown}, template="results", uses=("results",))
