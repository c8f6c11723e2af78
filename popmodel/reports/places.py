"""Where in the program time is lost: tables of parallel regions and of calls of MPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_time
from popmodel.efficiency.evidence import site_name
from popmodel.reports.blocks import Brief, Listing, NoteBlock, Role, Section, TableCell, TableRow
from popmodel.reports.figures import percent

SHOWN = 5
"""Rows of a table on a screen; a file has twice as many."""
_LEAST = 1e-3  # share of the core time below which a call is not shown
_SITE_HEADS = ("times", "time %", "wait %")
_REGION_HEADS = ("times", "PE %", "LB %", "lost")
_SITE_LEGEND = "time %: of core time; wait %: of that spent waiting, the rest is transfer"

Place = Mapping[str, Any]


def placed(runs: Sequence[Mapping[str, Any]], names: Sequence[str], detailed: int) -> Section:
    """The regions and the calls of runs that cost most: on a screen those of one run."""
    several = len(runs) > 1
    found = [
        (run["observables"]["regions"], run["call_sites"], f" of {name}" if several else "")
        for run, name in zip(runs, names, strict=True)
    ]
    whole = tuple(filter(None, (part for one in found for part in _of_run(*one, 2 * SHOWN))))
    brief = tuple(filter(None, _of_run(*found[detailed], SHOWN)))
    return (Brief(whole, brief),) if whole else ()


def _of_run(
    regions: Sequence[Place], sites: Sequence[Place], of: str, shown: int
) -> Iterator[Section]:
    yield _regions(f"parallel regions{of}", regions, shown)
    yield _sites(f"MPI calls{of}", sites, shown)


def _regions(title: str, regions: Sequence[Place], shown: int) -> Section:
    if not regions:
        return ()
    listing = _region_table(title, regions, shown)
    return (listing, *_more(len(regions) - len(listing.rows)))


def _sites(title: str, sites: Sequence[Place], shown: int) -> Section:
    if not sites:
        return ()
    costly = [site for site in sites if site["share"] >= _LEAST]
    if not costly:
        least = f"{100 * _LEAST:g} % of the core time each (--format json lists all)"
        return (NoteBlock(f"{title}: less than {least}"),)
    listing = _site_table(title, costly, shown)
    more = _more(len(sites) - len(listing.rows))
    return (listing, *more, NoteBlock(_SITE_LEGEND, Role.REMARK))


def _region_table(title: str, regions: Sequence[Place], shown: int) -> Listing:
    """The regions that lose most thread time."""
    # Waiting for locks is worth a column from 1 % of what any region loses.
    locks = any(region["locks"] >= 0.01 * region["cost"] > 0 for region in regions)
    rows = [
        TableRow(
            region["name"],
            (
                TableCell(count(region["count"])),
                TableCell(percent(region["parallel_efficiency"]), region["parallel_efficiency"]),
                TableCell(percent(region["load_balance"]), region["load_balance"]),
                TableCell(format_time(region["cost"])),
                *([TableCell(format_time(region["locks"]))] if locks else []),
            ),
        )
        for region in sorted(regions, key=lambda region: -region["cost"])[:shown]
    ]
    return Listing(title, (*_REGION_HEADS, *(["to locks"] if locks else [])), tuple(rows))


def _site_table(title: str, sites: Sequence[Place], shown: int) -> Listing:
    """The calls of MPI that take most time."""
    rows = [
        TableRow(
            site_name(site["call"], site["function"], site["place"]),
            (
                TableCell(count(site["count"])),
                TableCell(percent(site["share"]), 1 - site["share"]),
                TableCell(_waiting(site)),
            ),
        )
        for site in sorted(sites, key=lambda site: -site["time"])[:shown]
    ]
    return Listing(title, _SITE_HEADS, tuple(rows))


def _waiting(site: Place) -> str:
    if site["waiting"] is None or not site["time"]:
        return "-"
    return percent(min(site["waiting"] / site["time"], 1.0))


def _more(left_out: int) -> Section:
    if not left_out:
        return ()
    return (NoteBlock(f"and {count(left_out)} more (--format json lists all)", Role.REMARK),)
