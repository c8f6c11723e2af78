"""Documents of commands, drawn as sections and read by a parser that knows nothing of them."""

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

from popmodel.base.provenance import stamped
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import fragment
from popmodel.reports.result import Result

from ..balanced import Node, parsed

Document = dict[str, Any]


def document_of(result: Result) -> Document:
    """The document of a result as a file has it."""
    return stamped(result.to_dict(), (), ())


def contents(*documents: Document) -> Contents:
    return Contents(
        {
            "schema": "popmodel/report/1",
            "title": "t",
            "documents": [*documents],
            "left_out": [],
            "provenance": stamped({}, (), ())["provenance"],
        }
    )


def drawn(module: ModuleType, *documents: Document) -> Node:
    """The section that a module makes of documents."""
    section = module.section(contents(*documents))
    assert section is not None
    return parsed(fragment(section))


def changed(document: Document, change: Callable[[Document], object]) -> Document:
    """A copy with a change."""
    made = copy.deepcopy(document)
    change(made)
    return made


def table(shown: Node, caption: str) -> dict[str, list[str]]:
    """Texts of the cells by the head of each row, of the table with such a caption."""
    (found,) = (
        one
        for one in shown.all("table")
        if one.all("caption") and caption in one.all("caption")[0].text
    )
    return rows(found)


def rows(found: Node) -> dict[str, list[str]]:
    """Texts of the cells by the head of each row."""
    return {
        row.all("th")[0].text: [cell.text for cell in row.all("td")]
        for body in found.all("tbody")
        for row in body.all("tr")
    }


def commands(shown: Node) -> set[str]:
    """Commands that can be copied."""
    return {one.text for one in shown.all("pre") if one.has_class("command")}
