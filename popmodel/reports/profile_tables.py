"""What a machine profile is good for, how two differ, and whether a machine can be measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base.units import plural
from popmodel.machines.profile_findings import KINDS
from popmodel.machines.quantity import Quantity
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    FitBlock,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    folded,
    heads,
    texts,
    titled,
)
from popmodel.reports.machine_values import value_text
from popmodel.reports.views import Document, Views

_TITLES = {
    "missing": "missing, needed by some predictions",
    "failed": "not measured as planned",
    "noisy": "noisy measurements",
    "remark": "remarks on the measurement",
    "wide": "wide intervals",
    "preset": "not measured",
    "age": "may be outdated",
    "unused": "measured, but not used by the model",
}
_KINDS_ON_A_SCREEN = 5


def _findings(document: Document) -> list[Section]:
    """The findings, by kind; a screen shows the first of each kind that matters."""
    found = {kind: _texts(document, kind) for kind in KINDS}
    whole = tuple(titled(_TITLES[kind], lines) for kind, lines in found.items())
    known = [(kind, lines) for kind, lines in found.items() if lines and kind != "unused"]
    brief = tuple(
        titled(_TITLES[kind] + (f": 1 of {len(lines)}" if len(lines) > 1 else ""), lines[:1])
        for kind, lines in known[:_KINDS_ON_A_SCREEN]
    )
    together = tuple(block for section in brief for block in section)
    warnings = sum(len(lines) for _, lines in known)
    usable, parameters = document["usable"], plural(document["quantities"], "parameter")
    facts = (
        ("machine", document["machine"]),
        ("profile", document["path"]),
        ("usable", f"{'yes' if usable else 'no'}, {parameters}"),
        ("warnings", str(warnings) if warnings else "none"),
    )
    return [(Facts(facts),), (Brief(whole, (together,)),)]


def _texts(document: Document, kind: str) -> list[str]:
    """The findings of a kind, without the words that its title repeats."""
    repeated = "not used: " if kind == "unused" else ""
    return [
        finding["text"].removeprefix(repeated)
        for finding in document["findings"]
        if finding["kind"] == kind
    ]


CHECKED = Views(_findings, ("findings[]",), ("machine",))

# -- two profiles

_DIGITS = range(3, 7)
_NAMES_SHOWN = 12  # of quantities that only one profile has
_ROWS_SHOWN = 10
_HOSTS_SHOWN = 3


def _differences(document: Document) -> list[Section]:
    """What differs: hardware and software, what lies beyond intervals, what one does not have."""
    one, other = document["machines"]
    summary = document["summary"]
    equal = f"{summary['within']} of {summary['compared']}"
    facts = (
        ("a", f"{one['machine']} ({one['path']})"),
        ("b", f"{other['machine']} ({other['path']})"),
        ("equal within intervals", equal if summary["compared"] else "no common parameters"),
    )
    hosts = [
        # What only one states says nothing about the machines.
        f"{row['key'].replace('_', ' ')}: {row['a']} (a), {row['b']} (b)"
        for row in document["host"]
        if row["a"] is not None and row["b"] is not None
    ]
    rows = tuple(_outside(document))
    only = (
        titled(f"only in {name}", _listed(document[f"only_{name}"]), Role.REMARK) for name in "ab"
    )
    return [
        (Facts(facts),),
        (_hosts(hosts),),
        (Brief((_table(rows),), (_table(rows[:_ROWS_SHOWN], len(rows)),)),) if rows else (),
        (folded(tuple(only)),),
    ]


def _hosts(lines: Sequence[str]) -> Brief:
    title = "different hardware or software"
    return Brief((titled(title, lines),), (titled(title, lines[:_HOSTS_SHOWN]),))


def _table(rows: Sequence[TableRow], of: int = 0) -> Section:
    title = "differ beyond the intervals" + (f": {len(rows)} of {of}" if of > len(rows) else "")
    ratios = tuple(replace(row, cells=row.cells[-1:]) for row in rows)
    whole = TableBlock(heads(["a", "b", "b / a"]), tuple(rows))
    return Heading(title), FitBlock((((whole,),), ((TableBlock(heads(["b / a"]), ratios),),)))


def _outside(document: Document) -> Iterator[TableRow]:
    for row in document["rows"]:
        if not row["within"]:
            ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
            yield TableRow(row["path"], texts([*_told_apart(row), ratio]), depth=1)


def _told_apart(row: Mapping[str, Any]) -> list[str]:
    """Both values, with more digits than three where those are the same."""
    both = [
        Quantity(row[name]["value"], row[name].get("low"), row[name].get("high")) for name in "ab"
    ]
    values: list[str] = []
    for digits in _DIGITS:
        values = [value_text(one, row["unit"], digits) for one in both]
        if values[0] != values[1]:
            break
    return values


def _listed(names: Sequence[str]) -> list[str]:
    """Names in a line, not all of many; nothing for none."""
    more = len(names) - _NAMES_SHOWN
    line = ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return [line] if names else []


COMPARED = Views(_differences, ("rows[]",))

# -- this machine


def _host(document: Document) -> list[Section]:
    """The checks: what was found, and below it what to do."""
    checks: list[tuple[str, str]] = []
    for check in document["checks"]:
        checks.append((check["name"], f"{check['status']}: {check['found']}"))
        checks += [("", f"-> {check['todo']}")] if check["todo"] else []
    ready = NoteBlock("ready to measure:")
    measure = CommandBlock(("popmodel machine measure -o machine.json",), depth=1)
    return [
        (Facts((("machine", describe_machine(document["machine"])), *checks)),),
        (ready, measure) if document["measurable"] else (),
    ]


def describe_machine(machine: Mapping[str, Any]) -> str:
    """The machine in a line: its processor, what it has of it."""
    shape = [plural(machine["cores_per_node"], "core")]
    if machine["sockets"] > 1:
        shape.append(plural(machine["sockets"], "socket"))
    if machine["domains"] > machine["sockets"]:
        shape.append(plural(machine["domains"], "memory domain"))
    if machine.get("virtual"):
        shape.append("virtual")
    return ", ".join([machine.get("cpu", "unknown CPU"), *shape])


HOST = Views(_host, ("checks[]",))
