"""What a run computes where, and why processes differ in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    FitBlock,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.phases_plot import longest_first, picture
from popmodel.reports.views import Document, Record, Views
from popmodel.structure.phases import SEVERAL

SHOWN = 10
"""Phases on a screen; files show all."""
_CALLS = 8
_EVEN = 0.98
"""Load balance from which on nobody asks why."""
_CAUSES = {"instructions": "instructions", "ipc": "IPC", "frequency": "frequency"}
_MORE = {
    "instructions": "more instructions",
    "ipc": "fewer instructions per cycle",
    "frequency": "fewer cycles per second",
}
_BINS = 8
_NOTICED = 0.05
"""Transient imbalance from which on it is worth a word."""

Phase = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """Phases by their time, why processes differ, calls, regions, a histogram, a sentence."""
    found = longest_first(document)
    return [
        (_title(document),),
        notes(document["caveats"]),
        *_phases(found),
        *_balance(document, found),
        _teams(found),
        _calls(document),
        *(_histogram(found[0]) if found else ()),
        titled("notes", document["notes"]),
        (NoteBlock(_verdict(document, found), Role.VERDICT),),
    ]


def records(document: Document) -> list[Record]:
    """One line per phase and quantity."""
    rows: list[Record] = []
    for phase in document["phases"]:
        named = {
            "trace": document["trace"],
            "phase": phase["name"],
            "kind": phase["kind"],
            "part": phase["part"],
        }
        rows += [
            {**named, "quantity": quantity, "unit": unit, "value": value}
            for quantity, unit, value in _quantities(phase)
            if value is not None
        ]
    return rows


def _quantities(phase: Phase) -> list[tuple[str, str, Any]]:
    balance = phase["load_balance"] or {}
    team = phase["team"] or {}
    return [
        ("executions", "1", phase["executions"]),
        ("processes", "1", phase["processes"]),
        ("time", "s", phase["time"]),
        ("share", "1", phase["share"]),
        ("useful", "s", phase["useful"]),
        *((f"duration_{name}", "s", value) for name, value in phase["duration"].items()),
        ("persistent", "1", phase["persistent"]),
        ("transient", "1", phase["transient"]),
        ("common", "1", phase["common"]),
        ("excess", "s", phase["excess"]),
        ("load_balance", "1", balance.get("value")),
        ("busiest_process", "", balance.get("process")),
        *((f"factor_{name}", "1", balance.get(name)) for name in _CAUSES),
        ("instructions", "1", phase["instructions"]),
        ("cycles", "1", phase["cycles"]),
        ("ipc", "1", phase["ipc"]),
        ("frequency", "Hz", phase["frequency"]),
        ("thread_imbalance", "1", team.get("imbalance")),
        ("region_overhead", "s", team.get("overhead")),
    ]


def _title(document: Document) -> Title:
    processes = plural(document["processes"], "process", "processes")
    threads = document["threads"] // max(document["processes"], 1)
    who = f"{processes}, {threads} threads each" if threads > 1 else processes
    window = format_time(document["analysed"]["duration"], digits=3)
    return Title(f"phases of {document['trace']}", (f"{who}, {window}", who))


def _phases(found: Sequence[Phase]) -> list[Section]:
    if not found:
        return [(NoteBlock("no computing in the analysed part"),)]
    shown = [phase for phase in found if not phase["small"]][:SHOWN] or found[:1]
    rest = found[len(shown) :]
    if not rest:
        return [(*_table(found), NoteBlock(_LEGEND))]
    left = sum(phase["share"] for phase in rest)
    summed = [phase["name"] for phase in rest if phase["place"] == SEVERAL]
    number = plural(len(rest) - len(summed), "phase")
    hidden = NoteBlock(
        f"and {_listed([number, *summed])} with {_percent(left)} % of the time "
        f"({'the phases' if summed else 'all'} with --format csv or json)"
    )
    brief = (*_table(shown), hidden, NoteBlock(_LEGEND))
    return [(Brief(((*_table(found), NoteBlock(_LEGEND)),), (brief,)),)]


_LEGEND = (
    "%: of all computing; times: executions per process; persist., trans.: standard deviation over "
    "processes, the same ones slow each time or other ones; = marks a parallel region"
)


def _listed(words: Sequence[str]) -> str:
    return " and ".join([*([", ".join(words[:-1])] if words[1:] else []), words[-1]])


def _table(found: Sequence[Phase]) -> Section:
    counted = any(phase["ipc"] is not None for phase in found)
    wide = ("%", "times", "mean", "median", "persist.%", "trans.%")
    narrow = ("%", "times", "mean")
    more = ("IPC",) if counted else ()
    return (
        FitBlock(
            (
                (_listing(found, (*wide, *more)),),
                (_listing(found, narrow),),
            )
        ),
    )


def _listing(found: Sequence[Phase], columns: Sequence[str]) -> Section:
    rows = tuple(
        TableRow(
            ("= " if phase["kind"] == "parallel" else "") + phase["name"],
            texts(_figure(phase, column) for column in columns),
        )
        for phase in found
    )
    return (Listing("phases", tuple(columns), rows),)


def _figure(phase: Phase, column: str) -> str:
    duration = phase["duration"]
    match column:
        case "%":
            return _percent(phase["share"])
        case "times":
            return count(phase["executions"])
        case "mean" | "median":
            return format_time(duration[column], digits=3)
        case "persist.%":
            return _percent(phase["persistent"])
        case "trans.%":
            return _percent(phase["transient"])
        case _:
            return "-" if phase["ipc"] is None else f"{phase['ipc']:.2f}"


def _balance(document: Document, found: Sequence[Phase]) -> list[Section]:
    """Load balance of the processes, and what makes the busiest one slow, phase by phase."""
    whole = document["load_balance"]
    if whole is None or document["processes"] < 2:
        return []
    worst = sorted(
        (phase for phase in found if phase["load_balance"] and phase["excess"]),
        key=lambda phase: -abs(phase["excess"]),
    )[: SHOWN // 2]
    excess = sum(phase["excess"] or 0.0 for phase in found)
    lines = [("all computing", whole, excess)]
    lines += [(phase["name"], phase["load_balance"], phase["excess"]) for phase in worst]
    counted = whole["instructions"] is not None
    legend = (
        f"balance %: load balance of the processes; excess: what process {whole['process']}, the "
        "busiest of all, computes beyond the mean; phases add up to all"
    )
    if counted:
        legend += (
            "; instr., IPC, freq.: time that the busiest of a phase needs more because of its "
            "instructions, of fewer of them per cycle, of fewer cycles per second"
        )
    causes = tuple(_COLUMNS) if counted else ()
    forms = (("balance %", "busiest", *causes, "excess"), ("balance %", "excess"))
    listings = [
        (Listing("why processes differ", form, tuple(_balance_row(*one, form) for one in lines)),)
        for form in forms
    ]
    return [(FitBlock(tuple((each,) for each in listings)), NoteBlock(legend))]


_COLUMNS = {"instr. %": "instructions", "IPC %": "ipc", "freq. %": "frequency"}


def _balance_row(
    name: str, balance: Mapping[str, Any], excess: float, columns: Sequence[str]
) -> TableRow:
    cells = {
        "balance %": TableCell(f"{100 * balance['value']:.1f}", balance["value"]),
        "busiest": TableCell(count(balance["process"])),
        "excess": TableCell(format_time(excess, digits=3)),
        **{column: TableCell(_more(balance[cause])) for column, cause in _COLUMNS.items()},
    }
    return TableRow(name, tuple(cells[column] for column in columns))


def _more(factor: float | None) -> str:
    """A factor as what it adds, in per cent."""
    return "-" if factor is None else f"{100 * (factor - 1):+.1f}".replace("-0.0", "+0.0")


def _teams(found: Sequence[Phase]) -> Section:
    """What threads do in parallel regions."""
    rows = tuple(
        TableRow(
            phase["name"],
            texts(
                (
                    count(phase["team"]["threads"]),
                    f"{100 * phase['team']['imbalance']:.1f}",
                    count(phase["team"]["busiest"]),
                    format_time(phase["team"]["overhead"], digits=3),
                )
            ),
            1,
        )
        for phase in found
        if phase["team"] and not phase["small"]
    )[:SHOWN]
    columns = heads(("threads", "imbalance %", "busiest thread", "overhead"))
    legend = NoteBlock(
        "imbalance: useful time of the busiest thread beyond the mean; overhead: of an execution "
        "beyond the work of its busiest thread (fork, join, locks)"
    )
    return (TableBlock(columns, rows, first="parallel regions"), legend) if rows else ()


def _calls(document: Document) -> Section:
    """How many calls, how granular, how many bytes."""
    uses = document["calls"]
    if not uses:
        return ()
    step = any(use["per_iteration"] is not None for use in uses)
    timed = any(use["time"] is not None for use in uses)
    names = ("per process", "per iteration", "computing", "time", "bytes")
    left_out = {*(() if step else ("per iteration",)), *(() if timed else ("time",))}
    columns = heads(name for name in names if name not in left_out)
    rows = tuple(
        TableRow(
            use["name"],
            texts(
                (
                    _number(use["per_process"]),
                    *((_number(use["per_iteration"]),) if step else ()),
                    _time(use["computing_before"]),
                    *((format_time(use["time"] or 0.0, digits=3),) if timed else ()),
                    "-" if use["bytes"] is None else format_size(use["bytes"], digits=3),
                )
            ),
            1,
        )
        for use in uses
    )
    table = TableBlock(columns, rows[:_CALLS], first="MPI calls")
    legend = NoteBlock(
        "computing: between a call and what was before; time: in all; bytes: sent by each"
    )
    if len(rows) <= _CALLS:
        return (table, legend)
    hidden = NoteBlock(f"and {plural(len(rows) - _CALLS, 'call')} with less time")
    whole = TableBlock(columns, rows, first="MPI calls")
    return (Brief(((whole, legend),), ((table, hidden, legend),)),)


def _histogram(phase: Phase) -> list[Section]:
    """How long executions of the longest phase take."""
    edges, counts = phase["histogram"]["edges"], phase["histogram"]["counts"]
    if len(counts) < 2 or sum(counts) < len(counts):
        return []
    join = -(-len(counts) // _BINS)
    bins = [sum(counts[at : at + join]) for at in range(0, len(counts), join)]
    ends = [*edges[0:-1:join], edges[-1]]
    rows = tuple(
        TableRow(
            f"{format_time(low, digits=3)} to {format_time(high, digits=3)}",
            (TableCell(count(number)), BarBlock(number / max(bins))),
            1,
        )
        for low, high, number in zip(ends, ends[1:], bins, strict=False)
    )
    return [(TableBlock(heads(("executions", "")), rows, title=f"time of {phase['name']}"),)]


def _verdict(document: Document, found: Sequence[Phase]) -> str:
    """Why the load balance is what it is, in a sentence."""
    whole = document["load_balance"]
    if whole is None:
        return "nothing is computed in the analysed part"
    longest = found[0]
    first = f"{longest['name']} is {_percent(longest['share'])} % of all computing"
    if document["processes"] < 2:
        return f"{first}; a single process has no load balance"
    told = f"load balance {_percent(whole['value'])} %"
    if whole["value"] >= _EVEN:
        text = f"{told}: processes compute equally long; {first}"
        if (longest["transient"] or 0.0) >= _NOTICED:
            text += (
                f", with other processes slow each time ({_percent(longest['transient'])} %): "
                "that costs serialisation, not load balance"
            )
        return text
    most = max(found, key=lambda phase: phase["excess"] or 0.0)
    beyond = sum(phase["excess"] or 0.0 for phase in found)
    share = (most["excess"] or 0.0) / beyond if beyond > 0 else 0.0
    text = (
        f"{told}: process {whole['process']} computes {100 * (1 / whole['value'] - 1):.3g} % "
        f"longer than the mean, {_percent(min(share, 1.0))} % of that in {most['name']}"
    )
    return f"{text}; {_why(whole)}"


def _why(balance: Mapping[str, Any]) -> str:
    if balance["main"] is None:
        return "no hardware counters tell whether by instructions, IPC or frequency"
    main = balance["main"]
    return f"mainly by {_MORE[main]} ({100 * (balance[main] - 1):+.3g} %)"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_time(seconds, digits=3)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return count(round(value)) if value >= 100 or value == round(value) else f"{value:.3g}"


VIEWS = Views(blocks, records, picture)
