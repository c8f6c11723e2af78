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
    "regions",
    "communication",
    "prediction",
    "projection",
    "study",
    "splits",
    "calibration",
    "validation",
    "comparison",
    "others",
    "provenance",
)
"""Modules of this package."""


def sections(contents: Contents) -> Iterator[Section]:
    """Yield the sections for which there is something to show."""
    for name in ORDER:
        found: Section | None = import_module(f"popmodel.reports.html.{name}").section(contents)
        if found is not None:
            yield found
