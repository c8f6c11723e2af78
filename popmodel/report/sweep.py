"""Splits of cores into processes and threads: the table, the recommendation, how to launch it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from popmodel.model.validity import EXTRAPOLATED, OUTSIDE
from popmodel.report.export import Record, markdown_table
from popmodel.report.heading import application, machine, title
from popmodel.report.launch import launch_lines
from popmodel.report.render import Document, Views
from popmodel.report.splits import Entry, ordered, runs
from popmodel.report.splits import cores as split_cores
from popmodel.report.splits import name as split_name
from popmodel.report.sweep_advice import advice, command, growth, largest, percentage
from popmodel.report.sweep_plot import svg
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    pairs,
    paragraph,
    percent,
    table,
)
from popmodel.report.uncertainty import PARAMETERS_ONLY, how_to, measuring
from popmodel.units import format_size, plural

_MARKS = {EXTRAPOLATED: "~", OUTSIDE: "!"}
COLUMNS = ("runtime s", "90 %", "PE %", "best", "mem/proc")
_LEAST_NEEDED = ("mem/proc", "90 %", "best")  # columns that a narrow screen does without, in order


def screen(document: Document, style: Style) -> list[str]:
    """All splits, on a terminal."""
    lines = [
        *title(document, [_cores(document)], style),
        *pairs([("machine", _machine(document))], style),
    ]
    if document["what_if"]:
        lines += pairs([("what if", _what_if(document))], style)
    if document["largest"]:
        lines += pairs([("largest", largest(document))], style)
    lines += ["", *_table(document, style)]
    for choice in document["choices"]:
        lines += ["", *pairs(advice(choice, document), style)]
        lines += measuring(command(choice), document["machine"], style)
    for one in document["growth"]:
        lines += ["", *paragraph(growth(one), style)]
    for choice in document["choices"]:
        lines.append("")
        if len(document["choices"]) > 1:
            lines.append(f"# {plural(choice['cores'], 'core')}")
        lines += launch_lines(choice["launch"], style.width)
        lines += ["or", *launch_lines(choice["launch_mpirun"], style.width)]
    return lines


def records(document: Document) -> list[Record]:
    """One line per split."""
    return [
        {
            "application": document["application"]["name"],
            "machine": document["machine"]["name"],
            "cores": one["cores"],
            "processes": one["processes"],
            "threads": one["threads"],
            **{
                f"{quantity}_{bound}": one[quantity][bound]
                for quantity in ("runtime", "parallel_efficiency")
                for bound in ("value", "low", "high")
            },
            "memory_per_process": one["memory_per_process"],
            "probability_best": one["probability_best"],
            "probability_tied": one["probability_tied"],
            "regret": one["regret"],
            "validity": one["validity"]["status"],
            "validity_factor": one["validity"]["factor"],
            "source": one["source"],
            "absent": "",
        }
        for one in document["candidates"]
    ] + [
        {
            "application": document["application"]["name"],
            "machine": document["machine"]["name"],
            "cores": one["processes"] * one["threads"],
            "processes": one["processes"],
            "threads": one["threads"],
            "absent": one["why"],
        }
        for one in document["refused"]
    ]


def markdown(document: Document) -> list[str]:
    """The table and what to take, as Markdown."""
    body = [
        [
            f"{split_name(one)}{_mark(one)}{' *' if _is_taken(one, document) else ''}",
            *_texts(one, document),
        ]
        for one in ordered(document)
    ]
    lines = [
        f"## {application(document)}, {_cores(document)}",
        "",
        f"machine {_machine(document)}",
        "",
        *([largest(document), ""] if document["largest"] else []),
        *markdown_table(["P x T", *COLUMNS], body),
        "",
        *(line for text in _remarks(document) for line in (text, "")),
    ]
    for choice in document["choices"]:
        heading = ""
        for name, value in advice(choice, document):
            heading = name or heading
            lines.append(f"- {heading}: {value}")
        measure = command(choice)
        if measure is not None:
            lines += ["", how_to(measure, document["machine"]), "", "```sh", measure, "```"]
        for launch in ("launch", "launch_mpirun"):
            lines += ["", "```sh", *choice[launch].split("\n"), "```"]
        lines.append("")
    return lines + [f"- {growth(one)}" for one in document["growth"]]


def _cores(document: Document) -> str:
    counts = [str(choice["cores"]) for choice in document["choices"]]
    return f"{', '.join(counts)} {'core' if counts == ['1'] else 'cores'}"


def _machine(document: Document) -> str:
    cores = document["machine"]["cores_per_node"]
    return f"{machine(document)}, {plural(cores, 'core')} per node"


def _what_if(document: Document) -> str:
    return ", ".join(f"{name} {factor:g}x" for name, factor in document["what_if"].items())


# -- the table


def _table(document: Document, style: Style) -> list[str]:
    """The table with as many columns as fit side by side, and what does not fit named below."""
    known = [
        name
        for name in COLUMNS
        if name != "mem/proc" or any(one["memory_per_process"] for one in document["candidates"])
    ]
    left_out: list[str] = []
    drawn = _drawn(document, known, style)
    for name in _LEAST_NEEDED:
        if drawn is not None:
            break
        if name in known:
            known.remove(name)
            left_out.append(name)
        drawn = _drawn(document, known, style)
    if drawn is None:  # nothing more to leave out: continued below rather than not shown
        drawn = _drawn(document, known, style, continued=True) or []
    for text in _remarks(document):
        drawn += paragraph(text, style)
    if left_out:
        drawn += paragraph(f"not shown (terminal too narrow): {', '.join(left_out)}", style)
    return drawn


def _drawn(
    document: Document, columns: Sequence[str], style: Style, *, continued: bool = False
) -> list[str] | None:
    """The table, or None if it does not fit; refused splits say why in place of figures."""
    rows: list[Row] = []
    reasons: dict[int, tuple[str, str]] = {}  # row: what stands before the reason, and the reason
    digits = [
        max(len(str(one[key])) for one in ordered(document)) for key in ("processes", "threads")
    ]
    for cores, group in groupby(ordered(document), split_cores):
        if len(document["choices"]) > 1:
            rows.append(Row(plural(cores, "core")))
        for first, last in runs(list(group)):
            mark = "*" if _is_taken(first, document) else " "
            label = f"{mark} {first['processes']:>{digits[0]}} x {first['threads']:<{digits[1]}}"
            if "why" not in first:
                label += _mark(first)
                rows.append(Row(label, tuple(_cells(first, document, columns))))
                continue
            if last is not first:
                label = f"{label.rstrip()} .. {split_name(last)}"
            reasons[len(rows)] = (label, f"not possible: {first['why']}")
            rows.append(Row("?"))
    drawn = table([[name] for name in columns], rows, style, first="  P x T")
    if "" in drawn and not continued:
        return None
    for index, (label, reason) in reversed(reasons.items()):
        drawn[index + 1 : index + 2] = paragraph(reason, style, first=f"{label}  ", rest="     ")
    return drawn


def _mark(one: Entry) -> str:
    """Signs for what a reader should know of a split; nothing for one that is not possible."""
    if "why" in one:
        return ""
    return _MARKS.get(one["validity"]["status"], "") + ("^" if one["regret"] is None else "")


def _remarks(document: Document) -> list[str]:
    """What the column of probabilities, the intervals and the marks mean."""
    texts = []
    if any(one["runtime"]["low"] is not None for one in document["candidates"]):
        texts.append(f"best: probability of being the fastest; {PARAMETERS_ONLY}")
    reasons = {
        tuple(one["split"]): one["why"]
        for choice in document["choices"]
        for one in choice["checked"]["not_replayed"]
    }
    alone = [one for one in document["candidates"] if one["regret"] is None]
    if alone:
        why = reasons[alone[0]["processes"], alone[0]["threads"]]
        texts.append(f"^ closed form, not compared with replays: {why}")
    return [*texts, *_beyond(document)]


def _beyond(document: Document) -> list[str]:
    """The splits that go farthest beyond what was measured."""
    words = {
        EXTRAPOLATED: "extrapolated",
        OUTSIDE: "too far outside the measured range for an interval",
    }
    texts = []
    for status, mark in _MARKS.items():
        there = [one["validity"] for one in document["candidates"]]
        there = [one for one in there if one["status"] == status]
        if there:
            farthest = max(there, key=lambda one: float(one["factor"]))
            texts.append(f"{mark} {words[status]}: {farthest['reasons'][0]}")
    return texts


def _is_taken(one: Entry, document: Document) -> bool:
    return [one["processes"], one["threads"]] in [c["take"] for c in document["choices"]]


def _cells(one: Entry, document: Document, columns: Sequence[str]) -> list[Cell]:
    """The figures of a split; the fastest of its cores is the 100 % of the runtime's colours."""
    runtime, efficiency = one["runtime"], one["parallel_efficiency"]
    fastest = min(
        each["runtime"]["value"] for each in document["candidates"] if each["cores"] == one["cores"]
    )
    low, high = runtime["low"], runtime["high"]
    memory = one["memory_per_process"]
    cells = {
        "runtime s": Cell(_figure(runtime["value"], 4), fastest / runtime["value"]),
        "90 %": Cell("-" if low is None else f"{_figure(low, 3)}..{_figure(high, 3)}"),
        "PE %": Cell(percent(efficiency["value"]), efficiency["value"]),
        "best": Cell(percentage(one["probability_best"])),
        "mem/proc": Cell("-" if memory is None else format_size(memory, digits=3)),
    }
    return [cells[name] for name in columns]


def _figure(number: float, digits: int) -> str:
    """A number with so many digits, zeros at its end included."""
    return f"{number:#.{digits}g}".removesuffix(".")


def _texts(one: Entry, document: Document) -> list[str]:
    if "why" in one:
        return [f"not possible: {one['why']}", *[""] * (len(COLUMNS) - 1)]
    return [cell.text for cell in _cells(one, document, COLUMNS)]


VIEWS = Views(screen, records, markdown, svg)
