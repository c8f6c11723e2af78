"""What runs consist of: processes, one line each, and regions, one column each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.units import count, format_time, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import UNITS
from popmodel.reports.blocks import (
    Brief,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import efficiency, percent, run_names, tree_rows
from popmodel.reports.notes import Reasons, joint_caveats, without_numbers
from popmodel.reports.views import Document, Views

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MOST_REGIONS = 3  # columns on a screen
SHOWN = 10
"""Processes in a table; of more, those that differ most from the average."""
_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_COUNTS = (("1e12", 1e-12), ("1e9", 1e-9), ("1e6", 1e-6), ("1e3", 1e-3), ("", 1.0))
_HEADS = {
    "useful": ("", "useful"),
    "useful_share": ("", "useful"),
    "mpi": ("", "MPI"),
    "in_openmp": ("in", "OpenMP"),
    "serial_useful": ("serial", "useful"),
    "instructions": ("instruc-", "tions"),
    "ipc": ("", "IPC"),
}
_MOST, _LEAST = ">", "<"
_MEANINGS = {
    "useful": "useful: average over the threads of a process",
    "instructions": "instructions: sum over its threads",
    "in_openmp": "MPI, in OpenMP, serial useful: master thread",
}

Run = Mapping[str, Any]


def process_blocks(document: Document) -> list[Section]:
    """Caveats, then a table for each run."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    sections = [notes(joint_caveats(runs, names))]
    for run, name in zip(runs, names, strict=True):
        sections.append(_of_run(run, f"processes of {name}" if len(runs) > 1 else "processes"))
    return sections


def _of_run(run: Run, title: str) -> Section:
    columns = _columns(run)
    legend = NoteBlock(_legend(columns, run["threads"]))

    def table(shown: NDArray[np.int64]) -> TableBlock:
        return TableBlock(tuple(one.head for one in columns), _rows(columns, shown), first=title)

    shown, every = _outliers(columns), np.arange(len(run["by_process"]))
    if len(shown) == len(every):
        return (table(every), legend)
    text = f"and {plural(len(every) - len(shown), 'process', 'processes')} nearer to the average"
    hidden = NoteBlock(f"{text} (all with --format csv or json)")
    return (Brief(whole=((table(every), legend),), brief=((table(shown), hidden, legend),)),)


@dataclass(frozen=True)
class _ProcessColumn:
    """A quantity as it is printed: its head with the unit, its numbers in it, and decimals."""

    name: str
    head: tuple[str, ...]
    values: NDArray[np.float64]
    decimals: int

    def text(self, value: float) -> str:
        return "-" if np.isnan(value) else f"{value:.{self.decimals}f}"


def _columns(run: Run) -> list[_ProcessColumn]:
    """What any process has, in the order of the columns."""
    processes = run["by_process"]
    known = {name: np.array([one[name] for one in processes], np.float64) for name in UNITS}
    known["useful_share"] = known["useful"] / run["runtime"]
    unit, per_second = next(one for one in _TIMES if run["runtime"] * one[1] >= 1)
    columns = []
    for name, head in _HEADS.items():
        values = known[name]
        if np.isnan(values).all():
            continue
        if name == "useful_share":
            made = _ProcessColumn(name, (*head, "%"), 100 * values, 1)
        elif name == "ipc":
            made = _ProcessColumn(name, (*head, ""), values, 3)
        else:
            largest = run["runtime"] if UNITS[name] == "s" else float(np.nanmax(values))
            if UNITS[name] == "s":
                text, factor = unit, per_second
            else:
                text, factor = next((u for u in _COUNTS if largest * u[1] >= 1), _COUNTS[-1])
            made = _ProcessColumn(name, (*head, text), values * factor, _decimals(largest * factor))
        columns.append(made)
    return columns


def _decimals(largest: float) -> int:
    """Decimals with which the largest number has four digits."""
    return max(0, 3 - int(np.floor(np.log10(largest)))) if largest > 0 else 0


def _legend(columns: Sequence[_ProcessColumn], threads: int | Sequence[int]) -> str:
    """What the marks and the columns mean that are there."""
    names = {column.name for column in columns}
    said = [f"highest of all processes marked {_MOST}, lowest {_LEAST}"]
    if threads != 1:
        said += [text for name, text in _MEANINGS.items() if name in names]
    return "; ".join(said)


def _rows(columns: Sequence[_ProcessColumn], shown: NDArray[np.int64]) -> tuple[TableRow, ...]:
    """Lines of the processes that are shown, then the lowest, the average and the highest."""
    rows = [
        TableRow(f"rank {process}", tuple(_cell(column, process) for column in columns), depth=1)
        for process in shown.tolist()
    ]
    for label, sum_up in (("lowest", np.nanmin), ("average", np.nanmean), ("highest", np.nanmax)):
        figures = (column.text(float(sum_up(column.values))) for column in columns)
        rows.append(TableRow(label, texts(f"{figure} " for figure in figures)))
    return tuple(rows)


def _cell(column: _ProcessColumn, process: int) -> TableCell:
    value, least, most = column.values[process], np.nanmin(column.values), np.nanmax(column.values)
    mark = " "
    if least < most:
        mark = _MOST if value == most else _LEAST if value == least else " "
    share = value / 100 if column.name == "useful_share" else None
    return TableCell(column.text(value) + mark, share)


def _outliers(columns: Sequence[_ProcessColumn]) -> NDArray[np.int64]:
    """The processes at the ends of each column, then those furthest from the average useful time.

    Ascending; all if there are no more than `SHOWN`.
    """
    useful = columns[0].values
    if len(useful) <= SHOWN:
        return np.arange(len(useful))
    ends = [
        int(choose(column.values)) for column in columns for choose in (np.nanargmin, np.nanargmax)
    ]
    far = np.argsort(-np.abs(useful - useful.mean()), kind="stable").tolist()
    return np.sort(np.array(list(dict.fromkeys([*ends, *far]))[:SHOWN]))


def region_blocks(document: Document) -> list[Section]:
    """Caveats, then for each run its tables: size, one tree for each family."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    whole: list[Section] = [notes(joint_caveats(runs, names))]
    brief: list[Section] = []
    for run, name in zip(runs, names, strict=True):
        reasons = Reasons()
        columns = heads([name, *(column["region"] for column in run["by_region"])])
        whole += [
            (TableBlock(columns, rows, first=title),)
            for title, rows in _region_tables(run, reasons)
        ]
        whole += [reasons.section(), titled("notes", _region_notes(run))]
        brief += _largest_regions(run, name)
    return [(Brief(tuple(whole), tuple(brief)),)]


def _largest_regions(run: Run, name: str) -> Iterator[Section]:
    """The regions with most time in one table: their sizes and the first tree without its views."""
    longest = sorted(run["by_region"], key=lambda one: one["runtime"] or 0.0, reverse=True)
    kept = [one for one in run["by_region"] if one in longest[:_MOST_REGIONS]]
    reasons = Reasons()
    tables = _region_tables({**run, "by_region": kept}, reasons)
    _, sizes = next(tables)
    title, tree = next(tables, ("", ()))
    rows = (*sizes, *(row for row in tree if not row.label.startswith("(")))
    table = TableBlock(heads([name, *(one["region"] for one in kept)]), rows, first=title)
    left_out = len(longest) - len(kept)
    more = [f"{plural(left_out, 'more region')}: --all"] if left_out else []
    yield (table, *notes(more, Role.REMARK), *reasons.section())


def _region_families(run: Run) -> list[str]:
    return [
        name
        for name in run["metrics"]
        if any(name in column["metrics"] for column in run["by_region"])
    ]


def _region_tables(run: Run, reasons: Reasons) -> Iterator[tuple[str, tuple[TableRow, ...]]]:
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
    for family in map(load_families().__getitem__, _region_families(run)):

        def cells(line: FamilyLine, family: str = family.id) -> list[TableCell]:
            found = (_region_value(column, family, line.metric) for column in columns)
            return [
                TableCell(reasons.mark(why)) if x is None else efficiency(x) for x, why in found
            ]

        for walk in family.tree():
            yield f"{walk.heading or family.title}, %", tree_rows(family, walk.rows, cells)


def _region_value(column: Run, family: str, metric: str) -> tuple[float | None, str]:
    """A metric of the run or of a region, or why there is none."""
    if column.get("problem"):
        return None, str(column["problem"])
    value = column["metrics"][family].get(metric)
    return value, "" if value is not None else column["absent"][family][metric]


def _region_notes(run: Run) -> list[str]:
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


BY_PROCESS = Views(process_blocks, ("runs[].by_process[]",), ("runs[].trace",), "efficiency_tree")
BY_REGION = Views(
    region_blocks,
    ("runs[]", "runs[].by_region[]"),
    ("runs[].trace", "runs[].processes", "runs[].threads"),
    "efficiency_tree",
)
