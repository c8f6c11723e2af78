"""Efficiencies of measured runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.report.export import Record, markdown_table
from popmodel.report.joint import joint_caveats, joint_notes, joint_warnings
from popmodel.report.metrics_document import SCALING
from popmodel.report.names import run_names
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

REGIONS_SHOWN = 10
SITES_SHOWN = 10
_SITE_HEADS = [["", "times"], ["time", "%"], ["wait", "%"], ["thread", "time lost"]]
_SITE_LEGEND = (
    "time %: of all threads' time; wait %: what of it an ideal network leaves, for others are late"
)
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
        lines += _lowest(family, runs, names, style)
    if len(runs) > 1 or not families:
        rows = _scaling_rows(runs, reasons)
        lines += ["", *draw(rows, "Scaling, ratios")]
        for text in _scaling_words(document):
            lines += paragraph(text, style, first=" ")
        lines += _lowest(load_families()[SCALING], runs, names, style)
    lines += reasons.lines(style)
    for run, name in zip(runs, names, strict=True):
        lines += _regions(run, name if len(runs) > 1 else "", style)
        lines += _call_sites(run, name if len(runs) > 1 else "", style)
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
            "threads": describe_team(run["threads"]),
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
    for run, name in zip(runs, names, strict=True):
        regions = run["observables"]["regions"]
        shown = [[row.label, *_texts(row)] for row in _region_rows(regions)]
        if shown:
            heads = [f"Parallel regions of {name}", "instances", "PE %", "LB %", "thread time lost"]
            heads += ["to locks"] if _lose_to_locks(regions) else []
            lines += ["", *markdown_table(heads, shown)]
        if sites := run["call_sites"]:
            heads = [f"Calls of MPI in {name}", *(" ".join(head).strip() for head in _SITE_HEADS)]
            body = [[row.label, *_texts(row)] for row in _site_rows(sites)]
            lines += ["", *markdown_table(heads, body), "", _SITE_LEGEND]
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
        "time outside MPI: all time that is not in a call (not-in-mpi); this acts on "
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
    text = "in brackets: other views of the same loss; they overlap and do not add up"
    return paragraph(text, style, first=" ")


def _lowest(family: Family, runs: Sequence[Run], names: Sequence[str], style: Style) -> list[str]:
    """The lowest leaf over the runs, and what to do about it."""
    found = [
        (run["lowest"][family.id]["value"], index)
        for index, run in enumerate(runs)
        if run["lowest"].get(family.id)
    ]
    if not found:
        return []
    value, index = min(found)
    lowest = runs[index]["lowest"][family.id]
    where = f" in {names[index]}" if len(runs) > 1 else ""
    title = family.metrics[lowest["metric"]].name
    size = f"{value:.3f}" if family.id == SCALING else f"{percent(value)} %"
    text = f"{title} is the lowest, {size}{where}. {lowest['advice']}"
    return ["", *paragraph(text, style, first="-> ")]


def _scaling_words(document: Document) -> list[str]:
    """How the runs were compared, and a doubt about it."""
    scaling = document["scaling"]
    return [f"{scaling['why']}.", *scaling["notes"]]


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


def _regions(run: Run, name: str, style: Style) -> list[str]:
    regions = run["observables"]["regions"]
    if not regions:
        return []
    title = f"parallel regions of {name}" if name else "parallel regions"
    heads = [["", "times"], ["PE", "%"], ["LB", "%"], ["thread", "time lost"]]
    heads += [["of it", "to locks"]] if _lose_to_locks(regions) else []
    lines = ["", *table(heads, _region_rows(regions), style, first=title)]
    left_out = len(regions) - REGIONS_SHOWN
    if left_out > 0:
        lines += paragraph(f"and {count(left_out)} cheaper ones (all with --format json)", style)
    return lines


def _region_rows(regions: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The regions that lose most thread time."""
    with_locks = _lose_to_locks(regions)
    costly = sorted(regions, key=lambda region: -region["cost"])[:REGIONS_SHOWN]
    return [
        Row(
            region["name"],
            (
                Cell(count(region["count"])),
                Cell(percent(region["parallel_efficiency"]), region["parallel_efficiency"]),
                Cell(percent(region["load_balance"]), region["load_balance"]),
                Cell(format_time(region["cost"])),
                *([Cell(format_time(region["locks"]))] if with_locks else []),
            ),
            depth=1,
        )
        for region in costly
    ]


def _lose_to_locks(regions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether waiting for locks is worth a column: 1 % of what any region loses."""
    return any(region["locks"] >= 0.01 * region["cost"] > 0 for region in regions)


def _call_sites(run: Run, name: str, style: Style) -> list[str]:
    sites = run["call_sites"]
    if not sites:
        return []
    title = f"calls of MPI in {name}" if name else "calls of MPI"
    lines = ["", *table(_SITE_HEADS, _site_rows(sites), style, first=title)]
    left_out = len(sites) - SITES_SHOWN
    if left_out > 0:
        lines += paragraph(f"and {count(left_out)} cheaper ones (all with --format json)", style)
    return [*lines, *paragraph(_SITE_LEGEND, style, first=" ")]


def _site_rows(sites: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The places in the program whose calls of MPI take most time."""
    costly = sorted(sites, key=lambda site: -site["time"])[:SITES_SHOWN]
    return [
        Row(
            describe_site(site),
            (
                Cell(count(site["count"])),
                Cell(percent(site["share"]), 1 - site["share"]),
                Cell(_waiting(site)),
                Cell(format_time(site["time"])),
            ),
            depth=1,
        )
        for site in costly
    ]


def _waiting(site: Mapping[str, Any]) -> str:
    if site["waiting"] is None or not site["time"]:
        return "-"
    return percent(min(site["waiting"] / site["time"], 1.0))


def describe_site(site: Mapping[str, Any]) -> str:
    """A call and where it is: ``MPI_Bcast in main (app.c:12)``."""
    where = site["function"] or "an unknown function"
    return f"{site['call']} in {where}" + (f" ({site['place']})" if site["place"] else "")


def _other_families(runs: Sequence[Run], style: Style) -> list[str]:
    others = [name for name in load_families() if name not in runs[0]["metrics"]]
    if not others:
        return []
    return ["", *paragraph(f"other families: {', '.join(others)} (--family)", style)]


VIEWS = Views(screen, records, markdown)
