"""Which region pays: gains of faster regions and of ideal scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.efficiency.verdict import SMALL, region_gain
from popmodel.reports.blocks import Listing, NoteBlock, Role, Section, TableCell, TableRow, texts
from popmodel.reports.figures import percent
from popmodel.reports.views import Document, Record

Region = Mapping[str, Any]

_SHOWN = 8
_FASTER = (0.1, 0.5)
"""Shares taken away that a screen shows; documents have more."""
_LEGEND = (
    "self %: computing in it, mean over ranks; path %: its part of the critical path; -10 %, "
    "-50 %: how much shorter the run is if it takes that much less time; one: -50 % on its slowest "
    "rank only; even: if all its ranks take equally long; all in % of the runtime"
)


def regions(document: Document) -> Section:
    """What faster regions are worth, those with the highest gain first."""
    runtime, found = document["runtime"], document["regions"]
    if not found or not runtime:
        return ()
    told = [one for one in found if max(one["share"], one["critical"] / runtime) >= SMALL]
    shown = told[:_SHOWN]
    rows = tuple(TableRow(one["name"], texts(_figures(one, runtime))) for one in shown)
    heads = ("self %", "path %", *(f"-{100 * one:.0f} %" for one in _FASTER), "one", "even")
    listing = Listing("which region pays", heads, rows)
    hidden = [document["other_regions"], *(one for one in found if one not in shown)]
    return (listing, *_more(hidden, runtime), NoteBlock(_LEGEND, Role.REMARK))


def _more(hidden: Sequence[Region], runtime: float) -> Section:
    """What is known of regions that are not shown: a number of others, then those by name."""
    count = hidden[0]["regions"] + len(hidden) - 1
    if not count:
        return ()
    share, critical = (sum(one[name] for one in hidden) for name in ("share", "critical"))
    text = (
        f"and {plural(count, 'region')} more: together {percent(share)} % of the time, "
        f"{percent(critical / runtime)} % of the critical path, which is the most they can gain"
    )
    return (NoteBlock(text, Role.REMARK),)


def scenarios(document: Document) -> Section:
    """Ideal scenarios, the highest gain first."""
    runtime, found = document["runtime"], document["scenarios"]
    if not found or not runtime:
        return ()
    rows = tuple(
        TableRow(
            f"{one['name']}: {one['meaning']}",
            (
                TableCell(percent(one["gain"] / runtime)),
                TableCell(format_time(one["gain"])),
                TableCell(format_time(one["runtime"])),
            ),
        )
        for one in found
        if abs(one["gain"]) >= SMALL * runtime
    )
    if not rows:
        return (
            NoteBlock("potential gains: less than 0.1 % of the runtime in every ideal scenario"),
        )
    return (Listing("potential gains", ("gain %", "gain", "runtime"), rows),)


def records(document: Document) -> list[Record]:
    """One line for each runtime: of a region that is faster or even, and of an ideal scenario."""
    found: list[Record] = []
    for one in document["regions"]:

        def line(quantity: str, value: float, name: str = one["name"], **known: float) -> None:
            found.append(
                {
                    "part": "region",
                    "name": name,
                    "quantity": quantity,
                    "unit": "1",
                    "value": value,
                    "runtime": None,
                    "slope": None,
                    **known,
                }
            )

        line("share", one["share"])
        line("faster", 0.0, runtime=document["runtime"], slope=-one["critical"])
        for gain in one["gain"]:
            line("faster", gain["faster"], runtime=gain["runtime"])
        for gain in one["slowest"]["gain"]:
            line("faster on the slowest rank", gain["faster"], runtime=gain["runtime"])
        line("balance", one["balance"])
        line("balance", 1.0, runtime=one["balanced"])
    for one in document["scenarios"]:
        known = {"part": "scenario", "name": one["name"], "quantity": "gain", "unit": "s"}
        found.append({**known, "value": one["gain"], "runtime": one["runtime"], "slope": None})
    return found


def _figures(one: Region, runtime: float) -> list[str]:
    """Figures of a region: its shares, and what is gained, in per cent of the runtime."""
    gains = [
        *(region_gain(one, runtime, faster) for faster in _FASTER),
        1 - _at(one["slowest"]["gain"], 0.5) / runtime,
        1 - one["balanced"] / runtime,
    ]
    shares = one["share"], one["critical"] / runtime
    return [percent(value) for value in (*shares, *(gain + 0.0 for gain in map(_clean, gains)))]


def _clean(gain: float) -> float:
    """Without the sign of a nothing."""
    return 0.0 if abs(gain) < SMALL else gain


def _at(gains: Sequence[Mapping[str, float]], faster: float) -> float:
    return next(one["runtime"] for one in gains if one["faster"] == faster)
