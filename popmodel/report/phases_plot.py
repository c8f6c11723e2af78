"""The phases of a run as a drawing: how long their executions take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.report.figures import ticks
from popmodel.report.pictures import Axis, Chart, Charts, Curve, Picture
from popmodel.report.views import Document
from popmodel.units import count, format_time, plural

_DRAWN = 6
_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))


def picture(document: Document) -> Picture:
    """Histograms of the phases that take most of the time."""
    found = sorted(document["phases"], key=lambda phase: -phase["time"])[:_DRAWN]
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
        ["Axes of time do not start at 0; bins are alike in ratio where times differ tenfold."],
    )


def _histogram(phase: Mapping[str, Any], number: int) -> Chart:
    edges, counts = phase["histogram"]["edges"], phase["histogram"]["counts"]
    if len(edges) == 2 and edges[0] == edges[1]:
        edges = [0.95 * edges[0], 1.05 * edges[1] or 1.0]
    name, unit = next((one for one in _TIMES if edges[-1] * one[1] >= 1), _TIMES[-1])
    edges = [edge * unit for edge in edges]
    points = [(edges[0], 0.0)]
    for low, high, height in zip(edges, edges[1:], counts, strict=False):
        points += [(low, float(height)), (high, float(height))]
    points.append((edges[-1], 0.0))
    most = float(max(counts))
    duration = phase["duration"]
    title = (
        f"{phase['name']}: {100 * phase['share']:.1f} % of all computing, median "
        f"{format_time(duration['median'], digits=3)}, mean "
        f"{format_time(duration['mean'], digits=3)}"
    )
    return Chart(
        f"phase-{number}",
        title,
        Axis(f"time of an execution, {name}", edges[0], edges[-1], _ticked(edges[0], edges[-1])),
        Axis("executions", 0.0, most, tuple((each, count(int(each))) for each in _whole(most))),
        (Curve(tuple(points)),),
    )


def _ticked(low: float, high: float) -> tuple[tuple[float, str], ...]:
    return tuple((value, f"{value:g}") for value in ticks(low, high))


def _whole(most: float) -> list[float]:
    return [value for value in ticks(0.0, most) if value == int(value)]
