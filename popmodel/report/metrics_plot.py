"""Efficiencies of measured runs as a drawing: the tree of each family, a bar for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.report.bars import Bar, Line, bars
from popmodel.report.metrics import describe_team
from popmodel.report.metrics_document import SCALING
from popmodel.report.names import run_names
from popmodel.report.render import Document, stamped
from popmodel.report.terminal import percent
from popmodel.units import count, format_time

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family

Run = Mapping[str, Any]


def svg(document: Document) -> str:
    """One tree of efficiencies below the other, the runs side by side."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    stamp = document["provenance"]
    shown = [family for family in load_families().values() if _is_shown(family, runs)]
    lines: list[Line] = []
    for family in shown:
        if len(shown) > 1:
            lines.append(Line(family.title))
        lines += _tree(runs, family)
    return bars(
        "Efficiencies, %",
        [
            f"{name}: {count(run['processes'])} x {describe_team(run['threads'])}, "
            f"runtime {format_time(run['runtime'])}"
            for name, run in zip(names, runs, strict=True)
        ],
        names,
        lines,
        [
            "Orange: where the family loses most.",
            stamped(document),
        ],
        stamp,
        full=1.0,
    )


def _is_shown(family: Family, runs: Sequence[Run]) -> bool:
    """A run alone does not scale."""
    return family.id in runs[0]["metrics"] and (family.id != SCALING or len(runs) > 1)


def _tree(runs: Sequence[Run], family: Family) -> list[Line]:
    return [
        Line(
            family.metrics[row.metric].name,
            tuple(_bar(run, family.id, row.metric) for run in runs),
            row.depth,
        )
        for walk in family.tree()
        for row in walk.rows
        if any(row.metric in run["metrics"][family.id] for run in runs)
    ]


def _bar(run: Run, family: str, metric: str) -> Bar | None:
    value = run["metrics"][family].get(metric)
    if value is None:
        return None
    is_worst = run["lowest"].get(family, {}).get("metric") == metric
    return Bar(max(value, 0.0), percent(value), is_worst=is_worst)
