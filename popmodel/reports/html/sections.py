"""The sections of a page, in their order. A section is a module with ``section(contents)``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from popmodel.reports.html.contents import Contents
from popmodel.reports.html.section import Section

ORDER = (
    "verdict",
    "efficiencies",
    "timeline",
    "whatif",
    "communication",
    "results",
    "provenance",
)
"""Each is a module of this package, `page_NAME`."""


def sections(contents: Contents) -> Iterator[Section]:
    """Yield the sections for which there is something to show."""
    for name in ORDER:
        module = import_module(f"popmodel.reports.html.page_{name}")
        if name == "results":
            yield from module.sections(contents)
        else:
            found: Section | None = module.section(contents)
            yield from [] if found is None else [found]
