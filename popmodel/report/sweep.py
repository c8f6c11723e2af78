"""Splits of cores into processes and threads: the table, what to take, how to launch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.report.export import Record, markdown_table
from popmodel.report.heading import application, title
from popmodel.report.predict import launch_lines
from popmodel.report.render import Document, Views
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    pairs,
    paragraph,
    percent,
    table,
)
from popmodel.units import format_size, plural

_HEADS = ("runtime s", "90 %", "PE %", "best", "memory")


def screen(document: Document, style: Style) -> list[str]:
    """All splits, on a terminal."""
    lines = [
        *title(document, [_cores(document)], style),
        *pairs([("machine", _machine(document))], style),
    ]
    if document["what_if"]:
        lines += pairs([("what if", _what_if(document))], style)
    rows = [Row(_name(one, document), tuple(_cells(one))) for one in _ordered(document)]
    lines += ["", *table([[head] for head in _HEADS], rows, style, first="  P x T")]
    for one in document["refused"]:
        lines += paragraph(
            f"{one['processes']} x {one['threads']} not possible: {one['why']}", style, first="  "
        )
    for choice in document["choices"]:
        lines += ["", *pairs(_advice(choice, document), style)]
    lines += _doubt(document, style)
    for choice in document["choices"]:
        lines += ["", *launch_lines(choice["launch"], style.width)]
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
            "regret": one["regret"],
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
        [_name(one, document).strip(), *(cell.text for cell in _cells(one))]
        for one in _ordered(document)
    ]
    lines = [
        f"## {application(document)}, {_cores(document)}",
        "",
        f"machine {_machine(document)}",
        "",
        *markdown_table(["P x T", *_HEADS], body),
        "",
    ]
    for choice in document["choices"]:
        lines += [f"- {name}: {value}" for name, value in _advice(choice, document)]
        lines += ["", "```sh", choice["launch"], "```"]
    return lines


def _cores(document: Document) -> str:
    counts = [str(choice["cores"]) for choice in document["choices"]]
    return f"{', '.join(counts)} {'core' if counts == ['1'] else 'cores'}"


def _machine(document: Document) -> str:
    machine = document["machine"]
    origin = "preset, not measured" if machine["preset"] else machine["origin"]
    return f"{machine['name']} ({origin}), {plural(machine['cores_per_node'], 'core')} per node"


def _what_if(document: Document) -> str:
    return ", ".join(f"{name} {factor:g}x" for name, factor in document["what_if"].items())


def _ordered(document: Document) -> list[Mapping[str, Any]]:
    return sorted(document["candidates"], key=lambda one: (one["cores"], one["threads"]))


def _name(one: Mapping[str, Any], document: Document) -> str:
    taken = [one["processes"], one["threads"]] in [c["take"] for c in document["choices"]]
    return f"{'*' if taken else ' '} {one['processes']:>4} x {one['threads']}"


def _cells(one: Mapping[str, Any]) -> list[Cell]:
    runtime, efficiency = one["runtime"], one["parallel_efficiency"]
    low, high = runtime["low"], runtime["high"]
    memory = one["memory_per_process"]
    return [
        Cell(f"{runtime['value']:.4g}"),
        Cell("-" if low is None else f"{low:.3g} .. {high:.3g}"),
        Cell(percent(efficiency["value"]), efficiency["value"]),
        Cell(f"{100 * one['probability_best']:.0f} %"),
        Cell("-" if memory is None else format_size(memory, digits=3)),
    ]


def _split(pair: list[int]) -> str:
    return f"{pair[0]} x {pair[1]}"


def _advice(choice: Mapping[str, Any], document: Document) -> list[tuple[str, str]]:
    several = len(document["choices"]) > 1
    lines = [("cores", str(choice["cores"]))] if several else []
    regret = f"expected regret {percent(choice['regret'])} %"
    lines.append(("take", f"{_split(choice['take'])}, {regret}"))
    tied = [_split(pair) for pair in choice["tied"]]
    if len(tied) > 1:
        lines.append(("tied", f"{', '.join(tied)} (likely within 2 % of the best)"))
    usual = [f"{name} {100 * loss:+.1f} %" for name, loss in choice["defaults"].items()]
    if usual:
        lines.append(("defaults", ", ".join(usual)))
    return lines


def _doubt(document: Document, style: Style) -> list[str]:
    if not document["doubtful"]:
        return []
    name, share = next(iter(document["doubtful"].items()))
    text = f"{name}, {percent(share, 0)} % of the variance of the runtime"
    return pairs([("doubtful", text)], style)


VIEWS = Views(screen, records, markdown)
