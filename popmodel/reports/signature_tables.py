"""A signature that was found: how near it is to its runs, what it rests on, what it does not know.

A fit to measured runs has tables of its own (`calibration_tables`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from popmodel.base import shell
from popmodel.base.units import count, format_time, plural
from popmodel.reports import calibration_tables
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    Further,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableRow,
    notes,
    texts,
    titled,
)
from popmodel.reports.views import Document, Record, Views

KEEP = "keep it: add -o app.toml"
_ITEMS = {
    "loop": "loop",
    "serial": "serial part",
    "parallel": "parallel loop",
    "halo": "halo exchange",
    "shift": "shift",
    "messages": "message list",
    "collective": "collective operation",
}
_NAMED = 3
"""Files that are named on the screen."""
_SHOWN = 5
"""Rows of a table on the screen, and values that are not known."""
_FEW = 2
"""Notes on the screen, and rows of the second of two tables."""


def blocks(document: Document) -> list[Section]:
    """What is doubtful, what it was found in, how near it is, what is not known, what to do."""
    if "calibration" in document:
        known = {**document["calibration"], "path": document["path"]}
        return calibration_tables.blocks(known)
    own = _of_traces(document) if "traces" in document else _of_source(document)
    return [
        notes(document["caveats"]),
        *own,
        _list("not known from the source", [_unknown(one) for one in document["unknown"]]),
        _list("notes", document["notes"], Role.WARNING),
        _next(document),
    ]


def records(document: Document) -> list[Record]:
    """One line per value; of a fit also what was known before, and of the machine and the laws."""
    head = {"application": document["application"]}
    if "calibration" in document:
        return [{**head, **row} for row in calibration_tables.records(document["calibration"])]
    keys = ("name", "value", "low", "high", "unit", "origin", "source")
    return [{**head, **{key: one[key] for key in keys}} for one in document["values"]]


def _list(title: str, lines: Sequence[str], role: Role = Role.BULLET) -> Section:
    """A list: some lines of it on the screen."""
    shown = _FEW if role is Role.WARNING else _SHOWN
    if len(lines) <= shown:
        return titled(title, lines, role)
    brief = titled(f"{title} (first {shown} of {len(lines)})", lines[:shown], role)
    return (Brief((titled(title, lines, role),), (brief,)),)


# -- from traces


def _of_traces(document: Document) -> list[Section]:
    known = document["traces"]
    runs = [_run(run) for run in known["runs"]]
    kept = known["replay"]["recorded"]
    program = f"{plural(len(known['phases']), 'phase')}, {plural(known['loops'], 'loop')}"
    if kept:
        program += f"; times of {plural(kept, 'phase')} kept as traced"
    whole = Facts((("from", "; ".join(runs)), ("program", program)))
    several = plural(len(runs), "trace")  # the table below names them
    brief = Facts((("from", several if len(runs) > 1 else runs[0]), whole.rows[1]))
    return [
        (NoteBlock(_fidelity(document)),),
        (Brief(((whole,),), ((brief,),)),),
        _replays(document),
        _phases(known["phases"], _SHOWN if len(document["fidelity"]) < 2 else _FEW),
        (Further((titled("laws", [_law(one) for one in known["laws"]]),)),),
    ]


def _run(run: dict[str, Any]) -> str:
    size = f"{count(run['processes'])} x {count(run['threads'])}"
    values = "".join(f" {name}={value:g}" for name, value in run["parameters"].items())
    part = f", {run['part']}" if run.get("part") else ""
    return f"{run['trace']} ({size}{values}{part})"


def _off(one: dict[str, Any]) -> float:
    return float(100 * (one["replayed"] / one["measured"] - 1))


def _fidelity(document: Document) -> str:
    """The verdict: how far the signature is from its runs."""
    rows = document["fidelity"]
    name = document["path"] or document["application"]
    if not rows:
        return f"{name}: no run has times to compare with"
    worst = max(rows, key=lambda one: abs(_off(one)))
    if len(rows) == 1:
        return (
            f"{name}: {_off(worst):+.2g} % off its trace "
            f"({format_time(worst['replayed'])} for {format_time(worst['measured'])} on the ideal "
            "network)"
        )
    return (
        f"{name}: {_off(worst):+.2g} % off its {len(rows)} traces at most, on the ideal network "
        f"({worst['run']})"
    )


def _replays(document: Document) -> Section:
    """Runs replayed on the ideal network, and the signature there."""
    rows = document["fidelity"]
    if len(rows) < 2:
        return ()

    def table(some: Sequence[dict[str, Any]]) -> Section:
        lines = tuple(
            TableRow(
                _run({**one, "trace": one["run"]}),
                texts(
                    (
                        format_time(one["measured"]),
                        format_time(one["replayed"]),
                        f"{_off(one):+.1f}",
                    )
                ),
            )
            for one in some
        )
        return (Listing("replayed on the ideal network", ("trace", "signature", "off %"), lines),)

    worst = sorted(rows, key=lambda one: -abs(_off(one)))[:_SHOWN]
    return (Brief((table(rows),), (table(worst),)),)


def _phases(phases: Sequence[dict[str, Any]], shown: int) -> Section:
    total = sum(one["total"] for one in phases) or 1.0
    most = sorted(phases, key=lambda one: -one["total"])

    def table(some: Sequence[dict[str, Any]]) -> Section:
        rows = tuple(
            TableRow(
                one["label"],
                texts(
                    (
                        f"{100 * one['total'] / total:.1f}",
                        format_time(one["seconds"]),
                        count(one["executions"]),
                        f"{100 * one['persistent_cv']:.1f}",
                        f"{100 * one['transient_cv']:.1f}",
                    )
                ),
            )
            for one in some
        )
        names = ("% of all", "each", "times", "lasting %", "varying %")
        return (Listing("computing, and how it varies over processes and executions", names, rows),)

    return (Brief((table(most),), (table(most[:shown]),)),)


def _law(one: dict[str, Any]) -> str:
    error = one["error"]
    tested = f", off {100 * error:.2g} % at points left out" if error is not None else ""
    return f"{one['of']}: {one['form']} ({one['origin']}{tested})"


# -- from source


def _of_source(document: Document) -> list[Section]:
    known = document["source"]
    files = known["files"]
    items = [plural(number, _ITEMS[kind]) for kind, number in known["items"].items()]
    unknown = plural(len(document["unknown"]), "value")
    name = document["path"] or document["application"]
    return [
        (NoteBlock(f"{name}: {unknown} not known from the source; nothing here was measured"),),
        (
            Facts(
                (
                    (
                        "from",
                        ", ".join(files)
                        if len(files) <= _NAMED
                        else plural(len(files), "source file"),
                    ),
                    ("program", ", ".join(items) or "nothing that takes time"),
                )
            ),
        ),
    ]


def _unknown(one: dict[str, Any]) -> str:
    return f"{one['name']}: {one['source']} ({one['place']})"


# -- what to do


def _next(document: Document) -> Section:
    if document["path"] is None:
        return (NoteBlock(KEEP, Role.REMARK),)
    name = document["path"]
    check = ["popmodel", "signature", "check", name]
    split = ["--procs", "16", "--threads", "4"]
    if "traces" in document:
        run = document["traces"]["runs"][0]
        check += ["--against", run["trace"]]
        split = ["--procs", str(run["processes"]), "--threads", str(run["threads"])]
    unknown = [one["name"] for one in document["unknown"]]
    given = [word for one in unknown[:_NAMED] for word in ("--set", f"{one}=VALUE")]
    predict = ["popmodel", "predict", name, *split, *given]
    return tuple(CommandBlock((shell.join(words),)) for words in (check, predict))


VIEWS = Views(blocks, records)
