"""What several sections share: in a page once, and only where it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

import popmodel
from popmodel.reports.html import prediction
from popmodel.reports.html.contents import alone
from popmodel.reports.html.page import fragment, page

from .documents import Document, contents, document_of

TRACE = Path(__file__).parent.parent.parent.parent / "examples/traces/stencil3d.2x2.prv.gz"
RULE = ".drawing .exact{"


@pytest.fixture(scope="module")
def predicted() -> Document:
    return document_of(popmodel.predict("stencil3d", procs=4, threads=2, draws=20))


def test_two_sections_bring_what_they_share_once(predicted: Document) -> None:
    swept = document_of(popmodel.predict("stencil3d", cores=8, draws=20))
    assert page(contents(predicted, swept)).count(RULE) == 1


def test_a_page_without_such_sections_has_nothing_of_it() -> None:
    assert RULE not in page(alone(document_of(popmodel.communication(TRACE))))


def test_a_notebook_gets_the_style_as_well(predicted: Document) -> None:
    section = prediction.section(contents(predicted))
    assert section is not None
    assert fragment(section).count(RULE) == 1
