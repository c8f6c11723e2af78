"""What a run computes where, and why processes differ in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_size, format_time, percent_if_any, plural, time_if_any
from popmodel.reports.blocks import (
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
    fitted,
    folded,
    heads,
    texts,
    titled,
    told_title,
)
from popmodel.reports.views import Document
from popmodel.structure.phases import SEVERAL

_SHOWN = 10
"""Phases on a screen, at most."""
_DIFFERING = 3
"""Phases whose processes differ most on a screen, at most; a file has twice as many."""
_EVEN = 0.98
"""Load balance from which on nobody asks why."""
_IDLE = 0.1
"""Part of the time of bursts in which threads do not run that is worth a word."""
_MORE = {
    "instructions": "more instructions",
    "ipc": "fewer instructions per cycle",
    "frequency": "fewer cycles per second",
}
_NOTICED = 0.05
"""Transient imbalance from which on it is worth a word."""
_LEGEND = "imbalance: persist. of the same processes each time, trans. of others; = region"
_NARROW = ("%", "times", "mean", "persist.%", "trans.%")
"""Columns of a screen."""
_COLUMNS = {"instr. %": "instructions", "IPC %": "ipc", "freq. %": "frequency"}

Phase = Mapping[str, Any]


def phase_blocks(trace: str, document: Document) -> list[Section]:
    """Phases by their time, why processes differ, threads, calls, a sentence."""
    found = longest_first(document)
    balance = _balance(document, found)
    even = not balance or balance[0][1]["value"] >= _EVEN
    told = sorted(document["caveats"], key=lambda note: note.startswith("analysed "))
    differing = _balance_table(balance, document)
    rest = folded((_teams(found), _calls(document), titled("notes", document["notes"])))
    return fitted(
        lambda rows: [
            told_title(_title(trace, document), told),
            _phases(found, rows),
            (folded((differing,)),) if even else differing,
            (rest,),
            (NoteBlock(phase_verdict(document), Role.VERDICT),),
        ],
        _SHOWN,
    )


def longest_first(document: Document) -> list[Phase]:
    """Phases by their time, small ones that are summed up last; names as a screen has room for.

    Without what all calls begin with, and without modules, arguments of templates and places in
    the source where they stay different.
    """
    found = sorted(
        document["phases"], key=lambda phase: (phase["place"] == SEVERAL, -phase["time"])
    )
    names = [phase["name"].replace("MPI_", "") for phase in found]
    forms = [[_short(re.sub(_PLACE, "", name)) for name in names], list(map(_short, names)), names]
    often = [Counter(form) for form in forms]
    named: list[Mapping[str, Any]] = []
    for at, phase in enumerate(found):
        own = (form[at] for form, times in zip(forms, often, strict=True) if times[form[at]] == 1)
        named.append({**phase, "name": next(own, names[at])})
    return named


def _short(name: str) -> str:
    while (plain := re.sub(r"(?<=\w)<[^<>]*>", "", name)) != name:
        name = plain
    return re.sub(r"\b(\w+)::(?=\w)", "", name)


_PLACE = r" \([^()]*(:\d+|\+0x[0-9a-f]+)\)(?= \(\d+\)$|$)"
"""A line of source, or an address in a program, at the end of a name."""


def _title(trace: str, document: Document) -> Title:
    processes = plural(document["processes"], "process", "processes")
    threads = document["threads"] // max(document["processes"], 1)
    who = f"{processes}, {threads} threads each" if threads > 1 else processes
    window = format_time(document["analysed"]["duration"], digits=3)
    return Title(f"phases of {trace}", (f"{who}, {window}", who))


def _phases(found: Sequence[Phase], most: int) -> Section:
    if not found:
        return (NoteBlock("no computing in the analysed part"),)
    table, legend = _table(found), NoteBlock(_LEGEND, Role.REMARK)
    shown = [phase for phase in found if not phase["small"]][:most] or found[:1]
    hidden = NoteBlock(left_out(found[len(shown) :]), Role.REMARK)
    if len(shown) == len(found):
        return (*table, legend)
    return (Brief(((*table, legend),), ((_listing(shown, _NARROW), hidden, legend),)),)


def left_out(rest: Sequence[Phase]) -> str:
    """Phases that a screen does not show, in words."""
    summed = [phase["name"] for phase in rest if phase["place"] == SEVERAL]
    parts = [plural(len(rest) - len(summed), "phase"), *summed]
    listed = " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), parts[-1]])
    return (
        f"and {listed} with {percent_if_any(sum(phase['share'] for phase in rest))} % of the time"
    )


def _table(found: Sequence[Phase]) -> Section:
    counted = any(phase["ipc"] is not None for phase in found)
    wide = ("%", "times", "mean", "median", "persist.%", "trans.%", *(("IPC",) if counted else ()))
    return (
        FitBlock(tuple(((_listing(found, form),),) for form in (wide, ("%", "times", "mean")))),
    )


def _listing(found: Sequence[Phase], columns: Sequence[str]) -> Listing:
    rows = (
        TableRow(phase_label(phase), texts(_figure(phase, column) for column in columns))
        for phase in found
    )
    return Listing("phases", tuple(columns), tuple(rows))


def phase_label(phase: Phase) -> str:
    """The name of a phase, marked where it is a parallel region."""
    return ("= " if phase["kind"] == "parallel" else "") + str(phase["name"])


def _figure(phase: Phase, column: str) -> str:
    match column:
        case "%":
            return percent_if_any(phase["share"])
        case "times":
            return count(phase["executions"])
        case "mean" | "median":
            return format_time(phase["duration"][column], digits=3)
        case "persist.%":
            return percent_if_any(phase["persistent"])
        case "trans.%":
            return percent_if_any(phase["transient"])
        case _:
            return "-" if phase["ipc"] is None else f"{phase['ipc']:.2f}"


_BalanceRow = tuple[str, Mapping[str, Any], float]


def _balance(document: Document, found: Sequence[Phase]) -> list[_BalanceRow]:
    """Load balance of all computing, and of the phases in which the busiest process loses most."""
    whole = document["load_balance"]
    if whole is None or document["processes"] < 2:
        return []
    worst = sorted(
        (phase for phase in found if phase["load_balance"] and phase["excess"]),
        key=lambda phase: -abs(phase["excess"]),
    )[: 2 * _DIFFERING]
    excess = sum(phase["excess"] or 0.0 for phase in found)
    return [
        ("all computing", whole, excess),
        *((phase["name"], phase["load_balance"], phase["excess"]) for phase in worst),
    ]


def _balance_table(rows: Sequence[_BalanceRow], document: Document) -> Section:
    if not rows:
        return ()
    whole = document["load_balance"]
    counted = whole["instructions"] is not None
    short = f"excess: what process {whole['process']}, the busiest, computes beyond the mean"
    legend = f"balance %: load balance of the processes; {short}; phases add up to all"
    if counted:
        legend += (
            "; instr., IPC, freq.: time that the busiest of a phase needs more because of its "
            "instructions, of fewer of them per cycle, of fewer cycles per second"
        )
    forms = (
        ("balance %", "busiest", *(_COLUMNS if counted else ()), "excess"),
        ("balance %", "excess"),
    )

    def table(some: Sequence[_BalanceRow]) -> FitBlock:
        listings = (
            Listing("why processes differ", form, tuple(_balance_row(*one, form) for one in some))
            for form in forms
        )
        return FitBlock(tuple(((listing,),) for listing in listings))

    brief = (table(rows[:_DIFFERING]), NoteBlock(short, Role.REMARK))
    return (Brief(((table(rows), NoteBlock(legend, Role.REMARK)),), (brief,)),)


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
    )
    columns = heads(("threads", "imbalance %", "busiest thread", "overhead"))
    legend = NoteBlock(
        "imbalance: useful time of the busiest thread beyond the mean; overhead: of an execution "
        "beyond the work of its busiest thread (fork, join, locks)",
        Role.REMARK,
    )
    return (TableBlock(columns, rows, first="parallel regions"), legend) if rows else ()


def _calls(document: Document) -> Section:
    """How many calls, how granular, how many bytes."""
    uses = document["calls"]
    if not uses:
        return ()
    step = any(use["per_iteration"] is not None for use in uses)
    timed = any(use["time"] is not None for use in uses)
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "per process": lambda use: _number(use["per_process"]),
        **({"per iteration": lambda use: _number(use["per_iteration"])} if step else {}),
        "computing": lambda use: time_if_any(use["computing_before"]),
        **({"time": lambda use: time_if_any(use["time"] or 0.0)} if timed else {}),
        "bytes": lambda use: "-" if use["bytes"] is None else format_size(use["bytes"], digits=3),
    }
    rows = (TableRow(use["name"], texts(cell(use) for cell in columns.values()), 1) for use in uses)
    legend = "computing: between a call and what was before; time: in all; bytes: sent by each"
    table = TableBlock(heads(columns), tuple(rows), first="MPI calls")
    return (table, NoteBlock(legend, Role.REMARK))


def phase_verdict(document: Document) -> str:
    """Why the load balance is what it is, in a sentence."""
    whole, found = document["load_balance"], longest_first(document)
    if whole is None and document["computing"]:
        return "how even computing is, is not known: no thread is running by its states"
    if whole is None:
        return "nothing is computed in the analysed part"
    longest = found[0]
    first = f"{longest['name']} is {percent_if_any(longest['share'])} % of all computing"
    if document["processes"] < 2:
        return f"{first}; a single process has no load balance"
    told = f"load balance {percent_if_any(whole['value'])} %"
    serial = [phase for phase in found if phase["kind"] == "serial"]
    time, useful = (sum(phase[name] for phase in serial) for name in ("time", "useful"))
    if useful < (1 - _IDLE) * time:
        told += (
            f" of the {percent_if_any(useful / time)} % of their time outside of calls in "
            "which threads are running by their states (else devices, I/O, ...)"
        )
    if whole["value"] >= _EVEN:
        text = f"{told}: processes compute equally long; {first}"
        if (longest["transient"] or 0.0) >= _NOTICED:
            text += (
                ", with other processes slow each time "
                f"({percent_if_any(longest['transient'])} %): that costs "
                "serialisation, not load balance"
            )
        return text
    most = max(found, key=lambda phase: phase["excess"] or 0.0)
    beyond = sum(phase["excess"] or 0.0 for phase in found)
    share = (most["excess"] or 0.0) / beyond if beyond > 0 else 0.0
    text = (
        f"{told}: process {whole['process']} computes {100 * (1 / whole['value'] - 1):.3g} % "
        f"longer than the mean, {percent_if_any(min(share, 1.0))} % of that in {most['name']}"
    )
    return f"{text}; {_why(whole)}"


def _why(balance: Mapping[str, Any]) -> str:
    if balance["main"] is None:
        return "no hardware counters tell whether by instructions, IPC or frequency"
    main = balance["main"]
    return f"mainly by {_MORE[main]} ({100 * (balance[main] - 1):+.3g} %)"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return count(round(value)) if value >= 100 or value == round(value) else f"{value:.3g}"
