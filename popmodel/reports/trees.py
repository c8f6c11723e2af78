"""Efficiencies as trees: the metrics of a family below each other, with their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from popmodel.efficiency.family import Family, FamilyLine
from popmodel.reports.blocks import TableCell, TableRow
from popmodel.reports.figures import percent

Cells = Callable[[FamilyLine], Sequence[TableCell] | None]
"""The figures of a metric at its place in a tree; None where it is left out."""


def tree_rows(
    family: Family, lines: Iterable[FamilyLine], cells: Cells, marked: str | None = None
) -> tuple[TableRow, ...]:
    """Rows of a tree of metrics; the name of one may have a mark."""
    rows = []
    for line in lines:
        figures = cells(line)
        if figures is not None:
            sign = " <-" if line.metric == marked else ""
            rows.append(TableRow(label(family, line, sign), tuple(figures), line.depth))
    return tuple(rows)


def label(family: Family, line: FamilyLine, sign: str = "") -> str:
    """Name of a metric; that of another view of a loss stands in parentheses."""
    name = family.metrics[line.metric].name + sign
    return f"({name})" if line.view else name


def lifted(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Rows of which the least deep has the depth 0: what is above may have no value."""
    least = min((row.depth for row in rows), default=0)
    return tuple(replace(row, depth=row.depth - least) for row in rows)


def efficiency(value: float, *, ratio: bool = False) -> TableCell:
    """A metric as a figure; a ratio to another run may be far above 1: it has no colour."""
    return TableCell(f"{value:.3f}") if ratio else TableCell(percent(value), value)
