"""A result as a notebook shows it: the sections that fit it, without scripts."""

from __future__ import annotations

import re

from popmodel.reports.html.contents import Contents, alone, verb_of
from popmodel.reports.html.others import DRAWN
from popmodel.reports.html.page import fragment
from popmodel.reports.html.section import Section
from popmodel.reports.html.sections import sections
from popmodel.reports.renderers.html import html
from popmodel.reports.views import Document, Views

_ONLY_ON_PAGES = {"others", "provenance"}
_IDS = re.compile(r' (?:id|for|aria-describedby)="[^"]*"')
"""In a notebook many results stand on one page, and no script looks for a place by its id."""


def notebook(document: Document, views: Views) -> str:
    """Return a document as HTML: its sections; what no section shows as on a screen."""
    contents = (views.contents or alone)(document)
    shown = [one for one in sections(contents) if one.id not in _ONLY_ON_PAGES]
    if any(verb_of(one) in DRAWN for one in contents.documents):
        return _IDS.sub("", fragment(*shown))
    verdict = [one for one in shown if one.id == "verdict"]
    return _IDS.sub("", fragment(*verdict, _screen(contents, document, views)))


def _screen(contents: Contents, document: Document, views: Views) -> Section:
    body = html(views.blocks(document), heading=4, brief=True)
    context = {"shown": [{"title": contents.title, "body": body}], "folded": []}
    return Section("others", "Result", context)
