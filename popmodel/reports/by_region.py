"""Runs with a column for each region that the program marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from popmodel.base.units import count, format_time
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import percent
from popmodel.reports.joint import joint_caveats, without_numbers
from popmodel.reports.metrics_plot import picture
from popmodel.reports.names import run_names
from popmodel.reports.reasons import Reasons
from popmodel.reports.trees import efficiency, tree_rows
from popmodel.reports.views import Document, Record, Views

Run = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """Caveats, then for each run its tables: size, one tree for each family."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    sections = [notes(joint_caveats(runs, names))]
    for run, name in zip(runs, names, strict=True):
        reasons = Reasons()
        columns = heads([name, *(column["region"] for column in run["by_region"])])
        sections += [
            (TableBlock(columns, rows, first=title),) for title, rows in _tables(run, reasons)
        ]
        sections += [reasons.section(), titled("notes", _notes(run))]
    return sections


def records(document: Document) -> list[Record]:
    """One line per run, region, family and metric; the whole has no region."""
    rows: list[Record] = []
    names = run_names([run["trace"] for run in document["runs"]])
    for name, run in zip(names, document["runs"], strict=True):
        for column in [{**run, "region": ""}, *run["by_region"]]:
            head = {"run": name, "trace": run["trace"], "region": column["region"]}
            basics = {one: column[one] for one in ("runtime", "ideal_runtime")}
            basics["occurrences"] = column["window"] and column["window"]["occurrences"]
            for metric, value in basics.items():
                why = "" if value is not None else column.get("problem") or ""
                rows.append({**head, "family": "", "metric": metric, "value": value, "absent": why})
            for family in _families(run):
                for metric in load_families()[family].metrics:
                    value, why = _value(column, family, metric)
                    rows.append(
                        {**head, "family": family, "metric": metric, "value": value, "absent": why}
                    )
    return rows


def _families(run: Run) -> list[str]:
    return [
        name
        for name in run["metrics"]
        if any(name in column["metrics"] for column in run["by_region"])
    ]


def _tables(run: Run, reasons: Reasons) -> Iterator[tuple[str, tuple[TableRow, ...]]]:
    """Head of the labels and rows of each table, with a cell for the run and for each region."""
    columns = [run, *run["by_region"]]

    def time(column: Run, name: str) -> TableCell:
        if column[name] is not None:
            return TableCell(format_time(column[name]))
        absent = column.get("problem") or run["observables"]["absent"].get(name) or "not replayed"
        return TableCell(reasons.mark(absent))

    times = [
        TableRow(label, tuple(time(column, name) for column in columns))
        for label, name in (("runtime", "runtime"), ("ideal runtime", "ideal_runtime"))
    ]
    share = [
        TableCell(percent(c["runtime"] / run["runtime"]) if c["runtime"] else "") for c in columns
    ]
    occurrences = ["", *(c["window"] and count(c["window"]["occurrences"]) for c in columns[1:])]
    yield (
        "",
        (
            TableRow("occurrences", texts(text or "" for text in occurrences)),
            times[0],
            TableRow("share of the runtime, %", tuple(share)),
            times[1],
        ),
    )
    for family in map(load_families().__getitem__, _families(run)):

        def cells(line: FamilyLine, family: str = family.id) -> list[TableCell]:
            found = (_value(column, family, line.metric) for column in columns)
            return [
                TableCell(reasons.mark(why)) if x is None else efficiency(x) for x, why in found
            ]

        for walk in family.tree():
            yield f"{walk.heading or family.title}, %", tree_rows(family, walk.rows, cells)


def _value(column: Run, family: str, metric: str) -> tuple[float | None, str]:
    """A metric of the run or of a region, or why there is none."""
    if column.get("problem"):
        return None, str(column["problem"])
    value = column["metrics"][family].get(metric)
    return value, "" if value is not None else column["absent"][family][metric]


def _notes(run: Run) -> list[str]:
    """What has to be known about single regions; what is left out between them is not repeated.

    Nor is what differs in numbers only from what is known of the run.
    """
    known = {without_numbers(text) for text in run["notes"]}
    return [
        text if f"region {column['region']}" in text else f"{column['region']}: {text}"
        for column in run["by_region"]
        for text in (*column["caveats"], *column["notes"])
        if not text.startswith("analysed ") and without_numbers(text) not in known
    ]


VIEWS = Views(blocks, records, picture)
