"""What each lane mostly does in each column, measured and in a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.timeline.kinds import (
    COMPUTING,
    IDLE,
    KINDS,
    MPI,
    NONE,
    OPENMP,
    PARALLEL,
    kind_of_call,
)
from popmodel.trace.intervals import Intervals
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.timeline.activity import Activity
    from popmodel.timeline.axis import Axis
    from popmodel.timeline.clock import Clock
    from popmodel.timeline.rows import Rows
    from popmodel.trace import Trace


@dataclass(frozen=True, eq=False)
class Lanes:
    """What lanes do."""

    kind: NDArray[np.uint8]  # uint8[R, C]: What takes most of each column, by number in `KINDS`
    # int64[R, kinds]: Time of each lane in each kind, ns, of all its threads together.
    spent: NDArray[np.int64]


def measured(trace: Trace, found: Activity, axis: Axis, rows: Rows) -> Lanes:
    """Lay out the measured run."""
    calls = trace.calls()
    most = _Most(axis, rows, np.full(trace.locations, trace.end))
    most.add(NONE, found.unrecorded)
    most.add_computing(found.serial, found.running)
    most.add_calls(found.in_calls, kind_of_call(calls)[calls.name])
    most.add(OPENMP, found.in_runtime)
    return most.lanes()


def replayed(trace: Trace, found: Activity, clock: Clock, axis: Axis, rows: Rows) -> Lanes:
    """Lay out a replay.

    What threads compute is as measured, at the times of the replay's clock. Calls of MPI are on
    masters, from their first operation to their last.
    """
    process = trace.process_of_location().astype(np.int64)
    most = _Most(axis, rows, clock.shown(clock.last)[process])
    most.add(NONE, clock.spans(found.unrecorded, process))
    running = clock.spans(found.running, process)
    serial = running if found.serial is found.running else clock.spans(found.serial, process)
    most.add_computing(serial, running)
    calls, told = (trace.whole or trace).calls(), clock.calls
    is_master = np.zeros(trace.locations, np.int64)
    is_master[np.asarray(trace.process_offsets[:-1])] = 1
    of_masters = np.concatenate([[0], np.cumsum(np.diff(told.offsets)[process] * is_master)])
    spans = Intervals(of_masters, clock.shown(told.begin), clock.shown(told.end))
    most.add_calls(spans, kind_of_call(calls)[calls.name[told.call]])
    most.add(OPENMP, clock.spans(found.in_runtime, process))
    return most.lanes()


class _Most:
    """The kind that takes most of each step, kind by kind in the order of their numbers.

    Nobody holds the times of all kinds at once: they are nine numbers for each cell.
    """

    def __init__(self, axis: Axis, rows: Rows, over: NDArray[np.int64]) -> None:
        self._axis, self._lane = axis, rows.of_location
        room = (axis.step * rows.threads)[:, None]
        self._rest = np.repeat(room, axis.columns, axis=1)
        self._most = np.full_like(self._rest, -1)
        self._kind = np.zeros(self._rest.shape, np.uint8)
        self._spent = np.zeros((len(rows), len(KINDS)), np.int64)
        after = np.arange(len(over) + 1), over, np.maximum(over, axis.end)
        self._after: NDArray[np.int64] = axis.covered(Intervals(*after), self._lane)

    def add(self, number: int, spans: Intervals, some: NDArray[np.bool_] | None = None) -> None:
        """Add intervals of a kind."""
        if number == NONE:
            self._add(NONE, self._after + self._axis.covered(spans, self._lane))
        elif len(spans):
            self._add(number, self._axis.covered(spans, self._lane, some))

    def add_computing(self, serial: Intervals, running: Intervals) -> None:
        """Add computing outside of parallel regions, and inside."""
        outside = self._axis.covered(serial, self._lane)
        self._add(COMPUTING, outside)
        if serial is not running:
            inside = self._axis.covered(running, self._lane) - outside
            self._add(PARALLEL, np.maximum(inside, 0))

    def add_calls(self, spans: Intervals, kind: NDArray[np.int64]) -> None:
        """Add calls of MPI, each of its kind."""
        for number in MPI:
            some = kind == number
            if some.any():
                self.add(number, spans, some)

    def lanes(self) -> Lanes:
        """The kinds; what none explains is idle."""
        self._add(IDLE, np.maximum(self._rest, 0))
        return Lanes(self._kind, self._spent)

    def _add(self, number: int, time: NDArray[np.int64]) -> None:
        self._spent[:, number] = time.sum(axis=1)
        self._rest -= time
        np.copyto(self._kind, number, where=time > self._most)  # of equal ones the first counts
        np.maximum(self._most, time, out=self._most)
