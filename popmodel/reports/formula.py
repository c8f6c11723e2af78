"""A formula: equations with their values, symbols, and what a change of each input does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from popmodel.base.units import plural
from popmodel.machines.quantity import Quantity
from popmodel.reports.blocks import (
    EquationBlock,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    Title,
    folded,
    heads,
    texts,
    titled,
)
from popmodel.reports.machine_values import interval_text, value_text
from popmodel.reports.prediction_words import application, machine, omitted
from popmodel.reports.views import Document, Views

NEGLIGIBLE = 0.005
"""Per cent of the result for one per cent of an input: what is below is not worth a line."""

_HEADINGS: Mapping[str, str] = {
    "metric": "",
    "run": "of the run",
    "process": "of an average process, whole run",
    "item": "of each part of the program, once",
    "signature": "of the application",
    "machine": "of the machine",
}


def blocks(document: Document) -> list[Section]:
    """The equations from the result down to the symbols, then the elasticities."""
    sizes = (_size(document), f"{document['processes']} x {document['threads']}")
    symbols = tuple(
        EquationBlock(one["name"], "", one["latex"], _given(one)) for one in document["symbols"]
    )
    first, *others = _equations(document)
    further: list[Section] = [*others, (Heading("symbols"), *symbols) if symbols else ()]
    return [
        omitted(document),
        (Title(application(document), sizes), Facts(_setting(document))),
        first,
        (folded(tuple(further)),),
        _elasticities(document),
        (folded((titled("notes", document["notes"]),)),),
    ]


def _setting(document: Document) -> tuple[tuple[str, str], ...]:
    return (("machine", machine(document)), ("formula", document["metric"]))


def _size(document: Document) -> str:
    return (
        f"{plural(document['processes'], 'process', 'processes')} x "
        f"{plural(document['threads'], 'thread')}"
    )


def _equations(document: Document) -> Iterator[Section]:
    """Equations by what they are about, with a heading."""
    for kind, heading in _HEADINGS.items():
        found = [
            EquationBlock(one["name"], one["text"], one["latex"], _value(one))
            for one in document["parts"]
            if one["kind"] == kind
        ]
        if found:
            yield (Heading(heading or document["title"]), *found)


def _value(one: Mapping[str, Any]) -> str:
    try:
        float(one["text"])
    except ValueError:
        return f"= {_quantity_text(one)}: {one['meaning']}"
    return str(one["meaning"])  # the formula is the value


def _quantity_text(one: Mapping[str, Any]) -> str:
    return value_text(_quantity(one), one["unit"] or "1", digits=4)


def _quantity(one: Mapping[str, Any]) -> Quantity:
    return Quantity(one["value"], one.get("low"), one.get("high"))


def _interval(one: Mapping[str, Any]) -> str:
    return interval_text(_quantity(one), one["unit"] or "1")


def _given(one: Mapping[str, Any]) -> str:
    interval = "" if one["low"] is None else f"{_interval(one)}, "
    return f"= {_quantity_text(one)} ({interval}{one['origin']}): {one['meaning']}"


def _elasticities(document: Document) -> Section:
    """What a change of each input does, as far as it is worth a line."""
    found = document["elasticities"]
    shown = [one for one in found if max(abs(one["falling"]), abs(one["rising"])) >= NEGLIGIBLE]
    left = len(found) - len(shown)
    if not shown:
        nothing = f"elasticities: all {left} below {NEGLIGIBLE:g} %"
        return (NoteBlock(nothing),) if left else ()
    kinks = [one for one in shown if not one["smooth"]]
    rows = []
    for one in shown:
        mark = f" [{kinks.index(one) + 1}]" if one in kinks else ""
        rows.append(TableRow(_more(one) + mark, texts([_percent(one["value"])]), depth=1))
    name = "runtime" if document["metric"] == "runtime" else "metric"
    others = f"{plural(left, 'other input')}: below {NEGLIGIBLE:g} %"
    return (
        TableBlock(heads((name,)), tuple(rows), first="elasticities"),
        *(NoteBlock(_footnote(n, one), Role.HANGING, 1) for n, one in enumerate(kinks, 1)),
        *([NoteBlock(others, Role.REMARK)] if left else []),
    )


def _footnote(number: int, one: Mapping[str, Any]) -> str:
    less, more = _percent(-one["falling"]), _percent(one["rising"])
    return f"[{number}] not smooth: {less} for 1 % less, {more} for 1 % more"


def _more(one: Mapping[str, Any]) -> str:
    return f"1 % more {one['label']}"


def _percent(change: float) -> str:
    return f"{change:+.2f} %"


VIEWS = Views(
    blocks,
    ("parts[]", "symbols[]", "elasticities[]"),
    ("application.name", "machine.name", "processes", "threads", "metric"),
)
