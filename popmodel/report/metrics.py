"""Efficiencies of measured runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.report.advice import advice_lines, advice_markdown, fall_text
from popmodel.report.export import Record, markdown_table
from popmodel.report.joint import joint_caveats, joint_notes, joint_warnings
from popmodel.report.names import run_names
from popmodel.report.places import markdown_places, place_lines
from popmodel.report.reasons import Reasons
from popmodel.report.render import Document, Views
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    display_width,
    pairs,
    paragraph,
    percent,
    table,
)
from popmodel.report.warnings import caveat_lines, warning_lines, warning_text
from popmodel.units import count, format_time

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family

_OUTSIDE_MPI = {"outside_mpi_mean", "outside_mpi_max"}  # aggregates that have two readings

Run = Mapping[str, Any]


def screen(document: Document, style: Style) -> list[str]:
    """Caveats, then the runs side by side: size, one tree per family, what to look at."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    families = _families(runs)
    reasons = Reasons()
    heads = [[name] for name in names] if len(runs) > 1 else [["%"]]
    labels = _widest_label(families)
    sizes = _sizes(runs, reasons)
    lines = caveat_lines(joint_caveats(runs, names), style)
    head = table([[name] for name in names], sizes, style, least_label=labels)
    lines += [*head, *_numbered(names, head[0], style)]
    lines += [line for text in _reading(runs) for line in paragraph(text, style)]
    column = max(display_width(cell.text) for row in sizes for cell in row.cells)

    def draw(rows: Sequence[Row], title: str) -> list[str]:
        """A table that stands in line with the others."""
        return table(heads, rows, style, first=title, least_label=labels, least_column=column)

    for family in families:
        for heading, rows in _trees(family, runs, reasons):
            lines += [""]
            title = f"{heading}, %" if len(runs) > 1 else heading
            if display_width(title) > labels:
                lines += paragraph(title, style)
                title = ""
            lines += draw(rows, title)
        lines += _legend(family, style)
    if len(runs) > 1 or not families:
        rows = _scaling_rows(runs, reasons)
        lines += ["", *draw(rows, "Scaling, ratios")]
        for text in _scaling_words(document):
            lines += paragraph(text, style, first=" ")
    lines += reasons.lines(style)
    lines += advice_lines(document["advice"], style)
    run, name = _in_detail(document, names)
    lines += place_lines(run, name if len(runs) > 1 else "", style)
    notes = joint_notes(runs, names)
    lines += ["", "notes"] if notes else []
    for note in notes:
        lines += paragraph(note, style, first=" - ")
    lines += warning_lines(joint_warnings(runs, names), style)
    lines += _other_families(runs, style)
    return lines


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


def markdown(document: Document) -> list[str]:
    """The same trees as Markdown tables, with the reasons and the regions below."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    reasons = Reasons()
    sizes = [[row.label, *_texts(row)] for row in _sizes(runs, reasons)]
    lines = [line for caveat in joint_caveats(runs, names) for line in (caveat, "")]
    lines += markdown_table(["", *names], sizes)
    lines += [line for text in _reading(runs) for line in ("", text)]
    for family in _families(runs):
        for heading, rows in _trees(family, runs, reasons):
            body = [[" " * (2 * row.depth) + row.label, *_texts(row)] for row in rows]
            lines += ["", *markdown_table([f"{heading}, %", *names], body)]
    if len(runs) > 1:
        body = [[row.label, *_texts(row)] for row in _scaling_rows(runs, reasons)]
        lines += ["", *markdown_table(["Scaling, ratios", *names], body)]
        lines += [line for text in _scaling_words(document) for line in ("", text)]
    lines += [line for reason in reasons.texts() for line in ("", reason)]
    lines += advice_markdown(document["advice"])
    for run, name in zip(runs, names, strict=True):
        lines += markdown_places(run, name)
    warnings = [warning_text(warning) for warning in joint_warnings(runs, names)]
    told = [*joint_notes(runs, names), *warnings]
    lines += [line for note in told for line in ("", note)]
    return lines


def describe_team(threads: int | Sequence[int]) -> str:
    """Threads per process: ``4``, or ``1..4`` where processes differ."""
    if isinstance(threads, int):
        return str(threads)
    least, most = min(threads), max(threads)
    return str(least) if least == most else f"{least}..{most}"


def _texts(row: Row) -> list[str]:
    return [cell.text for cell in row.cells]


def _families(runs: Sequence[Run]) -> list[Family]:
    """The families of the runs in the order of the definition, scaling (drawn apart) left out."""
    return [
        family
        for name, family in load_families().items()
        if name != SCALING and name in runs[0]["metrics"]
    ]


def _sizes(runs: Sequence[Run], reasons: Reasons) -> list[Row]:
    def ideal(run: Run) -> str:
        if run["ideal_runtime"] is not None:
            return format_time(run["ideal_runtime"])
        why = run["observables"]["absent"].get("ideal_runtime", "not replayed")
        return reasons.mark(why)

    teams = [f"{count(run['processes'])} x {describe_team(run['threads'])}" for run in runs]
    return [
        Row("processes x threads", tuple(Cell(team) for team in teams)),
        Row("runtime", tuple(Cell(format_time(run["runtime"])) for run in runs)),
        Row("ideal runtime", tuple(Cell(ideal(run)) for run in runs)),
    ]


def _numbered(names: Sequence[str], head: str, style: Style) -> list[str]:
    """The names of runs whose columns have numbers because their names do not fit."""
    if "#1" not in head.split() or "#1" in names[0]:
        return []
    return pairs([(f"#{number}", name) for number, name in enumerate(names, start=1)], style)


def _reading(runs: Sequence[Run]) -> list[str]:
    """What was taken for time outside MPI, if not the usual, and where that matters."""
    if runs[0]["outside_mpi"] == "everywhere":
        return []
    families = [
        name
        for name, family in load_families().items()
        if any(
            not _OUTSIDE_MPI.isdisjoint(metric.formula.names) for metric in family.metrics.values()
        )
    ]
    return [
        "time outside MPI: all time outside MPI calls (not-in-mpi); affects "
        f"{', '.join(families)} only"
    ]


def _trees(
    family: Family, runs: Sequence[Run], reasons: Reasons
) -> Iterable[tuple[str, list[Row]]]:
    """Heading and rows of each tree of a family: its own, its second readings, its views."""
    for walk in family.tree():
        rows = []
        for line in walk.rows:
            name = family.metrics[line.metric].name
            cells = tuple(_cell(run, family.id, line.metric, reasons) for run in runs)
            rows.append(Row(f"({name})" if line.view else name, cells, line.depth))
        yield (walk.heading or family.title), rows


def _cell(
    run: Run,
    family: str,
    metric: str,
    reasons: Reasons,
    *,
    ratio: bool = False,
) -> Cell:
    value = run["metrics"][family].get(metric)
    if value is None:
        return Cell(reasons.mark(run["absent"][family][metric]))
    # A ratio to another run may be far above 1: its colour would say nothing.
    return Cell(f"{value:.3f}") if ratio else Cell(percent(value), value)


def _widest_label(families: Sequence[Family]) -> int:
    """Width of the label column of all trees, so that they stand in line."""
    return max(
        (
            row.depth + len(family.metrics[row.metric].name) + 2 * row.view
            for family in families
            for walk in family.tree()
            for row in walk.rows
        ),
        default=0,
    )


def _legend(family: Family, style: Style) -> list[str]:
    if not any(metric.view_of for metric in family.metrics.values()):
        return []
    text = "in parentheses: other views of the same loss; they overlap and do not add up"
    return paragraph(text, style, first=" ")


def _in_detail(document: Document, names: Sequence[str]) -> tuple[Run, str]:
    """The run whose regions and calls are shown: the one that is advised on, else the last."""
    runs, causes = document["runs"], document["advice"]["causes"]
    index = names.index(causes[0]["run"]) if causes else len(runs) - 1
    return runs[index], names[index]


def _scaling_words(document: Document) -> list[str]:
    """How the runs were compared, where they fall most, and doubts about it."""
    scaling, fall = document["scaling"], document["advice"]["steepest_fall"]
    return [f"{scaling['why']}", *([fall_text(fall)] if fall else []), *scaling["notes"]]


def _scaling_rows(runs: Sequence[Run], reasons: Reasons) -> list[Row]:
    family = load_families()[SCALING]
    shown = [line.metric for walk in family.tree() for line in walk.rows]
    return [
        Row(
            family.metrics[metric].name,
            tuple(_cell(run, SCALING, metric, reasons, ratio=True) for run in runs),
        )
        for metric in dict.fromkeys(shown)
    ]


def _other_families(runs: Sequence[Run], style: Style) -> list[str]:
    others = [name for name in load_families() if name not in runs[0]["metrics"]]
    if not others:
        return []
    return ["", *paragraph(f"other families: {', '.join(others)} (--family)", style)]


VIEWS = Views(screen, records, markdown)
