"""The rows of machine parameters on the page of JSON keys, which follow from the register."""

from __future__ import annotations

import re

from console import ROOT

from popmodel.machines.register import REGISTER

PAGE = ROOT / "popmodel" / "docs" / "json.md"


def with_parameters(page: str) -> str:
    """Return the page with a row for every parameter, in the unit of the register.

    A row that is there keeps its words. A new one has those of the register and stands behind the
    parameter before it.
    """
    before = ""
    for one in REGISTER:
        if one.unit:
            unit = one.unit if one.plain else f"parameter, {one.unit}"
            row = re.compile(rf"^\| `{re.escape(one.path)}` \| [^|]* \| (.*) \|$", re.MULTILINE)
            known = row.search(page)
            new = f"| `{one.path}` | {unit} | {known[1] if known else one.meaning} |"
            page = page.replace(known[0] if known else before, new if known else f"{before}\n{new}")
            before = new
    return page
