"""Formats of results."""

import json

import pytest

from popmodel.base.errors import UsageError
from popmodel.reports.blocks import Facts, Section
from popmodel.reports.formats import FORMATS, NAMES, SVG
from popmodel.reports.renderers.text import Style
from popmodel.reports.views import Document, Views

STAMP = {"popmodel": "1.0", "time": "noon", "host": "box", "command": "popmodel verb"}
DOCUMENT = {"schema": "popmodel/verb/1", "runtime": 2.0, "provenance": STAMP}


def blocks(document: Document) -> list[Section]:
    return [(Facts((("runtime", f"{document['runtime']} s"),)),)]


VIEWS = Views(blocks, ("",))


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_the_result_and_where_it_comes_from(name: str) -> None:
    text = FORMATS[name].render(DOCUMENT, VIEWS, Style(whole=True))
    assert text.endswith("\n")
    assert all(part in text for part in ("2.0", "popmodel verb", "noon", "box"))


def test_names_and_suffixes_are_told_apart() -> None:
    assert len({one.suffix for one in FORMATS.values()}) == len(FORMATS)
    assert json.loads(FORMATS["json"].render(DOCUMENT, VIEWS, Style())) == DOCUMENT


def test_only_some_results_are_drawn() -> None:
    with pytest.raises(UsageError, match="this result has no picture"):
        SVG.render(DOCUMENT, VIEWS, Style())
