"""A checked launch: what is wrong with it and what that costs, where it ran, a better line."""

from __future__ import annotations

from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    heads,
    notes,
    texts,
)
from popmodel.reports.run_tables import describe_threads
from popmodel.reports.views import Document, Record, Views

_LINES = 4  # of the placement, on a screen
_NOT_A_FAULT = ("foreign_load",)
_TREE = (
    ("hybrid-additive", "parallel_efficiency", "Parallel efficiency", 0),
    ("hybrid-additive", "process_load_balance", "Load balance of processes", 1),
    ("hybrid-additive", "process_communication_efficiency", "Communication", 1),
    ("hybrid-additive", "thread_efficiency", "Thread efficiency", 1),
)


def blocks(document: Document) -> list[Section]:
    """The verdict, the findings, the better line; then placement and efficiencies."""
    findings = document["findings"]
    return [
        notes([_verdict(document)], Role.VERDICT),
        notes([_told(finding) for finding in findings[1:]], Role.BULLET),
        _better(document),
        _placement(document),
        _efficiencies(document),
        notes(document["notes"], Role.WARNING),
    ]


def _verdict(document: Document) -> str:
    findings = document["findings"]
    if not findings:
        return "Nothing wrong with the launch."
    first = _told(findings[0])
    if all(finding["id"] in _NOT_A_FAULT for finding in findings):
        return f"Nothing wrong with the launch, but {first}."
    return f"Wrong: {first}."


def _told(finding: Document) -> str:
    """A finding with its cost."""
    cost = finding["cost"]
    if cost is None or finding["id"] == "idle":
        hours = finding["core_hours"]
        return finding["text"] + ("" if hours is None else f" ({_hours(hours)})")
    if cost < 0.005:
        return f"{finding['text']}: costs next to nothing"
    hours = _hours(finding["core_hours"])
    return f"{finding['text']}: costs {100 * cost:.0f} points of efficiency ({hours})"


def _hours(hours: float) -> str:
    return f"{hours:.2g} core hours" if hours >= 1e-3 else f"{3600 * hours:.2g} core seconds"


def _better(document: Document) -> Section:
    line, proved = document["better"], document["proved"]
    if line is None:
        why = document["why_none"]
        return notes([f"no better line: {why}"] if why else [])
    said = []
    if proved is not None:
        speedup = proved["speedup"]
        given, better = (
            format_time(sorted(proved[which])[len(proved[which]) // 2])
            for which in ("given", "better")
        )
        said.append(
            f"measured: {given} as given, {better} so: {speedup['value']:.3g} times faster "
            f"(90 %: {speedup['low']:.3g} .. {speedup['high']:.3g}, "
            f"{plural(len(proved['given']), 'pair')} of runs)"
        )
    title = "better" if proved is None or proved["speedup"]["value"] > 1 else "not better here"
    return (CommandBlock((line,), title), *notes(said))


def _placement(document: Document) -> Section:
    nodes = document["nodes"]
    cores = sorted({node["cores"] for node in nodes})
    sizes = f"{cores[0]}" if len(cores) == 1 else f"{cores[0]} to {cores[-1]}"
    team = document["threads"]
    threads = team if isinstance(team, list) else [team] * document["processes"]
    who = plural(document["processes"], "process", "processes")
    where = f"{plural(len(nodes), 'node')} of {sizes} cores"
    head = f"{who}, threads: {describe_threads(threads)}, {where}"
    rows = tuple(TableRow(who, texts([where])) for who, where in document["placed"])
    left = len(rows) - _LINES

    def table(shown: tuple[TableRow, ...]) -> TableBlock:
        return TableBlock(heads(["may run on"]), shown, first="placement")

    whole: Section = (NoteBlock(head), table(rows))
    if left <= 1:
        return whole
    brief = (NoteBlock(head), table(rows[:_LINES]), *notes([f"{left} more: --all"]))
    return (Brief((whole,), (brief,)),)


def _efficiencies(document: Document) -> Section:
    rows = tuple(
        TableRow(name, texts([f"{100 * values[id]:.1f}"]), depth)
        for family, id, name, depth in _TREE
        if (values := document["metrics"].get(family, {})).get(id) is not None
    )
    if not rows:
        return ()
    said = f"runtime {format_time(document['runtime'])}"
    split = "transfer and serialisation: popmodel trace"
    table = TableBlock(heads(["%"]), rows, first=said)
    return (table, *(notes([split], Role.REMARK) if document["library"] else ()))


def records(document: Document) -> list[Record]:
    """One line per finding, metric and thread."""
    found: list[dict[str, Any]] = [
        {"group": "finding", "name": one["id"], "value": one["cost"], "text": one["text"]}
        for one in document["findings"]
    ]
    found += [
        {"group": family, "name": id, "value": value, "text": ""}
        for family, values in document["metrics"].items()
        for id, value in values.items()
    ]
    found += [
        {
            "group": "placement",
            "name": f"{one['host']} {one['pid']} {thread['thread']}",
            "value": one["rank"],
            "text": thread["cpus"],
        }
        for one in document["placement"]
        for thread in one["threads"]
    ]
    return found


VIEWS = Views(blocks, records)
