"""What the threads of a run do, as intervals by kind: those that efficiencies are measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.efficiency.useful import useful_times
from popmodel.trace.intervals import Intervals, alone
from popmodel.trace.pieces import spread
from popmodel.trace.runtime import state_ends
from popmodel.trace.states import NOT_CREATED, TRACING_DISABLED
from popmodel.trace.tables import offsets_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace


@dataclass(frozen=True, eq=False)
class Activity:
    """When threads do what."""

    running: Intervals  # In user code
    # The part of it outside of parallel regions: of a master outside its constructs, of a worker
    # outside its outlined functions.
    serial: Intervals
    on_master: Intervals  # Parallel constructs on masters
    regions: Intervals  # The same on every thread of their process
    in_calls: Intervals  # In MPI
    # In a parallel region of the process, but neither in user code nor in MPI.
    in_runtime: Intervals
    # What nothing is known of: tracing disabled, threads not created, before the first state and
    # after the last, but for calls of MPI there.
    unrecorded: Intervals


def activity(trace: Trace) -> Activity:
    """Find what the threads of a run do."""
    found = useful_times(trace)
    calls = trace.calls()
    in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit)
    constructs = found.regions.on_master
    running = Intervals(found.running.offsets, found.running.begin, found.running.end)
    if not len(constructs) and not len(found.regions.in_function):
        none = Intervals.none(trace.locations)
        return Activity(running, running, none, none, in_calls, none, _unrecorded(trace, in_calls))
    on_master = Intervals(constructs.offsets, constructs.begin, constructs.end)
    own = _own(trace, on_master, found.regions.in_function)
    regions = _of_teams(trace, on_master)
    return Activity(
        running,
        alone([running], [own]),
        on_master,
        regions,
        in_calls,
        alone([regions], [running, in_calls]),
        _unrecorded(trace, in_calls),
    )


def _own(trace: Trace, on_master: Intervals, in_function: Intervals) -> Intervals:
    """Constructs of masters and outlined functions of workers: where their useful time is OpenMP's.

    So it is for the efficiencies (`popmodel.efficiency.useful`).
    """
    is_master = np.zeros(trace.locations, bool)
    is_master[np.asarray(trace.process_offsets[:-1])] = True
    of_workers = in_function.at(np.flatnonzero(~is_master))
    location = np.concatenate([on_master.location, of_workers.location])
    order = np.argsort(location, kind="stable")
    return Intervals(
        on_master.offsets + of_workers.offsets,
        np.concatenate([on_master.begin, of_workers.begin])[order],
        np.concatenate([on_master.end, of_workers.end])[order],
    )


def _of_teams(trace: Trace, on_master: Intervals) -> Intervals:
    """Constructs on every thread of the process."""
    master = np.asarray(trace.process_offsets, np.int64)[trace.process_of_location()]
    count = np.diff(on_master.offsets)[master]
    _, row = spread(on_master.offsets[master], count)
    return Intervals(offsets_of(count), on_master.begin[row], on_master.end[row])


def _unrecorded(trace: Trace, in_calls: Intervals) -> Intervals:
    first, last = state_ends(trace)
    none = last <= first  # a thread without any state
    first, last = np.where(none, trace.end, first), np.where(none, trace.end, last)
    return alone(
        [
            trace.records.in_state(TRACING_DISABLED),
            trace.records.in_state(NOT_CREATED),
            _each(np.full(trace.locations, trace.begin), first),
            _each(last, np.full(trace.locations, trace.end)),
        ],
        [in_calls],
    )


def _each(begin: NDArray[np.int64], end: NDArray[np.int64]) -> Intervals:
    """One interval for each location."""
    return Intervals(np.arange(len(begin) + 1), begin.astype(np.int64), np.maximum(begin, end))
