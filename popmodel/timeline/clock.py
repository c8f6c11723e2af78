"""What time a replay shows when processes pass what they did at a time of the measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.kernel import _kernel
from popmodel.trace.intervals import Intervals, alone
from popmodel.trace.pieces import Pieces
from popmodel.trace.states import TRACING_DISABLED
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.simulator.replayer import Moments
    from popmodel.trace import Trace


@dataclass(frozen=True, eq=False)
class Modelled:
    """The calls of a run that its program has operations of, by process and in order."""

    offsets: NDArray[np.int64]  # int64[P + 1]
    call: NDArray[np.int64]  # int64[K]: Row among the calls of the whole run
    # int64[K]: Measured, ns, in the time of the trace.
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    # float64[K]: Replayed, ns from 0: begin of the call's first operation and end of its last.
    begin: NDArray[np.float64]
    end: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Clock:
    """From times of the measured run to those of a replay.

    Between modelled calls a replay repeats what a process computed: its clock runs as fast as the
    measured one, and stands still where the replay takes no time, in calls that are not modelled
    and while tracing is disabled. A modelled call lasts as long as the replay says.
    """

    begin: int  # Measured time at which the replay is at 0, ns
    calls: Modelled
    outside: Intervals  # Of each process, by its number: when it does not compute, measured
    last: NDArray[np.float64]  # float64[P]: When the replay of each process ends, ns

    def at(self, process: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.float64]:
        """Replayed times, ns from 0, of measured times of some processes."""
        calls = self.calls
        before = _kernel.locate(calls.offsets, calls.entry, process, time)
        some = np.flatnonzero(before >= calls.offsets[process])
        computed = self._computed(process, time)
        found = computed.astype(np.float64)
        mine, now = before[some], time[some]
        length = calls.exit[mine] - calls.entry[mine]
        passed = np.minimum(now - calls.entry[mine], length) / np.maximum(length, 1)
        passed[length == 0] = 1.0
        inside = calls.begin[mine] + passed * (calls.end[mine] - calls.begin[mine])
        after = computed[some] - self._computed(process[some], calls.exit[mine])
        found[some] = inside + np.maximum(after, 0)
        return np.clip(found, 0.0, self.last[process])

    def spans(self, spans: Intervals, process: NDArray[np.int64]) -> Intervals:
        """Intervals of locations where they lie in the replay, whose 0 is at `begin`; whole ns."""
        mine = process[spans.location]
        begin, end = (self.shown(self.at(mine, each)) for each in (spans.begin, spans.end))
        return Intervals(spans.offsets, begin, end)

    def shown(self, time: NDArray[np.float64]) -> NDArray[np.int64]:
        """Replayed times on the axis of the measured run: whole ns, 0 at `begin`."""
        return np.rint(time).astype(np.int64) + self.begin

    def _computed(self, process: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Computing of a process up to a measured time, ns."""
        return time - self.begin - self.outside.before(process, time)


def clock_of(trace: Trace, program: Program, moments: Moments) -> Clock:
    """Return the clock of a replay."""
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    calls = trace.calls()
    sets = [
        Intervals.of(calls.offsets, calls.entry, calls.exit).at(masters),
        trace.records.in_state(TRACING_DISABLED).at(masters),
    ]
    outside = alone(sets, [])
    by_process = Intervals(
        np.append(outside.offsets[masters], outside.offsets[-1]), outside.begin, outside.end
    )
    return Clock(trace.begin, _modelled(trace, program, moments), by_process, moments.last)


def _modelled(trace: Trace, program: Program, moments: Moments) -> Modelled:
    new = np.ones(program.operations, bool)
    new[1:] = program.call[1:] != program.call[:-1]
    new[program.offsets[:-1][np.diff(program.offsets) > 0]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], program.operations)[: len(first)] - 1
    call = program.call[first].astype(np.int64)
    whole = (trace.whole or trace).calls()
    pieces = trace.pieces or Pieces.window(trace.begin, trace.end)
    return Modelled(
        np.searchsorted(first, program.offsets),
        call,
        pieces.moved(whole.entry[call]),
        pieces.moved(whole.exit[call]),
        moments.begin[first],
        moments.end[last],
    )
