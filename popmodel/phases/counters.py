"""Hardware counters of many stretches of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.kernel import _kernel
from popmodel.phases.phase import PhaseTeam
from popmodel.trace.blocks import walk_locations
from popmodel.trace.event import Event
from popmodel.trace.instants import Instants
from popmodel.trace.intervals import Intervals
from popmodel.trace.pieces import spread
from popmodel.trace.processors import delays
from popmodel.trace.tables import offsets_of
from popmodel.units import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.measure import UsefulTimes
    from popmodel.phases.bursts import Stretches
    from popmodel.trace import Trace
    from popmodel.trace.intervals import Intervals

COUNTERS = {Event.INSTRUCTIONS: "instructions", Event.CYCLES: "cycles"}
_ROWS = 1 << 18  # useful times of the threads whose counters are read together


def counted(
    trace: Trace,
    running: Intervals,
    location: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> tuple[dict[str, NDArray[np.float64]], tuple[str, ...]]:
    """Count instructions and cycles in some stretches of threads' useful time.

    A reading at time t belongs to the running record with begin < t <= end, and only the first one
    at that t counts, as for the efficiencies (`popmodel.efficiency.measure`).
    """
    counts = {event: np.zeros(len(location)) for event in COUNTERS}
    readings, negative = dict.fromkeys(COUNTERS, 0), dict.fromkeys(COUNTERS, 0)
    order = np.argsort(location, kind="stable")
    ordered = location[order]
    for block in walk_locations(running.offsets, rows=_ROWS):
        first, last = np.searchsorted(ordered, (block.start, block.stop))
        mine = order[first:last]
        told = trace.records.counters(tuple(COUNTERS), block)
        for event, found in zip(COUNTERS, told, strict=True):
            useful = _in_useful_time(found, running, block)
            readings[event] += len(found)
            negative[event] += int(np.count_nonzero(useful.value < 0))
            counts[event][mine] = useful.inside(
                location[mine] - block.start, begin[mine], end[mine]
            )
    notes = tuple(
        f"the hardware counter of {COUNTERS[event]} is negative in {plural(number, 'reading')}"
        for event, number in negative.items()
        if number
    )
    kept = {
        COUNTERS[event]: counts[event]
        for event in COUNTERS
        if readings[event] and not negative[event]
    }
    return kept, notes


def _in_useful_time(told: Instants, running: Intervals, block: slice) -> Instants:
    """The readings that count."""
    location = told.location
    new = np.ones(len(told), bool)
    new[1:] = (told.time[1:] != told.time[:-1]) | (location[1:] != location[:-1])
    where = location + block.start
    row = _kernel.locate(running.offsets, running.begin, where, told.time - 1)
    counts = new & (row >= running.offsets[where])
    rows = np.flatnonzero(counts)
    rows = rows[told.time[rows] <= running.end[row[rows]]]
    return _some(told, location, rows.astype(np.int64))


def _some(told: Instants, location: NDArray[np.int64], rows: NDArray[np.int64]) -> Instants:
    locations = len(told.offsets) - 1
    return Instants(
        offsets_of(np.bincount(location[rows], minlength=locations)),
        told.time[rows],
        told.value[rows],
    )


# What the threads of processes do inside parallel regions, execution by execution.


_NS = 1e9


class Teams(NamedTuple):
    """Threads of region executions, and what is counted over them."""

    team: PhaseTeam
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
    team = PhaseTeam(
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
