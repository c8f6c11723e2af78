"""How a run is built: its iterations over time, its loops, the part that is worth a look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from popmodel.base import shell
from popmodel.base.units import count, format_time, plural
from popmodel.reports.blocks import (
    Facts,
    Listing,
    MarksBlock,
    NoteBlock,
    Role,
    Section,
    Strip,
    Strips,
    TableCell,
    TableRow,
    Title,
    notes,
    titled,
)
from popmodel.reports.structure_plot import picture
from popmodel.reports.views import Document, Record, Views
from popmodel.structure.structure import certainty

_PART_NAMES = ("initialisation", "iterations", "finalisation")
_CALLS = 8
"""Different calls of a leaf that are named."""
_LINES = 40
"""Lines of the loop nest on a screen."""
_SMALL = 5e-3
"""Share of the time of a part of the nest that is not told by itself."""
_LEVELS = 9
_APART = 40
"""Marks of iterations that a line has room for."""

Node = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """What was found, the run over time, its loops, what to do with it."""
    return [
        (_title(document),),
        notes(document["caveats"]),
        (Facts(tuple(_facts(document))),),
        *(_timeline(document, one) for one in document["timelines"]),
        _nest(document["nest"]),
        titled("notes", document["notes"]),
        (NoteBlock(_verdict(document), Role.VERDICT),),
    ]


def records(document: Document) -> list[Record]:
    """One line per quantity, part and iteration."""
    iterations = document["iterations"]
    rows: list[tuple[str, Any, Any, Any, Any]] = [
        (part["kind"], None, part["begin"], part["end"], part["iterations"])
        for part in document["parts"]
    ]
    foa = document["foa"]
    rows.append(("focus", foa["first"], foa["begin"], foa["end"], _length(foa)))
    if iterations:
        begins = iterations["begins"]
        rows += [
            ("iteration", number, begin, end, 1)
            for number, (begin, end) in enumerate(pairwise(begins), 1)
        ]
    return [
        {
            "trace": document["trace"],
            "what": what,
            "number": number,
            "begin": begin,
            "end": end,
            "iterations": held,
        }
        for what, number, begin, end, held in rows
    ]


def _length(foa: Mapping[str, Any]) -> int | None:
    return None if foa["first"] is None else int(foa["last"] - foa["first"] + 1)


def _title(document: Document) -> Title:
    processes = plural(document["processes"], "process", "processes")
    duration = format_time(document["end"] - document["begin"], digits=3)
    return Title(f"structure of {document['trace']}", (f"{processes}, {duration}", processes))


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    for part in document["parts"]:
        number = f", {count(part['iterations'])} times" if part["iterations"] else ""
        yield part["kind"], f"{_span(part)}{number}"
    iterations = document["iterations"]
    if iterations is None:
        return
    duration = iterations["duration"]
    least, most = (format_time(duration[name], digits=3) for name in ("min", "max"))
    yield "period", f"{format_time(document['period'], digits=3)} (median; {least} to {most})"
    kinds = iterations["kinds"]
    if max(kinds, default=0) > 0:
        numbers = [sum(each == kind for each in kinds) for kind in sorted(set(kinds))]
        yield "kinds of steps", f"{count(len(numbers))} ({', '.join(map(count, numbers))} of each)"
    yield "confidence", certainty(document["confidence"])
    yield "focus", f"{_which(document['foa'])}, {_span(document['foa'])}: {document['foa']['why']}"


def _which(foa: Mapping[str, Any]) -> str:
    if foa["first"] is None:
        return "a window"
    if foa["first"] == foa["last"]:
        return f"iteration {count(foa['first'])}"
    return f"iterations {count(foa['first'])} to {count(foa['last'])}"


def _span(part: Mapping[str, Any]) -> str:
    begin, end = (format_time(part[name], digits=5, trim=True) for name in ("begin", "end"))
    return f"{begin} to {end}"


def _timeline(document: Document, line: Mapping[str, Any]) -> Section:
    """Processes in MPI and lengths of bursts over time, with iterations and the focus."""
    begin, end = float(line["begin"]), float(line["end"])

    def place(time: float) -> float:
        return min(max((time - begin) / (end - begin), 0.0), 1.0)

    iterations = document["iterations"]
    rows: list[Strip | MarksBlock] = [
        Strip("in MPI", tuple(line["in_mpi"])),
        Strip("bursts", tuple(_burst_lengths(line))),
    ]
    if iterations:
        inside = [time for time in iterations["begins"] if begin <= time <= end]
        step = _step(len(inside))
        name = "iterations" if step == 1 else f"every {_ordinal(step)}"
        rows.append(MarksBlock(name, tuple(map(place, inside[::step]))))
        foa = document["foa"]
        stretch = place(foa["begin"]), place(foa["end"])
        rows.append(MarksBlock("focus", stretches=(stretch,)))
    title = {
        "run": "MPI_Init to MPI_Finalize: processes in MPI (@ all), length of bursts (@ longest)",
        "focus": "the focus and what is around it",
    }[line["span"]]
    ends = (format_time(time, digits=5, trim=True) for time in (begin, end))
    return (NoteBlock(title), Strips(tuple(rows), *ends))


def _burst_lengths(line: Mapping[str, Any]) -> list[float]:
    """Mean level of the bursts of all processes in each bin, from 0 to 1."""
    rows = line["duration"]
    if not rows:
        return []
    columns = zip(*rows, strict=True)
    return [sum(map(int, column)) / (_LEVELS * len(rows)) for column in columns]


def _step(number: int) -> int:
    """Every how many marks are drawn."""
    step = 1
    while number / step > _APART:
        step = {1: 2, 2: 5}.get(int(str(step)[0]), 10) * 10 ** (len(str(step)) - 1)
    return step


def _ordinal(number: int) -> str:
    return f"{number}{'nd' if number % 10 == 2 else 'th'}"


def _nest(nest: Sequence[Node]) -> Section:
    """Loops and calls as a tree; nothing of a program that only computes."""
    if not nest:
        return ()
    rows: list[TableRow] = []
    parts = _parts(nest)
    for is_small, some in groupby(parts, lambda part: part[0]["share"] < _SMALL):
        held = list(some)
        if is_small and len(held) > 1:
            share = sum(part[0]["share"] for part in held)
            rows.append(_row(f"... {count(len(held))} small parts", "", share, 0))
        else:
            rows += [_line(node) for part in held for node in part]
    more = len(rows) - _LINES
    listing = Listing("loops and calls", ("times", "time %"), tuple(rows[:_LINES]))
    hidden = NoteBlock(f"and {plural(more, 'line')} more (--format json)")
    return (listing, hidden) if more > 0 else (listing,)


def _row(label: str, times: str, share: float, depth: int) -> TableRow:
    return TableRow(label, (TableCell(times), TableCell(f"{100 * share:.1f}")), depth)


def _parts(nest: Sequence[Node]) -> Iterator[list[Node]]:
    """What stands beside each other outside of all loops: loops with their bodies, and places."""
    begins = [at for at, node in enumerate(nest) if node["depth"] == 0]
    for begin, end in pairwise([*begins, len(nest)]):
        yield list(nest[begin:end])


def _line(node: Node) -> TableRow:
    depth = 2 * node["depth"]
    if node["kind"] == "places":
        return _row(_called(node["calls"]), "", node["share"], depth)
    least, most = node["least"], node["most"]
    times = f"{node['count']:.4g}" if least == most else f"{count(least)} to {count(most)}"
    return _row("iterations" if node["iterative"] else "loop", times, node["share"], depth)


def _called(calls: Sequence[Mapping[str, Any]]) -> str:
    """Names of calls in order, with how many of a name follow each other."""
    names = [
        one["name"].removeprefix("MPI_") + (f" x{one['number']}" if one["number"] > 1 else "")
        for one in calls
    ]
    if len(names) > _CALLS:
        hidden = sum(one["number"] for one in calls[_CALLS - 1 :])
        names[_CALLS - 1 :] = [f"{count(hidden)} more"]
    return ", ".join(names)


def _verdict(document: Document) -> str:
    if document["iterations"] is None:
        return "no iterations: choose what to analyse with --window or --region"
    trace = shell.quote(document["trace"])
    return f"popmodel metrics {trace} --foa auto analyses {_which(document['foa'])}"


VIEWS = Views(blocks, records, picture)
