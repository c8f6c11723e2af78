"""Runs with a column for each region that the program marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.report.export import Record, markdown_table
from popmodel.report.joint import joint_caveats, without_numbers
from popmodel.report.names import run_names
from popmodel.report.reasons import Reasons
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Cell, Row, Style, paragraph, percent, table
from popmodel.report.warnings import caveat_lines
from popmodel.units import count, format_time

if TYPE_CHECKING:
    pass

Run = Mapping[str, Any]


def screen(document: Document, style: Style) -> list[str]:
    """Caveats, then for each run its tables: size, one tree for each family."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    lines = caveat_lines(joint_caveats(runs, names), style)
    for index, (run, name) in enumerate(zip(runs, names, strict=True)):
        lines += [""] if index else []
        reasons = Reasons()
        heads = [[column] for column in _names(run, name)]
        for number, (title, rows) in enumerate(_tables(run, reasons)):
            lines += [""] if number else []
            lines += table(heads, rows, style, first=title)
        lines += reasons.lines(style)
        notes = _notes(run)
        lines += ["", "notes"] if notes else []
        lines += [line for note in notes for line in paragraph(note, style, first=" - ")]
    return lines


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


def markdown(document: Document) -> list[str]:
    """The same tables as on the screen."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    lines = [line for caveat in joint_caveats(runs, names) for line in (caveat, "")]
    for run, name in zip(runs, names, strict=True):
        reasons = Reasons()
        for title, rows in _tables(run, reasons):
            body = [
                [" " * (2 * row.depth) + row.label, *(cell.text for cell in row.cells)]
                for row in rows
            ]
            lines += [*markdown_table([title, *_names(run, name)], body), ""]
        lines += [line for text in [*reasons.texts(), *_notes(run)] for line in (text, "")]
    return lines[:-1]


def _names(run: Run, name: str) -> list[str]:
    return [name, *(column["region"] for column in run["by_region"])]


def _families(run: Run) -> list[str]:
    return [
        name
        for name in run["metrics"]
        if any(name in column["metrics"] for column in run["by_region"])
    ]


def _tables(run: Run, reasons: Reasons) -> Iterator[tuple[str, list[Row]]]:
    """Head of the labels and rows of each table, with a cell for the run and for each region."""
    columns = [run, *run["by_region"]]

    def time(column: Run, name: str) -> Cell:
        if column[name] is not None:
            return Cell(format_time(column[name]))
        absent = column.get("problem") or run["observables"]["absent"].get(name) or "not replayed"
        return Cell(reasons.mark(absent))

    times = [
        Row(label, tuple(time(column, name) for column in columns))
        for label, name in (("runtime", "runtime"), ("ideal runtime", "ideal_runtime"))
    ]
    share = [Cell(percent(c["runtime"] / run["runtime"]) if c["runtime"] else "") for c in columns]
    occurrences = ["", *(c["window"] and count(c["window"]["occurrences"]) for c in columns[1:])]
    yield (
        "",
        [
            Row("occurrences", tuple(Cell(text or "") for text in occurrences)),
            times[0],
            Row("share of the runtime, %", tuple(share)),
            times[1],
        ],
    )
    for name in _families(run):
        family = load_families()[name]
        for walk in family.tree():
            rows = []
            for line in walk.rows:
                label = family.metrics[line.metric].name
                cells = tuple(_cell(column, name, line.metric, reasons) for column in columns)
                rows.append(Row(f"({label})" if line.view else label, cells, line.depth))
            yield f"{walk.heading or family.title}, %", rows


def _cell(column: Run, family: str, metric: str, reasons: Reasons) -> Cell:
    value, why = _value(column, family, metric)
    return Cell(reasons.mark(why)) if value is None else Cell(percent(value), value)


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


VIEWS = Views(screen, records, markdown)
