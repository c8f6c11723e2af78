"""What the processes of a run do over time, in equal bins: for drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.structure.bursts import bursts, regions
from popmodel.traces.calls import CallGroup
from popmodel.traces.intervals import Intervals, alone, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

_NS = 1e9
ACTIVITIES = ("nothing", "computing", "parallel", "messages", "collective", "other")
"""What a process mostly does in a bin: nothing that is recorded, computing outside of parallel
regions, parallel regions, point-to-point calls, collectives, other calls of MPI."""
_GROUPS = {CallGroup.POINT_TO_POINT: 3, CallGroup.COLLECTIVE: 4}
_OTHER = 5


class PhaseTimeline(NamedTuple):
    """What the processes of a run do over time."""

    edges: NDArray[np.float64]  # float64[B + 1]: Begin of each bin, and the end of the last, s
    # int8[K, B]: What each process that is shown (its master) mostly does: index into `ACTIVITIES`.
    activity: NDArray[np.int8]
    in_mpi: NDArray[np.float64]  # float64[B]: Part of all processes' time that is in calls of MPI
    # float64[K, B]: Longest burst or parallel region of each process that reaches into the bin, s;
    # 0 for none.
    burst: NDArray[np.float64]


def timeline(
    structure: Structure,
    trace: Trace,
    begin: int,
    end: int,
    bins: int,
    shown: NDArray[np.int64] | None = None,
) -> PhaseTimeline:
    """Tell what processes do over time."""
    shown = np.arange(trace.processes) if shown is None else shown
    bins = max(1, min(bins, end - begin))
    edges = begin + (np.arange(bins + 1) * ((end - begin) / bins)).astype(np.int64)
    edges[-1] = end
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    held = _held(trace, masters[shown], edges)
    calls = trace.calls()
    in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit).at(masters)
    width = np.diff(edges)
    known = held.sum(axis=0)
    activity = held.argmax(axis=0).astype(np.int8) + 1
    activity[known * 2 < width] = 0  # mostly not recorded
    return PhaseTimeline(
        edges / _NS,
        activity,
        np.diff(in_calls.passed(edges)) / np.maximum(width * trace.processes, 1),
        _longest(structure, trace, edges, shown),
    )


def _held(
    trace: Trace, masters: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Time of each activity but the first, in each bin of some masters: float64[A - 1, K, B]."""
    bins = len(edges) - 1
    location = np.repeat(masters, bins)
    first, last = (np.tile(each, len(masters)) for each in (edges[:-1], edges[1:]))

    def inside(found: Intervals) -> NDArray[np.float64]:
        lengths = found.inside(location, first, last).reshape(len(masters), bins)
        return lengths.astype(np.float64)

    calls, found = trace.calls(), useful_times(trace)
    in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit).at(masters)
    in_regions = found.regions.on_master.at(masters)
    group = np.array([_GROUPS.get(each, _OTHER) for each in calls.group], np.int64)[calls.name]
    held = [
        inside(alone([found.running.at(masters)], [in_regions, in_calls])),
        inside(alone([in_regions], [in_calls])),
    ]
    for kind in (*_GROUPS.values(), _OTHER):
        rows = np.flatnonzero(group == kind)
        offsets = np.searchsorted(rows, calls.offsets)
        held.append(inside(Intervals.of(offsets, calls.entry[rows], calls.exit[rows])))
    return np.stack(held)


def _longest(
    structure: Structure, trace: Trace, edges: NDArray[np.int64], shown: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Longest burst or region that reaches into each bin of some processes, s: float64[K, B]."""
    longest = np.zeros((len(shown), len(edges) - 1))
    line = np.full(trace.processes, -1)
    line[shown] = np.arange(len(shown))
    for rows in (bursts(structure, trace), regions(structure)):
        rows = rows.at(
            (rows.end > edges[0])
            & (rows.begin < edges[-1])
            & (rows.end > rows.begin)
            & (line[structure.program.owner[rows.sequence]] >= 0)
        )
        first = np.searchsorted(edges, rows.begin, side="right") - 1
        last = np.searchsorted(edges, rows.end, side="left") - 1
        first, last = np.maximum(first, 0), np.minimum(last, longest.shape[1] - 1)
        which, at = spread(first, last - first + 1)
        process = structure.program.owner[rows.sequence[which]]
        np.maximum.at(longest, (line[process], at), rows.wall[which])
    return longest
