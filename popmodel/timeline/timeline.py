"""A run over time beside its ideal replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import TraceError
from popmodel.network.network import PRESETS
from popmodel.timeline import lanes
from popmodel.timeline.activity import activity
from popmodel.timeline.axis import Axis
from popmodel.timeline.marks import Marks, marks_of
from popmodel.timeline.messages import (
    Arrows,
    Path,
    measured_messages,
    path_on,
    replayed_messages,
)
from popmodel.timeline.named import Named, named_regions
from popmodel.timeline.replayed import replay_of
from popmodel.timeline.rows import Rows, rows_of
from popmodel.timeline.sums import Sums, sums_between
from popmodel.units import count
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.timeline.activity import Activity
    from popmodel.timeline.clock import Clock
    from popmodel.timeline.lanes import Lanes
    from popmodel.trace import Trace

__all__ = ["Limits", "Timeline", "timeline"]

_FEWEST = 8
"""Steps of a window that are worth a choice: where there would be fewer, there are none."""
_LOCKS = "waits for locks are told as sums, which no window divides exactly"


@dataclass(frozen=True)
class Limits:
    """How large a timeline may become.

    Attributes
    ----------
    rows, columns : int
        Most lanes, and most columns.
    cells : int
        Most cells of all lanes.
    edges : int
        Most steps of windows.
    sums : int
        Most steps of windows, times threads.
    marks, arrows, stretches : int
        Most iterations that are marked, messages, and stretches of a critical path.
    regions : int
        Most names of regions; at most 254.
    """

    rows: int = 512
    columns: int = 1 << 15
    cells: int = 1 << 19
    edges: int = 512
    sums: int = 1 << 17
    marks: int = 500
    arrows: int = 4000
    stretches: int = 4000
    regions: int = 30


LIMITS = Limits()
"""What a page can show and people can send."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """What the threads of a run do over time, measured and on an ideal network.

    Attributes
    ----------
    trace : str
        Path of the trace.
    begin, end : int
        The window in the trace, ns; of several stretches that follow one another in the time of
        the part.
    axis : Axis
        Columns of measured and ideal lanes alike; the ideal replay is at 0 where they begin.
    rows : Rows
        Lanes.
    measured : Lanes
    ideal : Lanes or None
        Of the replay.
    ideal_end : int or None
        When the replay ends, ns from 0.
    why_no_ideal : str
        Why there is no replay; empty if there is one.
    network : Network
        What it was replayed on.
    named : Named
        Regions of each lane.
    messages : Arrows
    ideal_messages : Arrows or None
    path : Path or None
        The critical path of the replay.
    marks : Marks or None
        Where iterations begin.
    sums : Sums or None
        What the efficiencies of windows follow from.
    why_no_sums : str
        Why there are none.
    processes : int64[P + 1]
        First location of each process, and how many there are.
    nodes : int64[P]
        Node of each process.
    pieces : int
        Of how many stretches of the run it is.
    application : int or None
        Which of several of the trace it is; None of the only one.
    has_regions : bool
        Whether it has parallel regions or threads besides masters.
    """

    trace: str
    begin: int
    end: int
    axis: Axis
    rows: Rows
    measured: Lanes
    ideal: Lanes | None
    ideal_end: int | None
    why_no_ideal: str
    network: Network
    named: Named
    messages: Arrows
    ideal_messages: Arrows | None
    path: Path | None
    marks: Marks | None
    sums: Sums | None
    why_no_sums: str
    processes: NDArray[np.int64]
    nodes: NDArray[np.int64]
    pieces: int
    application: int | None
    has_regions: bool

    @property
    def columns(self) -> int:
        """Columns up to the end of the measured run; the replay may have more."""
        return -(-(self.end - self.begin) // self.axis.step)


def timeline(
    trace: Trace,
    network: Network = PRESETS["ideal"],
    *,
    limits: Limits = LIMITS,
) -> Timeline:
    """Lay a run out over time, beside its replay on an ideal network.

    Parameters
    ----------
    trace : Trace
        The run, or what of it is to be shown (`popmodel.trace.focus.focused`).
    network : Network, optional
        The network whose runtime counts as ideal; messages must not share its links.
    limits : Limits, optional

    Raises
    ------
    TraceError
        If the trace has no times, or covers none.
    """
    if not trace.timed:
        raise TraceError(
            trace.path,
            "has no measured times, only what processes compute and call",
            hint="popmodel replay simulates the run on a network",
        )
    if trace.duration <= 0:
        raise TraceError(
            trace.path, "lasts 0 s: there is nothing to draw", hint="trace a longer run"
        )
    replayed, why_no_ideal = replay_of(trace, network)
    clock = None if replayed is None else replayed.clock
    last = 0 if clock is None else round(float(clock.last.max(initial=0.0)))
    rows = rows_of(trace, limits.rows)
    most = min(limits.columns, limits.cells // len(rows))
    axis = Axis.over(trace.begin, max(trace.duration, last), most)
    found = activity(trace)
    ideal, arrows, path = None, None, None
    if replayed is not None:
        ideal = lanes.replayed(trace, found, replayed.clock, axis, rows)
        arrows = replayed_messages(trace, replayed.program, replayed.moments, rows, limits.arrows)
        path = path_on(trace, replayed.replayer.path(network), rows, limits.stretches)
    sums, why_no_sums = _sums(trace, found, axis, clock, limits)
    return Timeline(
        trace=trace.path,
        begin=trace.begin,
        end=trace.end,
        axis=axis,
        rows=rows,
        measured=lanes.measured(trace, found, axis, rows),
        ideal=ideal,
        ideal_end=None if clock is None else last,
        why_no_ideal=why_no_ideal,
        network=network,
        named=named_regions(trace, axis, rows, limits.regions),
        messages=measured_messages(trace, rows, limits.arrows),
        ideal_messages=arrows,
        path=path,
        marks=marks_of(trace, limits.marks),
        sums=sums,
        why_no_sums=why_no_sums,
        processes=np.asarray(trace.process_offsets, np.int64),
        nodes=np.asarray(trace.node_of_location, np.int64)[trace.process_offsets[:-1]],
        pieces=1 if trace.pieces is None else len(trace.pieces),
        application=trace.application if trace.applications > 1 else None,
        has_regions=bool(len(found.on_master)) or trace.locations > trace.processes,
    )


def _sums(
    trace: Trace, found: Activity, axis: Axis, clock: Clock | None, limits: Limits
) -> tuple[Sums | None, str]:
    most = min(limits.edges, limits.sums // trace.locations)
    if most < _FEWEST:
        return None, f"{count(trace.locations)} threads are too many for sums of each"
    if trace.records.lock_waits().value.any():
        return None, _LOCKS
    return sums_between(trace, found, axis, clock, most), ""
