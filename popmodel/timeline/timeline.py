"""A run over time beside its ideal replay, for drawings that people zoom into."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.errors import ReplayError, TraceError
from popmodel.base.units import count
from popmodel.base.values import dataclass
from popmodel.efficiency.family import NO_MPI
from popmodel.efficiency.measure import refuse_untimed
from popmodel.network.network import PRESETS
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.replayer import Replayer
from popmodel.structure.iterations import find
from popmodel.timeline import lanes
from popmodel.timeline.lanes import (
    Arrows,
    LaneClock,
    LaneRows,
    Lanes,
    Path,
    TimeAxis,
    clock_of,
    measured_messages,
    path_on,
    replayed_messages,
    rows_of,
    rows_of_devices,
)
from popmodel.timeline.window_sums import Activity, Sums, activity, sums_between

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.simulator.execution import Moments
    from popmodel.traces import Trace


# Where the iterations of a run begin.


@dataclass(frozen=True, eq=False)
class TimelineMarks:
    """Iterations of a run, as all processes have them."""

    at: NDArray[np.int64]  # int64[n]: When the last process begins each that is marked, ns
    first: int  # Number of the first of them, from 1
    every: int  # Every so many iterations one is marked
    count: int  # Iterations that begin in the run, or the part of it


def marks_of(trace: Trace, most: int) -> TimelineMarks | None:
    """Find where iterations begin; None where there are none, or no time they can be told in."""
    if trace.pieces is not None and len(trace.pieces) > 1:
        return None
    try:
        structure = find(trace.whole or trace)
    except ReplayError:  # nothing repeats where calls do not fit each other
        return None
    if structure.loop is None or len(structure.iterations) < 2:
        return None
    begins = structure.iterations[:-1].max(axis=1)
    inside = np.flatnonzero((begins >= trace.begin) & (begins < trace.end))
    if not len(inside):
        return None
    every = -(-len(inside) // most)
    return TimelineMarks(begins[inside[::every]], int(inside[0]) + 1, every, len(inside))


# The replay of a run, and when things happen in it.


IDEAL = PRESETS["ideal"]
"""The network of the replay."""
_THREADS = "not only masters call MPI: threads have no clock of their own in a replay"


class Replayed(NamedTuple):
    program: Program
    replayer: Replayer  # Of the program
    moments: Moments  # When its operations begin and end
    clock: LaneClock  # From times of the measured run to those of the replay


def replay_of(trace: Trace) -> tuple[Replayed | None, str]:
    """Replay a run on an ideal network, or say why that cannot be shown over time."""
    try:
        program = from_trace(trace)
        if len(program.threads):
            return None, _THREADS
        if not program.operations:
            return None, NO_MPI
        replayer = Replayer(program)
        moments = replayer.moments(IDEAL)
    except ReplayError as error:
        return None, error.message
    return Replayed(program, replayer, moments, clock_of(trace, program, moments)), ""


# A run over time beside its ideal replay.


_FEWEST = 8
"""Steps of a window that are worth a choice: where there would be fewer, there are none."""
_LOCKS = "waits for locks are told as sums, which no window divides exactly"


@dataclass(frozen=True)
class TimelineLimits:
    """How large a timeline may become."""

    # Most lanes, and most columns.
    rows: int = 512
    columns: int = 1 << 15
    cells: int = 1 << 19  # Most cells of all lanes
    edges: int = 512  # Most steps of windows
    sums: int = 1 << 17  # Most steps of windows, times threads
    # Most iterations that are marked, messages, and stretches of a critical path.
    marks: int = 500
    arrows: int = 4000
    stretches: int = 4000


LIMITS = TimelineLimits()
"""What a page can show and people can send."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """What the threads of a run do over time, measured and on an ideal network."""

    trace: str  # Path of the trace
    # The window in the trace, ns; of several stretches that follow one another in the time of the
    # part.
    begin: int
    end: int
    # Columns of measured and ideal lanes alike; the ideal replay is at 0 where they begin.
    axis: TimeAxis
    rows: LaneRows  # Lanes of threads
    devices: LaneRows  # Lanes of devices, below those
    measured: Lanes
    ideal: Lanes | None  # Of the replay, in which nothing is known of devices
    ideal_end: int | None  # When the replay ends, ns from 0
    why_no_ideal: str  # Why there is no replay; empty if there is one
    messages: Arrows
    ideal_messages: Arrows | None
    path: Path | None  # The critical path of the replay
    marks: TimelineMarks | None  # Where iterations begin
    sums: Sums | None  # What the efficiencies of windows follow from
    why_no_sums: str  # Why there are none
    # int64[P + 1]: First location of each process, and how many there are.
    processes: NDArray[np.int64]
    nodes: NDArray[np.int64]  # int64[P]: Node of each process
    pieces: int  # Of how many stretches of the run it is
    application: int | None  # Which of several of the trace it is; None of the only one
    has_regions: bool  # Whether it has parallel regions or threads besides masters

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self.rows.labels, *self.devices.labels)

    @property
    def columns(self) -> int:
        """Columns up to the end of the measured run; the replay may have more."""
        return -(-(self.end - self.begin) // self.axis.step)


def timeline(
    trace: Trace,
    *,
    limits: TimelineLimits = LIMITS,
) -> Timeline:
    """Lay a run out over time, beside its replay on an ideal network."""
    refuse_untimed(trace)
    if trace.duration <= 0:
        raise TraceError(
            trace.path, "lasts 0 s: there is nothing to draw", hint="trace a longer run"
        )
    replayed, why_no_ideal = replay_of(trace)
    clock = None if replayed is None else replayed.clock
    last = 0 if clock is None else round(float(clock.last.max(initial=0.0)))
    rows = rows_of(trace, limits.rows)
    devices = rows_of_devices(trace, limits.rows)
    most = min(limits.columns, limits.cells // (len(rows) + len(devices)))
    axis = TimeAxis.over(trace.begin, max(trace.duration, last), most)
    doing = activity(trace)
    ideal, arrows, path = None, None, None
    if replayed is not None:
        ideal = lanes.replayed(trace, doing, replayed.clock, axis, rows)
        below = ((0, len(devices)), (0, 0))
        ideal = Lanes(np.pad(ideal.kind, below), np.pad(ideal.spent, below))
        arrows = replayed_messages(trace, replayed.program, replayed.moments, rows, limits.arrows)
        path = path_on(trace, replayed.replayer.path(IDEAL), rows, limits.stretches)
    sums, why_no_sums = _sums(trace, doing, axis, clock, limits)
    return Timeline(
        trace=trace.path,
        begin=trace.begin,
        end=trace.end,
        axis=axis,
        rows=rows,
        devices=devices,
        measured=lanes.with_devices(trace, lanes.measured(trace, doing, axis, rows), axis, devices),
        ideal=ideal,
        ideal_end=None if clock is None else last,
        why_no_ideal=why_no_ideal,
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
        has_regions=bool(len(doing.on_master)) or trace.locations > trace.processes,
    )


def _sums(
    trace: Trace, doing: Activity, axis: TimeAxis, clock: LaneClock | None, limits: TimelineLimits
) -> tuple[Sums | None, str]:
    most = min(limits.edges, limits.sums // trace.locations)
    if most < _FEWEST:
        return None, f"{count(trace.locations)} threads are too many for sums of each"
    if trace.records.lock_waits().value.any():
        return None, _LOCKS
    return sums_between(trace, doing, axis, clock, most), ""
