"""How two machine profiles differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.machines.quantity import Quantity
from popmodel.reports.blocks import Facts, Role, Section, TableBlock, TableRow, heads, texts, titled
from popmodel.reports.machine_values import value_text
from popmodel.reports.views import Document, Record, Views

_DIGITS = range(3, 7)
_SHOWN = 12  # names of quantities that only one profile has


def blocks(document: Document) -> list[Section]:
    """What differs: hardware and software, what lies beyond intervals, what one does not have."""
    rows = tuple(_outside(document))
    return [
        (Facts(tuple(_facts(document))),),
        titled("different hardware or software", _hosts(document)),
        (TableBlock(_HEADS, rows, first="differ beyond the intervals"),) if rows else (),
        *(
            titled(f"only in {name}", _listed(document[f"only_{name}"]), Role.REMARK)
            for name in "ab"
        ),
    ]


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


_HEADS = heads(["a", "b", "b / a"])
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


def _outside(document: Document) -> Iterator[TableRow]:
    for row in document["rows"]:
        if not row["within"]:
            ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
            yield TableRow(row["path"], texts([*_told_apart(row), ratio]), depth=1)


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


def _listed(names: Sequence[str]) -> list[str]:
    """Names in a line, not all of many; nothing for none."""
    more = len(names) - _SHOWN
    line = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return [line] if names else []


COMPARED = Views(blocks, records)
