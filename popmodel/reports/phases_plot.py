"""The phases of a run as a drawing: how long their executions take."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_time, plural
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Chart, Charts, Picture, PictureAxis, PictureCurve
from popmodel.reports.views import Document
from popmodel.structure.phases import SEVERAL

_DRAWN = 6
_LOGARITHMIC = 10.0
"""Ratio of the longest to the shortest time from which on the axis is logarithmic."""
_MOST_TICKS = 6

Phase = Mapping[str, Any]


def longest_first(document: Document) -> list[Phase]:
    """Phases by their time, small ones that are summed up last."""
    return _named(
        sorted(document["phases"], key=lambda phase: (phase["place"] == SEVERAL, -phase["time"]))
    )


def _named(found: Sequence[Phase]) -> list[Phase]:
    """Phases with names as a screen has room for.

    Without what all calls begin with, and without modules and lines of source where they stay
    different.
    """
    short = [_short(phase["name"]) for phase in found]
    often = Counter(short)
    return [
        {**phase, "name": name if often[name] == 1 else phase["name"].replace("MPI_", "")}
        for phase, name in zip(found, short, strict=True)
    ]


def _short(name: str) -> str:
    name = re.sub(r" \([^()]*:\d+\)(?= \(\d+\)$|$)", "", name.replace("MPI_", ""))
    return re.sub(r"\b(\w+)::(?=\w)", "", name)


def picture(document: Document) -> Picture:
    """Histograms of the phases that take most of the time."""
    found = longest_first(document)[:_DRAWN]
    balance = document["load_balance"]
    facts = [
        f"trace {document['trace']}, {plural(document['processes'], 'process', 'processes')}",
        f"analysed {document['analysed']['why']}",
    ]
    if balance is not None and document["processes"] > 1:
        facts.append(
            f"load balance {100 * balance['value']:.1f} %, process {balance['process']} is busiest"
        )
    return Picture(
        "Phases: how long their executions take",
        facts,
        Charts([_histogram(phase, number) for number, phase in enumerate(found)]),
        ["Axes of time do not start at 0."],
    )


def _histogram(phase: Phase, number: int) -> Chart:
    edges, counts = phase["histogram"]["edges"], phase["histogram"]["counts"]
    if len(edges) == 2 and edges[0] == edges[1]:
        edges = [0.95 * edges[0], 1.05 * edges[1] or 1e-9]
    logarithmic = edges[0] > 0 and edges[-1] > _LOGARITHMIC * edges[0]
    if logarithmic:
        labelled = _decades(edges[0], edges[-1])
        edges = [math.log10(edge) for edge in edges]
    else:
        labelled = [(value, format_time(value, digits=5, trim=True)) for value in _even(edges)]
    points = [(edges[0], 0.0)]
    for low, high, height in zip(edges, edges[1:], counts, strict=False):
        points += [(low, float(height)), (high, float(height))]
    points.append((edges[-1], 0.0))
    most = float(max(counts))
    median, mean = (format_time(phase["duration"][name], digits=3) for name in ("median", "mean"))
    axis = "time of an execution" + (", logarithmic" if logarithmic else "")
    return Chart(
        f"phase-{number}",
        f"{phase['name']}: {100 * phase['share']:.1f} %",
        PictureAxis(axis, edges[0], edges[-1], tuple(labelled)),
        PictureAxis(
            f"executions; median {median}, mean {mean}",
            0.0,
            most,
            tuple((each, count(int(each))) for each in ticks(0.0, most) if each == int(each)),
        ),
        (PictureCurve(tuple(points)),),
    )


def _even(edges: Sequence[float]) -> list[float]:
    found = ticks(edges[0], edges[-1])
    return found[:: math.ceil(len(found) / _MOST_TICKS)]


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    """1, 2 and 5 times powers of ten between two times, or as many of them as there is room for."""
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [
            factor * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for factor in factors
            if low <= factor * 10.0**power <= high
        ]
        if len(found) <= _MOST_TICKS + 2:
            break
    return [(math.log10(value), format_time(value, digits=1, trim=True)) for value in found]
