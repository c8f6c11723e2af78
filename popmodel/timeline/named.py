"""Which region each lane is in: those that users mark, and parallel regions of OpenMP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.kernel import _kernel
from popmodel.trace.intervals import Intervals, spread
from popmodel.trace.regions import parallel_regions, user_regions
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.timeline.lanes import LaneRows, TimeAxis
    from popmodel.trace import Trace

OTHERS = "other regions"


@dataclass(frozen=True, eq=False)
class NamedStates:
    """Regions over time."""

    # Of the regions, the longest first, and `OTHERS` where there are more than may be named.
    names: tuple[str, ...]
    # uint8[R, C]: The innermost region that takes most of each column: 0 for none, else its place
    # in `names`, from 1.
    region: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class NamedRegions:
    """Regions of all threads, by location and begin; those of one thread nest."""

    names: tuple[str, ...]  # Of the regions that users mark, then of parallel regions
    marked: int  # How many names are of the first kind
    location: NDArray[np.int64]  # int64[N]
    # int64[N]: Nanoseconds; none is empty.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    label: NDArray[np.int64]  # int64[N]: Index into `names`


def named_regions(trace: Trace, axis: TimeAxis, rows: LaneRows, most: int) -> NamedStates:
    """Find the region of every lane and column."""
    spans = regions_of(trace)
    names = spans.names
    if not len(spans.label):
        return NamedStates((), np.zeros((len(rows), axis.columns), np.uint8))
    parent = _parents(spans, trace.locations)
    length = spans.end - spans.begin
    own = np.bincount(spans.label, length, len(names))
    inner = np.flatnonzero(parent >= 0)
    own -= np.bincount(spans.label[parent[inner]], length[inner], len(names))
    order = np.argsort(-own, kind="stable")
    kept = order[: most if len(names) <= most else most - 1]
    place = np.full(len(names), len(kept), np.int64)
    place[kept] = np.arange(len(kept))
    label = place[spans.label]
    shown = tuple(names[each] for each in kept.tolist())
    if len(kept) < len(names):
        shown = (*shown, OTHERS)
    lane = rows.of_location
    # A column in which no region takes half of the time is in none.
    longest = np.full((len(rows), axis.columns), 0, np.int64)
    region = np.zeros(longest.shape, np.uint8)
    outside = axis.step * rows.threads[:, None] * np.ones((1, axis.columns), np.int64)
    for number in range(len(shown)):
        time = _covered(spans, np.flatnonzero(label == number), axis, lane)
        within = inner[label[parent[inner]] == number]
        time -= _covered(spans, within, axis, lane)
        outside -= time
        more = time > longest
        longest[more], region[more] = time[more], number + 1
    region[outside > longest] = 0
    return NamedStates(shown, region)


def regions_of(trace: Trace) -> NamedRegions:
    """Find when threads are in which region: parallel regions are those of the whole team."""
    marked, openmp = user_regions(trace), parallel_regions(trace)
    names = list(dict.fromkeys([*marked.names, *openmp.names]))
    number = {name: place for place, name in enumerate(names)}
    bounds = np.asarray(trace.process_offsets, np.int64)
    process = trace.process_of_location().astype(np.int64)[openmp.on_master.location]
    row, location = spread(bounds[process], np.diff(bounds)[process])
    numbers = [
        np.array([number[name] for name in each], np.int64) for each in (marked.names, openmp.names)
    ]
    columns = (
        np.concatenate([marked.location, location]),
        np.concatenate([marked.begin, openmp.on_master.begin[row]]),
        np.concatenate([marked.end, openmp.on_master.end[row]]),
        np.concatenate([numbers[0][marked.label], numbers[1][openmp.label[row]]]),
    )
    # Of two that begin at once the longer one is outside.
    order = np.lexsort((-columns[2], columns[1], columns[0]))
    order = order[columns[2][order] > columns[1][order]]
    return NamedRegions(tuple(names), len(marked.names), *(each[order] for each in columns))


def _parents(spans: NamedRegions, locations: int) -> NDArray[np.int64]:
    """The region right around each; -1 for none."""
    offsets = np.searchsorted(spans.location, np.arange(locations + 1))
    ends = spans.end[np.lexsort((spans.end, spans.location))]
    over = _kernel.locate(offsets, ends, spans.location, spans.begin) + 1
    depth = np.arange(len(over)) - over  # begun before, less those that are over
    parent = np.full(len(depth), -1, np.int64)
    around = np.flatnonzero(depth == 0)
    for level in range(1, int(depth.max(initial=0)) + 1):
        inside = np.flatnonzero(depth == level)
        if len(around):
            parent[inside] = around[np.maximum(np.searchsorted(around, inside) - 1, 0)]
        around = inside
    return parent


def _covered(
    spans: NamedRegions, some: NDArray[np.int64], axis: TimeAxis, lane: NDArray[np.int64]
) -> NDArray[np.int64]:
    offsets = np.searchsorted(spans.location[some], np.arange(len(lane) + 1))
    return axis.covered(Intervals(offsets, spans.begin[some], spans.end[some]), lane)
