"""Replays of a trace as a drawing: the runtime on each network."""

from __future__ import annotations

from popmodel.report.plots import Band, Mark, Panel, Point, drawing
from popmodel.report.render import Document
from popmodel.report.replay import differences
from popmodel.units import format_time


def svg(document: Document) -> str:
    """The runtime of each replay, in the order in which the networks were given."""
    runs = document["runs"]
    measured = document["measured_runtime"]
    done = [(number, run) for number, run in enumerate(runs, start=1) if run["ranks"]]
    longest = max((run["runtime"] for _, run in done), default=measured)
    unit, factor = next(
        ((unit, factor) for unit, factor in _UNITS if longest * factor >= 1), _UNITS[-1]
    )
    points = tuple(
        Point(
            name := differences(document, number) or run["network"]["name"],
            run["runtime"] * factor,
            None,
            None,
            f"{name}: {format_time(run['runtime'])}",
            format_time(run["runtime"]),
            Mark.PLAIN,
        )
        for number, run in done
    )
    stopped = [
        f"No result: {differences(document, number)}: {run['error']}"
        for number, run in enumerate(runs, start=1)
        if not run["ranks"]
    ]
    panels = (Panel("runtime", f"Runtime ({unit})", points),) if points else ()
    stamp = document["provenance"]
    return drawing(
        "Runtime on other networks",
        [f"trace {runs[0]['trace']}", f"measured {format_time(measured)}"],
        [],
        [Band("", panels, "network", tuple(stopped))] if panels else [],
        [
            *([] if panels else stopped),
            f"popmodel {stamp['popmodel']}, {stamp['time']}: {stamp['command']}",
        ],
        stamp,
    )


_UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6))
