"""When threads do useful work, and which of it lies in parallel regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.intervals import Intervals, alone
from popmodel.trace.locks import WithoutWaits, summed_waits
from popmodel.trace.regions import ParallelRegions, parallel_regions
from popmodel.trace.states import RUNNING
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace


@dataclass(frozen=True)
class UsefulTimes:
    """Useful time of all threads of a run."""

    # When threads run user code; waits for locks of which there are only sums are taken off.
    running: WithoutWaits
    regions: ParallelRegions  # The parallel regions
    # int64[L]: Useful time of each location in parallel regions, ns: of a master while it is in a
    # construct, of a worker while it executes an outlined function.
    in_regions: NDArray[np.int64]
    # Running time of workers outside of all outlined functions, whatever their master does.
    apart: Intervals


def useful_times(trace: Trace) -> UsefulTimes:
    """Find the useful time of a run, or of a part of one."""
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    is_master = np.zeros(bounds[-1], dtype=bool)
    is_master[bounds[:-1]] = True
    in_state = trace.records.in_state(RUNNING)
    running = WithoutWaits.of_running(in_state, summed_waits(trace, in_state))
    found = parallel_regions(trace)
    outlined = found.in_function
    inside = np.where(is_master, running.within(found.on_master), running.within(outlined))
    some = np.flatnonzero(~is_master & (running.total() > inside))
    return UsefulTimes(running, found, inside, alone([running.at(some)], [outlined]))
