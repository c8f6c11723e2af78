"""Splits of cores into processes and threads as a drawing: runtime and efficiency of each."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.base.units import plural
from popmodel.reports.figures import percent
from popmodel.reports.heading import application
from popmodel.reports.pictures import Band, Mark, Panel, Picture, PicturePoint, PicturePoints
from popmodel.reports.split_tables import if_sure, is_sure
from popmodel.reports.splits import Entry, cores, name, ordered, runs
from popmodel.reports.uncertainty import INCLUDED
from popmodel.reports.views import Document

_UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6))


def picture(document: Document) -> Picture:
    """The runtime and the efficiency over the splits, one pair of panels per number of cores."""
    machine = document["machine"]
    facts = [
        f"machine {machine['name']} ({machine['origin']}), "
        f"{plural(machine['cores_per_node'], 'core')} per node"
    ]
    if document["what_if"]:
        changes = ", ".join(f"{name} {factor:g}x" for name, factor in document["what_if"].items())
        facts.append(f"what if {changes}")
    facts += [one["why"] for one in document["impossible"]]
    marks = {
        mark for choice in document["choices"] for mark in split_marks(choice, document).values()
    }
    meanings = {
        Mark.FIRST: "recommended",
        Mark.MARKED: "equally good: P(within 2 % of the best) > 10 %",
        Mark.PLAIN: "other splits",
    }
    legend = [
        (mark, meaning)
        for mark, meaning in meanings.items()
        if mark in marks or (mark is Mark.PLAIN and _others(document))
    ]
    bands = [_band(choice, document) for choice in document["choices"]]
    return Picture(
        f"{application(document)}: runtime and parallel efficiency by split",
        facts,
        PicturePoints(legend, bands),
        [
            f"Bars: 90 %, {INCLUDED}. Much of it is common to all splits, which are compared draw "
            "by draw. Axes do not start at 0."
        ],
    )


def split_marks(choice: Entry, document: Document) -> dict[tuple[int, int], Mark]:
    """Marks of the splits that are not plain."""
    sure = is_sure(choice, document)
    tied = {(pair[0], pair[1]): Mark.MARKED for pair in choice["tied"] if sure}
    return {**tied, (choice["take"][0], choice["take"][1]): Mark.FIRST}


def _others(document: Document) -> bool:
    return len(document["candidates"]) > sum(
        len(split_marks(one, document)) for one in document["choices"]
    )


def _unit(document: Document) -> tuple[str, float]:
    """The unit in which the longest runtime is at least 1, and what seconds are multiplied by."""
    largest = max(one["runtime"]["value"] for one in document["candidates"])
    return next((entry for entry in _UNITS if largest * entry[1] >= 1), _UNITS[-1])


def _band(choice: Entry, document: Document) -> Band:
    count = choice["cores"]
    mine = [one for one in ordered(document) if cores(one) == count]
    splits = [one for one in mine if "why" not in one]
    marks = split_marks(choice, document)
    unit, factor = _unit(document)
    refused = [
        f"Not possible: {name(first)}{'' if last is first else f' .. {name(last)}'}: {first['why']}"
        for first, last in runs(mine)
        if "why" in first
    ]
    return Band(
        plural(count, "core"),
        (
            Panel(
                f"runtime-{count}",
                f"Runtime ({unit})",
                tuple(_point(one, "runtime", factor, unit, marks) for one in splits),
                tuple(_probability(if_sure(one, "probability_best", document)) for one in splits),
                "P(best)",
            ),
            Panel(
                f"efficiency-{count}",
                "Parallel efficiency (%)",
                tuple(_point(one, "parallel_efficiency", 100.0, "%", marks) for one in splits),
            ),
        ),
        "processes x threads",
        tuple(refused),
    )


def _probability(fraction: float | None) -> str:
    return "-" if fraction is None else f"{percent(fraction, 0)} %"


def _point(
    one: Entry, key: str, factor: float, unit: str, marks: Mapping[tuple[int, int], Mark]
) -> PicturePoint:
    estimate = one[key]
    value = estimate["value"] * factor
    low, high = (
        None if estimate[end] is None else estimate[end] * factor for end in ("low", "high")
    )
    short = f"{value:.4g} {unit}" if key == "runtime" else f"{value:.1f} {unit}"
    interval = "" if low is None or high is None else f", 90 %: {low:.3g} .. {high:.3g} {unit}"
    return PicturePoint(
        name(one),
        value,
        low,
        high,
        f"{name(one)}: {short}{interval}",
        short,
        marks.get((one["processes"], one["threads"]), Mark.PLAIN),
    )
