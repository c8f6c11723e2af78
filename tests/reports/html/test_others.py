"""What documents hold, folded up where another section shows it."""

from __future__ import annotations

import pytest

import popmodel
from popmodel.reports.html import others
from popmodel.reports.html.contents import Contents, alone
from popmodel.reports.html.page import fragment
from popmodel.reports.result import Result

from ..balanced import Node, parsed

PREDICTED = popmodel.predict(procs=4, draws=10)


def contents(result: Result) -> Contents:
    return alone(result._stamped())


def shown(given: Contents) -> Node:
    found = others.section(given)
    assert found is not None
    return parsed(fragment(found))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "DRAWN", ("predict",))
    monkeypatch.setattr(others, "TITLES", {})


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "DRAWN", ())
    monkeypatch.setattr(others, "TITLES", {})


@pytest.mark.usefixtures("undrawn")
def test_a_document_that_no_section_shows_is_open() -> None:
    found = shown(contents(PREDICTED))
    assert found.all("section")[0].attributes["aria-label"] == "Further results"
    assert not found.all("details")
    assert "Parallel efficiency" in found.text


@pytest.mark.usefixtures("drawn")
def test_a_document_that_a_section_shows_is_folded_up_as_on_the_terminal() -> None:
    found = shown(contents(PREDICTED))
    assert found.all("section")[0].attributes["aria-label"] == "As the terminal shows it"
    (folded,) = found.all("details")
    assert folded.children[0].text.startswith("popmodel predict")
    assert "Parallel efficiency" in folded.text


def test_without_documents_there_is_no_section() -> None:
    nothing = {**contents(PREDICTED).document, "documents": []}
    assert others.section(Contents(nothing)) is None
