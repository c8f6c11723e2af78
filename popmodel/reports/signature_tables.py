"""A signature that was found: how near it is to its runs, what it rests on, what it does not know.

A fit to measured runs has tables of its own (`calibration_tables`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from popmodel.base.shell import join
from popmodel.base.units import count, format_time, plural
from popmodel.reports import calibration_tables
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableRow,
    folded,
    notes,
    texts,
    titled,
)
from popmodel.reports.views import Document, Views

_ITEMS = {
    "loop": "loop",
    "serial": "serial part",
    "parallel": "parallel loop",
    "halo": "halo exchange",
    "shift": "shift",
    "messages": "message list",
    "collective": "collective operation",
}
_SHOWN = 3
"""Rows of a table on the screen, files and values that are named there."""
_DOUBTFUL = 0.1
"""How far a signature may be from its runs."""


def blocks(document: Document) -> list[Section]:
    """What is doubtful, how near it is, what it was found in, what is not known, what to do."""
    if "calibration" in document:
        return calibration_tables.blocks(document)
    own = _of_traces(document) if "traces" in document else _of_source(document)
    unknown = [f"{one['name']}: {one['source']} ({one['place']})" for one in document["unknown"]]
    return [
        notes(document["caveats"]),
        *own,
        _list("not known from the source", unknown, _SHOWN),
        _list("notes", document["notes"], 1),
        _next(document),
    ]


def _list(title: str, lines: Sequence[str], shown: int) -> Section:
    """A list: its first lines on the screen."""
    if len(lines) <= shown:
        return titled(title, lines)
    brief = titled(f"{title} (first {shown} of {len(lines)})", lines[:shown])
    return (Brief((titled(title, lines),), (brief,)),)


# -- from traces


def _of_traces(document: Document) -> list[Section]:
    known, fidelity = document["traces"], document["fidelity"]
    kept = known["replay"]["recorded"]
    program = f"{plural(len(known['phases']), 'phase')}, {plural(known['loops'], 'loop')}"
    if kept:
        program += f"; times of {plural(kept, 'phase')} kept as traced"
    runs = [_run(run) for run in known["runs"]]
    given = runs[0] if len(runs) == 1 else plural(len(runs), "trace")
    # of several runs a screen shows how near the signature is to each
    phases: Section = (_phases(known["phases"]),)
    whole = ((_replays(fidelity),), phases) if len(fidelity) > 1 else (phases,)
    worst = sorted(fidelity, key=lambda one: -abs(_off(one)))[:_SHOWN]
    most = sorted(known["phases"], key=lambda one: -one["total"])[:_SHOWN]
    brief = _replays(worst) if len(fidelity) > 1 else _phases(most, known["phases"])
    return [
        (NoteBlock(_verdict(document), Role.VERDICT),),
        (Facts((("from", given), ("program", program))),),
        (Brief(whole, ((brief,),)),),
        (folded((titled("laws", [_law(one) for one in known["laws"]]),)),),
    ]


def _run(run: dict[str, Any]) -> str:
    size = f"{count(run['processes'])} x {count(run['threads'])}"
    values = "".join(f" {name}={value:g}" for name, value in run["parameters"].items())
    part = f", {run['part']}" if run.get("part") else ""
    return f"{run.get('trace', run.get('run'))} ({size}{values}{part})"


def _off(one: dict[str, Any]) -> float:
    return float(one["replayed"] / one["measured"] - 1)


def _verdict(document: Document) -> str:
    """How far the signature is from its runs."""
    rows = document["fidelity"]
    name = document["path"] or document["application"]
    if not rows:
        return f"{name}: no run has times to compare with"
    worst = max(rows, key=lambda one: abs(_off(one)))
    off = f"{100 * _off(worst):+.2g} %"
    doubt = "doubtful: " if abs(_off(worst)) > _DOUBTFUL else ""
    which = "its trace" if len(rows) == 1 else f"{worst['run']}, the worst of {len(rows)} traces,"
    times = [format_time(worst[key]) for key in ("replayed", "measured")]
    return f"{doubt}{name} takes {times[0]} where {which} takes {times[1]} ({off}, ideal network)"


def _replays(rows: Sequence[dict[str, Any]]) -> Listing:
    """Runs replayed on the ideal network, and the signature there."""
    lines = [
        TableRow(
            _run(one),
            texts(
                (
                    format_time(one["measured"]),
                    format_time(one["replayed"]),
                    f"{100 * _off(one):+.1f}",
                )
            ),
        )
        for one in rows
    ]
    return Listing("replayed on the ideal network", ("trace", "signature", "off %"), tuple(lines))


def _phases(
    phases: Sequence[dict[str, Any]], every: Sequence[dict[str, Any]] | None = None
) -> Listing:
    total = sum(one["total"] for one in every or phases) or 1.0
    rows = [
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
        for one in sorted(phases, key=lambda one: -one["total"])
    ]
    names = ("% of all", "each", "times", "lasting %", "varying %")
    return Listing("computing, and how it varies over processes and executions", names, tuple(rows))


def _law(one: dict[str, Any]) -> str:
    error = one["error"]
    tested = f", off {100 * error:.2g} % at points left out" if error is not None else ""
    return f"{one['of']}: {one['form']} ({one['origin']}{tested})"


# -- from source


def _of_source(document: Document) -> list[Section]:
    known = document["source"]
    files = known["files"]
    items = [plural(number, _ITEMS[kind]) for kind, number in known["items"].items()]
    unknown = plural(len(document["unknown"]), "value") if document["unknown"] else "nothing"
    name = document["path"] or document["application"]
    is_joined = "traces" in document["origins"]
    measured = "numbers from the trace where noted" if is_joined else "nothing here was measured"
    verdict = f"{name}: {unknown} left open by the source; {measured}"
    given = ", ".join(files) if len(files) <= _SHOWN else plural(len(files), "source file")
    facts = (("from", given), ("program", ", ".join(items) or "nothing that takes time"))
    return [(NoteBlock(verdict, Role.VERDICT),), (Facts(facts),)]


# -- what to do


def _next(document: Document) -> Section:
    name = document["path"]
    if name is None:
        return (NoteBlock("keep it: add -o app.toml", Role.REMARK),)
    check = ["popmodel", "signature", "check", name]
    split = ["--procs", "16", "--threads", "4"]
    if "traces" in document:
        run = document["traces"]["runs"][0]
        check += ["--against", run["trace"]]
        split = ["--procs", str(run["processes"]), "--threads", str(run["threads"])]
    unknown = [one["name"] for one in document["unknown"]]
    given = [word for one in unknown[:_SHOWN] for word in ("--set", f"{one}=VALUE")]
    predict = ["popmodel", "predict", name, *split, *given]
    return tuple(CommandBlock((join(words),)) for words in (check, predict))


VIEWS = Views(blocks, ("values[]", "calibration.inputs[]"), ("application",))
