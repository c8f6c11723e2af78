"""When the calls of a replayed run begin and end, and with them everything else in its trace.

What lies between two calls of MPI moves with them as a whole: it was measured and takes as long as
it did, but for the CPU factor. Times are whole nanoseconds; those of the replay are rounded once,
at the end of a call, so that time outside of MPI stays exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.pieces import Pieces
from popmodel.trace.states import TRACING_DISABLED
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.trace import Trace


@dataclass(frozen=True)
class Course:
    """How the time of a process in the trace becomes its time in the replay."""

    # int64[2 K + 2]: Its begin, the entry and the exit of each of its K calls, and its end, ns: in
    # the analysed part of the trace without tracing-disabled time, and in the replay.
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def inside(self, stretch: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times in the replay, where it is known between which two entries of `before` they lie."""
        begin, length = self.before[stretch], np.diff(self.before)[stretch]
        passed = np.clip(time - begin, 0, length)
        new = np.diff(self.after)[stretch]
        scaled = np.minimum((passed * (new / np.maximum(length, 1))).astype(np.int64), new)
        moved = np.where(length == new, passed, np.where(passed == length, new, scaled))
        # What took no time happens at its begin, however long it takes now.
        found: NDArray[np.int64] = self.after[stretch] + np.where(length == 0, 0, moved)
        return found

    def begins(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Begins of states in the replay: what begins with the end of a call begins after it."""
        stretch = np.searchsorted(self.before, time, side="right") - 1
        return self.inside(np.clip(stretch, 0, len(self.before) - 2), time)

    def ends(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ends of states in the replay, and times of events that belong to no call."""
        stretch = np.maximum(np.searchsorted(self.before, time, side="left") - 1, 0)
        end = self.after[np.minimum(stretch + 1, len(self.after) - 1)]
        whole = time >= self.before[np.minimum(stretch + 1, len(self.before) - 1)]
        return np.where(whole, end, self.inside(np.minimum(stretch, len(self.before) - 2), time))


@dataclass(frozen=True)
class MovedCalls:
    """Calls of the analysed part of a run, in the time of its replay."""

    row: NDArray[np.int64]  # int64[n]: Of each call among those of the whole run, ascending
    # int64[P + 1]: Those of process p are ``offsets[p]`` up to ``offsets[p + 1]``.
    offsets: NDArray[np.int64]
    # int64[n]: ns.
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    courses: list[Course]  # Of each process

    @property
    def ends(self) -> NDArray[np.int64]:
        """End of each process, ns."""
        return np.array([course.after[-1] for course in self.courses], np.int64)


def move_calls(trace: Trace, program: Program, end: NDArray[np.float64], cpu: float) -> MovedCalls:
    """Find when the calls of a run begin and end in a replay."""
    whole = trace.whole or trace
    masters = np.asarray(whole.process_offsets[:-1], np.int64)
    calls = whole.calls()
    pieces = trace.pieces or Pieces.window(trace.begin, trace.end)
    kept = np.ones(len(calls), np.bool_)
    if whole is not trace:
        kept = pieces.overlap(calls.entry, calls.exit)[1] > 0
        kept[program.call] = True
    row = np.flatnonzero(kept)
    offsets = np.searchsorted(row, np.append(calls.offsets[masters], len(calls)))
    clock = _Clock(trace, pieces)
    until = np.full(len(calls), np.iinfo(np.int64).min)  # the last operation of each call
    last = np.flatnonzero(np.append(np.diff(program.call) != 0, True)[: len(program.call)])
    until[program.call[last]] = _rounded(end[last])
    counted = program.compute()
    entry, exit_, courses = np.empty(len(row), np.int64), np.empty(len(row), np.int64), []
    for process, master in enumerate(masters.tolist()):
        mine = slice(int(offsets[process]), int(offsets[process + 1]))
        rows = row[mine]
        before = np.stack([clock(calls.entry[rows], master), clock(calls.exit[rows], master)])
        length = before[1] - before[0]
        outside = before[0] - trace.begin - (np.cumsum(length) - length)
        computed = _scaled(outside, cpu)
        # What waiting up to the end of each call comes to, so that it ends when the replay says.
        needed = np.where(until[rows] >= 0, until[rows] - computed, 0)
        waited = np.maximum.accumulate(np.maximum(needed, 0))
        exit_[mine] = computed + waited
        entry[mine] = computed + np.concatenate([[0], waited])[:-1]
        over = max(float(counted[process]), float(outside[-1]) if len(rows) else 0.0)
        finish = int(_scaled(np.array([over]), cpu)[0]) + int(waited[-1] if len(rows) else 0)
        measured = int(clock(whole.ends()[process : process + 1], master)[0])
        courses.append(
            Course(
                _bounds(trace.begin, before[0], before[1], measured),
                _bounds(0, entry[mine], exit_[mine], finish),
            )
        )
    return MovedCalls(row, offsets.astype(np.int64), entry, exit_, courses)


def _bounds(
    begin: int, entry: NDArray[np.int64], exit_: NDArray[np.int64], end: int
) -> NDArray[np.int64]:
    bounds = np.empty(2 * len(entry) + 2, np.int64)
    bounds[0], bounds[-1] = begin, end
    bounds[1:-1:2], bounds[2:-1:2] = entry, exit_
    return np.maximum.accumulate(bounds)


def _rounded(time: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole nanoseconds; halves go up, so that adding a whole number changes nothing."""
    return np.floor(time + 0.5).astype(np.int64)


def _scaled(time: NDArray[np.int64] | NDArray[np.float64], cpu: float) -> NDArray[np.int64]:
    if cpu == 1:
        return time.astype(np.int64)
    return _rounded(np.asarray(time * cpu, np.float64))


class _Clock:
    """Times of the whole run in its analysed part, without tracing-disabled time."""

    def __init__(self, trace: Trace, pieces: Pieces) -> None:
        self._pieces = pieces
        self._disabled = trace.records.in_state(TRACING_DISABLED)

    def __call__(self, time: NDArray[np.int64], master: int) -> NDArray[np.int64]:
        moved = self._pieces.moved(time)
        return moved - self._disabled.before(np.full(len(moved), master), moved)
