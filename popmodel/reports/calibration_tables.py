"""A calibrated signature: how good it is, what was learnt, what was not, what to measure next."""

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
    Further,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    Title,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import percent
from popmodel.reports.heading import application, machine, omitted
from popmodel.reports.splits import described, name, varied
from popmodel.reports.views import Document, Record

KEEP = "keep it: add -o fitted.toml"
_SHOWN = 3
"""Rows of a table on the screen."""
_SEEN = 0.1
_KINDS = ("machine", "law")

Entry = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """The verdict, constants, configurations left out, what to measure next, and how to go on."""
    warnings, verdict = document["warnings"], document["verdict"]
    first = verdict[:_SHOWN]
    return [
        omitted(document),
        _warned(warnings),
        (Title(application(document), (plural(document["runs"], "run"),)), *notes(first)),
        (Further((notes(verdict[_SHOWN:]), (Facts(about(document)),))),),
        _brief(_constants(document["constants"]), _SHOWN),
        (Further((_inputs(document["inputs"]), _terms(document["terms"]))),),
        _brief(_left_out(document["left_out"]), _SHOWN),
        _next(document),
        _go_on(document),
    ]


def _warned(warnings: Sequence[str]) -> Section:
    """What is doubtful about the runs; of many warnings the first on the screen."""
    whole = notes(warnings, Role.WARNING)
    if len(whole) < 3:
        return whole
    more = NoteBlock(f"and {plural(len(whole) - 1, 'other warning')}", Role.REMARK)
    return (Brief((whole,), ((whole[0], more),)),)


def _brief(section: Section, shown: int) -> Section:
    """A section of one table, of which a screen shows the first rows."""
    if not section:
        return ()
    table, *rest = section
    assert isinstance(table, TableBlock)
    hidden = len(table.rows) - shown
    if hidden < 2:
        return section
    more = NoteBlock(f"and {plural(hidden, 'other row')}", Role.REMARK)
    return (Brief((section,), ((replace(table, rows=table.rows[:shown]), more, *rest),)),)


def records(document: Document) -> list[Record]:
    """A row for every input: before and after."""
    rows: list[Record] = []
    constants = [
        {"name": key, "kind": "program", "unit": one["unit"], "before": one["before"], "after": one}
        | {"learnt": one["learnt"]}
        for key, one in document["constants"].items()
    ]
    for one in [*constants, *document["inputs"]]:
        row = {"input": one["name"], "kind": one["kind"], "unit": one["unit"]}
        for when in ("before", "after"):
            values = {key: one[when][key] for key in ("value", "low", "high")}
            row |= {f"{key}_{when}": value for key, value in values.items()}
        rows.append({**row, "learnt": one["learnt"]})
    return rows


def about(document: Document) -> tuple[tuple[str, str], ...]:
    """The machine, where the signature is, and what runs vary by."""
    written = document["path"]
    return (
        ("machine", machine(document)),
        *([("written", written)] if written else []),
        ("run to run", f"{percent(document['noise'])} %"),
    )


def _constants(constants: Mapping[str, Entry]) -> Section:
    """Numbers of the signature; those that the runs do not tell have none."""
    rows = [
        TableRow(
            f"{key}, {one['unit']}" if one["unit"] not in (None, "1") else key,
            texts(
                [
                    *_cells(one["before"]),
                    *(_cells(one) if one["value"] is not None else ("not told", "")),
                    f"{percent(one['learnt'], 0)} %",
                ]
            ),
            depth=1,
        )
        for key, one in constants.items()
    ]
    table = TableBlock(
        heads(("uncalibrated", "90 %", "calibrated", "90 %", "learnt")), tuple(rows), "constants"
    )
    return (table,) if rows else ()


def _inputs(inputs: Sequence[Entry]) -> Section:
    """What the runs taught of the machine and of the laws: what moved or narrowed most."""
    some = taught(inputs)
    rows = [
        TableRow(
            f"{one['name']}, {one['unit']}" if one["unit"] not in ("", "1") else one["name"],
            texts([f"{one['before']['value']:.4g}", *_cells(one["after"])]),
            depth=1,
        )
        for one in some
    ]
    if not rows:
        return ()
    table = TableBlock(
        heads(("uncalibrated", "calibrated", "90 %")), tuple(rows), "machine and laws"
    )
    return (table,)


def taught(inputs: Sequence[Entry]) -> list[Entry]:
    """Quantities of the machine and laws that moved or narrowed, the most first."""
    some = [one for one in inputs if one["kind"] in _KINDS and _tells(one)]
    return sorted(some, key=lambda one: -max(one["learnt"] or 0.0, _moved(one)))


def _moved(one: Entry) -> float:
    """By how much an input is elsewhere, in halves of the interval that it had."""
    before = one["before"]
    reach = max(before["high"] - before["low"], 1e-300) / 2
    return float(min(abs(one["after"]["value"] - before["value"]) / reach, 1.0))


def _tells(one: Entry) -> bool:
    """Whether an input is moved or narrowed by what a reader sees."""
    return (one["learnt"] or 0.0) > _SEEN or _moved(one) > _SEEN


def _cells(one: Entry) -> tuple[str, str]:
    return "?" if one["value"] is None else f"{one['value']:.4g}", ranged(one)


def ranged(one: Entry) -> str:
    """The interval of a value: ``1.2..1.4``."""
    return "-" if one["low"] is None else f"{one['low']:.3g}..{one['high']:.3g}"


def _left_out(left_out: Sequence[Entry]) -> Section:
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
            f"{one['covered']} of {len(runs)}",
        ]
        rows.append(TableRow(name(one), texts(cells)))
    columns = ("measured", "predicted", "90 %", "error", "was", "inside")
    return (
        TableBlock(
            heads((*differing, *columns)),
            tuple(rows),
            "P x T",
            title="each configuration, predicted from the others; the worst first",
            keys=len(differing),
        ),
    )


def _terms(terms: Sequence[Entry]) -> Section:
    return titled("times that the signature may lack", times_lacking(terms))


def times_lacking(terms: Sequence[Entry]) -> list[str]:
    """Times that the signature may lack, and whether the runs ask for them."""
    taken = [
        f"{one['meaning']}: {' '.join(_cells(one['amplitude']))} {one['unit']}; runs left out are "
        f"{_times(one['gain'])} as likely with it"
        for one in terms
        if one["taken"]
    ]
    others = [one["meaning"] for one in terms if not one["taken"]]
    if others:
        taken.append(f"not asked for by the runs, part of the intervals only: {'; '.join(others)}")
    return taken


def _times(gain: float) -> str:
    """A factor from its logarithm: ``7 times``."""
    return f"{math.exp(min(max(gain, -9.0), 9.0)):.2g} times"


def _next(document: Document) -> Section:
    """Runs that would narrow the answer, and what they cost."""
    runs = document["measure_next"]
    if not runs:
        return (NoteBlock(no_next(document)),)
    differing = varied([*runs, *document["left_out"]])
    rows = tuple(
        TableRow(
            described(one, differing),
            texts(
                [
                    f"-{percent(one['narrows'], 0)} %",
                    str(one["nodes"]),
                    format_time(one["runtime"], digits=3),
                    f"{one['core_seconds']:.3g}",
                ]
            ),
        )
        for one in runs
    )
    table = TableBlock(
        heads(("interval", "nodes", "takes", "core seconds")),
        rows,
        "P x T",
        title=f"measure next, for the runtime of {asked(document)}",
    )
    return _brief((table,), 2)


def asked(document: Document) -> str:
    """The runs whose runtime is asked for, in words."""
    targets = document["targets"]
    more = " and others" if len(targets) > 4 else ""
    return ", ".join(name(one) for one in targets[:4]) + more


def no_next(document: Document) -> str:
    """What is said where no further run is proposed."""
    return f"no run that is worth its time would narrow the runtime of {asked(document)}"


def _go_on(document: Document) -> Section:
    """The command that predicts with what was learnt."""
    command = next_command(document)
    if command is None:
        return (NoteBlock(KEEP, Role.REMARK),)
    return (CommandBlock((command,)),)


def next_command(document: Document) -> str | None:
    """The command that predicts with what was learnt; None where it was not written."""
    path = document["path"]
    if path is None:
        return None
    first = document["targets"][0]
    settings = document["application"]["settings"]
    words = ["popmodel", "predict", path, "--machine", _machine_of(document)]
    words += ["--procs", str(first["processes"]), "--threads", str(first["threads"])]
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value:.15g}")]
    return join(words)


def _machine_of(document: Document) -> str:
    one = document["machine"]
    return str(one["name"] if one["preset"] else one["path"])
