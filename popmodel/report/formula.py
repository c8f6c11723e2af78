"""A formula: equations with their values, symbols, and what a change of each input does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.machine.quantity import Quantity
from popmodel.report.export import Record, markdown_table
from popmodel.report.heading import application, machine, title
from popmodel.report.machine_values import interval_text, value_text
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Cell, Row, Style, clean, pairs, paragraph, table
from popmodel.units import plural

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
_INDENT = 1
_HANGING = 5
_EXPONENT = 10


def screen(document: Document, style: Style) -> list[str]:
    """The equations from the result down to the symbols, then the elasticities."""
    size = (_size(document), f"{document['processes']} x {document['threads']}")
    lines = [*title(document, size, style), *pairs(_setting(document), style)]
    for heading, equations in _sections(document):
        lines += ["", *paragraph(heading, style)]
        for one in equations:
            lines += formula_lines(one["name"], one["text"], style.width)
            lines += paragraph(_value(one), style, first=" " * _HANGING)
    lines += ["", "symbols"] if document["symbols"] else []
    for one in document["symbols"]:
        lines += paragraph(
            f"{one['name']} {_given(one)}", style, first=" " * _INDENT, rest=" " * _HANGING
        )
    lines += _elasticities(document, style)
    lines += ["", "notes"]
    for note in document["notes"]:
        lines += paragraph(note, style, first=" - ")
    return lines


def records(document: Document) -> list[Record]:
    """One line per equation, symbol and elasticity."""
    head = {
        "application": document["application"]["name"],
        "machine": document["machine"]["name"],
        "processes": document["processes"],
        "threads": document["threads"],
        "metric": document["metric"],
    }
    keys = ("name", "text", "value", "low", "high", "unit", "origin", "meaning")
    rows: list[Record] = [
        {**head, "kind": one.get("kind", "symbol"), **{key: one.get(key) for key in keys}}
        for one in [*document["parts"], *document["symbols"]]
    ]
    return rows + [
        {
            **head,
            "kind": "elasticity",
            **dict.fromkeys(keys),
            "name": one["name"],
            "value": one["value"],
            "low": min(one["falling"], one["rising"]),
            "high": max(one["falling"], one["rising"]),
            "unit": "1",
            "meaning": one["label"],
        }
        for one in document["elasticities"]
    ]


def markdown(document: Document) -> list[str]:
    """The equations as LaTeX in blocks between ``$$``, and tables of the rest."""
    lines = markdown_table([application(document), _size(document)], _setting(document))
    for heading, equations in _sections(document):
        lines += ["", f"## {heading}"]
        for one in equations:
            lines += ["", "$$", one["latex"], "$$", "", _value(one)]
    # a list, since the cells of a table show a backslash as it is
    entries = [f"- ${one['latex']}$ {_given(one)}" for one in document["symbols"]]
    lines += ["", "## symbols", "", *entries] if entries else []
    shown, _ = _shown(document)
    if shown:
        body = [[_more(one), _percent(one["value"])] for one in shown]
        lines += ["", *markdown_table(["elasticity", document["title"].lower()], body)]
    for text in [*_footnotes(document), *document["notes"]]:
        lines += ["", text]
    return lines


def formula_lines(name: str, text: str, width: int) -> list[str]:
    """An equation in lines of at most `width` columns, broken before operators.

    A sum is rather broken than a product, and outside brackets rather than inside.
    """
    lines: list[str] = []
    rest = " " * _INDENT + f"{name} = {clean(text)}"
    while len(rest) > width:
        start = _HANGING if lines else len(name) + _INDENT + 3
        cut = _break(rest, start, width)
        if cut is None:
            break
        lines.append(rest[:cut].rstrip(" "))
        rest = " " * _HANGING + rest[cut:].lstrip(" ")
    return [*lines, rest]


def _break(text: str, start: int, width: int) -> int | None:
    """Where to break a line: at the outermost operator beyond a third of it that fits."""
    found = [one for one in _operators(text) if one[2] > start]
    fitting = [one for one in found if one[2] <= width]
    late = [one for one in fitting if one[2] > width // 3] or fitting
    if late:
        return min(late, key=lambda one: (one[0], one[1], -one[2]))[2]
    return found[0][2] if found else None  # a name that is wider than the screen stays whole


def _operators(text: str) -> Iterator[tuple[int, int, int]]:
    """Depth of brackets, 0 for a sum and 1 for a product, and position of every operator.

    An exponent counts as deeper than any brackets: it is torn apart last.
    """
    opened: list[int] = []
    outside = 0  # brackets that were opened on a line before are closed below this depth
    for index, character in enumerate(text):
        if character == "(":
            opened.append(_EXPONENT if text[index - 2 : index] == "**" else 1)
        elif character == ")":
            outside -= 0 if opened else 1
            opened = opened[:-1]
        elif text[index : index + 3] in (" + ", " - "):
            yield outside + sum(opened), 0, index
        elif character == "/" or (
            character == "*" and "*" not in text[index - 1] + text[index + 1]
        ):
            yield outside + sum(opened), 1, index


def _setting(document: Document) -> list[tuple[str, str]]:
    return [("machine", machine(document)), ("formula", document["metric"])]


def _size(document: Document) -> str:
    return (
        f"{plural(document['processes'], 'process', 'processes')} x "
        f"{plural(document['threads'], 'thread')}"
    )


def _sections(document: Document) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Equations by what they are about, with a heading."""
    sections = []
    for kind, heading in _HEADINGS.items():
        equations = [one for one in document["parts"] if one["kind"] == kind]
        if equations:
            sections.append((heading or document["title"], equations))
    return sections


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


def _elasticities(document: Document, style: Style) -> list[str]:
    shown, left = _shown(document)
    if not shown:
        nothing = f"elasticities: all {left} below {NEGLIGIBLE:g} %"
        return ["", *paragraph(nothing, style)] if left else []
    kinks = [one for one in shown if not one["smooth"]]
    rows = []
    for one in shown:
        mark = f" [{kinks.index(one) + 1}]" if one in kinks else ""
        rows.append(Row(_more(one) + mark, (Cell(_percent(one["value"])),), depth=1))
    name = "runtime" if document["metric"] == "runtime" else "metric"
    lines = ["", *table([[name]], rows, style, first="elasticities")]
    for text in _footnotes(document):
        lines += paragraph(text, style, first=" ", rest=" " * _HANGING)
    if left:
        lines += paragraph(
            f"{plural(left, 'other input')}: below {NEGLIGIBLE:g} %", style, first=" "
        )
    return lines


def _shown(document: Document) -> tuple[Sequence[Mapping[str, Any]], int]:
    """Elasticities that are worth a line, and how many are not."""
    found = document["elasticities"]
    shown = [one for one in found if max(abs(one["falling"]), abs(one["rising"])) >= NEGLIGIBLE]
    return shown, len(found) - len(shown)


def _footnotes(document: Document) -> list[str]:
    kinks = [one for one in _shown(document)[0] if not one["smooth"]]
    return [
        f"[{number}] not smooth: {_percent(-one['falling'])} for 1 % less, "
        f"{_percent(one['rising'])} for 1 % more"
        for number, one in enumerate(kinks, start=1)
    ]


def _more(one: Mapping[str, Any]) -> str:
    return f"1 % more {one['label']}"


def _percent(change: float) -> str:
    return f"{change:+.2f} %"


VIEWS = Views(screen, records, markdown)
