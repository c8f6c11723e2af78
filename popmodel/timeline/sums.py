"""Times of threads between equal steps, whose differences give the efficiencies of any window.

Everything that is summed here grows with the window alone: what lies in a window is the difference
of two running sums, exact to the nanosecond, and equals what `popmodel.efficiency.measure` finds
in that part of the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from popmodel.efficiency.regions import waiting_in
from popmodel.timeline.axis import Axis
from popmodel.trace.intervals import Intervals, alone
from popmodel.trace.states import TRACING_DISABLED
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.timeline.activity import Activity
    from popmodel.timeline.clock import Clock
    from popmodel.trace import Trace

BY: Mapping[str, str] = {
    "useful": "thread",
    "omp_useful": "thread",
    "in_mpi": "thread",
    "traced": "thread",
    "in_openmp": "process",
    "openmp_synchronisation": "run",
    "openmp_scheduling": "run",
    "openmp_mpi": "run",
}
"""What is summed, by what: times of threads as `popmodel.efficiency.observables` names them;
``traced`` is the time in states other than those with tracing disabled."""

_IN_REGIONS = tuple(name for name, by in BY.items() if by == "run")


@dataclass(frozen=True, eq=False)
class Sums:
    """Times between edges."""

    # int64[W + 1]: Ascending columns of the timeline's axis; the last stands for the end of the
    # window.
    edges: NDArray[np.int64]
    time: NDArray[np.int64]  # int64[W + 1]: When they are in the trace, ns
    # mapping of str to int64[n, W]: Names of `BY` to the time between neighbouring edges, ns: of
    # each thread or process, or of all threads together.
    between: Mapping[str, NDArray[np.int64]]
    # float64[W + 1] or None: What an ideal replay shows, ns from 0, when the last process has
    # passed what it did at each edge; None without a replay.
    clock: NDArray[np.float64] | None


def sums_between(trace: Trace, found: Activity, axis: Axis, clock: Clock | None, most: int) -> Sums:
    """Sum up what threads do between edges that lie on columns of an axis."""
    columns = -(-trace.duration // axis.step)
    stride = -(-columns // most)
    edges = np.append(np.arange(0, columns, stride), columns)
    time = np.minimum(trace.begin + edges * axis.step, trace.end)
    coarse = Axis(trace.begin, stride * axis.step, len(edges) - 1, trace.end)
    thread = np.arange(trace.locations)
    process = trace.process_of_location().astype(np.int64)
    useful = coarse.covered(found.running, thread)
    return Sums(
        edges,
        time,
        {
            "useful": useful,
            "omp_useful": useful - coarse.covered(found.serial, thread),
            "in_mpi": coarse.covered(found.in_calls, thread),
            "traced": _traced(trace, coarse),
            "in_openmp": coarse.covered(found.on_master, process),
            **_in_regions(trace, found, coarse),
        },
        None if clock is None else _shown(clock, time),
    )


def _traced(trace: Trace, coarse: Axis) -> NDArray[np.int64]:
    # One window keeps its times, so that states need not be cut to it: they are many.
    whole = trace.whole or trace
    one = trace.pieces is None or len(trace.pieces) == 1
    states = whole.states if one else trace.states
    spans = Intervals(states.offsets, states.begin, states.end)
    return coarse.covered(spans, np.arange(trace.locations), states.state != TRACING_DISABLED)


def _in_regions(trace: Trace, found: Activity, coarse: Axis) -> dict[str, NDArray[np.int64]]:
    """What all threads lose in parallel regions (`popmodel.efficiency.regions`)."""
    if not len(found.regions):
        nothing = np.zeros((1, coarse.columns), np.int64)
        return dict.fromkeys(_IN_REGIONS, nothing)
    run = np.zeros(trace.locations, np.int64)

    def inside(spans: Intervals) -> NDArray[np.int64]:
        outside = alone([spans], [found.regions])
        return coarse.covered(spans, run) - coarse.covered(outside, run)

    lost = coarse.covered(found.in_runtime, run)
    waiting = inside(waiting_in(trace, found.running, found.in_calls))
    in_mpi = inside(alone([found.in_calls], [found.running]))
    return dict(zip(_IN_REGIONS, (waiting, lost - waiting, in_mpi), strict=True))


def _shown(clock: Clock, time: NDArray[np.int64]) -> NDArray[np.float64]:
    """The clock of the last process at each time."""
    processes = np.arange(len(clock.last))
    every = clock.at(np.tile(processes, len(time)), np.repeat(time, len(processes)))
    latest: NDArray[np.float64] = every.reshape(len(time), -1).max(axis=1)
    return latest
