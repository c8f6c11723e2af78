"""What the threads of processes do in a parallel region."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.efficiency.regions import waiting_in
from popmodel.extraction.outline import Team
from popmodel.trace.intervals import Intervals, alone
from popmodel.trace.pieces import spread
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.measure import UsefulTimes
    from popmodel.extraction.computing import Computing
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_NS = 1e9


def team(trace: Trace, structure: Structure, region: Computing) -> Team:
    """Return how the executions of a region spend their time, on average."""
    times = _times(trace, structure, region.event[region.event >= 0])
    all_useful = float(times.mean.sum())
    idle = float(times.idle.sum())
    # a process that does not execute it has no time in it: of all of them is the mean
    executions = region.event.shape[0] * int((region.event >= 0).sum(axis=1).max(initial=1))
    return Team(
        all_useful / executions,
        float((times.busiest - times.mean).sum()) / all_useful if all_useful else 0.0,
        float(np.maximum(times.wall - times.busiest, 0.0).sum()) / executions,
        min(float(times.waiting.sum()) / idle, 1.0) if idle > 0 else 0.0,
    )


class _Times(NamedTuple):
    """Of executions of regions, s."""

    # float64[N]: Useful time of the average and of the busiest thread.
    mean: NDArray[np.float64]
    busiest: NDArray[np.float64]
    wall: NDArray[np.float64]  # float64[N]: Time of the master outside MPI
    # float64[N]: Time of the average thread neither useful nor in MPI, and what of it is in
    # barriers, critical sections and locks.
    idle: NDArray[np.float64]
    waiting: NDArray[np.float64]


@dataclass(frozen=True)
class _Threads:
    """What threads of a run do, whatever region they are in."""

    useful: UsefulTimes
    in_calls: Intervals
    waiting: Intervals

    @classmethod
    def of(cls, trace: Trace) -> _Threads:
        """Find it."""
        useful, calls = useful_times(trace), trace.calls()
        in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit)
        waiting = waiting_in(trace, useful.running, in_calls)
        return cls(useful, alone([in_calls], [useful.running]), waiting)


def _times(trace: Trace, structure: Structure, event: NDArray[np.int64]) -> _Times:
    """Measure executions of regions as metrics are (`popmodel.efficiency.regions`)."""
    found = trace.derived("threads in regions", _Threads.of)
    running = found.useful.running
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process = structure.events.sequence[event]
    threads = np.diff(bounds)[process]
    starts = np.cumsum(threads) - threads
    which, location = spread(bounds[process], threads)
    first, last = structure.events.begin[event], structure.events.end[event]
    begin, end = first[which], last[which]
    busy = running.inside(location, begin, end)
    useful = np.maximum(busy - found.useful.apart.inside(location, begin, end), 0)
    in_calls = found.in_calls.inside(location, begin, end)
    waiting = found.waiting.inside(location, begin, end)
    waiting = waiting + running.waits.inside(location, begin, end)
    idle = np.maximum(end - begin - busy - in_calls, 0)

    def average(times: NDArray[np.int64]) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = np.add.reduceat(times, starts) / (threads * _NS)
        return mean

    return _Times(
        average(useful),
        np.maximum.reduceat(useful, starts) / _NS,
        (last - first - in_calls[starts]) / _NS,
        average(idle),
        average(waiting),
    )
