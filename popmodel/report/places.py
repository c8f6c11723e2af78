"""Where in the program time is lost: tables of parallel regions and of calls of MPI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.efficiency.call_sites import site_name
from popmodel.report.colour import heat
from popmodel.report.export import markdown_table
from popmodel.report.terminal import GAP, Cell, Row, Style, display_width, paragraph, percent
from popmodel.units import count, format_time

__all__ = ["SHOWN", "markdown_places", "place_lines"]

SHOWN = 5
"""Rows on a screen; tables in a file have twice as many."""
_NARROW = 24  # columns below which a name stands on a line of its own
_LEAST = 1e-3  # share of the core time below which a screen does not show a call
_SITE_HEADS = ("times", "time %", "wait %")
_REGION_HEADS = ("times", "PE %", "LB %", "lost")
_SITE_LEGEND = "time %: of core time; wait %: of that spent waiting, the rest is transfer"

Place = Mapping[str, Any]


def place_lines(run: Mapping[str, Any], name: str, style: Style) -> list[str]:
    """Draw the regions and the calls of a run that cost most; `name` is empty for a single run."""
    of = f" of {name}" if name else ""
    regions, sites = run["observables"]["regions"], run["call_sites"]
    lines = []
    if regions:
        heads, rows = region_table(regions, SHOWN)
        lines += ["", *_listing(f"parallel regions{of}", heads, rows, style)]
        lines += _more(len(regions) - len(rows), style)
    if sites:
        costly = [site for site in sites if site["share"] >= _LEAST]
        if costly:
            heads, rows = site_table(costly, SHOWN)
            lines += ["", *_listing(f"MPI calls{of}", heads, rows, style)]
            lines += _more(len(sites) - len(rows), style)
            lines += paragraph(_SITE_LEGEND, style, first=" ")
        else:
            least = f"{100 * _LEAST:g} % of the core time each (--format json lists all)"
            lines += ["", *paragraph(f"MPI calls{of}: less than {least}", style)]
    return lines


def markdown_places(run: Mapping[str, Any], name: str) -> list[str]:
    """The same as Markdown tables."""
    lines = []
    if regions := run["observables"]["regions"]:
        lines += ["", *_markdown(f"Parallel regions of {name}", *region_table(regions, 2 * SHOWN))]
    if sites := run["call_sites"]:
        lines += ["", *_markdown(f"MPI calls of {name}", *site_table(sites, 2 * SHOWN))]
        lines += ["", _SITE_LEGEND]
    return lines


def region_table(regions: Sequence[Place], shown: int) -> tuple[tuple[str, ...], list[Row]]:
    """Heads and rows of the regions that lose most thread time."""
    # Waiting for locks is worth a column from 1 % of what any region loses.
    locks = any(region["locks"] >= 0.01 * region["cost"] > 0 for region in regions)
    rows = [
        Row(
            region["name"],
            (
                Cell(count(region["count"])),
                Cell(percent(region["parallel_efficiency"]), region["parallel_efficiency"]),
                Cell(percent(region["load_balance"]), region["load_balance"]),
                Cell(format_time(region["cost"])),
                *([Cell(format_time(region["locks"]))] if locks else []),
            ),
        )
        for region in sorted(regions, key=lambda region: -region["cost"])[:shown]
    ]
    return (*_REGION_HEADS, *(["to locks"] if locks else [])), rows


def site_table(sites: Sequence[Place], shown: int) -> tuple[tuple[str, ...], list[Row]]:
    """Heads and rows of the calls of MPI that take most time."""
    rows = [
        Row(
            site_name(site["call"], site["function"], site["place"]),
            (
                Cell(count(site["count"])),
                Cell(percent(site["share"]), 1 - site["share"]),
                Cell(_waiting(site)),
            ),
        )
        for site in sorted(sites, key=lambda site: -site["time"])[:shown]
    ]
    return _SITE_HEADS, rows


def _waiting(site: Place) -> str:
    if site["waiting"] is None or not site["time"]:
        return "-"
    return percent(min(site["waiting"] / site["time"], 1.0))


def _more(left_out: int, style: Style) -> list[str]:
    if not left_out:
        return []
    return paragraph(f"and {count(left_out)} more (--format json lists all)", style, first=" ")


def _markdown(title: str, heads: Sequence[str], rows: Sequence[Row]) -> list[str]:
    body = [[row.label, *(cell.text for cell in row.cells)] for row in rows]
    return markdown_table([title, *heads], body)


def _listing(title: str, heads: Sequence[str], rows: Sequence[Row], style: Style) -> list[str]:
    """Figures first and names last, which are wrapped and never shortened."""
    widths = [
        max(len(head), *(len(row.cells[index].text) for row in rows))
        for index, head in enumerate(heads)
    ]
    blank = " " * sum(width + GAP for width in widths)
    names = max(display_width(row.label) for row in rows)
    beside = style.width - len(blank) >= min(names, _NARROW)
    drawn = [*paragraph(title, style), _figures([Cell(head) for head in heads], widths, style)]
    for row in rows:
        figures = _figures(row.cells, widths, style)
        if beside:
            name = paragraph(row.label, style, first=blank, rest=blank + " ")
            drawn += [figures + " " * GAP + name[0][len(blank) :], *name[1:]]
        else:
            drawn += [figures, *paragraph(row.label, style, first="  ", rest="   ")]
    return drawn


def _figures(cells: Sequence[Cell], widths: Sequence[int], style: Style) -> str:
    texts = [cell.text.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return (" " * GAP).join(
        text if cell.efficiency is None else heat(text, cell.efficiency, style.depth)
        for cell, text in zip(cells, texts, strict=True)
    )
