"""A run over time as a drawing: what every thread does, above the replay on an ideal network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.base.units import format_time
from popmodel.network.network import describe
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Lane, Picture, PictureAxis, PictureLanes, Timelines
from popmodel.timeline.lanes import KINDS

if TYPE_CHECKING:
    from popmodel.timeline.lanes import Lanes as Shown
    from popmodel.timeline.timeline import Timeline

ROWS, COLUMNS = 64, 760
"""Lanes and steps that a drawing has room for."""

_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
_COLOURS = {
    "computing": "computing",
    "parallel": "parallel",
    "point-to-point": "messages",
    "wait": "waiting",
    "collective": "collective",
    "other-mpi": "other",
    "openmp": "runtime",
    "idle": "idle",
}
"""Kinds of a timeline, and of the colours of drawings."""


def picture(timeline: Timeline) -> Picture:
    """Draw a run above its ideal replay, on the same axis."""
    length = (timeline.end - timeline.begin) / 1e9
    facts = [f"trace {timeline.trace}, {format_time(length)}"]
    panels = [_panel(timeline, "measured", "Measured", timeline.measured)]
    if timeline.ideal is None or timeline.ideal_end is None:
        facts.append(f"no ideal replay: {timeline.why_no_ideal}")
    else:
        network = describe(timeline.network)
        title = f"Replayed: {network}, {format_time(timeline.ideal_end / 1e9)}"
        panels.append(_panel(timeline, "ideal", title, timeline.ideal))
    remarks = ["A step shows what takes most of it."]
    if timeline.rows.shared:
        remarks.append(f"{timeline.rows.shared.capitalize()}.")
    if timeline.marks is not None:
        remarks.append("Thin lines: an iteration begins.")
    return Picture("A run over time", facts, Timelines(panels), remarks)


def _panel(timeline: Timeline, name: str, title: str, shown: Shown) -> PictureLanes:
    axis = timeline.axis
    unit, scale = next((one for one in _UNITS if axis.end - axis.begin >= one[1]), _UNITS[-1])
    # Of the measured run in the time of the trace, as windows are given; the replay begins at 0.
    zero = timeline.begin if name == "measured" else 0
    low, high = zero / scale, (zero + axis.end - axis.begin) / scale
    time = PictureAxis(
        f"time, {unit}", low, high, tuple((at, f"{at:g}") for at in ticks(low, high))
    )
    there = [number for number, spent in enumerate(shown.spent.sum(axis=0)) if number and spent]
    kinds = {str(number): _COLOURS[KINDS[number].id] for number in there}
    marks: tuple[float, ...] = ()
    if timeline.marks is not None and name == "measured":
        marks = tuple((timeline.marks.at / scale).tolist())
    return PictureLanes(
        name=name,
        title=title,
        lanes=tuple(
            Lane(label, "".join(map(str, row)))
            for label, row in zip(timeline.rows.labels, shown.kind.tolist(), strict=True)
        ),
        time=time,
        colours=kinds,
        legend=tuple((kinds[str(number)], KINDS[number].label) for number in there),
        marks=marks,
    )
