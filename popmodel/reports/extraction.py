"""A signature that was found in traces: what it says, how sure, and what it does not know."""

from __future__ import annotations

from typing import Any

from popmodel.base import shell
from popmodel.base.units import count, format_time, plural
from popmodel.reports.blocks import (
    Code,
    Facts,
    Listing,
    Role,
    Section,
    TableRow,
    notes,
    texts,
    titled,
)
from popmodel.reports.views import Document, Record, Views

_SHOWN = 12
"""Phases on the screen, those with most time."""


def blocks(document: Document) -> list[Section]:
    """The runs, how near the signature is to them, the phases that matter, what is not known."""
    return [
        notes(document["caveats"]),
        (Facts(tuple(_facts(document))),),
        _phases(document),
        titled("laws", [_law(one) for one in document["laws"]]),
        titled("notes", document["notes"], Role.WARNING),
        *_next(document),
    ]


def records(document: Document) -> list[Record]:
    """One line per value that was found."""
    return [{"application": document["application"], **one} for one in document["constants"]]


def _facts(document: Document) -> list[tuple[str, str]]:
    runs = [_run(run) for run in document["runs"]]
    traced, written = document["replay"]["traced"], document["replay"]["written"]
    kept = document["replay"]["recorded"]
    phases = plural(len(document["phases"]), "phase")
    return [
        ("signature", document["path"] or document["application"]),
        ("from", "; ".join(runs)),
        ("program", f"{phases}, {plural(document['loops'], 'loop')}"),
        (
            "replayed",
            f"{format_time(written['runtime'])} on the ideal network, "
            f"the trace {format_time(traced['runtime'])}",
        ),
        (
            "efficiency",
            f"{100 * written['parallel_efficiency']:.1f} % there, "
            f"the trace {100 * traced['parallel_efficiency']:.1f} %",
        ),
        ("recorded", f"times of {plural(kept, 'phase')} kept as traced" if kept else "none"),
    ]


def _run(run: dict[str, Any]) -> str:
    size = f"{count(run['processes'])} x {count(run['threads'])}"
    values = "".join(f" {name}={value:g}" for name, value in run["parameters"].items())
    return f"{run['trace']} ({size}{values})"


def _phases(document: Document) -> Section:
    total = sum(one["total"] for one in document["phases"]) or 1.0
    most = sorted(document["phases"], key=lambda one: -one["total"])[:_SHOWN]
    rows = tuple(
        TableRow(
            one["label"],
            texts(
                (
                    format_time(one["seconds"]),
                    count(one["executions"]),
                    f"{100 * one['total'] / total:.1f}",
                    f"{100 * one['persistent_cv']:.1f}",
                    f"{100 * one['transient_cv']:.1f}",
                )
            ),
        )
        for one in most
    )
    names = ("each", "times", "% of all", "lasting %", "varying %")
    return (Listing("computing, and how it varies over processes and executions", names, rows),)


def _law(one: dict[str, Any]) -> str:
    error = one["error"]
    tested = f", off {100 * error:.2g} % at points left out" if error is not None else ""
    return f"{one['of']}: {one['form']} ({one['origin']}{tested})"


def _next(document: Document) -> list[Section]:
    if document["path"] is None:
        return []
    run = document["runs"][0]
    name, trace = shell.quote(document["path"]), shell.quote(run["trace"])
    split = f"--procs {run['processes']} --threads {run['threads']}"
    return [
        (
            Code(
                (
                    f"popmodel signature check {name} --against {trace}",
                    f"popmodel predict {name} {split}",
                )
            ),
        )
    ]


VIEWS = Views(blocks, records)
