"""The table of the laws' errors on the page of numbers, which follows from the laws."""

from __future__ import annotations

import re

from console import ROOT

from popmodel.model.symbols import LAWS

PAGE = ROOT / "popmodel" / "docs" / "numbers.md"

_TABLE = re.compile(r"(?<=\| factor \|)(.*\n\|---\|---\|---\|---\|\n)(?:\|.*\n)*")


def with_laws(page: str) -> str:
    """Return the page with a row for every law."""
    rows = (
        f"| `{law.path}` | {law.meaning} | {100 * law.spread:g} % | {law.source} |\n"
        for law in LAWS.values()
    )
    return _TABLE.sub(lambda found: found[1] + "".join(rows), page)
