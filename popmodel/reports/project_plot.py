"""Projected efficiencies as a drawing: each factor over processes or threads, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.figures import percent, ticks
from popmodel.reports.pictures import Chart, Charts, Picture, PictureAxis, PictureCurve, Spot
from popmodel.reports.views import Document

Line = Mapping[str, Any]
_ROOM = 0.04
_MOST_TICKS = 12


def picture(document: Document) -> Picture:
    """A chart for each metric of the family that suits the runs, one line below the other."""
    charts = [
        chart
        for number, line in enumerate(document["lines"])
        for chart in _charts(document, line, f"line-{number}")
    ]
    return Picture(
        "Projected efficiencies",
        [_of_line(line) for line in document["lines"]],
        Charts(charts),
        [
            "Circles: measured. Line: projection. Shaded: 90 % interval, as far as one can be "
            "given. Axes of processes and threads are logarithmic; those of efficiencies do not "
            "start at 0."
        ],
    )


def _of_line(line: Line) -> str:
    laws = ", ".join(f"{law['name']} {law['law']}" for law in line["laws"])
    fixed = "thread per process" if line["axis"] == "processes" else "process"
    what = fixed if line["fixed"] == 1 else fixed.replace("thread", "threads", 1)
    what = what if line["fixed"] == 1 or line["axis"] == "processes" else "processes"
    return f"{line['fixed']} {what}: {laws}"


def _charts(document: Document, line: Line, name: str) -> Iterator[Chart]:
    curves = {(one["family"], one["metric"]): one for one in line["curves"]}
    families = [family for family, _ in curves if family and family != SCALING]
    wanted = []
    for family in [*dict.fromkeys(families)][:1]:
        wanted += [
            (family, row.metric) for row in load_families()[family].tree()[0].rows if not row.view
        ]
    wanted += [(SCALING, "computation_scaling"), (SCALING, "speedup")]
    for number, key in enumerate(key for key in dict.fromkeys(wanted) if key in curves):
        chart = _chart(document, line, curves[key], f"{name}-{number}")
        if chart is not None:
            yield chart


def _chart(document: Document, line: Line, curve: Mapping[str, Any], name: str) -> Chart | None:
    family = load_families()[curve["family"]]
    metric = family.metrics[curve["metric"]]
    points = [
        (math.log2(at), value)
        for at, value in zip(curve["at"], curve["value"], strict=True)
        if value is not None
    ]
    spots = _measured(document, line, curve)
    if len(points) < 2 and not spots:
        return None
    band = tuple(
        (math.log2(at), low, high)
        for at, low, high in zip(curve["at"], curve["low"], curve["high"], strict=True)
        if low is not None
    )
    values = [y for _, y in points] + [spot.y for spot in spots]
    values += [each for _, low, high in band for each in (low, high)]
    low, high = min(values), max(values)
    room = _ROOM * (high - low) or 0.05 * high or 1.0
    is_ratio = curve["family"] == SCALING
    edges = max(low - room, 0.0), high + room
    return Chart(
        name,
        metric.name,
        _sizes(line, curve["at"]),
        PictureAxis(
            "ratio" if is_ratio else "%",
            *edges,
            tuple((each, _written(each, is_ratio=is_ratio)) for each in ticks(*edges)),
        ),
        (PictureCurve(tuple(points)),) if len(points) > 1 else (),
        tuple(spots),
        band if len(band) > 1 else (),
    )


def _written(value: float, *, is_ratio: bool) -> str:
    return f"{value:g}" if is_ratio else f"{100 * value:g}"


def _measured(document: Document, line: Line, curve: Mapping[str, Any]) -> list[Spot]:
    """The measured runs of a line, from left to right."""
    spots = []
    for number in line["runs"]:
        run = document["runs"][number - 1]
        value = run["metrics"].get(curve["family"], {}).get(curve["metric"])
        if value is not None:
            at = run[line["axis"]]
            text = f"{value:.3g}" if curve["family"] == SCALING else f"{percent(value)} %"
            told = f"{run['source']}: {run['processes']} x {run['threads']}, {text}"
            spots.append(Spot(math.log2(at), value, "", told))
    return sorted(spots, key=lambda spot: spot.x)


def _sizes(line: Line, at: Sequence[int]) -> PictureAxis:
    """Processes or threads on a logarithmic scale, at powers of two."""
    low, high = math.log2(at[0]), math.log2(at[-1])
    if high - low < 0.1:
        low, high = low - 0.5, high + 0.5
    powers = range(math.ceil(low), math.floor(high) + 1)
    step = max(1, math.ceil(len(powers) / _MOST_TICKS))
    marks = tuple((float(power), f"{2**power}") for power in powers[::step])
    title = "processes" if line["axis"] == "processes" else "threads per process"
    return PictureAxis(title, low, high, marks)
