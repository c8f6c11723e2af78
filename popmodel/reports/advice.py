"""What to work on, as reports show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.reports.blocks import NoteBlock, Role, Section, notes
from popmodel.reports.figures import percent

Data = Mapping[str, Any]


def advised(advice: Data) -> Section:
    """Doubts, the verdict, and the causes in the order of their cost."""
    first, *others = [*list(advice["doubts"]), advice["verdict"]]
    return (
        NoteBlock(first, Role.VERDICT),
        *notes(others, Role.DOUBT),
        *notes(numbered(advice), Role.STEP),
    )


def fall_text(fall: Data) -> str:
    """The steepest fall and the efficiency that falls with it."""
    high, low = (_size(fall["family"], value) for value in fall["values"])
    return (
        f"steepest fall: global efficiency {percent(fall['high'])} to {percent(fall['low'])} % "
        f"from {fall['before']} to {fall['after']}, mostly {fall['name'].lower()} "
        f"({high} to {low})"
    )


def numbered(advice: Data) -> list[str]:
    """The causes, one text each; the first explains what their costs are shares of."""
    texts: list[str] = []
    for number, cause in enumerate(advice["causes"], start=1):
        unit = "the core time" if texts else "the core time (threads x runtime)"
        head = (
            f"{number}. {cause['name']} {_size(cause['family'], cause['value'])} costs "
            f"{percent(cause['cost'])} % of {unit}."
        )
        texts.append(" ".join(part for part in (head, cause["why"], cause["remedy"]) if part))
    return texts


def _size(family: str, value: float) -> str:
    return f"{value:.3f}" if family == "scaling" else f"{percent(value)} %"
