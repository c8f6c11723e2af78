"""The runtime of a run over latency, over 1/bandwidth and over both, as a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import format_bandwidth, format_time
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Chart, Charts, Mark, Picture, PictureAxis, PictureCurve, Spot
from popmodel.reports.views import Document

_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_SLOWER = (0.1, 0.25, 0.5, 0.75)  # lines of equal runtime
_DRAWN = 2.0  # times the runtime: what is beyond is left out
_STEPS = 120  # of a line of equal runtime


def picture(document: Document) -> Picture:
    """Both curves with breakpoints and tolerances; lines of equal runtime over both parameters."""
    network = document["network"]
    bandwidth = format_bandwidth(_infinite(network["bandwidth"]), digits=3)
    return Picture(
        "Runtime over latency and bandwidth",
        [
            f"trace {document['trace']}",
            f"network {network['name']}: {format_time(network['latency'], digits=3, trim=True)}, "
            f"{bandwidth}, where the runtime is {format_time(document['runtime'])}",
            *(_tolerated(one) for one in document["tolerance"]),
        ],
        Charts(
            [
                _over_latency(document, bandwidth),
                _over_bandwidth(document),
                _over_both(document),
            ]
        ),
        [
            "Small dots: breakpoints, where another critical path becomes the longest. Diamond: "
            "the network. Circles: where the run is slower by so much. Runtime axes do not start "
            "at 0, and end where the run takes twice as long."
        ],
    )


def _tolerated(one: Mapping[str, Any]) -> str:
    """At which latency, or at which bandwidth, the run is slower."""
    places = []
    if one["latency"]:
        places.append(f"a latency of {format_time(one['latency'], digits=3, trim=True)}")
    if one["bandwidth"]:
        places.append(f"a bandwidth of {format_bandwidth(one['bandwidth'], digits=3)}")
    return f"{100 * one['slowdown']:g} % slower: at {' or '.join(places) or 'none'}"


def _infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _over_latency(document: Document, bandwidth: str) -> Chart:
    limits = [(one, one["latency"]) for one in document["tolerance"]]
    title = f"Runtime over latency, bandwidth {bandwidth}"
    here = document["network"]["latency"]
    return _curve_chart(document, "latency", title, _latencies(document), here, limits)


def _over_bandwidth(document: Document) -> Chart:
    limits = [
        (one, 1 / one["bandwidth"] if one["bandwidth"] else None) for one in document["tolerance"]
    ]
    latency = format_time(document["network"]["latency"], digits=3, trim=True)
    title = f"Runtime over time per byte (1/bandwidth), latency {latency}"
    here = 1 / _infinite(document["network"]["bandwidth"])
    return _curve_chart(document, "inverse_bandwidth", title, _gaps(document), here, limits)


def _curve_chart(
    document: Document,
    name: str,
    title: str,
    axis: PictureAxis,
    here: float,
    limits: Sequence[tuple[Mapping[str, Any], float | None]],
) -> Chart:
    points = _drawn(document, name)
    spots = [
        Spot(at, one["runtime"], f"+{100 * one['slowdown']:g} %", _told(name, at, one["runtime"]))
        for one, at in limits
        if at is not None and axis.low <= at <= axis.high
    ]
    if axis.low <= here <= axis.high:
        told = _told(name, here, document["runtime"])
        spots.append(Spot(here, document["runtime"], "", told, mark=Mark.FIRST))
        spots.sort(key=lambda one: one.x)
    low, high = points[0][1], points[-1][1]
    room = 0.06 * (high - low) or 0.05 * high or 1.0
    return Chart(
        name,
        title,
        axis,
        _times("runtime", max(low - room, 0.0), high + room),
        (PictureCurve(points, dots=True),),
        tuple(spots),
    )


def _drawn(document: Document, name: str) -> tuple[tuple[float, float], ...]:
    """Ends of the pieces of a curve, as far as the runtime is not many times that of today."""
    curve, most = document[name], _DRAWN * document["runtime"]
    points = list(zip(curve["breakpoints"], curve["runtimes"], strict=True))
    inside = [point for point in points if point[1] <= most]
    if len(inside) < 2:
        inside = points[:1]
    if len(inside) < len(points):
        (x, y), slope = inside[-1], curve["slopes"][len(inside) - 1]
        if y < most and slope > 0:
            inside.append((x + (most - y) / slope, most))
    return tuple(inside if len(inside) > 1 else points)


def _told(name: str, at: float, runtime: float) -> str:
    if name == "latency":
        where = format_time(at, digits=3, trim=True)
    else:
        where = format_bandwidth(1 / at if at else math.inf, digits=3)
    return f"{name} {where}: {format_time(runtime)}"


def _over_both(document: Document) -> Chart:
    """Lines on which the run is slower by so much than on the network."""
    x, y = _latencies(document), _gaps(document)
    network = document["network"]
    here = network["latency"], 1 / _infinite(network["bandwidth"])
    inside = x.low <= here[0] <= x.high and y.low <= here[1] <= y.high
    told = f"the network: {format_time(document['runtime'])}"
    lines = [
        PictureCurve(points, f"+{100 * slower:g} %")
        for slower in _SLOWER
        if len(points := tuple(_equal((1 + slower) * document["runtime"], document, x, y))) > 1
    ]
    return Chart(
        "both",
        "Latency and time per byte at which the run is slower than on the network",
        x,
        y,
        tuple(lines),
        (Spot(*here, "", told, mark=Mark.FIRST),) if inside else (),
    )


def _equal(
    runtime: float, document: Document, x: PictureAxis, y: PictureAxis
) -> Iterator[tuple[float, float]]:
    """The line of equal runtime inside the chart; it falls."""
    before: tuple[float, float] | None = None
    for step in range(_STEPS + 1):
        latency = x.low + (x.high - x.low) * step / _STEPS
        point = latency, _least_gap(runtime, latency, document["planes"])
        for edge in (y.high, y.low):
            if before is not None and before[1] > edge > point[1]:
                share = (before[1] - edge) / (before[1] - point[1])
                yield before[0] + share * (latency - before[0]), edge
        if y.low <= point[1] <= y.high:
            yield point
        before = point if math.isfinite(point[1]) else None


def _least_gap(runtime: float, latency: float, planes: Sequence[Mapping[str, float]]) -> float:
    """Time per byte at which a plane reaches a runtime first, at some latency."""
    gaps = [math.inf]
    for plane in planes:
        left = runtime - plane["constant"] - plane["latency"] * latency
        if plane["inverse_bandwidth"] > 0:
            gaps.append(left / plane["inverse_bandwidth"])
        elif left < 0:
            gaps.append(-math.inf)
    return min(gaps)


def _latencies(document: Document) -> PictureAxis:
    points = _drawn(document, "latency")
    return _times("latency", points[0][0], points[-1][0])


def _times(name: str, low: float, high: float) -> PictureAxis:
    unit, factor = next((one for one in _TIMES if high * one[1] >= 1), _TIMES[-1])
    marks = tuple((value / factor, f"{value:g}") for value in ticks(low * factor, high * factor))
    return PictureAxis(f"{name}, {unit}", low, high, marks)


def _gaps(document: Document) -> PictureAxis:
    """Times per byte, written as the bandwidths that they are."""
    points = _drawn(document, "inverse_bandwidth")
    low, high = points[0][0], points[-1][0]
    marks = tuple(
        (value / 1e12, format_bandwidth(1e12 / value if value else math.inf, digits=3))
        for value in ticks(low * 1e12, high * 1e12)
    )
    return PictureAxis("1/bandwidth, written as bandwidth", low, high, marks)
