"""A signature fitted to runs: how good it is, what was learnt, what was not, what to run next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base.shell import join
from popmodel.base.units import format_time, plural
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    Title,
    folded,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import percent
from popmodel.reports.prediction_words import application, described, machine, name, omitted, varied
from popmodel.reports.views import Document

_SHOWN = 3
"""Rows of a table on the screen."""
_SEEN = 0.1
_KINDS = ("machine", "law")

Entry = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """The verdict, constants, configurations left out, what to run next, and how to go on."""
    fit = document["calibration"]
    verdict = notes(document["notes"])
    about = (("machine", machine(fit)), ("run to run", f"{percent(fit['noise'])} %"))
    return [
        omitted(fit),
        _warned(document["caveats"]),
        (Title(application(fit), (plural(fit["runs"], "run"),)), *verdict[:_SHOWN]),
        (folded((verdict[_SHOWN:], (Facts(about),))),),
        _brief(_constants(document["values"])),
        (folded((_inputs(fit["inputs"]), _terms(fit["terms"]))),),
        _brief(_left_out(fit["left_out"])),
        _next(fit),
        _go_on(fit, document["path"]),
    ]


def _warned(warnings: Sequence[str]) -> Section:
    """What is doubtful about the runs; of several warnings the first on the screen."""
    whole = notes(warnings, Role.WARNING)
    if len(whole) < 2:
        return whole
    more = NoteBlock(f"and {plural(len(whole) - 1, 'other warning')}", Role.REMARK)
    return (Brief((whole,), ((whole[0], more),)),)


def _brief(table: TableBlock | None) -> Section:
    """A table, of which a screen shows the first rows."""
    if table is None:
        return ()
    if len(table.rows) <= _SHOWN:
        return (table,)
    shown = f"{_SHOWN} of {len(table.rows)}"
    title = f"{table.title}: the worst {shown}" if table.title else ""
    first = table.first if title else f"{table.first}, {shown}"
    brief = replace(table, rows=table.rows[:_SHOWN], title=title, first=first)
    return (Brief(((table,),), ((brief,),)),)


def _constants(values: Sequence[Entry]) -> TableBlock | None:
    """Numbers of the signature, what was learnt most first; some the runs do not tell."""
    by_learnt = sorted(values, key=lambda one: -one["learnt"])
    return _compared("constants", [{**one, "after": one} for one in by_learnt])


def _inputs(inputs: Sequence[Entry]) -> Section:
    """What the runs taught of the machine and of the laws: what moved or narrowed most."""
    some = [one for one in inputs if one["kind"] in _KINDS and _told(one) > _SEEN]
    table = _compared("machine and laws", sorted(some, key=lambda one: -_told(one)))
    return () if table is None else (table,)


def _told(one: Entry) -> float:
    """By how much an input narrowed, or moved in halves of the interval that it had."""
    before = one["before"]
    reach = max(before["high"] - before["low"], 1e-300) / 2
    moved = min(abs(one["after"]["value"] - before["value"]) / reach, 1.0)
    return float(max(one["learnt"] or 0.0, moved))


def _compared(title: str, inputs: Sequence[Entry]) -> TableBlock | None:
    """Numbers before and after."""
    rows = []
    for one in inputs:
        after, unit, learnt = one["after"], one["unit"], one["learnt"]
        cells = (
            "?" if one["before"]["value"] is None else f"{one['before']['value']:.4g}",
            "not told" if after["value"] is None else f"{after['value']:.4g}",
            "" if after["low"] is None else f"{after['low']:.3g}..{after['high']:.3g}",
            "-" if learnt is None else f"{percent(learnt, 0)} %",
        )
        label = one["name"] if unit in (None, "", "1") else f"{one['name']}, {unit}"
        rows.append(TableRow(label, texts(cells), depth=1))
    columns = heads(("before", "fitted", "90 %", "learnt"))
    return TableBlock(columns, tuple(rows), title) if rows else None


def _left_out(left_out: Sequence[Entry]) -> TableBlock:
    """Every configuration as the others predict it."""
    differing = varied(left_out)
    rows = []
    for one in sorted(left_out, key=lambda one: -abs(one["error"])):
        runs = sorted(one["measured"])
        cells = [f"{one['parameters'][key]:g}" for key in differing]
        cells += [
            format_time(runs[len(runs) // 2]),
            format_time(one["value"]),
            f"{format_time(one['low'], digits=3)} .. {format_time(one['high'], digits=3)}",
            f"{100 * one['error']:+.1f} %",
            f"{100 * one['error_before']:+.1f} %",
        ]
        rows.append(TableRow(name(one), texts(cells)))
    return TableBlock(
        heads((*differing, "measured", "predicted", "90 %", "error", "before")),
        tuple(rows),
        "P x T",
        title="each configuration, predicted from the others",
        keys=len(differing),
    )


def _terms(terms: Sequence[Entry]) -> Section:
    """Times that the signature may lack, and whether the runs ask for them."""
    lines = [
        f"{one['meaning']}: {one['amplitude']['value']:.4g} {one['unit']}; runs left out are "
        f"{math.exp(min(max(one['gain'], -9.0), 9.0)):.2g} times as likely with it"
        for one in terms
        if one["taken"]
    ]
    others = [one["meaning"] for one in terms if not one["taken"]]
    if others:
        lines.append(f"not asked for by the runs, part of the intervals only: {'; '.join(others)}")
    return titled("times that the signature may lack", lines)


def _next(fit: Entry) -> Section:
    """Runs that would narrow the answer, and what they cost."""
    runs, targets = fit["measure_next"], fit["targets"]
    asked = ", ".join(map(name, targets[:_SHOWN])) + (" ..." if len(targets) > _SHOWN else "")
    if not runs:
        return (NoteBlock(f"no run that is worth its time would narrow the runtime of {asked}"),)
    differing = varied([*runs, *fit["left_out"]])
    rows = [
        TableRow(
            described(one, differing),
            texts(
                (
                    f"-{percent(one['narrows'], 0)} %",
                    str(one["nodes"]),
                    format_time(one["runtime"], digits=3),
                    f"{one['core_seconds']:.3g}",
                )
            ),
        )
        for one in runs
    ]
    table = TableBlock(
        heads(("interval", "nodes", "takes", "core seconds")),
        tuple(rows),
        "P x T",
        title=f"measure next, for the runtime of {asked}",
    )
    run = runs[0]
    brief = (
        f"measure next: {described(run, differing)} ({format_time(run['runtime'], digits=3)}, "
        f"{plural(run['nodes'], 'node')}) narrows the runtime of {asked} by "
        f"{percent(run['narrows'], 0)} %"
    )
    return (Brief(((table,),), ((NoteBlock(brief),),)),)


def _go_on(fit: Entry, path: str | None) -> Section:
    """The command that predicts with what was learnt."""
    if path is None:
        return (NoteBlock("keep it: add -o fitted.toml", Role.REMARK),)
    first, profile = fit["targets"][0], fit["machine"]
    words = ["popmodel", "predict", path, "--machine"]
    words.append(str(profile["name"] if profile["preset"] else profile["path"]))
    words += ["--procs", str(first["processes"]), "--threads", str(first["threads"])]
    settings = fit["application"]["settings"]
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value:.15g}")]
    return (CommandBlock((join(words),)),)
