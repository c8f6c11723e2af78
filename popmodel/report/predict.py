"""A predicted run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import AGGREGATES
from popmodel.machine.profile import part_of
from popmodel.model.prediction import DEFAULT_REFERENCE
from popmodel.model.uncertainty import group
from popmodel.model.validity import OUTSIDE, Validity
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
    shell_words,
    table,
)
from popmodel.units import format_size, format_time, plural
from popmodel.values import dataclass

BAR_WIDTH = 20
SCALING = "scaling"
_TOLD = 0.05  # of a loss: a smaller cause is not worth a word
_FUZZ = 1e-6  # of a point: what rounding in the computation may add to 100

Estimate = Mapping[str, Any]


def views(families: Sequence[str], *, brief: bool = False) -> Views:
    """How a prediction is shown.

    Parameters
    ----------
    families : sequence of str
        Families of metrics that the screen and the Markdown text show; CSV has all.
    brief : bool
        Leave out views of a metric that show no loss.
    """
    return Views(
        partial(screen, families=families, brief=brief),
        records,
        partial(markdown, families=families, brief=brief),
    )


def screen(
    document: Document, style: Style, families: Sequence[str], *, brief: bool = False
) -> list[str]:
    """The prediction on a terminal, from the setting to the command that launches the run."""
    reasons = Reasons()
    lines = [
        *title(document, _sizes(document), style),
        *pairs(_setting(document), style),
        "",
    ]
    lines += pairs(_results(document), style)
    for tree in _trees(document, families, reasons, brief=brief):
        lines += ["", *_efficiencies(tree, style)]
        lines += [line for cause in tree.causes for line in paragraph(cause, style, first="<- ")]
    if _compares(document, families):
        lines += ["", *pairs([("reference", _reference(document))], style)]
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


def markdown(document: Document, families: Sequence[str], *, brief: bool = False) -> list[str]:
    """The same as the screen, as Markdown."""
    reasons = Reasons()
    facts = [*_setting(document), *_results(document)]
    lines = markdown_table([application(document), _sizes(document)[0]], facts)
    for tree in _trees(document, families, reasons, brief=brief):
        body = [
            ["  " * row.depth + row.label, *(cell.text for cell in row.cells)] for row in tree.rows
        ]
        lines += ["", *markdown_table([tree.heading, tree.unit, "90 %"], body)]
        lines += [line for cause in tree.causes for line in ("", f"<- {cause}")]
    if _compares(document, families):
        lines += ["", f"reference {_reference(document)}"]
    for text in reasons.texts():
        lines += ["", text]
    body = [[row.label, *(cell.text for cell in row.cells[:2])] for row in _parts(document)]
    lines += ["", *markdown_table(["where the time goes", "time", "%"], body)]
    remedies = [(label, _change(change)) for label, change in document["remedies"].items()]
    if remedies:
        lines += ["", *markdown_table(["what would help", "runtime"], remedies)]
    for text in [*_doubts(document), *_notes(document)]:
        lines += ["", text]
    return [*lines, "", "```sh", *document["launch"].split("\n"), "```"]


def launch_lines(command: str, width: int) -> list[str]:
    """A shell command in lines of at most `width` columns that can be pasted as they are.

    Words that fit nowhere stand on a line of their own.
    """
    parts = [
        shell_lines(shell_words(given), width)
        for given in command.replace("\\\n", "\n").split("\n")
    ]
    return [
        line if part is parts[-1] or line.endswith("\\") else f"{line} \\"
        for part in parts
        for line in part
    ]


def _sizes(document: Document) -> tuple[str, ...]:
    """P and T in words, the longest first."""
    processes, threads = document["processes"], document["threads"]
    return (
        f"{plural(processes, 'process', 'processes')} x {plural(threads, 'thread')}",
        f"{plural(processes, 'proc')} x {plural(threads, 'thread')}",
        f"{processes} x {threads}",
    )


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
    validity = document["validity"]
    if validity["status"] == OUTSIDE:
        text += ", no interval so far from what was measured"
    elif runtime["low"] is None:
        text += f", no interval: {runtime.get('why', 'not known')}"
    else:
        text += f", 90 %: {_times(runtime['low'], runtime['high'])} (parameters only)"
    form = document["model_form"]
    bracket = (
        f"full {format_time(form['full_overlap'], digits=3)}, "
        f"none {format_time(form['no_overlap'], digits=3)} (arithmetic and memory)"
    )
    reach = Validity(validity["status"], validity["factor"], tuple(validity["reasons"])).text
    return [
        ("runtime", text),
        ("validity", reach),
        ("overlap", bracket),
        ("replay", _replay(document["replay"])),
    ]


def _replay(found: Mapping[str, Any]) -> str:
    """What the replay says beside the closed form, and which of them is shown."""
    if "why" in found:
        return f"none: {found['why']}"

    def said(side: str) -> str:
        one = found[side]
        efficiency = percent(one["parallel_efficiency"])
        return f"{format_time(one['runtime'])}, parallel efficiency {efficiency} %"

    return f"shown; the closed form says {said('closed_form')}"


@dataclass(frozen=True)
class _Tree:
    """Metrics below each other: heading, what the figures are in, lines, what limits."""

    heading: str
    unit: str
    rows: list[Row]
    causes: list[str]


def _trees(
    document: Document, families: Sequence[str], reasons: Reasons, *, brief: bool
) -> list[_Tree]:
    trees = []
    for name in families:
        family = load_families()[name]
        ratio = name == SCALING
        for walk in family.tree():
            rows = []
            marked: list[str] = []
            for line in walk.rows:
                label = family.metrics[line.metric].name
                estimate = document["metrics"][name].get(line.metric)
                cells: tuple[Cell, ...]
                if estimate is None:
                    cells = (Cell(reasons.mark(document["absent"][name][line.metric])),)
                else:
                    if brief and line.view and not loses(estimate["value"]):
                        continue
                    cells = (
                        _value(estimate, ratio=ratio),
                        Cell(_interval(estimate, reasons, ratio=ratio)),
                    )
                    if line.metric == document["limits"] and loses(estimate["value"]):
                        label += " <-"
                        marked += _causes(document, line.metric)
                rows.append(Row(f"({label})" if line.view else label, cells, line.depth))
            unit = "" if ratio else "%"
            trees.append(_Tree(walk.heading or family.title, unit, rows, marked))
    return trees


def _causes(document: Document, metric: str) -> list[str]:
    """What of the program the loss of a metric comes from, the largest shares."""
    causes = document["causes"].get(metric)
    if not causes:
        return []
    whole = sum(causes.values())
    told = [
        f"{name} {format_time(seconds, digits=3)}"
        for name, seconds in causes.items()
        if seconds >= _TOLD * whole
    ]
    return [f"{format_time(whole, digits=3)} lost: {'; '.join(told)}"]


def _value(estimate: Estimate, *, ratio: bool) -> Cell:
    value = estimate["value"]
    # a ratio to another run may be far above 1: its colour would say nothing
    return Cell(f"{value:.3f}") if ratio else Cell(percent(value), value)


def _interval(estimate: Estimate, reasons: Reasons, *, ratio: bool) -> str:
    """The interval, rounded outwards: it always holds the value beside it."""
    low, high = estimate["low"], estimate["high"]
    if low is None:
        return reasons.mark(estimate.get("why", "not known"))
    if ratio:
        return f"{low:.3f} .. {high:.3f}"
    return f"{math.floor(100 * low + _FUZZ):.0f} .. {math.ceil(100 * high - _FUZZ):.0f}"


def _compares(document: Document, families: Sequence[str]) -> bool:
    """Whether a metric that is shown rests on the reference."""
    return any(
        "reference" in AGGREGATES[name].needs
        for family in families
        for metric in document["metrics"][family]
        for name in load_families()[family].needs(metric)
    )


def _times(low: float, high: float) -> str:
    """From one time to another, the unit once if it is the same."""
    first, last = format_time(low, digits=3), format_time(high, digits=3)
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} .. {last}"


def _reference(document: Document) -> str:
    """The run that scaling is measured against, and why it is this one."""
    reference = document["reference"]
    settings = " ".join(f"{name}={value:g}" for name, value in reference["settings"].items())
    text = (
        f"{reference['processes']} x {reference['threads']}{settings and ' with ' + settings}, "
        f"predicted {format_time(reference['runtime']['value'])}, {reference['mode']} scaling"
    )
    if reference["mode"] == "weak":
        text += f", {reference['work_ratio']['value']:.4g} times its work"
    return text if reference["why"] == DEFAULT_REFERENCE else f"{text} ({reference['why']})"


def _efficiencies(tree: _Tree, style: Style) -> list[str]:
    heads = [[tree.unit], ["90 %"]]
    widest = max(row.depth + display_width(row.label) for row in tree.rows)
    above = [] if display_width(tree.heading) <= widest else paragraph(tree.heading, style)
    first = "" if above else tree.heading
    drawn = table(heads, tree.rows, style, first=first)
    if "" in drawn:  # continued below: rather an interval under its metric than the tree twice
        drawn = table(heads[:1], _below(tree.rows), style, first=first)
    return [*above, *drawn]


def _below(rows: Sequence[Row]) -> list[Row]:
    """The rows with their second figure, the interval, on a line of its own."""
    narrow: list[Row] = []
    for row in rows:
        narrow.append(Row(row.label, row.cells[:1], row.depth))
        narrow += [Row(f"90 %: {cell.text}", (), row.depth + 2) for cell in row.cells[1:]]
    return narrow


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
    doubts = _doubts(document)
    for doubt in doubts:
        lines += paragraph(doubt, style, first="" if doubt is doubts[0] else " ", rest="  ")
    return lines


def _change(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"


def _doubts(document: Document) -> list[str]:
    """The input that the interval owes most to, and what would tell it better."""
    if not document["doubtful"]:
        return []
    name, share = next(iter(document["doubtful"].items()))
    origins = {value["origin"] for path, value in document["inputs"].items() if group(path) == name}
    origin = f" ({', '.join(sorted(origins))})" if origins else ""
    doubts = [f"doubtful: {name}{origin}, {percent(share, 0)} % of the variance"]
    part = part_of(name)
    if part is not None:
        more = " --full" if origins == {"measured"} else ""
        doubts.append(f"measure: popmodel bench{more} --only {part}")
    return doubts


def _notes(document: Document) -> list[str]:
    """Remarks, the two ratios of the classical model, and what the prediction leaves out."""
    cores = document["processes"] * document["threads"]
    notes = [
        _ratio("e_mt", "loop speed-up per thread", document["e_mt"]),
        _ratio("e_mp", f"time of messages vs {cores} x 1", document["e_mp"]),
        *_speedup(document, cores),
        *document["notes"],
    ]
    if document["left_out"]:
        notes.append(f"left out, the profile lacks: {', '.join(document['left_out'])}")
    return notes


def _speedup(document: Document, cores: int) -> list[str]:
    """How much faster than the reference, which the parallel efficiency does not tell."""
    scaling, reference = document["metrics"].get("scaling", {}), document["reference"]
    if not {"speedup", "global_efficiency"} <= scaling.keys() or reference["mode"] != "strong":
        return []
    used = reference["processes"] * reference["threads"]
    if used == cores:
        return []
    speedup, whole = scaling["speedup"], scaling["global_efficiency"]
    named = f"{reference['processes']} x {reference['threads']}"
    return [
        f"{speedup['value']:.3g} times as fast as {named} on {cores / used:g} times the cores: "
        f"global efficiency {percent(whole['value'])} %"
    ]


def _ratio(name: str, meaning: str, estimate: Estimate) -> str:
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    if value is None:
        return f"no {name}: {estimate.get('why', 'not known')}"
    interval = "" if low is None else f" ({low:.3f} .. {high:.3f})"
    # One process sends nothing, whatever others send: the ratio is 0 and has no inverse.
    inverse = f"; 1/{name} {1 / value:.3f}" if name == "e_mp" and value > 0 else ""
    return f"{name} {value:.3f}{interval}, {meaning}{inverse}"
