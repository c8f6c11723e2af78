"""Efficiencies of measured runs as a drawing: the tree of each family, a bar for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.base.units import count, format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.figures import describe_team, percent
from popmodel.reports.names import run_names
from popmodel.reports.pictures import Bars, Picture, PictureBar, PictureLine
from popmodel.reports.trees import label
from popmodel.reports.views import Document

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family

Run = Mapping[str, Any]

_SPEEDUP = "speedup"
"""Grows with the cores: no length beside efficiencies, so it stands with the facts of a run."""


def picture(document: Document) -> Picture:
    """One tree of efficiencies below the other, the runs side by side."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    shown = [family for family in load_families().values() if _is_shown(family, runs)]
    lines: list[PictureLine] = []
    for family in shown:
        if len(shown) > 1:
            unit = ", ratios" if family.id == SCALING else ""
            lines.append(PictureLine(f"{family.title}{unit}"))
        lines += _tree(runs, family)
    return Picture(
        "Efficiencies, %",
        [
            f"{name}: {_about(run, compared=len(runs) > 1)}"
            for name, run in zip(names, runs, strict=True)
        ],
        Bars(names, lines, full=1.0),
        ["Orange: where the family loses most."],
    )


def _about(run: Run, *, compared: bool) -> str:
    """Size, runtime, and, of several runs, how many times as fast as the reference run."""
    size = f"{count(run['processes'])} x {describe_team(run['threads'])}"
    facts = [size, f"runtime {format_time(run['runtime'])}"]
    speedup = run["metrics"].get(SCALING, {}).get(_SPEEDUP)
    if compared and speedup is not None:
        facts.append(f"speed-up {speedup:.3g}")
    return ", ".join(facts)


def _is_shown(family: Family, runs: Sequence[Run]) -> bool:
    """A run alone does not scale."""
    return family.id in runs[0]["metrics"] and (family.id != SCALING or len(runs) > 1)


def _tree(runs: Sequence[Run], family: Family) -> list[PictureLine]:
    return [
        PictureLine(
            label(family, row),
            tuple(_bar(run, family.id, row.metric) for run in runs),
            row.depth,
        )
        for walk in family.tree()
        for row in walk.rows
        if row.metric != _SPEEDUP and any(row.metric in run["metrics"][family.id] for run in runs)
    ]


def _bar(run: Run, family: str, metric: str) -> PictureBar | None:
    value = run["metrics"][family].get(metric)
    if value is None:
        return None
    is_worst = run["lowest"].get(family, {}).get("metric") == metric
    # As on the screen: ratios to another run are no percentages.
    text = f"{value:.3f}" if family == SCALING else percent(value)
    return PictureBar(max(value, 0.0), text, is_worst=is_worst)
