"""Runs beside earlier ones: what changed, by which factors, the series; and the badge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from popmodel.base.units import count, format_time, plural
from popmodel.reports import efficiency_tables
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    fitted,
    heads,
    notes,
    texts,
)
from popmodel.reports.figures import describe_team, percent, run_names
from popmodel.reports.notes import joint_caveats
from popmodel.reports.views import Document, Views
from popmodel.runs.regression import FACTORS, p_text, signed

if TYPE_CHECKING:
    from popmodel.runs.regression import HistoryComparison

Comparison = Mapping[str, Any]
_SERIES, _BRIEF_SERIES = 40, 6  # labels of a series


def blocks(document: Document) -> list[Section]:
    """What changed against earlier runs; then, for whom there is room, the efficiencies."""
    whole = [*history_sections(document), *efficiency_tables.blocks(document)]
    return [(Brief(tuple(whole), tuple(_brief(document))),)]


def history_sections(document: Document) -> list[Section]:
    """What to doubt, the answer, the factors and the series of every configuration."""
    comparisons = document["history"]["comparisons"]
    sections: list[Section] = [_answers(document)]
    for comparison in comparisons:
        sections += [_factors(comparison), _series(comparison, _SERIES)]
    return [*sections, (NoteBlock(_file(document)),)]


def _brief(document: Document) -> list[Section]:
    """The same of the configuration with the largest change, with as many labels as have room."""
    comparisons = document["history"]["comparisons"]
    changed = sorted(
        (one for one in comparisons if one["runtime"]),
        key=lambda one: (not one["runtime"]["shown"], -one["runtime"]["ratio"]),
    )
    shown = [*changed, *comparisons][0]

    def made(labels: int) -> list[Section]:
        below = (NoteBlock(_file(document)),)
        return [_answers(document), _factors(shown), _series(shown, labels), below]

    return fitted(made, _BRIEF_SERIES, least=2)


def _answers(document: Document) -> Section:
    """What makes the runs doubtful, then the answer for each configuration."""
    runs, advice = document["runs"], document["advice"]
    said = joint_caveats(runs, run_names([run["trace"] for run in runs]))
    caveats = [one for one in said if not one.startswith(("analysed ", "the analysed part "))]
    doubts: list[str] = list(advice["doubts"][:1])
    answers: list[str] = [one["sentence"] for one in document["history"]["comparisons"]]
    first, *others = doubts + answers
    return (
        NoteBlock(first, Role.VERDICT),
        *notes(others, Role.DOUBT),
        *notes(() if advice["doubts"] else caveats[:1]),
    )


def _factors(comparison: Comparison) -> Section:
    """The runtime and what it is made of, before and now."""
    runtime = comparison["runtime"]
    if runtime is None:
        return ()
    rows = [_change_row("Runtime", runtime, "runtime", runtime["ratio"])]
    rows += [
        _change_row(FACTORS[factor["id"]][0], factor, factor["id"], factor["effect"], 1)
        for factor in comparison["factors"]
    ]
    columns = heads(
        [f"last {comparison['last']}", f"now {comparison['runs']}", "change", "makes", "p"]
    )
    title = f"{comparison['processes']} x {describe_team(comparison['threads'])}"
    table = TableBlock(columns, tuple(rows), first=f"{title}, geometric means")
    return (table, NoteBlock(_MAKES, Role.REMARK))


_MAKES = "makes: what the change makes of the runtime; the factors multiply to it"


def _change_row(
    name: str, change: Mapping[str, Any], id: str, makes: float, depth: int = 0
) -> TableRow:
    figures = (factor_text(id, change["before"]), factor_text(id, change["now"]))
    p = p_text(change["p"]).removeprefix("p = ").removeprefix("p ") or "-"
    return TableRow(name, texts([*figures, signed(change["ratio"]), signed(makes), p]), depth)


def factor_text(id: str, value: float) -> str:
    """A factor of the runtime with its unit."""
    match id:
        case "threads":
            return count(int(value))
        case "runtime" | "useful_time":
            return format_time(value)
        case "frequency":
            return f"{value / 1e9:.3f} GHz"
        case "instructions":
            return f"{value:.4g}"
        case "ipc":
            return f"{value:.3f}"
    return f"{percent(value)} %"


def _series(comparison: Comparison, most: int) -> Section:
    """Labels over time: runtime, as a bar too, and the factors that are efficiencies."""
    labels: dict[str, list[Mapping[str, Any]]] = {}
    for line in comparison["series"]:
        labels.setdefault(line["label"], []).append(line)
    shown = dict(list(labels.items())[-most:])
    runtimes = {label: _mean([one["runtime"] for one in runs]) for label, runs in shown.items()}
    every = [one for runs in shown.values() for one in runs]
    factors = [
        name
        for name in _EFFICIENCIES
        if name in comparison["split"] and all(name in one["factors"] for one in every)
    ]
    rows = []
    for label, runs in shown.items():
        means = [_mean([one["factors"][name] for one in runs]) for name in factors]
        cells: tuple[TableCell | BarBlock, ...] = (
            *texts([runs[-1]["time"][:10], count(len(runs)), format_time(runtimes[label])]),
            BarBlock(runtimes[label] / max(runtimes.values())),
            *(TableCell(percent(mean), mean) for mean in means),
        )
        rows.append(TableRow(label if len(label) <= _LONGEST else f"{label[:12]}...", cells))
    columns = heads(
        ["added", "runs", "runtime", "", *(f"{_EFFICIENCIES[one]} %" for one in factors)]
    )
    hidden = len(labels) - len(shown)
    more = [f"{plural(hidden, 'earlier label')} not shown"] if hidden else []
    return (TableBlock(columns, tuple(rows), first="label"), *notes(more, Role.REMARK))


def _mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


_LONGEST = 20  # of a label; a commit is shortened
_EFFICIENCIES = {
    "parallel_efficiency": "PE",
    "load_balance": "LB",
    "communication": "comm",
    "serialisation": "ser",
    "transfer": "transfer",
    "thread_efficiency": "threads",
}


def _file(document: Document) -> str:
    history = document["history"]
    known = len(document["runs"]) - history["added"]
    again = f"; {plural(known, 'run')} had it already under this label" if known else ""
    return f"{history['file']}: {count(history['added'])} added{again}"


# The badge: a picture of two fields, as services draw them, in a font that every viewer has.

_COLOURS = {"slower": "#b3261e", "faster": "#1b6e3a", "same": "#1b6e3a", "unknown": "#5f6368"}
_LETTER, _MARGIN = 7, 8  # pixels


def badge_text(comparisons: Sequence[HistoryComparison]) -> str:
    """Return the badge of a history as SVG: the largest change that is shown."""
    changes = [one.change("runtime") for one in comparisons]
    shown = [change.ratio for change in changes if change and change.is_shown]
    slower = max(shown, default=1.0)
    if slower > 1:
        kind, said = "slower", f"{100 * (slower - 1):.1f} % slower"
    elif shown:
        kind, said = "faster", f"{100 * (1 - min(shown)):.1f} % faster"
    elif any(one.is_decided for one in comparisons):
        kind, said = "same", "no change shown"
    else:
        kind, said = "unknown", "too few runs"
    fields = (("performance", "#3c4043"), (said, _COLOURS[kind]))
    widths = [_LETTER * len(text) + 2 * _MARGIN for text, _ in fields]
    drawn, left = [], 0
    for (text, colour), width in zip(fields, widths, strict=True):
        drawn += [
            f'<rect x="{left}" width="{width}" height="20" fill="{colour}"/>',
            f'<text x="{left + width / 2:g}" y="14" textLength="{width - 2 * _MARGIN}" fill="#fff" '
            f'text-anchor="middle">{escape(text)}</text>',
        ]
        left += width
    title = escape(": ".join(text for text, _ in fields))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="20" role="img" '
        f'aria-label="{title}" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"<title>{title}</title>{''.join(drawn)}</svg>\n"
    )


VIEWS = Views(blocks, efficiency_tables.VIEWS.tables, picture="efficiency_tree")
