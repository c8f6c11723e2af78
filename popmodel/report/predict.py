"""A predicted run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from popmodel.metrics.hierarchy import load_families
from popmodel.model.uncertainty import group
from popmodel.report.export import Record, markdown_table
from popmodel.report.heading import application, title
from popmodel.report.reasons import Reasons
from popmodel.report.render import Document, Views
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    bar,
    display_width,
    loses,
    pairs,
    paragraph,
    percent,
    shell_lines,
    table,
)
from popmodel.units import format_size, format_time, plural

BAR_WIDTH = 20

Estimate = Mapping[str, Any]


def views(families: Sequence[str]) -> Views:
    """How a prediction is shown.

    Parameters
    ----------
    families : sequence of str
        Families of metrics that the screen and the Markdown text show; CSV has all.
    """
    return Views(partial(screen, families=families), records, partial(markdown, families=families))


def screen(document: Document, style: Style, families: Sequence[str]) -> list[str]:
    """The prediction on a terminal, from the setting to the command that launches the run."""
    reasons = Reasons()
    lines = [
        *title(document, (_size(document), _short(document)), style),
        *pairs(_setting(document), style),
        "",
    ]
    lines += pairs(_results(document), style)
    for heading, rows in _trees(document, families, reasons):
        lines += ["", *_efficiencies(heading, rows, style)]
    lines += reasons.lines(style)
    lines += ["", *_time(document, style)]
    lines += _advice(document, style)
    lines += ["", "notes"]
    for note in _notes(document):
        lines += paragraph(note, style, first=" - ")
    return [*lines, "", *launch_lines(document["launch"], style.width)]


def records(document: Document) -> list[Record]:
    """One line per predicted quantity: runtime, metrics of all families, parts of the time."""
    head = {
        "application": document["application"]["name"],
        "machine": document["machine"]["name"],
        "processes": document["processes"],
        "threads": document["threads"],
    }

    def record(group: str, name: str, estimate: Estimate, absent: str = "") -> Record:
        bounds = {key: estimate.get(key) for key in ("value", "low", "high")}
        return {**head, "family": group, "metric": name, **bounds, "absent": absent}

    rows = [record("", "runtime", document["runtime"])]
    rows += [record("time", part, estimate) for part, estimate in document["time"].items()]
    for family, metrics in document["metrics"].items():
        rows += [record(family, metric, estimate) for metric, estimate in metrics.items()]
        rows += [
            record(family, metric, {}, reason)
            for metric, reason in document["absent"][family].items()
        ]
    return rows


def markdown(document: Document, families: Sequence[str]) -> list[str]:
    """The same as the screen, as Markdown."""
    reasons = Reasons()
    facts = [*_setting(document), *_results(document)]
    lines = markdown_table([application(document), _size(document)], facts)
    for heading, rows in _trees(document, families, reasons):
        body = [["  " * row.depth + row.label, *(cell.text for cell in row.cells)] for row in rows]
        lines += ["", *markdown_table([heading, "%", "90 %"], body)]
    for text in reasons.texts():
        lines += ["", text]
    body = [[row.label, *(cell.text for cell in row.cells[:2])] for row in _parts(document)]
    lines += ["", *markdown_table(["where the time goes", "time", "%"], body)]
    remedies = [(label, _change(change)) for label, change in document["remedies"].items()]
    if remedies:
        lines += ["", *markdown_table(["what would help", "runtime"], remedies)]
    for text in [*_doubts(document), *_notes(document)]:
        lines += ["", text]
    return [*lines, "", "```sh", document["launch"], "```"]


def launch_lines(command: str, width: int) -> list[str]:
    """A shell command in lines of at most `width` columns that can be pasted as they are.

    Words that fit nowhere stand on a line of their own.
    """
    parts = [
        shell_lines(given.split(), width) for given in command.replace("\\\n", "\n").splitlines()
    ]
    return [
        line if part is parts[-1] or line.endswith("\\") else f"{line} \\"
        for part in parts
        for line in part
    ]


def _size(document: Document) -> str:
    return (
        f"{plural(document['processes'], 'process', 'processes')} x "
        f"{plural(document['threads'], 'thread')}"
    )


def _short(document: Document) -> str:
    return f"{document['processes']} x {document['threads']}"


def _setting(document: Document) -> list[tuple[str, str]]:
    """The machine and how the run lies on it."""
    machine, placement = document["machine"], document["placement"]
    origin = "preset, not measured" if machine["preset"] else machine["origin"]
    place = (
        f"{plural(placement['nodes'], 'node')} x "
        f"{plural(placement['processes_per_node'], 'process', 'processes')} x "
        f"{plural(document['threads'], 'core')}"
    )
    if placement["grid"]:
        place += f", grid {'x'.join(str(extent) for extent in placement['grid'])}"
    facts = [("machine", f"{machine['name']} ({origin})"), ("place", place)]
    memory = document["memory_per_process"]
    if memory is not None:
        facts.append(("memory", f"{format_size(memory, digits=3)} per process"))
    if not document["application"]["bundled"]:
        facts.insert(0, ("signature", PurePath(document["application"]["path"]).name))
    return facts


def _results(document: Document) -> list[tuple[str, str]]:
    runtime = document["runtime"]
    text = format_time(runtime["value"])
    if runtime["low"] is None:
        text += f", no interval: {runtime.get('why', 'not known')}"
    else:
        text += (
            f", 90 %: {format_time(runtime['low'], digits=3)} .. "
            f"{format_time(runtime['high'], digits=3)} (parameters only)"
        )
    form = document["model_form"]
    bracket = (
        f"{format_time(form['full_overlap'], digits=3)} .. "
        f"{format_time(form['no_overlap'], digits=3)}, memory traffic hidden or not at all"
    )
    return [("runtime", text), ("overlap", bracket), ("replay", _replay(document["replay"]))]


def _replay(found: Mapping[str, Any]) -> str:
    """What the replay says beside the closed form, and which of them is shown."""
    if "why" in found:
        return f"none: {found['why']}"

    def said(side: str) -> str:
        one = found[side]
        efficiency = percent(one["parallel_efficiency"])
        return f"{format_time(one['runtime'])}, parallel efficiency {efficiency} %"

    if found["trusted"] == "replay":
        return f"shown; the closed form says {said('closed_form')}"
    return f"{said('replay')}, agrees"


def _trees(
    document: Document, families: Sequence[str], reasons: Reasons
) -> list[tuple[str, list[Row]]]:
    trees = []
    for name in families:
        family = load_families()[name]
        for walk in family.tree():
            rows = []
            for line in walk.rows:
                label = family.metrics[line.metric].name
                estimate = document["metrics"][name].get(line.metric)
                cells: tuple[Cell, ...]
                if estimate is None:
                    cells = (Cell(reasons.mark(document["absent"][name][line.metric])),)
                else:
                    value = Cell(percent(estimate["value"]), estimate["value"])
                    cells = (value, Cell(_interval(estimate, reasons)))
                    limits = line.metric == document["limits"] and loses(estimate["value"])
                    label += " <-" if limits else ""
                rows.append(Row(f"({label})" if line.view else label, cells, line.depth))
            trees.append((walk.heading or family.title, rows))
    return trees


def _efficiencies(heading: str, rows: Sequence[Row], style: Style) -> list[str]:
    heads = [["%"], ["90 %"]]
    widest = max(row.depth + display_width(row.label) for row in rows)
    above = [] if display_width(heading) <= widest else paragraph(heading, style)
    first = "" if above else heading
    drawn = table(heads, rows, style, first=first)
    if "" in drawn:  # continued below: rather an interval under its metric than the tree twice
        drawn = table(heads[:1], _below(rows), style, first=first)
    return [*above, *drawn]


def _below(rows: Sequence[Row]) -> list[Row]:
    """The rows with their second figure, the interval, on a line of its own."""
    narrow: list[Row] = []
    for row in rows:
        narrow.append(Row(row.label, row.cells[:1], row.depth))
        narrow += [Row(f"90 %: {cell.text}", (), row.depth + 2) for cell in row.cells[1:]]
    return narrow


def _interval(estimate: Estimate, reasons: Reasons) -> str:
    if estimate["low"] is None:
        return reasons.mark(estimate.get("why", "not known"))
    return f"{percent(estimate['low'], 0)} .. {percent(estimate['high'], 0)}"


def _parts(document: Document) -> list[Row]:
    """Parts of the runtime with their share, the largest first."""
    runtime = document["runtime"]["value"]
    largest = sorted(document["time"].items(), key=lambda part: -part[1]["value"])
    return [
        Row(
            name,
            (
                Cell(format_time(part["value"])),
                Cell(percent(part["value"] / runtime)),
                Cell(bar(part["value"] / runtime, BAR_WIDTH).ljust(BAR_WIDTH)),
            ),
            depth=1,
        )
        for name, part in largest
    ]


def _time(document: Document, style: Style) -> list[str]:
    heads = [["time"], ["%"], [""]]
    title = "where the time goes"
    drawn = table(heads, _parts(document), style, first=title)
    if "" not in drawn:
        return drawn
    figures = [Row(row.label, row.cells[:2], row.depth) for row in _parts(document)]
    return table(heads[:2], figures, style, first=title)  # no room for bars


def _advice(document: Document, style: Style) -> list[str]:
    lines: list[str] = []
    if document["remedies"]:
        rows = [
            Row(label, (Cell(_change(change)),), depth=1)
            for label, change in document["remedies"].items()
        ]
        lines += ["", *table([["runtime"]], rows, style, first="what would help")]
    for doubt in _doubts(document):
        lines += paragraph(doubt, style, rest=" ")
    return lines


def _change(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"


def _doubts(document: Document) -> list[str]:
    """The input that the interval owes most to."""
    if not document["doubtful"]:
        return []
    name, share = next(iter(document["doubtful"].items()))
    origins = {value["origin"] for path, value in document["inputs"].items() if group(path) == name}
    origin = f" ({', '.join(sorted(origins))})" if origins else ""
    return [f"doubtful: {name}{origin}, {percent(share, 0)} % of the variance of the runtime"]


def _notes(document: Document) -> list[str]:
    """Remarks, the two ratios of the classical model, and what the prediction leaves out."""
    notes = [
        _ratio("e_mt", "speed-up per thread of the parallel loops", document["e_mt"]),
        _ratio("e_mp", "communication against one process per core", document["e_mp"]),
        *document["notes"],
    ]
    if document["left_out"]:
        notes.append(f"unknown of the machine and left out: {', '.join(document['left_out'])}")
    return notes


def _ratio(name: str, meaning: str, estimate: Estimate) -> str:
    if estimate["value"] is None:
        return f"{name} ({meaning}): none, {estimate.get('why', 'not known')}"
    interval = (
        ""
        if estimate["low"] is None
        else f", 90 %: {estimate['low']:.3f} .. {estimate['high']:.3f}"
    )
    return f"{name} ({meaning}): {estimate['value']:.3f}{interval}"
