"""Predicted efficiencies as trees, with what the largest loss comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base.units import format_time
from popmodel.efficiency.family import Family, FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    FitBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
)
from popmodel.reports.figures import loses
from popmodel.reports.reasons import Reasons
from popmodel.reports.trees import efficiency, tree_rows
from popmodel.reports.views import Document

SCALING = "scaling"
_TOLD = 0.05  # of a loss: a smaller cause is not worth a word
_FUZZ = 1e-6  # of a point: what rounding in the computation may add to 100

Estimate = Mapping[str, Any]


def trees(
    document: Document, families: Sequence[str], reasons: Reasons, *, brief: bool
) -> list[Section]:
    """The trees of some families; ``brief`` leaves out views of a metric that show no loss."""
    return [
        section
        for family in map(load_families().__getitem__, families)
        for section in _of_family(document, family, reasons, brief=brief)
    ]


def _of_family(
    document: Document, family: Family, reasons: Reasons, *, brief: bool
) -> Iterator[Section]:
    metrics, absent = document["metrics"][family.id], document["absent"][family.id]
    ratio = family.id == SCALING
    worst = document["limits"]
    marked = worst if worst in metrics and loses(metrics[worst]["value"]) else None

    def cells(line: FamilyLine) -> list[TableCell] | None:
        estimate = metrics.get(line.metric)
        if estimate is None:
            return [TableCell(reasons.mark(absent[line.metric]))]
        if brief and line.view and not loses(estimate["value"]):
            return None
        interval = _interval(estimate, reasons, ratio=ratio)
        return [efficiency(estimate["value"], ratio=ratio), TableCell(interval)]

    for walk in family.tree():
        rows = tree_rows(family, walk.rows, cells, marked)
        causes = _causes(document, marked) if marked in {line.metric for line in walk.rows} else []
        tree = _tree(walk.heading or family.title, "" if ratio else "%", rows)
        yield (tree, *notes(causes, Role.CAUSE))


def _tree(title: str, unit: str, rows: Sequence[TableRow]) -> FitBlock:
    """Values and intervals side by side; on a narrow screen the interval is below its metric."""
    wide = TableBlock(heads((unit, "90 %")), tuple(rows), title=title)
    narrow = TableBlock(heads((unit,)), tuple(_below(rows)), title=title)
    return FitBlock((((wide,),), ((narrow,),)))


def _causes(document: Document, metric: str) -> list[str]:
    """What of the program the loss of a metric comes from, the largest shares."""
    causes = document["causes"].get(metric)
    if not causes:
        return []
    whole = sum(causes.values())
    told = [
        f"{name} {format_time(seconds, digits=3)}"
        for name, seconds in causes.items()
        if seconds >= _TOLD * whole
    ]
    return [f"{format_time(whole, digits=3)} lost: {'; '.join(told)}"]


def _interval(estimate: Estimate, reasons: Reasons, *, ratio: bool) -> str:
    """The interval, rounded outwards: it always holds the value beside it."""
    low, high = estimate["low"], estimate["high"]
    if low is None:
        return reasons.mark(estimate.get("why", "not known"))
    if ratio:
        return f"{low:.3f} .. {high:.3f}"
    return f"{math.floor(100 * low + _FUZZ):.0f} .. {math.ceil(100 * high - _FUZZ):.0f}"


def _below(rows: Sequence[TableRow]) -> Iterator[TableRow]:
    """The rows with their second figure, the interval, on a line of its own."""
    for row in rows:
        yield replace(row, cells=row.cells[:1])
        for interval in row.cells[1:]:
            if isinstance(interval, TableCell):
                yield TableRow(f"90 %: {interval.text}", depth=row.depth + 2)
