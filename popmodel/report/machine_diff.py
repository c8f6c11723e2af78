"""How two machine profiles differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.machine.quantity import Quantity
from popmodel.report.export import Record, markdown_table
from popmodel.report.machine_values import value_text
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Cell, Row, Style, pairs, paragraph, table

_DIGITS = range(3, 7)
_SHOWN = 12  # names of quantities that only one profile has


def screen(document: Document, style: Style) -> list[str]:
    """What differs, on a terminal."""
    lines = pairs(_facts(document), style)
    if texts := _hosts(document):
        lines += ["", _DIFFERING]
        for text in texts:
            lines += paragraph(text, style, first=" - ")
    rows = [Row(label, tuple(map(Cell, cells)), depth=1) for label, cells in _outside(document)]
    if rows:
        lines += ["", *table(_HEADS, rows, style, first="differ beyond the intervals")]
    for title, names in _alone(document):
        lines += ["", title, *paragraph(_listed(names), style, first=" ")]
    return lines


def records(document: Document) -> list[Record]:
    """One line per quantity that both have."""
    return [
        {
            "path": row["path"],
            "unit": row["unit"],
            **{f"{name}_{key}": row[name].get(key) for name in "ab" for key in _FIGURES},
            "ratio": row["ratio"],
            "within": row["within"],
        }
        for row in document["rows"]
    ]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown."""
    lines = markdown_table(["profiles", ""], _facts(document))
    if texts := _hosts(document):
        lines += ["", f"**{_DIFFERING}**", "", *(f"- {text}" for text in texts)]
    if rows := [(label, *cells) for label, cells in _outside(document)]:
        heads = ["differ beyond the intervals", *(" ".join(head) for head in _HEADS)]
        lines += ["", *markdown_table(heads, rows)]
    for title, names in _alone(document):
        lines += ["", f"{title}: {_listed(names)}"]
    return lines


_HEADS = (("a",), ("b",), ("b / a",))
_DIFFERING = "different hardware or software"
_FIGURES = ("value", "low", "high")


def _facts(document: Document) -> list[tuple[str, str]]:
    one, other = document["machines"]
    summary = document["summary"]
    return [
        ("a", f"{one['machine']} ({one['path']})"),
        ("b", f"{other['machine']} ({other['path']})"),
        (
            "equal within intervals",
            f"{summary['within']} of {summary['compared']}"
            if summary["compared"]
            else "no common parameters",
        ),
    ]


def _hosts(document: Document) -> list[str]:
    """What both profiles state; what only one states says nothing about the machines."""
    return [
        f"{row['key'].replace('_', ' ')}: {row['a']} (a), {row['b']} (b)"
        for row in document["host"]
        if row["a"] is not None and row["b"] is not None
    ]


def _outside(document: Document) -> Iterator[tuple[str, list[str]]]:
    for row in document["rows"]:
        if not row["within"]:
            ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
            yield row["path"], [*_told_apart(row), ratio]


def _told_apart(row: Mapping[str, Any]) -> list[str]:
    """Both values, with more digits than three where those are the same."""
    values: list[str] = []
    for digits in _DIGITS:
        values = [value_text(_quantity(row[name]), row["unit"], digits) for name in "ab"]
        if values[0] != values[1]:
            break
    return values


def _quantity(table: Mapping[str, Any]) -> Quantity:
    return Quantity(table["value"], table.get("low"), table.get("high"))


def _alone(document: Document) -> Iterator[tuple[str, list[str]]]:
    for name in "ab":
        if names := document[f"only_{name}"]:
            yield f"only in {name}", names


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


COMPARED = Views(screen, records, markdown)
