"""What threads lost to locks, critical sections and atomic operations.

Where each lock has events of its own, these and the states tell. popmodel's tracer adds up locks
that are waited for a short time or not at all, and writes the sums as events: the time waited lies
in the running state then, and has to be taken off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.kernel import _kernel
from popmodel.trace.blocks import rows_where_type, take
from popmodel.trace.intervals import Intervals
from popmodel.trace.names import SUMMED_LOCKS, WAITED_FOR_LOCKS
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Trace

__all__ = ["Sums", "WithoutWaits", "summed_waits"]


@dataclass(frozen=True)
class Sums:
    """Times that were added up, each told at an instant of its location.

    Attributes
    ----------
    offsets : int64[L + 1]
        Sums of location l are ``offsets[l] .. offsets[l + 1]``, in order of time.
    time, value : int64[N]
        When a sum is told, and what it is; ns.
    """

    offsets: NDArray[np.int64]
    time: NDArray[np.int64]
    value: NDArray[np.int64]

    def total(self) -> NDArray[np.int64]:
        """Sum by location, ns."""
        until = self._until()
        by_location: NDArray[np.int64] = until[self.offsets[1:]] - until[self.offsets[:-1]]
        return by_location

    def before(self, location: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of what is told up to an instant, which counts, for each pair; ns."""
        if not len(self.time):
            return np.zeros(len(time), dtype=np.int64)
        until, first = self._until(), self.offsets[location]
        index = _kernel.locate(self.offsets, self.time, location, time)
        return np.where(index >= first, until[np.maximum(index + 1, 0)] - until[first], 0)

    def inside(
        self, location: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Sum of what is told in ``begin < t <= end``, for each triple; ns."""
        return self.before(location, end) - self.before(location, begin)

    def _until(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.value)])


@dataclass(frozen=True)
class WithoutWaits(Intervals):
    """Running time less the waits in it of which there are only sums.

    Attributes
    ----------
    waits : Sums
        They lie somewhere in the intervals between the sum before and the instant of the sum.
    """

    waits: Sums

    @classmethod
    def of_running(cls, running: Intervals, waits: Sums) -> WithoutWaits:
        """Take waits off running time."""
        return cls(running.offsets, running.begin, running.end, running.row, waits)

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


def summed_waits(trace: Trace, running: Intervals) -> Sums:
    """Waits for locks that are told as sums.

    A sum is at most the time that its thread ran since the one before: a window of a trace can
    begin in between.
    """
    events = trace.events
    types = tuple(type_ + WAITED_FOR_LOCKS for type_ in SUMMED_LOCKS.values())
    rows = rows_where_type(events.type, types)
    offsets = np.searchsorted(rows, events.offsets)
    time, value = take(events.time, rows), take(events.value, rows)
    location = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
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
    return Sums(offsets.astype(np.int64), time, np.clip(value, 0, most))
