"""A signature that was found or fitted: how good it is, what it rests on, what to run next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.shell import join
from popmodel.base.units import count, format_time, plural
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    Title,
    first_rows,
    folded,
    heads,
    in_brief,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import percent
from popmodel.reports.prediction_words import (
    application,
    described,
    machine,
    omitted,
    split_name,
    varied,
)
from popmodel.reports.views import Document, Views

_ITEMS = {
    "loop": "loop",
    "serial": "serial part",
    "parallel": "parallel loop",
    "halo": "halo exchange",
    "shift": "shift",
    "p2p": "point-to-point message",
    "messages": "message list",
    "collective": "collective operation",
}
_SHOWN = 3
"""Rows of a table on the screen; files, values and remarks that are named there."""
_DOUBTFUL = 0.1
"""How far a signature may be from its runs."""


def blocks(document: Document) -> list[Section]:
    """What is doubtful, how near it is, what it was found in, what is not known, what to do."""
    if "calibration" in document:
        return calibration_blocks(document)
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
    phases = _phases(known["phases"])
    replays = first_rows(_replays(fidelity), _SHOWN) if len(fidelity) > 1 else ()
    return [
        (NoteBlock(_verdict(document), Role.VERDICT),),
        (Facts((("from", given), ("program", program))),),
        replays,
        (folded(((phases,),)),) if replays else first_rows(phases, _SHOWN),
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


def _replays(fidelity: Sequence[dict[str, Any]]) -> Listing:
    """Runs replayed on the ideal network, and the signature there; the worst first."""
    rows = [
        row(
            _run(one),
            format_time(one["measured"]),
            format_time(one["replayed"]),
            f"{100 * _off(one):+.1f}",
        )
        for one in sorted(fidelity, key=lambda one: -abs(_off(one)))
    ]
    return Listing("replayed on the ideal network", ("trace", "signature", "off %"), tuple(rows))


def _phases(phases: Sequence[dict[str, Any]]) -> Listing:
    total = sum(one["total"] for one in phases) or 1.0
    rows = [
        row(
            one["label"],
            f"{100 * one['total'] / total:.1f}",
            format_time(one["seconds"]),
            count(one["executions"]),
            f"{100 * one['persistent_cv']:.1f}",
            f"{100 * one['transient_cv']:.1f}",
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
    files, errors = known["files"], known["errors"]
    items = [plural(number, _ITEMS[kind]) for kind, number in known["items"].items()]
    unknown = plural(len(document["unknown"]), "value") if document["unknown"] else "nothing"
    name = document["path"] or document["application"]
    is_joined = "traces" in document["origins"]
    measured = "numbers from the trace where noted" if is_joined else "nothing here was measured"
    read = f" as far as it was read, with {plural(errors, 'error')}" if errors else ""
    verdict = f"{name}: {unknown} left open by the source{read}; {measured}"
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


_SEEN = 0.1
_KINDS = ("machine", "law")

Entry = Mapping[str, Any]


def calibration_blocks(document: Document) -> list[Section]:
    """The verdict, constants, configurations left out, what to run next, and how to go on."""
    fit = document["calibration"]
    verdict, doubts = notes(document["notes"]), document["caveats"]
    constants = sorted(document["values"], key=lambda one: -one["learnt"])
    most, shown = (1, _SHOWN - 1) if doubts else (_SHOWN - 1, _SHOWN)
    about = (("machine", machine(fit)), ("run to run", f"{percent(fit['noise'])} %"))
    return [
        omitted(fit),
        in_brief(doubts, 2, Role.WARNING),
        (Title(application(fit), (plural(fit["runs"], "run"),)), *verdict[:shown]),
        (folded((verdict[shown:], (Facts(about),))),),
        _compared("constants", [{**one, "after": one} for one in constants], most),
        (folded((_inputs(fit["inputs"]), _terms(fit["terms"]))),),
        first_rows(_left_out(fit["left_out"]), most),
        _next_runs(fit),
        _go_on(fit, document["path"]),
    ]


def _inputs(inputs: Sequence[Entry]) -> Section:
    """What the runs taught of the machine and of the laws: what moved or narrowed most."""
    some = [one for one in inputs if one["kind"] in _KINDS and _told(one) > _SEEN]
    return _compared("machine and laws", sorted(some, key=lambda one: -_told(one)), _SHOWN)


def _told(one: Entry) -> float:
    """By how much an input narrowed, or moved in halves of the interval that it had."""
    before = one["before"]
    reach = max(before["high"] - before["low"], 1e-300) / 2
    moved = min(abs(one["after"]["value"] - before["value"]) / reach, 1.0)
    return float(max(one["learnt"] or 0.0, moved))


def _compared(title: str, inputs: Sequence[Entry], most: int) -> Section:
    """Numbers before and after, what was learnt most first; some the runs do not tell."""
    rows = []
    for one in inputs:
        after, unit, learnt = one["after"], one["unit"], one["learnt"]
        label = one["name"] if unit in (None, "", "1") else f"{one['name']}, {unit}"
        cells = (
            "?" if one["before"]["value"] is None else f"{one['before']['value']:.4g}",
            "not told" if after["value"] is None else f"{after['value']:.4g}",
            "" if after["low"] is None else f"{after['low']:.3g}..{after['high']:.3g}",
            "-" if learnt is None else f"{percent(learnt, 0)} %",
        )
        rows.append(row(label, *cells, depth=1))
    columns = heads(("before", "fitted", "90 %", "learnt"))
    return first_rows(TableBlock(columns, tuple(rows), title), most) if rows else ()


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
        rows.append(row(split_name(one), *cells))
    return TableBlock(
        heads((*differing, "measured", "predicted", "90 %", "error", "before")),
        tuple(rows),
        "P x T",
        title="each configuration, predicted from the others, the worst first",
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


def _next_runs(fit: Entry) -> Section:
    """Runs that would narrow the answer, and what they cost."""
    runs, targets = fit["measure_next"], fit["targets"]
    asked = ", ".join(map(split_name, targets[:_SHOWN])) + (" ..." if len(targets) > _SHOWN else "")
    if not runs:
        return (NoteBlock(f"no run that is worth its time would narrow the runtime of {asked}"),)
    differing = varied([*runs, *fit["left_out"]])
    rows = [
        row(
            described(one, differing),
            f"-{percent(one['narrows'], 0)} %",
            str(one["nodes"]),
            format_time(one["runtime"], digits=3),
            f"{one['core_seconds']:.3g}",
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
