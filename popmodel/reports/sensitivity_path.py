"""The critical path of a replay: what it is spent on, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.reports.blocks import Listing, NoteBlock, Role, Section, TableRow, texts
from popmodel.reports.figures import percent
from popmodel.reports.views import Document, Record

Entry = Mapping[str, Any]

_SHOWN = 5
_SMALL = 5e-4
"""Share of the runtime that is printed as 0.1 % at least; less says nothing."""
_LEGEND = (
    "latencies, bytes: how often the path waits for a latency, and for how many bytes: the "
    "derivatives of the runtime by latency and by time per byte"
)


def path(document: Document) -> list[Section]:
    """Ranks, calls and pairs of ranks on the critical path, and where it changes rank."""
    found, runtime = document["critical_path"], document["runtime"]
    if not found["steps"] or not runtime:
        return []
    tables = [
        (*_table(found["ranks"], "critical path by rank", _TIMES, runtime), _stays(found)),
        _table(found["calls"], "critical path by MPI call", _COUNTS, runtime),
        _table(found["pairs"], "critical path by pair of ranks", _COUNTS, runtime),
    ]
    shown = [table for table in tables if table]
    if len(shown) > 1:
        shown[-1] = (*shown[-1], NoteBlock(_LEGEND, Role.REMARK))
    return shown


def _stays(found: Mapping[str, Any]) -> NoteBlock:
    """How often the path changes rank, and where it stays longest."""
    stay = found["longest"]
    if not found["changes"]:
        return NoteBlock(f"in % of the runtime; it stays on rank {stay['rank']}", Role.REMARK)
    return NoteBlock(
        f"in % of the runtime; it changes rank {plural(found['changes'], 'time')}, and stays "
        f"longest on rank {stay['rank']}: {format_time(stay['end'] - stay['begin'])}, from "
        f"{format_time(stay['begin'])} of the replay",
        Role.REMARK,
    )


def records(document: Document) -> list[Record]:
    """One line for the time, the latencies and the bytes of each entry of each table."""
    return [
        {
            "part": f"critical path by {table.removesuffix('s')}",
            "name": entry["name"],
            "quantity": quantity,
            "unit": unit,
            "value": value,
            "runtime": None,
            "slope": None,
        }
        for table in ("ranks", "regions", "calls", "pairs")
        for entry in document["critical_path"][table]["entries"]
        for quantity, unit, value in (
            ("time", "s", sum(entry["spent"].values())),
            ("latencies", "1", entry["latencies"]),
            ("bytes", "B", entry["bytes"]),
        )
    ]


def _table(
    table: Mapping[str, Any],
    title: str,
    columns: Mapping[str, Callable[[Entry, float], str]],
    runtime: float,
) -> Section:
    """Entries of a table with their shares of the runtime, and what else is told of them."""
    entries = table["entries"]
    shown = [entry for entry in entries[:_SHOWN] if entry["share"] >= _SMALL]
    if not shown:
        return ()
    rows = tuple(
        TableRow(
            entry["name"],
            texts(
                [percent(entry["share"]), *(write(entry, runtime) for write in columns.values())]
            ),
        )
        for entry in shown
    )
    others = len(entries) - len(shown) + table["others"]
    time = (
        sum(sum(entry["spent"].values()) for entry in entries[len(shown) :]) + table["others_time"]
    )
    listing = Listing(title, ("%", *columns), rows)
    if not others:
        return (listing,)
    return (
        listing,
        NoteBlock(f"and {count(others)} more: {percent(time / runtime)} %", Role.REMARK),
    )


def _computing(entry: Entry, runtime: float) -> str:
    return percent(entry["spent"]["computing"] / runtime)


def _rest(entry: Entry, runtime: float) -> str:
    return percent((sum(entry["spent"].values()) - entry["spent"]["computing"]) / runtime)


def _latencies(entry: Entry, _: float) -> str:
    whole = round(entry["latencies"])
    near = abs(entry["latencies"] - whole) < 0.05
    return count(whole) if near else f"{entry['latencies']:.1f}"


def _bytes(entry: Entry, _: float) -> str:
    return format_size(entry["bytes"]) if entry["bytes"] else "-"


_TIMES = {"computing": _computing, "in MPI": _rest}
_COUNTS = {"latencies": _latencies, "bytes": _bytes}
