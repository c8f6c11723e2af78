"""What a trace holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.reports.blocks import (
    Facts,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
    texts,
)
from popmodel.reports.views import Document, Record, Views
from popmodel.reports.warnings import warned

_MARKED = (
    ("", "times"),
    ("", "processes"),
    ("", "threads"),
    ("", "time"),
    ("least of", "a process"),
    ("most of", "a process"),
)


def blocks(document: Document) -> list[Section]:
    """The trace: its shape, its records, its calls by number, its warnings."""
    return [
        notes(document["caveats"]),
        (Facts(tuple(_facts(document))),),
        *((_numbers(title, numbers),) for title, numbers in _tables(document)),
        _marked(document["user_regions"]),
        warned(document["warnings"]),
    ]


def records(document: Document) -> list[Record]:
    """One line per quantity: group, name, value."""
    rows: list[tuple[str, str, Any]] = [
        ("trace", "processes", document["processes"]),
        ("trace", "threads", sum(_threads(document))),
        ("trace", "nodes", document["nodes"]),
        ("trace", "runtime", document["runtime"]),
        ("trace", "duration", document["duration"]),
        ("analysed", "begin", document["analysed"]["begin"]),
        ("analysed", "end", document["analysed"]["end"]),
    ]
    for name, size in (document["message_sizes"] or {}).items():
        rows.append(("message_sizes", name, size))
    for group in ("records", "calls", "regions"):
        rows += [(group, name, value) for name, value in document[group].items()]
    for name, facts in document["user_regions"].items():
        flat = {**facts, **{f"time_{end}": t for end, t in facts["time_per_process"].items()}}
        del flat["time_per_process"]
        rows += [(f"user_regions.{what}", name, value) for what, value in flat.items()]
    rows += [("counters", name, 1) for name in document["counters"]]
    rows += [("warnings", entry["text"], entry["count"]) for entry in document["warnings"]]
    return [
        {"trace": document["trace"], "group": group, "name": name, "value": value}
        for group, name, value in rows
    ]


def describe_threads(threads: list[int]) -> str:
    """Threads in words: ``2 per process``, or how many processes have how many."""
    numbers = Counter(threads)
    if len(numbers) == 1:
        return f"{count(threads[0])} per process"
    return ", ".join(
        f"{count(number)} in {plural(processes, 'process', 'processes')}"
        for number, processes in sorted(numbers.items())
    )


def _threads(document: Document) -> list[int]:
    threads = document["threads"]
    return [threads] * document["processes"] if isinstance(threads, int) else list(threads)


def _facts(document: Document) -> list[tuple[str, str]]:
    facts = [
        ("trace", str(document["trace"])),
        ("processes", count(document["processes"])),
        ("threads", describe_threads(_threads(document))),
        ("nodes", "not recorded" if document["nodes"] is None else count(document["nodes"])),
        _runtime(document),
        ("counters", ", ".join(document["counters"]) or "none"),
    ]
    if sizes := document["message_sizes"]:
        facts.insert(-1, ("messages", _sizes(sizes)))
    window = document["analysed"]
    if any(window["left_out"].values()):
        span = f"{window['begin']:.4g} s to {window['end']:.4g} s"
        facts.insert(-1, ("analysed", f"{span} ({window['why']})"))
    applications = document["applications"]
    if applications != 1:
        facts.insert(1, ("application", f"{document['application']} of {applications}"))
    return facts


def _runtime(document: Document) -> tuple[str, str]:
    if not document["timed"]:
        return "computation", f"up to {format_time(document['duration'])} per process; no run times"
    return "runtime", "-" if document["runtime"] is None else format_time(document["runtime"])


def _sizes(sizes: Mapping[str, float]) -> str:
    """Sizes of messages in words."""
    least, mean, most, total = (
        format_size(sizes[name]) for name in ("min", "mean", "max", "total")
    )
    each = f"{least} each" if sizes["min"] == sizes["max"] else f"{least} to {most}, mean {mean}"
    return f"{each}; {total} in total"


def _tables(document: Document) -> list[tuple[str, dict[str, int]]]:
    titles = {"records": "records", "calls": "MPI calls", "regions": "parallel regions"}
    return [
        (title, dict(sorted(document[group].items(), key=lambda item: -item[1])))
        for group, title in titles.items()
        if document[group]
    ]


def _marked(marked: Mapping[str, Mapping[str, Any]]) -> Section:
    """The regions that the user has marked."""
    rows = tuple(
        TableRow(name, texts(_facts_of_region(facts)), depth=1) for name, facts in marked.items()
    )
    return (TableBlock(_MARKED, rows, first="user regions"),) if rows else ()


def _facts_of_region(facts: Mapping[str, Any]) -> list[str]:
    each = facts["time_per_process"]
    numbers = [count(facts[name]) for name in ("occurrences", "processes", "threads")]
    return [*numbers, *(format_time(time) for time in (facts["time"], each["min"], each["max"]))]


def _numbers(title: str, numbers: Mapping[str, int]) -> TableBlock:
    rows = (
        TableRow(name, (TableCell(count(number)),), depth=1) for name, number in numbers.items()
    )
    return TableBlock(heads(["number"]), tuple(rows), first=title)


VIEWS = Views(blocks, records)
