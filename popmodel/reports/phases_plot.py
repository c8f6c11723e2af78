"""The phases of a run as a drawing: how long their executions take."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.reports.views import Document
from popmodel.structure.phases import SEVERAL

_DRAWN = 6
_LOGARITHMIC = 10.0
"""Ratio of the longest to the shortest time from which on the axis is logarithmic."""
_MOST_TICKS = 6

Phase = Mapping[str, Any]


def longest_first(document: Document) -> list[Phase]:
    """Phases by their time, small ones that are summed up last."""
    return _named(
        sorted(document["phases"], key=lambda phase: (phase["place"] == SEVERAL, -phase["time"]))
    )


def _named(found: Sequence[Phase]) -> list[Phase]:
    """Phases with names as a screen has room for.

    Without what all calls begin with, and without modules and lines of source where they stay
    different.
    """
    short = [_short(phase["name"]) for phase in found]
    often = Counter(short)
    return [
        {**phase, "name": name if often[name] == 1 else phase["name"].replace("MPI_", "")}
        for phase, name in zip(found, short, strict=True)
    ]


def _short(name: str) -> str:
    name = re.sub(r" \([^()]*:\d+\)(?= \(\d+\)$|$)", "", name.replace("MPI_", ""))
    return re.sub(r"\b(\w+)::(?=\w)", "", name)


picture = None
