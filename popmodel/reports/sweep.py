"""Splits of cores into processes and threads: the table, the recommendation, how to launch it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from popmodel.base.units import format_size, plural
from popmodel.prediction.prediction import EXTRAPOLATED, OUTSIDE
from popmodel.reports.blocks import (
    CommandBlock,
    Facts,
    FitBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    heads,
    notes,
)
from popmodel.reports.figures import percent
from popmodel.reports.heading import (
    BOUND,
    application,
    calibrated,
    doubted,
    learnt_runs,
    machine,
    omitted,
)
from popmodel.reports.splits import Entry, ordered, runs
from popmodel.reports.splits import cores as split_cores
from popmodel.reports.splits import name as split_name
from popmodel.reports.sweep_advice import advice, command, growth, if_sure, largest, percentage
from popmodel.reports.sweep_plot import picture
from popmodel.reports.uncertainty import INCLUDED, measuring
from popmodel.reports.views import Document, Record, Views

_MARKS = {EXTRAPOLATED: "~", OUTSIDE: "!"}
COLUMNS = ("runtime s", "90 %", "PE %", "best", "mem/proc")
_LEAST_NEEDED = ("mem/proc", "90 %", "best")  # columns that a narrow screen does without, in order


def blocks(document: Document) -> list[Section]:
    """All splits, what to take, and how to launch it."""
    return [
        (
            *doubted(document),
            *omitted(document),
            *notes(document.get("assumptions", ()), Role.WARNING),
        ),
        (Title(application(document), (cores(document),)), Facts(facts(document))),
        (_table(document),),
        learnt_runs(document),
        *(
            (
                Facts(tuple(advice(choice, document))),
                *measuring(command(choice), document["machine"]),
            )
            for choice in document["choices"]
        ),
        *((NoteBlock(growth(one)),) for one in document["growth"]),
        *((_launch(choice, document),) for choice in document["choices"]),
    ]


def facts(document: Document) -> tuple[tuple[str, str], ...]:
    """The machine, what was changed of it, and what the largest number of cores is."""
    found = [*calibrated(document), ("machine", _machine(document))]
    found += [("what if", _what_if(document))] if document["what_if"] else []
    found += [("largest", largest(document))] if document["largest"] else []
    return tuple(found)


def _launch(choice: Entry, document: Document) -> CommandBlock:
    several = len(document["choices"]) > 1
    comment = plural(choice["cores"], "core") if several else ""
    return CommandBlock((choice["launch"], choice["launch_mpirun"]), comment)


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


def cores(document: Document) -> str:
    """The numbers of cores in words: ``16, 64 cores``."""
    counts = [str(choice["cores"]) for choice in document["choices"]]
    return f"{', '.join(counts)} {'core' if counts == ['1'] else 'cores'}"


def _machine(document: Document) -> str:
    cores = document["machine"]["cores_per_node"]
    bound = BOUND[document["bind"]]
    return f"{machine(document)}, {plural(cores, 'core')} per node{bound}"


def _what_if(document: Document) -> str:
    return ", ".join(f"{name} {factor:g}x" for name, factor in document["what_if"].items())


# -- the table


def _table(document: Document) -> FitBlock:
    """The table; a narrow screen leaves columns out, which are named below."""
    known = [
        name
        for name in COLUMNS
        if name != "mem/proc" or any(one["memory_per_process"] for one in document["candidates"])
    ]
    least_needed = [name for name in _LEAST_NEEDED if name in known]
    forms = []
    for number in range(len(least_needed) + 1):
        left_out = least_needed[:number]
        columns = [name for name in known if name not in left_out]
        remarks = [*_remarks(document)]
        if left_out:
            remarks.append(f"not shown (terminal too narrow): {', '.join(left_out)}")
        forms.append(((_splits(document, columns), *notes(remarks)),))
    return FitBlock(tuple(forms))


def _splits(document: Document, columns: Sequence[str]) -> TableBlock:
    """A line for each split; refused ones say why in place of figures."""
    rows: list[TableRow] = []
    digits = [
        max(len(str(one[key])) for one in ordered(document)) for key in ("processes", "threads")
    ]
    for cores, group in groupby(ordered(document), split_cores):
        if len(document["choices"]) + len(document["impossible"]) > 1:
            rows.append(TableRow(plural(cores, "core")))
        for first, last in runs(list(group)):
            mark = "*" if _is_taken(first, document) else " "
            label = f"{mark} {first['processes']:>{digits[0]}} x {first['threads']:<{digits[1]}}"
            if "why" not in first:
                rows.append(TableRow(label + _mark(first), _cells(first, document, columns)))
                continue
            if last is not first:
                label = f"{label.rstrip()} .. {split_name(last)}"
            rows.append(TableRow(label, instead=f"not possible: {first['why']}"))
    return TableBlock(heads(columns), tuple(rows), first="  P x T")


def _mark(one: Entry) -> str:
    """Signs for what a reader should know of a split."""
    return _MARKS.get(one["validity"]["status"], "") + ("^" if one["regret"] is None else "")


def _remarks(document: Document) -> list[str]:
    """What the column of probabilities, the intervals and the marks mean."""
    texts = []
    if any(one["runtime"]["low"] is not None for one in document["candidates"]):
        texts.append(f"best: probability of being the fastest; {INCLUDED}")
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


def _cells(one: Entry, document: Document, columns: Sequence[str]) -> tuple[TableCell, ...]:
    """The figures of a split; the fastest of its cores is the 100 % of the runtime's colours."""
    runtime, efficiency = one["runtime"], one["parallel_efficiency"]
    fastest = min(
        each["runtime"]["value"] for each in document["candidates"] if each["cores"] == one["cores"]
    )
    low, high = runtime["low"], runtime["high"]
    memory = one["memory_per_process"]
    cells = {
        "runtime s": TableCell(_figure(runtime["value"], 4), fastest / runtime["value"]),
        "90 %": TableCell("-" if low is None else f"{_figure(low, 3)}..{_figure(high, 3)}"),
        "PE %": TableCell(percent(efficiency["value"]), efficiency["value"]),
        "best": TableCell(percentage(if_sure(one, "probability_best", document))),
        "mem/proc": TableCell("-" if memory is None else format_size(memory, digits=3)),
    }
    return tuple(cells[name] for name in columns)


def _figure(number: float, digits: int) -> str:
    """A number with so many digits, zeros at its end included."""
    return f"{number:#.{digits}g}".removesuffix(".")


VIEWS = Views(blocks, records, picture)
