"""Projected efficiencies: the metrics at each size, the laws, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.fit.efficiency_laws import LAWS
from popmodel.reports.blocks import (
    Facts,
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
from popmodel.reports.figures import percent
from popmodel.reports.joint import joint_caveats
from popmodel.reports.names import run_names
from popmodel.reports.project_plot import picture
from popmodel.reports.reasons import Reasons
from popmodel.reports.trees import efficiency, label
from popmodel.reports.views import Document, Record, Views

RUNTIME = "runtime"
_BASELINES = {
    "nearest": "as the nearest run",
    "linear": "ideal from there",
    "amdahl": "Amdahl's law",
    "pipe": "law of pipelines",
    "normal-form": "one normal form",
}

Found = Mapping[tuple[str, str], Mapping[str, Any]]


def views(families: Sequence[str] | None = None) -> Views:
    """Return how a projection is shown."""
    return Views(lambda document: blocks(document, families), records, picture)


def blocks(document: Document, families: Sequence[str] | None = None) -> list[Section]:
    """What is projected from what, a table for each size, the laws, other extrapolations."""
    reasons = Reasons()
    shown = families or first_family(document)
    names = run_names([run["source"] for run in document["runs"]])
    sections: list[Section] = [
        _about(document),
        notes([*document["warnings"], *joint_caveats(document["runs"], names)]),
    ]
    sections.extend(tuple(_tables(document, size, shown, reasons)) for size in sizes(document))
    return [
        *sections,
        reasons.section(),
        *(laws(line, several=len(document["lines"]) > 1) for line in document["lines"]),
        plain(document),
        notes([document["scaling"]["why"], *document["scaling"]["notes"]], Role.REMARK),
    ]


def records(document: Document) -> list[Record]:
    """One line per size, family and metric."""
    return [dict(row) for row in document["rows"]]


def first_family(document: Document) -> list[str]:
    """The family that was projected first, if any."""
    found = dict.fromkeys(row["family"] for row in document["rows"] if row["family"])
    return [*found][:1]


def sizes(document: Document) -> list[tuple[int, int]]:
    """Processes and threads that are projected."""
    return list(dict.fromkeys((row["processes"], row["threads"]) for row in document["rows"]))


def _about(document: Document) -> Section:
    return (
        Title("projected efficiencies", (f"{document['scaling']['mode']} scaling",)),
        Facts(facts(document)),
    )


def facts(document: Document) -> tuple[tuple[str, str], ...]:
    """What is projected, by which laws, and how far intervals reach."""
    runs = document["runs"]
    measured = dict.fromkeys(f"{run['processes']} x {run['threads']}" for run in runs)
    law = document["law"]
    return (
        ("runs", f"{len(runs)} ({', '.join(measured)})"),
        ("law", "for each factor its own (auto)" if law == "auto" else law),
        ("reach", "; ".join(_reach(line) for line in document["lines"])),
    )


def _reach(line: Mapping[str, Any]) -> str:
    low, high = line["reach"]["low"], line["reach"]["high"]
    fixed = "T" if line["axis"] == "processes" else "P"
    what = "processes" if line["axis"] == "processes" else "threads per process"
    return f"intervals from {max(low, 1):g} to {high:g} {what} (at {fixed} = {line['fixed']})"


def _tables(
    document: Document, size: tuple[int, int], families: Sequence[str], reasons: Reasons
) -> Iterator[TableBlock]:
    """Runtime and speed-up, then the tree of each family."""
    found: Found = {
        (row["family"], row["metric"]): row
        for row in document["rows"]
        if (row["processes"], row["threads"]) == size
    }
    columns = heads(("projected", "90 %", "by law"))
    first = [_row("runtime", found["", RUNTIME], reasons, format_time)]
    if speedup := found.get((SCALING, "speedup")):
        first.append(_row("speed-up", speedup, reasons, "{:.3g}".format))
    yield TableBlock(columns, tuple(first), first=f"{size[0]} x {size[1]}", group="projected")
    for name in dict.fromkeys((*families, SCALING)):
        family = load_families()[name]
        for walk in family.tree()[:1]:
            rows = tuple(
                _row(
                    label(family, line),
                    found[name, line.metric],
                    reasons,
                    "{:.3f}".format if name == SCALING else percent,
                    depth=line.depth,
                    coloured=name != SCALING,
                )
                for line in walk.rows
                if (name, line.metric) in found and not is_above(name, line.metric, families)
            )
            unit = ", ratios" if name == SCALING else ", %"
            if rows:
                yield TableBlock(columns, rows, title=f"{family.title}{unit}", group="projected")


def is_above(family: str, metric: str, families: Sequence[str]) -> bool:
    """Whether a metric of the scaling stands above it already."""
    repeated = any(metric in load_families()[name].metrics for name in families if name != family)
    return family == SCALING and (metric == "speedup" or repeated)


def _row(
    name: str,
    row: Mapping[str, Any],
    reasons: Reasons,
    text: Any,
    depth: int = 0,
    coloured: bool = False,
) -> TableRow:
    value = row["value"]
    law = "" if row["law"] == "derived" else row["law"]
    if value is None:
        return TableRow(name, texts((reasons.mark(row["why"]), "", law)), depth)
    shown = efficiency(value) if coloured else TableCell(text(value))
    interval = (
        reasons.mark(row["why"])
        if row["low"] is None
        else f"{text(row['low'])} .. {text(row['high'])}"
    )
    return TableRow(name, (shown, *texts((interval, law))), depth)


def laws(line: Mapping[str, Any], *, several: bool) -> Section:
    """The law of each factor, and what each law is off at runs that are left out."""
    where = f" at {'T' if line['axis'] == 'processes' else 'P'} = {line['fixed']}"
    tested = any(one["error"] is not None for law in line["laws"] for one in law["tried"])
    forms = [f"{law['name']}: {law['form']}{_constants(law['constants'])}" for law in line["laws"]]
    title = f"laws{where if several else ''}"
    if not tested:
        return titled(f"{title}, assumed", forms)
    rows = []
    for law in line["laws"]:
        errors = {one["law"]: one["error"] for one in law["tried"]}
        cells = [_off(errors.get(name)) for name in LAWS]
        rows.append(TableRow(law["name"], texts((law["law"], *cells))))
    table = TableBlock(
        heads(("by law", *LAWS)), tuple(rows), title=f"{title}, error at runs left out"
    )
    return (table, *notes(forms, Role.REMARK))


def _off(error: float | None) -> str:
    """How far off a law is at runs left out, in words."""
    if error is None:
        return "-"
    return f"{100 * error:.2g} %" if error < 1 else f"x {math.exp(error):.2g}"


def _constants(constants: Mapping[str, float]) -> str:
    shown = ", ".join(f"{name} = {value:.4g}" for name, value in constants.items())
    return f", {shown}" if shown else ""


def plain(document: Document) -> Section:
    """Runtimes by extrapolations that know nothing of the factors."""
    asked = list(dict.fromkeys((one["processes"], one["threads"]) for one in document["baselines"]))
    rows = [
        TableRow(
            text,
            texts(
                format_time(one["runtime"]) for one in document["baselines"] if one["name"] == name
            ),
        )
        for name, text in _BASELINES.items()
    ]
    return (
        TableBlock(
            heads(f"{p} x {t}" for p, t in asked),
            tuple(rows),
            first="runtime alone",
        ),
    )
