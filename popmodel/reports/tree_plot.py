"""Efficiencies as a heat map for papers: a tree with a column for each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from popmodel.base.units import format_time
from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.figures import percent
from popmodel.reports.html.columns import PageColumn, columns
from popmodel.reports.html.contents import SCHEMA, Contents
from popmodel.reports.pictures import Figure, HeatLine, HeatMap, Picture
from popmodel.reports.trees import label
from popmodel.reports.views import Document


def picture(document: Document) -> Picture:
    """The tree of efficiencies of all runs."""
    is_report = document["schema"] == SCHEMA
    contents = Contents(document if is_report else {"documents": [document]})
    runs = [run for run in columns(contents) if run.family]
    if not runs:
        raise ValueError("no tree to draw: there is no run with efficiencies")
    families = [load_families()[runs[0].family]]
    if all(run.compared and run.comparable for run in runs):
        families.append(load_families()[SCALING])
    lines = [line for family in families for line in _lines(family, runs, len(families) > 1)]
    return Picture(
        "Efficiencies, %",
        [],
        HeatMap(tuple(map(_head, runs)), tuple(lines), "colours, %"),
        [families[0].use, "A triangle marks where a run loses most."],
    )


def _head(run: PageColumn) -> tuple[str, ...]:
    return run.name, f"{run.split}, {run.kind}", format_time(run.runtime.value)


def _lines(family: Family, runs: Sequence[PageColumn], has_heading: bool) -> Iterator[HeatLine]:
    if has_heading:
        yield HeatLine(family.title if family.id != SCALING else f"{family.title}, ratios")
    for line in family.tree()[0].rows:
        if any(line.metric in run.metrics.get(family.id, {}) for run in runs):
            figures = tuple(_figure(run, family.id, line.metric) for run in runs)
            yield HeatLine(label(family, line), figures, line.depth)


def _figure(run: PageColumn, family: str, metric: str) -> Figure:
    found = run.metrics.get(family, {}).get(metric)
    if found is None:
        return Figure("-")
    if family == SCALING:  # ratios to another run, which may be far above 1
        return Figure(f"{found.value:.3f}")
    text = percent(found.value)
    if found.low is not None and found.high is not None:
        text += f" ({percent(found.low)} .. {percent(found.high)})"
    return Figure(text, found.value, run.lowest.get(family) == metric)
