"""How long a run took: the times of its threads, as the sums of their states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.tables import walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces.recorded_run import Trace


def state_times(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Time of each location in all its states, and without those with tracing disabled, ns.

    Found once for each trace.
    """
    return trace.derived("state_times", _state_times)


def _state_times(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # What is left of the states of a part of a run is never held: they are many.
    states = (trace.whole or trace).states
    covered = np.zeros(len(states.offsets) - 1, dtype=np.int64)
    traced = covered.copy()
    for block in walk(states.state, states.begin, states.end):
        begin, end = states.begin[block], states.end[block]
        if trace.pieces is not None:
            begin, end = trace.pieces.passed(begin), trace.pieces.passed(end)
        all_, most = _kernel.state_times(
            offsets=np.clip(states.offsets, block.start, block.stop) - block.start,
            begin=begin,
            end=end,
            state=states.state[block],
            without=TRACING_DISABLED,
        )
        covered += all_
        traced += most
    return covered, traced


def state_ends(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin of the first and end of the last state of each location, ns; both 0 without any."""
    whole, pieces = trace.whole or trace, trace.pieces
    states = whole.states
    first = np.zeros(len(states.offsets) - 1, dtype=np.int64)
    last, found = first.copy(), np.zeros(len(first), dtype=bool)
    for block in walk(states.begin, states.end):
        begin, end = states.begin[block], states.end[block]
        kept = np.arange(len(begin))
        if pieces is not None:
            kept = np.flatnonzero(pieces.overlap(begin, end)[1])
        bounds = np.clip(states.offsets, block.start, block.stop) - block.start
        bounds = np.searchsorted(kept, bounds)
        some = bounds[1:] > bounds[:-1]
        new = some & ~found
        first[new] = begin[kept[bounds[:-1][new]]]
        if some.any():  # those that overlap may end before others
            ends = np.maximum.reduceat(end[kept], bounds[:-1][some])
            last[some] = np.maximum(last[some], ends)
        found |= some
    if pieces is not None:
        first[found], last[found] = pieces.moved(first[found]), pieces.moved(last[found])
    return first, last


def longest(trace: Trace, covered: NDArray[np.int64], traced: NDArray[np.int64]) -> int:
    """Runtime of a run, ns: the longest time of a thread, tracing-disabled time left out."""
    if traced.any():
        return int(traced.max())
    if covered.any():
        problem = "tracing is disabled throughout: there is no time to measure"
        hint = "enable tracing in the part of the run that matters (Extrae_restart)"
    elif len(trace.states.begin):
        problem = "all states have zero length: there is no time to measure"
        hint = "trace a longer run"
    elif not len(trace.records.events.time) + len(trace.messages.size):
        problem = "nothing is recorded of its threads: there is no time to measure"
        hint = "copy the trace again, with all of its files, or trace the run again"
    else:
        problem = "no state records: times cannot be measured"
        hint = "trace with states enabled: popmodel needs them as well as events"
    raise TraceError(trace.path, problem, hint=hint)
