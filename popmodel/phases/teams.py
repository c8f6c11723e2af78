"""What the threads of processes do inside parallel regions, execution by execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.phases.counted import counted
from popmodel.phases.phase import Team
from popmodel.trace.intervals import Intervals
from popmodel.trace.pieces import spread
from popmodel.trace.processors import delays
from popmodel.trace.tables import offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.measure import UsefulTimes
    from popmodel.phases.stretches import Stretches
    from popmodel.trace import Trace

_NS = 1e9


class Teams(NamedTuple):
    """Threads of region executions, and what is counted over them."""

    team: Team
    counts: dict[str, NDArray[np.float64]]
    notes: tuple[str, ...]


def measured(
    trace: Trace, regions: Stretches, process: NDArray[np.int64], useful: UsefulTimes
) -> Teams:
    """Measure the threads of regions."""
    bounds = np.asarray(trace.process_offsets, np.int64)
    which, location = spread(bounds[process], np.diff(bounds)[process])
    begin, end = regions.begin[which], regions.end[which]
    running = useful.running.inside(location, begin, end)
    apart = useful.apart.inside(location, begin, end) + delays(trace).inside(location, begin, end)
    running = np.maximum(running - apart, 0)
    calls = trace.calls()
    in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit)
    team = Team(
        offsets_of(np.bincount(which, minlength=len(regions))),
        running / _NS,
        in_calls.inside(location, begin, end) / _NS,
    )
    counts, notes = counted(trace, useful.running, location, begin, end)
    summed: dict[str, NDArray[np.float64]] = {
        name: np.bincount(which, each, len(regions)).astype(np.float64)
        for name, each in counts.items()
    }
    return Teams(team, summed, notes)
