"""The page of signatures, its tables written from their keys: ``signature/bundled/README.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from console import ROOT

from popmodel.model.grammar.keys import CLOCK, MACHINE, NAMED, GrammarKey
from popmodel.model.signature.tables import KEYS, TABLES

PAGE = ROOT / "popmodel" / "model" / "signature" / "bundled" / "README.md"
ITEMS = "loop"
"""The first table below the heading of items."""


def page() -> str:
    """The page as it should be: its text as it is, the tables from the keys."""
    text = PAGE.read_text()
    head, first, _ = text.partition("### the document\n")
    between = re.search(r"^## Items of the program\n.*?(?=^### )", text, re.M | re.S)
    assert first, "the page has no tables"
    assert between is not None, "the page has no items"
    return head + "\n".join(_tables(between[0]))


def _tables(items: str) -> Iterator[str]:
    for name, keys in KEYS.items():
        if name == ITEMS:
            yield items.rstrip("\n")
            yield ""
        yield f"### {name or TABLES['']}"
        yield ""
        if name:
            yield f"{TABLES[name][0].upper()}{TABLES[name][1:]}."
            yield ""
        yield "| key | unit | default | values | meaning |"
        yield "|---|---|---|---|---|"
        yield from map(_row, keys)
        yield ""
    yield "### quantities of the machine"
    yield ""
    yield "Formulas of the program may name them; words in capitals stand for names in the profile."
    yield ""
    yield "| name | unit | meaning |"
    yield "|---|---|---|"
    for path, parameter in NAMED.items():
        meaning = "clock with the active cores of the run" if path == CLOCK else parameter.meaning
        yield f"| `{MACHINE}.{path}` | {parameter.unit} | {meaning} |"
    yield ""


def _row(key: GrammarKey) -> str:
    default = "required" if key.default is None else key.default
    values = "" if key.domain is None else key.domain.text
    return f"| `{key.name}` | {key.unit} | {default} | {values} | {key.meaning} |"
