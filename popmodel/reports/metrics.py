"""Efficiencies of measured runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.base.units import count, format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.efficiency.verdict import verdict
from popmodel.reports.blocks import (
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
from popmodel.reports.figures import describe_team
from popmodel.reports.joint import joint_caveats, joint_notes, joint_warnings
from popmodel.reports.metrics_plot import picture
from popmodel.reports.names import run_names
from popmodel.reports.places import placed
from popmodel.reports.reasons import Reasons
from popmodel.reports.trees import efficiency, lifted, tree_rows
from popmodel.reports.verdict_blocks import verdict_section
from popmodel.reports.views import Document, Record, Views
from popmodel.reports.warnings import warned

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family, FamilyLine

_OUTSIDE_MPI = {"outside_mpi_mean", "outside_mpi_max"}  # aggregates that have two readings
_IN_LINE = "metrics"  # all tables of the runs stand in line

Run = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """Caveats, then the runs side by side: size, one tree per family, what to look at."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    several = len(runs) > 1
    reasons = Reasons()
    families = _families(runs)
    sections = _first(document, names, reasons)
    columns = heads(names if several else ["%"])
    for family in families:
        sections += [(tree,) for tree in _trees(family, runs, columns, reasons)]
        sections[-1] += _legend(family)
    if several or not families:
        rows = _scaling_rows(runs, reasons)
        scaling = TableBlock(columns, rows, first="Scaling, ratios", group=_IN_LINE)
        sections.append((scaling, *notes(_scaling_words(document), Role.REMARK)))
    return [*sections, reasons.section(), *_last(document, names), _other_families(runs)]


def beside_trees(document: Document) -> list[Section]:
    """What `blocks` has beside the efficiencies, for where these are shown already."""
    names = run_names([run["trace"] for run in document["runs"]])
    reasons = Reasons()
    first = _first(document, names, reasons)
    return [*first, reasons.section(), *_last(document, names)]


def _first(document: Document, names: Sequence[str], reasons: Reasons) -> list[Section]:
    """Caveats, and the size of each run."""
    runs = document["runs"]
    sizes = TableBlock(heads(names), _sizes(runs, reasons), group=_IN_LINE, is_key=True)
    return [notes(joint_caveats(runs, names)), (sizes, *_reading(runs))]


def _last(document: Document, names: Sequence[str]) -> list[Section]:
    """What to look at: advice, regions and calls, notes and warnings."""
    runs = document["runs"]
    return [
        verdict_section(verdict([document])),
        placed(runs, names, _in_detail(document, names)),
        titled("notes", joint_notes(runs, names)),
        warned(joint_warnings(runs, names)),
    ]


def records(document: Document) -> list[Record]:
    """One line per run, family and metric, with a value or the reason why there is none."""
    rows: list[Record] = []
    names = run_names([run["trace"] for run in document["runs"]])
    for name, run in zip(names, document["runs"], strict=True):
        head = {
            "run": name,
            "trace": run["trace"],
            "processes": run["processes"],
            "threads": run["threads"]
            if isinstance(run["threads"], int)
            else describe_team(run["threads"]),
            "outside_mpi": run["outside_mpi"],
        }
        basics = {"runtime": run["runtime"], "ideal_runtime": run["ideal_runtime"]}
        if window := run["window"]:
            basics |= {f"window_{name}": window[name] for name in ("begin", "end")}
            basics |= {f"left_out_{name}": value for name, value in window["left_out"].items()}
        for metric, value in basics.items():
            rows.append({**head, "family": "", "metric": metric, "value": value, "absent": ""})
        for family, values in run["metrics"].items():
            for metric, value in values.items():
                row = {"family": family, "metric": metric, "value": value, "absent": ""}
                rows.append(head | row)
            for metric, reason in run["absent"][family].items():
                row = {"family": family, "metric": metric, "value": None, "absent": reason}
                rows.append(head | row)
    return rows


def _families(runs: Sequence[Run]) -> list[Family]:
    """The families of the runs in the order of the definition, scaling (drawn apart) left out."""
    return [
        family
        for name, family in load_families().items()
        if name != SCALING and name in runs[0]["metrics"]
    ]


def _sizes(runs: Sequence[Run], reasons: Reasons) -> tuple[TableRow, ...]:
    def ideal(run: Run) -> str:
        if run["ideal_runtime"] is not None:
            return format_time(run["ideal_runtime"])
        why = run["observables"]["absent"].get("ideal_runtime", "not replayed")
        return reasons.mark(why)

    teams = [f"{count(run['processes'])} x {describe_team(run['threads'])}" for run in runs]
    return (
        TableRow("processes x threads", texts(teams)),
        TableRow("runtime", texts(format_time(run["runtime"]) for run in runs)),
        TableRow("ideal runtime", texts(map(ideal, runs))),
    )


def _reading(runs: Sequence[Run]) -> Section:
    """What was taken for time outside MPI, if not the usual, and where that matters."""
    if runs[0]["outside_mpi"] == "everywhere":
        return ()
    families = [
        name
        for name, family in load_families().items()
        if any(
            not _OUTSIDE_MPI.isdisjoint(metric.formula.names) for metric in family.metrics.values()
        )
    ]
    text = "time outside MPI: all time outside MPI calls (not-in-mpi); affects"
    return (NoteBlock(f"{text} {', '.join(families)} only"),)


def _cell(run: Run, family: str, metric: str, reasons: Reasons) -> TableCell:
    value = run["metrics"][family].get(metric)
    if value is None:
        return TableCell(reasons.mark(run["absent"][family][metric]))
    return efficiency(value, ratio=family == SCALING)


def _trees(
    family: Family, runs: Sequence[Run], columns: tuple[tuple[str], ...], reasons: Reasons
) -> Iterator[TableBlock]:
    """Each tree of a family: its own, its second readings, its views."""
    several = len(runs) > 1

    def cells(line: FamilyLine) -> list[TableCell] | None:
        if line.metric == "global_efficiency" and not several:
            return None  # compares with a reference run
        return [_cell(run, family.id, line.metric, reasons) for run in runs]

    for walk in family.tree():
        heading = walk.heading or family.title
        title = f"{heading}, %" if several else heading
        rows = lifted(tree_rows(family, walk.rows, cells))
        yield TableBlock(columns, rows, title=title, group=_IN_LINE)


def _legend(family: Family) -> Section:
    if not any(metric.view_of for metric in family.metrics.values()):
        return ()
    text = "in parentheses: other views of the same loss; they overlap and do not add up"
    return (NoteBlock(text, Role.REMARK),)


def _in_detail(document: Document, names: Sequence[str]) -> int:
    """The run whose regions and calls a screen shows: the one that is advised on, else the last."""
    causes = document["advice"]["causes"]
    return names.index(causes[0]["run"]) if causes else len(names) - 1


def _scaling_words(document: Document) -> list[str]:
    """How the runs were compared, and doubts about it."""
    return [document["scaling"]["why"], *document["scaling"]["notes"]]


def _scaling_rows(runs: Sequence[Run], reasons: Reasons) -> tuple[TableRow, ...]:
    family = load_families()[SCALING]
    shown = [line.metric for walk in family.tree() for line in walk.rows]
    return tuple(
        TableRow(
            family.metrics[metric].name,
            tuple(_cell(run, SCALING, metric, reasons) for run in runs),
        )
        for metric in dict.fromkeys(shown)
    )


def _other_families(runs: Sequence[Run]) -> Section:
    others = [name for name in load_families() if name not in runs[0]["metrics"]]
    return (NoteBlock(f"other families: {', '.join(others)} (--family)"),) if others else ()


VIEWS = Views(blocks, records, picture)
