"""What documents hold, as the terminal shows it: nothing is only in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from popmodel.reports import blocks
from popmodel.reports.efficiency_tables import VIEWS as METRICS
from popmodel.reports.efficiency_tables import beside_trees
from popmodel.reports.html.contents import Contents, alone, verb_of
from popmodel.reports.html.results import TITLES
from popmodel.reports.html.section import Section
from popmodel.reports.registry import views_of
from popmodel.reports.renderers.html import html
from popmodel.reports.views import Document

DRAWN: tuple[str, ...] = ("metrics", "inspect")
"""Commands whose documents other sections draw: here they are folded up, as on a screen."""


def section(contents: Contents) -> Section | None:
    """Documents that no other section shows, and the others as the terminal shows them."""
    own = [one for one in contents.documents if not _is_drawn(one) and verb_of(one) not in TITLES]
    drawn = [one for one in contents.documents if _is_drawn(one)]
    if not own and not drawn:
        return None
    title = "Further results" if own else "As the terminal shows it"
    context = {
        "shown": [_shown(one, heading=4) for one in own],
        "folded": [_shown(one, heading=3, brief=True) for one in drawn],
    }
    return Section("others", title, context)


def _is_drawn(document: Document) -> bool:
    parts = ("sensitivity", "calibration")
    return verb_of(document) in DRAWN or any(part in document for part in parts)


def _shown(document: Document, heading: int, *, brief: bool = False) -> dict[str, Any]:
    """A document with its title; `heading` is the level of the headings in it."""
    body = html(_sections(document), heading, brief=brief)
    return {"title": alone(document).title, "body": body}


def _sections(document: Document) -> Sequence[blocks.Section]:
    """A document as the terminal shows it, without the trees that another section shows whole."""
    views = views_of(document)
    return beside_trees(document) if views is METRICS else views.blocks(document)
