"""Predictions from measured runs: metrics and splits, the laws, and what they rest on."""

from __future__ import annotations

import math
import re
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
    in_brief,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import efficiency, loses, run_names, time_range, tree_rows
from popmodel.reports.notes import Reasons, joint_caveats
from popmodel.reports.prediction_words import run_takes, split_name
from popmodel.reports.views import Document, Views

_PLACE = r"(?::\d+)?(?: \S*\[\d+\].*| value \d+| job \S+| row \d+)?$|:\d+ .*$"
"""What stands behind the name of a file to tell a run in it."""
_BASELINES = {
    "nearest": "as the nearest run",
    "linear": "ideal from there",
    "amdahl": "Amdahl's law",
    "pipe": "law of pipelines",
    "normal-form": "one normal form",
}


def blocks(document: Document, families: Sequence[str] | None = None) -> list[Section]:
    """The projected run, from what it rests on to the laws and other extrapolations."""
    inner = document["projection"]
    shown = families or [family for family in document["metrics"] if family != SCALING][:1]
    reasons = Reasons()
    trees = [_tree(document, family, reasons) for family in dict.fromkeys((*shown, SCALING))]
    brief = [_tree(document, family) for family in shown[:1]]
    return [
        *doubted(document),
        (*_head(inner, split_name(document)), NoteBlock(_answer(document), Role.VERDICT)),
        (
            Brief(
                (*trees, reasons.section(), *further(inner)), (*brief, _costliest(document, shown))
            ),
        ),
    ]


def _head(inner: Document, size: str) -> Section:
    """The runs that are carried on, and to which size."""
    names = [re.sub(_PLACE, "", run["source"].rpartition("/")[2]) for run in inner["runs"]]
    measured = dict.fromkeys(map(split_name, inner["runs"]))
    law = inner["law"]
    facts = (
        (
            "runs",
            f"{len(names)} ({', '.join(measured)}), {inner['scaling']['mode']} scaling",
        ),
        ("law", "for each factor its own (auto)" if law == "auto" else law),
        ("reach", "; ".join(map(_reach, inner["lines"]))),
    )
    title = Title(", ".join(dict.fromkeys(names)), (size,))
    return title, Brief(((Facts(facts),),), ((Facts(facts[:1]),),))


def further(inner: Document) -> tuple[Section, ...]:
    """What a projection assumes, its laws, other extrapolations, and how runs scale."""
    names = run_names([run["source"] for run in inner["runs"]])
    return (
        notes(joint_caveats(inner["runs"], names)),
        *(laws(line, several=len(inner["lines"]) > 1) for line in inner["lines"]),
        plain(inner),
        notes([inner["scaling"]["why"], *inner["scaling"]["notes"]], Role.REMARK),
    )


def doubted(document: Document) -> list[Section]:
    """Why a result is not to be trusted, and what is doubtful in its runs."""
    trust = document["trust"]
    why = [] if trust["ok"] else [f"not to be trusted yet: {trust['why']}"]
    warnings = [text for text in document["projection"]["warnings"] if text not in str(why)]
    return [notes(why, Role.WARNING), in_brief(warnings, 2)]


def _answer(document: Document) -> str:
    """How long the run takes, how efficient it is, and how much faster than the reference."""
    text = run_takes(document)
    speedup = document["metrics"].get(SCALING, {}).get("speedup")
    if speedup is not None and document["runtime"]["value"] is not None:
        inner = document["projection"]
        sizes = {run["source"]: split_name(run) for run in inner["runs"]}
        text += f", speed-up {speedup['value']:.3g} over {sizes[inner['scaling']['reference']]}"
    return text + _slower(document["projection"], [document])


def _slower(inner: Document, projected: Sequence[Mapping[str, Any]]) -> str:
    """Say that a run on fewer cores was faster than all that is projected."""
    times = [one["runtime"]["value"] for one in projected if one["runtime"]["value"] is not None]
    least = min((one["processes"] * one["threads"] for one in projected), default=0)
    fewer = [run for run in inner["runs"] if run["processes"] * run["threads"] < least]
    fastest = min(fewer, key=lambda run: float(run["runtime"]), default=None)
    weak = inner["scaling"]["mode"] != "strong"
    if weak or not times or fastest is None or fastest["runtime"] >= min(times):
        return ""
    return f"; {split_name(fastest)} took {format_time(fastest['runtime'])}: more cores are slower"


def _tree(document: Document, family_id: str, reasons: Reasons | None = None) -> Section:
    """The tree of a family beside that of the largest run; whole with the reasons of gaps."""
    family, inner = load_families()[family_id], document["projection"]
    largest = max(inner["runs"], key=lambda run: run["processes"] * run["threads"])
    projected = {row["metric"]: row for row in inner["rows"] if row["family"] == family_id}
    has_interval = reasons is not None or any(row["low"] is not None for row in projected.values())

    def figure(value: float | None, why: str = "") -> TableCell:
        if value is None:
            return TableCell(reasons.mark(why) if reasons and why else "-")
        return efficiency(value, ratio=family_id == SCALING)

    def cells(line: FamilyLine) -> list[TableCell] | None:
        if line.metric not in projected:
            return None
        row = projected[line.metric]
        ends = [figure(row[end], row["why"]).text for end in ("low", "high")]
        interval = ends[0] if row["low"] is None else " .. ".join(ends)
        law = "" if row["law"] == "derived" else row["law"]
        return [
            figure(row["value"], row["why"]),
            *([TableCell(interval)] if has_interval else []),
            figure(largest["metrics"][family_id].get(line.metric)),
            *([TableCell(law)] if reasons else []),
        ]

    rows = tree_rows(family, family.tree()[0].rows, cells, _worst(document, family_id))
    columns = [split_name(document), *(["90 %"] if has_interval else []), split_name(largest)]
    unit = "" if family_id == SCALING else ", %"
    return (
        TableBlock(
            heads([*columns, *(["by law"] if reasons else [])]), rows, title=f"{family.title}{unit}"
        ),
    )


def _worst(document: Document, family: str) -> str | None:
    """The metric of a family that loses most."""
    if family == SCALING:
        return None
    values = {id: one["value"] for id, one in document["metrics"][family].items()}
    losing = [id for id in load_families()[family].leaves(values) if loses(values[id])]
    return min(losing, key=values.__getitem__, default=None)


def _costliest(document: Document, families: Sequence[str]) -> Section:
    """What loses most, and by which law; nothing where the projection is doubted."""
    worst = _worst(document, families[0]) if families else None
    if worst is None or not document["trust"]["ok"]:
        return ()
    law = next(row["law"] for row in document["projection"]["rows"] if row["metric"] == worst)
    title = load_families()[families[0]].metrics[worst].name
    return notes([f"{title} costs most" + (f"; by the law {law}" if law != "derived" else "")])


def _reach(line: Mapping[str, Any]) -> str:
    low, high = line["reach"]["low"], line["reach"]["high"]
    fixed = "T" if line["axis"] == "processes" else "P"
    what = "processes" if line["axis"] == "processes" else "threads per process"
    return f"intervals from {max(low, 1):g} to {high:g} {what} (at {fixed} = {line['fixed']})"


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
        rows.append(row(law["name"], law["law"], *(_off(errors.get(tried)) for tried in LAWS)))
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
    shown = ", ".join(f"{constant} = {value:.4g}" for constant, value in constants.items())
    return f", {shown}" if shown else ""


def plain(inner: Document) -> Section:
    """Runtimes by extrapolations that know nothing of the factors."""
    times: dict[str, dict[str, str]] = {}  # by size and name
    for one in inner["baselines"]:
        times.setdefault(split_name(one), {})[one["name"]] = format_time(one["runtime"])
    rows = [
        row(words, *(found[baseline] for found in times.values()))
        for baseline, words in _BASELINES.items()
    ]
    return (TableBlock(heads(times), tuple(rows), first="runtime alone"),)


VIEWS = Views(blocks, ("projection.rows[]",))

# All splits of some cores.


def split_blocks(document: Document) -> list[Section]:
    """The splits that laws reach, the fastest, and what it rests on."""
    inner, refused = document["projection"], document["refused"]
    counts = list(dict.fromkeys(one["cores"] for one in document["candidates"]))
    several = len(document["candidates"]) > len(counts)
    rows = tuple(_split_row(one, document, several=several) for one in document["candidates"])
    columns = ("runtime", "90 %", "PE %", *(["best"] if several else []))
    whole = notes(f"{split_name(one)}: not projected, {one['why']}" for one in refused)
    brief = f"{plural(len(refused), 'other split')}: not projected, no run has as many threads"
    return [
        *doubted(document),
        (
            *_head(inner, f"{', '.join(map(str, counts))} cores"),
            *notes(_answers(document, counts), Role.VERDICT),
        ),
        (
            TableBlock(heads(columns), rows, first="  P x T"),
            *([Brief((whole,), (notes([brief]),))] if refused else []),
        ),
        (folded(further(inner)),),
    ]


def _split_row(one: Mapping[str, Any], document: Document, *, several: bool) -> TableRow:
    runtime, low, chance = one["runtime"], one["runtime"]["low"], one["probability_best"]
    known = one["parallel_efficiency"]["value"]
    taken = [one["processes"], one["threads"]] in document["best"]
    label = f"{'*' if taken else ' '} {split_name(one)}"
    if runtime["value"] is None:
        return TableRow(label, instead=runtime["why"])
    return row(
        label,
        format_time(runtime["value"]),
        "-" if low is None else time_range(low, runtime["high"]),
        "-" if known is None else efficiency(known),
        *(["-" if chance is None else f"{100 * chance:.0f} %"] if several else []),
    )


def _answers(document: Document, counts: Sequence[int]) -> Iterator[str]:
    """The largest number of cores that was asked for, and the best split of one number."""
    if document["target"] is not None:
        keep = "keeps" if counts[0] == 1 else "keep"
        words = f"{plural(counts[0], 'core')} {keep} a parallel efficiency of"
        yield f"{words} {100 * document['target']:g} %, the most within reach"
    if len(counts) == 1:
        slower = _slower(document["projection"], document["candidates"])
        yield f"fastest of {plural(counts[0], 'core')}: {_fastest(document)}{slower}"
        return
    times = {
        one["cores"]: one["runtime"]["value"]
        for one in reversed(document["candidates"])
        if [one["processes"], one["threads"]] in document["best"]
    }
    fewer, more = sorted(times)[-2:] if len(times) > 1 else (0, 0)
    if fewer and document["trust"]["ok"]:
        ratio = times[fewer] / times[more]
        yield f"{more} cores are {ratio:.2f} times as fast as {fewer}"


def _fastest(document: Document) -> str:
    """The fastest split and those that are likely as good."""
    if not document["best"]:
        return "none can be projected"
    first, *others = (f"{p} x {t}" for p, t in document["best"])
    as_good = f"; {', '.join(others)} may be as fast" if others else ""
    if document["refused"] and len(document["candidates"]) == 1:
        as_good = ", the only split that these runs tell of"
    return f"{first}{'' if document['trust']['ok'] else ', as far as known'}{as_good}"


SPLITS = Views(split_blocks, ("candidates[]", "refused[]"))
