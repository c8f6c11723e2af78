"""Projected efficiencies: the metrics at each size, the laws, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.fit.efficiency_laws import LAWS
from popmodel.reports.blocks import (
    Brief,
    Facts,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    folded,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import loses, percent
from popmodel.reports.joint import joint_caveats
from popmodel.reports.names import run_names
from popmodel.reports.reasons import Reasons
from popmodel.reports.trees import efficiency, label, tree_rows
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
    """Return how a projected run is shown."""
    return Views(lambda document: blocks(document, families), records)


def blocks(document: Document, families: Sequence[str] | None = None) -> list[Section]:
    """The projected run, from what it rests on to the laws and other extrapolations."""
    reasons, inner = Reasons(), document["projection"]
    shown = list(families or first_family(inner))
    size = document["processes"], document["threads"]
    tables = tuple(_tables(inner, size, shown, reasons))
    in_brief = tuple(section for name in shown[:1] for section in _in_brief(document, name))
    about = facts(inner)
    return [
        doubted(document),
        (
            Title(title(inner), (_size(document),)),
            Brief(((Facts(about),),), ((Facts(about[:1]),),)),
            NoteBlock(answer(document), Role.VERDICT),
        ),
        (Brief((tables, reasons.section(), *further(inner)), in_brief),),
    ]


def further(inner: Document) -> tuple[Section, ...]:
    """What a projection assumes, its laws, other extrapolations, and how runs scale."""
    names = run_names([run["source"] for run in inner["runs"]])
    return (
        notes([*inner["warnings"], *joint_caveats(inner["runs"], names)]),
        *(laws(line, several=len(inner["lines"]) > 1) for line in inner["lines"]),
        plain(inner),
        notes([inner["scaling"]["why"], *inner["scaling"]["notes"]], Role.REMARK),
    )


def doubted(document: Document) -> Section:
    """That a result is not to be trusted, and why."""
    if document["trust"]["ok"]:
        return ()
    return notes([f"not to be trusted yet: {document['trust']['why']}"], Role.WARNING)


def title(inner: Document) -> str:
    """The runs that are carried on."""
    runs = inner["runs"]
    names = dict.fromkeys(run["source"].rpartition("/")[2].partition(":")[0] for run in runs)
    return ", ".join(names)


def answer(document: Document) -> str:
    """How long the run takes, how efficient it is, and how much faster than the reference."""
    runtime = document["runtime"]
    if runtime["value"] is None:
        return f"{_size(document)} has no runtime: {runtime['why']}"
    text = f"{_size(document)} takes {format_time(runtime['value'])}"
    if runtime["low"] is not None:
        ends = " .. ".join(format_time(runtime[end], digits=3) for end in ("low", "high"))
        text += f" (90 %: {ends})"
    for family in document["metrics"].values():
        if "parallel_efficiency" in family:
            text += f", parallel efficiency {percent(family['parallel_efficiency']['value'])} %"
            break
    speedup = document["metrics"].get(SCALING, {}).get("speedup")
    if speedup is not None:
        reference = document["projection"]["scaling"]["reference"].rpartition("/")[2]
        text += f", {speedup['value']:.3g} times as fast as {reference}"
    return text


def _in_brief(document: Document, name: str) -> Iterator[Section]:
    """The tree of a family beside that of the largest run, and what costs most."""
    family, metrics, inner = (
        load_families()[name],
        document["metrics"][name],
        document["projection"],
    )
    largest = max(inner["runs"], key=lambda run: run["processes"] * run["threads"])
    has_interval = any(one["low"] is not None for one in metrics.values())
    values = {id: one["value"] for id, one in metrics.items()}
    losing = [id for id in family.leaves(values) if loses(values[id])]
    worst = min(losing, key=values.__getitem__, default=None)

    def cells(line: FamilyLine) -> list[TableCell] | None:
        if line.metric not in metrics:
            return None
        low, high = (metrics[line.metric][end] for end in ("low", "high"))
        ends = "-" if low is None else f"{percent(low)} .. {percent(high)}"
        before = largest["metrics"][name].get(line.metric)
        return [
            efficiency(values[line.metric]),
            *([TableCell(ends)] if has_interval else []),
            TableCell("-") if before is None else efficiency(before),
        ]

    rows = tree_rows(family, family.tree()[0].rows, cells, worst)
    columns = ["%", *(["90 %"] if has_interval else []), _size(largest)]
    yield (TableBlock(heads(columns), rows, title=family.title),)
    if worst is not None and document["trust"]["ok"]:
        law = next(row["law"] for row in inner["rows"] if row["metric"] == worst)
        text = f"{family.metrics[worst].name} costs most"
        yield notes([f"{text}; by the law {law}" if law != "derived" else text])


def _size(run: Mapping[str, Any]) -> str:
    return f"{run['processes']} x {run['threads']}"


def records(document: Document) -> list[Record]:
    """One line per size, family and metric."""
    return [dict(row) for row in document["projection"]["rows"]]


def first_family(document: Document) -> list[str]:
    """The family that was projected first, if any."""
    found = dict.fromkeys(row["family"] for row in document["rows"] if row["family"])
    return [*found][:1]


def sizes(document: Document) -> list[tuple[int, int]]:
    """Processes and threads that are projected."""
    return list(dict.fromkeys((row["processes"], row["threads"]) for row in document["rows"]))


def facts(document: Document) -> tuple[tuple[str, str], ...]:
    """What is projected, by which laws, and how far intervals reach."""
    runs = document["runs"]
    measured = dict.fromkeys(f"{run['processes']} x {run['threads']}" for run in runs)
    law = document["law"]
    return (
        ("runs", f"{len(runs)} ({', '.join(measured)}), {document['scaling']['mode']} scaling"),
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


# All splits of some cores.


def split_blocks(document: Document) -> list[Section]:
    """The splits that laws reach, the fastest, and what it rests on."""
    inner = document["projection"]
    counts = list(dict.fromkeys(one["cores"] for one in document["candidates"]))
    rows = []
    for one in document["candidates"]:
        runtime, known = one["runtime"], one["parallel_efficiency"]["value"]
        taken = [one["processes"], one["threads"]] in document["best"]
        low, high = runtime["low"], runtime["high"]
        chance = one["probability_best"]
        label = f"{'*' if taken else ' '} {one['processes']} x {one['threads']}"
        if runtime["value"] is None:
            rows.append(TableRow(label, instead=runtime["why"]))
            continue
        cells = (
            TableCell(format_time(runtime["value"])),
            TableCell(
                "-"
                if low is None
                else f"{format_time(low, digits=3)} .. {format_time(high, digits=3)}"
            ),
            TableCell("-") if known is None else efficiency(known),
            TableCell("-" if chance is None else f"{100 * chance:.0f} %"),
        )
        rows.append(TableRow(label, cells))
    table = TableBlock(heads(("runtime", "90 %", "PE %", "best")), tuple(rows), first="  P x T")
    refused = [
        f"{one['processes']} x {one['threads']}: not projected, {one['why']}"
        for one in document["refused"]
    ]
    brief = [f"{plural(len(refused), 'other split')}: not projected, no run has as many threads"]
    about = facts(inner)
    return [
        doubted(document),
        (
            Title(title(inner), (f"{', '.join(map(str, counts))} cores",)),
            Brief(((Facts(about),),), ((Facts(about[:1]),),)),
            *notes(_answers(document, counts), Role.VERDICT),
        ),
        (table, *(Brief((notes(refused),), (notes(brief),)) for _ in refused[:1])),
        (folded(further(inner)),),
    ]


def _answers(document: Document, counts: Sequence[int]) -> Iterator[str]:
    """The largest number of cores that was asked for, and the best split of one number."""
    if document["target"] is not None:
        keep = "keeps" if counts[0] == 1 else "keep"
        words = f"{plural(counts[0], 'core')} {keep} a parallel efficiency of"
        yield f"{words} {100 * document['target']:g} %, the most within reach"
    if len(counts) == 1:
        yield f"fastest of {plural(counts[0], 'core')}: {_fastest(document)}"


def _fastest(document: Document) -> str:
    """The fastest split and those that are likely as good."""
    if not document["best"]:
        return "none can be projected"
    first, *others = (f"{p} x {t}" for p, t in document["best"])
    as_good = f"; {', '.join(others)} may be as fast" if others else ""
    return f"{first}{'' if document['trust']['ok'] else ', as far as known'}{as_good}"


def split_records(document: Document) -> list[Record]:
    """One line per split."""
    return [
        {
            "cores": one["cores"],
            "processes": one["processes"],
            "threads": one["threads"],
            **{
                f"{quantity}_{bound}": one[quantity][bound]
                for quantity in ("runtime", "parallel_efficiency")
                for bound in ("value", "low", "high")
            },
            "probability_best": one["probability_best"],
            "absent": "",
        }
        for one in document["candidates"]
    ] + [
        {
            "cores": one["processes"] * one["threads"],
            "processes": one["processes"],
            "threads": one["threads"],
            "absent": one["why"],
        }
        for one in document["refused"]
    ]


SPLITS = Views(split_blocks, split_records)
