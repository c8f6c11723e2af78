"""Who talks to whom, how much, and in which patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    Code,
    Facts,
    Heading,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.communication_matrix import (
    LEGEND,
    lines,
    pairs_of,
    picture,
    quantity_of,
    ranks,
)
from popmodel.reports.communication_words import grid_text, told
from popmodel.reports.views import Document, Record, Views

SHOWN = 12
"""Patterns on a screen; files show all."""

Pattern = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """Facts, the matrix, sizes, calls, patterns, notes."""
    return [
        notes(document["caveats"]),
        (Facts(tuple(facts(document))),),
        _matrix(document),
        _sizes(document),
        _calls(document),
        (Brief((_patterns(document),), (_in_short(document),)),),
        titled("notes", document["notes"]),
    ]


def records(document: Document) -> list[Record]:
    """One line per quantity of a table: pairs, sizes, calls, patterns."""
    trace = document["trace"]
    rows: list[Record] = []
    each, processes = document["ranks_together"], document["processes"]
    for pair in pairs_of(document):
        ends = (ranks(rank // each, each, processes) for rank in (pair.sender, pair.receiver))
        sums = {"messages": pair.messages, "bytes": pair.bytes}
        rows += _lines(trace, "pair", " to ".join(ends), sums)
    for size in document["sizes"]:
        rows += _lines(trace, "size", f"{size['from']} to {size['below'] - 1} B", size)
    for call in document["calls"]:
        rows += _lines(trace, "call", call["name"], call)
    for number, pattern in enumerate(document["patterns"]):
        rows += _lines(trace, pattern["kind"], f"{number}: {told(pattern)}", pattern)
    return rows


def _lines(trace: str, table: str, name: str, entry: Mapping[str, Any]) -> list[Record]:
    wanted = {"calls": "1", "executions": "1", "messages": "1", "bytes": "B", "time": "s"}
    return [
        {"trace": trace, "table": table, "name": name, "quantity": key, "unit": unit, "value": one}
        for key, unit in wanted.items()
        if isinstance(one := entry.get(key), int | float)
    ]


def facts(document: Document) -> list[tuple[str, str]]:
    """What there is in all, line by line: what it is, and how much."""
    found = [
        ("trace", str(document["trace"])),
        ("processes", _processes(document)),
        ("messages", _messages(document)),
    ]
    if document["messages"]:
        around = document["neighbours"]
        least, most = count(around["min"]), count(around["max"])
        span = least if least == most else f"{least} to {most}, mean {around['mean']:.3g}"
        found.append(("partners", f"{span} per process"))
    if (each := document["per_iteration"]) is not None:
        size = format_size(each["bytes"], digits=3)
        number = plural(each["iterations"], "iteration")
        found.append(("per iteration", f"{each['messages']:.4g} messages, {size} ({number})"))
    found.append(("grid", grid_text(document)))
    if (window := document["analysed"]) is not None:
        span = f"{window['begin']:.4g} s to {window['end']:.4g} s"
        found.append(("analysed", f"{span} ({window['why']})"))
    return found


def _processes(document: Document) -> str:
    nodes = document["nodes"]
    number = count(document["processes"])
    return number if nodes is None else f"{number} on {plural(nodes, 'node')}"


def _messages(document: Document) -> str:
    if not document["messages"]:
        return "none"
    text = f"{count(document['messages'])}, {format_size(document['bytes'])}"
    if (document["nodes"] or 1) > 1 and document["bytes"]:
        within = document["within_nodes"]["bytes"] / document["bytes"]
        text += f"; {100 * within:.0f} % of it within nodes"
    return text


def _matrix(document: Document) -> Section:
    if not document["messages"]:
        return ()
    return (
        Heading(f"{quantity_of(document)} from row to column"),
        Code(tuple(lines(document))),
        NoteBlock(LEGEND, Role.REMARK),
    )


def _sizes(document: Document) -> Section:
    total = max((size["messages"] for size in document["sizes"]), default=0)
    rows = tuple(
        TableRow(
            size_class(size["from"], size["below"]),
            (
                TableCell(count(size["messages"])),
                TableCell(format_size(size["bytes"], digits=3)),
                BarBlock(size["messages"] / total),
            ),
            depth=1,
        )
        for size in document["sizes"]
    )
    return (TableBlock(heads(("messages", "bytes")), rows, first="message sizes"),) if rows else ()


def size_class(low: int, below: int) -> str:
    """A class of sizes: ``4 KiB to 8 KiB``, the end left out."""
    if low == 0:
        return "0 B"
    if below == low + 1:
        return format_size(low)
    return f"{format_size(low)} to {format_size(below)}"


def _calls(document: Document) -> Section:
    rows = tuple(
        TableRow(
            call["name"],
            texts((count(call["calls"]), _time(call.get("time")), _size(call["bytes"]))),
            depth=1,
        )
        for call in document["calls"]
        if call["calls"]
    )
    columns = heads(("calls", "time", "bytes"))
    return (TableBlock(columns, rows, first="MPI calls"),) if rows else ()


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_time(seconds, digits=3)


def _size(size: float) -> str:
    return format_size(size, digits=3) if size else "-"


def _patterns(document: Document) -> Section:
    """All patterns, in the order of the program."""
    rows = [_row(told(one), [one], _where(one)) for one in document["patterns"]]
    return _listing(rows)


def _in_short(document: Document) -> Section:
    """Patterns that are alike together, those with most bytes first."""
    ordered = alike(document)
    rows = [_row(text, same, "") for text, same in ordered[:SHOWN]]
    left = ordered[SHOWN:]
    if not left:
        return _listing(rows)
    size = sum(one["bytes"] for _, same in left for one in same)
    more = f"and {count(len(left))} more with {format_size(size, digits=3)} (-o FILE.md: all)"
    return (*_listing(rows), NoteBlock(more, Role.REMARK))


def alike(document: Document) -> list[tuple[str, list[Pattern]]]:
    """Patterns in words, with all that are alike; those with most bytes first."""
    found: dict[str, list[Pattern]] = {}
    for one in document["patterns"]:
        found.setdefault(told(one), []).append(one)
    ordered = sorted(found.items(), key=lambda item: -sum(one["bytes"] for one in item[1]))
    return [item for item in ordered if item[1][0]["facts"].get("op") != "init"]


def _listing(rows: Sequence[TableRow]) -> Section:
    columns = ("executions", "messages", "bytes")
    return (Listing("patterns", columns, tuple(rows)),) if rows else ()


def _row(text: str, same: Sequence[Pattern], where: str) -> TableRow:
    sums = [sum(one[key] for one in same) for key in ("executions", "messages", "bytes")]
    figures = [count(sums[0]), count(sums[1]), _size(sums[2])]
    return TableRow(f"{text}{where}{inexact(same)}", texts(figures))


def inexact(same: Sequence[Pattern]) -> str:
    """Why patterns are not exact, in brackets; empty where all are."""
    reasons = list(dict.fromkeys(one["why"] for one in same if one["why"]))
    return f" (not exact: {'; '.join(reasons)})" if reasons else ""


def _where(pattern: Pattern) -> str:
    """Where a pattern stands: its calls, region and loops."""
    parts = [pattern["calls"], *pattern["inside"]]
    if also := pattern["facts"].get("also"):
        parts.append(f"or {', '.join(also)}")
    if pattern["loops"]:
        parts.append("loop of " + " of ".join(f"{times:.4g}" for times in pattern["loops"]))
    return f" [{'; '.join(parts)}]"


VIEWS = Views(blocks, records, picture)
