"""What to work on, as screens and pages show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.report.terminal import Style, paragraph, percent

__all__ = ["advice_lines", "advice_markdown", "fall_text"]

Data = Mapping[str, Any]


def advice_lines(advice: Data, style: Style) -> list[str]:
    """Draw the verdict, doubts, and the causes in the order of their cost."""
    lines = ["", *paragraph(advice["verdict"], style, first="-> ")]
    for doubt in advice["doubts"]:
        lines += paragraph(doubt, style, first="   ")
    for text in _numbered(advice):
        lines += paragraph(text, style, first="   ", rest="      ")
    return lines


def advice_markdown(advice: Data) -> list[str]:
    """The same in Markdown."""
    lines = ["", advice["verdict"]]
    lines += [line for doubt in advice["doubts"] for line in ("", doubt)]
    lines += [""] if advice["causes"] else []
    return [*lines, *_numbered(advice)]


def fall_text(fall: Data) -> str:
    """The steepest fall and the efficiency that falls with it."""
    high, low = (_size(fall["family"], value) for value in fall["values"])
    return (
        f"steepest fall: global efficiency {percent(fall['high'])} to {percent(fall['low'])} % "
        f"from {fall['before']} to {fall['after']}, mostly {fall['name'].lower()} "
        f"({high} to {low})"
    )


def _numbered(advice: Data) -> list[str]:
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
