"""What threads lost to locks, critical sections and atomic operations.

Where each lock is recorded by itself, that and the states tell. popmodel's tracer adds up locks
that are waited for a short time or not at all, and tells the sums: the time waited lies in the
running state then, and has to be taken off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.instants import Instants
from popmodel.trace.intervals import Intervals
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Trace


@dataclass(frozen=True)
class WithoutWaits(Intervals):
    """Running time less the waits in it of which there are only sums."""

    # They lie somewhere in the intervals between the sum before and the instant of the sum.
    waits: Instants

    @classmethod
    def of_running(cls, running: Intervals, waits: Instants) -> WithoutWaits:
        """Take waits off running time."""
        return cls(running.offsets, running.begin, running.end, waits)

    def total(self) -> NDArray[np.int64]:
        """Summed length by location, ns."""
        return super().total() - self.waits.total()

    def before(self, location: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length before an instant, ns, for each pair."""
        return super().before(location, time) - self.waits.before(location, time)

    def inside(
        self, location: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Length between two instants, ns, for each triple."""
        return np.maximum(super().inside(location, begin, end), 0)


def summed_waits(trace: Trace, running: Intervals) -> Instants:
    """Waits for locks that are told as sums.

    A sum is at most the time that its thread ran since the one before: a window of a trace can
    begin in between.
    """
    told = trace.records.lock_waits()
    offsets, time, value, location = told.offsets, told.time, told.value, told.location
    # Locks and critical sections have their sums at the same instants: one for each instant.
    new = np.ones(len(time), dtype=bool)
    new[1:] = (time[1:] != time[:-1]) | (location[1:] != location[:-1])
    first = np.flatnonzero(new)
    if len(first):
        value = np.add.reduceat(value, first)
    time, location = time[first], location[first]
    offsets = np.searchsorted(first, offsets)
    begin = np.full(len(time), trace.begin, dtype=np.int64)
    follows = np.flatnonzero(location[1:] == location[:-1]) + 1
    begin[follows] = time[follows - 1]
    most = running.inside(location, begin, time)
    return Instants(offsets.astype(np.int64), time, np.clip(value, 0, most))
