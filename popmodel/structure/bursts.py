"""Stretches of time between the events of a run: bursts, parallel regions, and what is in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import alike, spread
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.structure.structure import leaves
from popmodel.traces.caveats import delays
from popmodel.traces.codes import Event
from popmodel.traces.intervals import Instants, Intervals
from popmodel.traces.tables import offsets_of, walk_locations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.measure import UsefulTimes
    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

COUNTERS = {Event.INSTRUCTIONS: "instructions", Event.CYCLES: "cycles"}
_NS = 1e9
_ROWS = 1 << 18  # useful times of the threads whose counters are read together
_LEAST = 1e-9
"""Seconds; shorter times are not told apart."""


@dataclass(frozen=True, eq=False)
class Stretches:
    """Executions of bursts or regions, by sequence and in order of time."""

    sequence: NDArray[np.int32]  # int32[N]
    # int32[N]: That a burst is before, or that a region is; -1: the end of the run.
    place: NDArray[np.int32]
    previous: NDArray[np.int32]  # int32[N]: Place of the event before; -1: the begin of the run
    execution: NDArray[np.int64]  # int64[N]: How many times the sequence passed the place before
    # int64[N]: Nanoseconds.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    wall: NDArray[np.float64]  # float64[N]: Time of a burst outside MPI, of a region all of it, s
    cut: NDArray[np.bool_]  # bool[N]: Whether a window has cut it

    def __len__(self) -> int:
        return len(self.wall)

    def at(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Stretches:
        """Some of them."""
        return Stretches(
            self.sequence[rows], self.place[rows], self.previous[rows], self.execution[rows],
            self.begin[rows], self.end[rows], self.wall[rows], self.cut[rows],
        )  # fmt: skip

    def within(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Stretches:
        """What of them lies between two times of their sequences: int64[S], ns.

        The time of those that are cut is divided in proportion.
        """
        first = np.maximum(self.begin, begin[self.sequence])
        last = np.minimum(self.end, end[self.sequence])
        kept = (last > first) | ((last == first) & (self.begin == self.end))
        mine, first, last = self.at(kept), first[kept], last[kept]
        length = mine.end - mine.begin
        cut = last - first < length
        share = np.divide(last - first, length, out=np.ones(len(mine)), where=cut)
        return replace(mine, begin=first, end=last, wall=mine.wall * share, cut=cut)


def bursts(structure: Structure, trace: Trace) -> Stretches:
    """What sequences compute before each event outside of regions, and after the last one."""
    events, place = structure.events, structure.place
    sequence, since, until = events.gaps(trace.begin, trace.ends()[structure.program.owner])
    offsets = np.asarray(events.offsets, np.int64)
    behind = np.full(len(offsets) - 1, -1, np.int32)  # for the end of the run
    first = np.append(np.diff(events.sequence, prepend=-1) != 0, np.diff(offsets) == 0)
    before = np.append(np.arange(len(events)), offsets[1:]) - 1
    # What is inside a region belongs to it.
    rows = np.flatnonzero(np.append(since[: len(events)] <= events.begin, behind < 0))
    return Stretches(
        sequence[rows].astype(np.int32),
        np.append(place, behind).astype(np.int32)[rows],
        np.where(first, -1, np.append(place, -1)[before]).astype(np.int32)[rows],
        np.append(structure.execution, behind + 1).astype(np.int64)[rows],
        since[rows],
        until[rows],
        np.append(events.before, events.after)[rows] / _NS,
        np.zeros(len(rows), bool),
    )


def regions(structure: Structure) -> Stretches:
    """The parallel regions on the masters."""
    events = structure.events
    rows = np.flatnonzero(events.is_region)
    place = np.asarray(structure.place, np.int32)[rows]
    return Stretches(
        events.sequence[rows].astype(np.int32),
        place,
        place,
        np.asarray(structure.execution, np.int64)[rows],
        np.asarray(events.begin, np.int64)[rows],
        np.asarray(events.end, np.int64)[rows],
        (events.end[rows] - events.begin[rows] - events.delayed[rows]) / _NS,
        np.zeros(len(rows), bool),
    )


# Which burst is which where processes lack some calls.
#
# A process at the edge of a grid sends to fewer neighbours: what it computes before its first
# call is what the others compute before another one, which it does not have. Between two of its
# calls lie then several places; its burst is of the one whose bursts elsewhere take as long.


def settled(structure: Structure, rows: Stretches) -> Stretches:
    """Bursts before the places that they are of.

    Only places of the same leaf are taken for each other: these a sequence passes equally often, so
    that the numbers of executions stay.
    """
    if not structure.places:
        return rows
    leaf, position, members = _leaves(structure)
    groups, which = alike(
        rows.sequence.astype(np.int64), rows.previous.astype(np.int64), rows.place.astype(np.int64)
    )
    _, before, place = groups.T
    mean = np.bincount(which, rows.wall) / np.bincount(which)
    since = np.where((before >= 0) & (leaf[before] == leaf[place]), position[before] + 1, 0)
    since = np.where(since <= position[place], since, 0)
    direct = (since == position[place]) | (place < 0)
    usual = _usual(rows, direct[which], len(leaf))
    chosen = place.copy()
    for group in np.flatnonzero(~direct).tolist():
        here = int(place[group])
        among = members[leaf[here]][since[group] : position[here] + 1]
        times = usual[among]
        if np.isnan(times).all():
            continue
        apart = np.abs(np.log(np.maximum(times, _LEAST) / max(mean[group], _LEAST)))
        chosen[group] = among[int(np.nanargmin(apart))]
    return replace(rows, place=chosen[which].astype(np.int32))


def _leaves(
    structure: Structure,
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]]]:
    """Leaf of each place, its position in it, and the places of each leaf."""
    members = [np.array(leaf.places, np.int64) for leaf in leaves(structure.nest)]
    leaf, position = np.zeros((2, len(structure.places)), np.int64)
    for number, places in enumerate(members):
        leaf[places], position[places] = number, np.arange(len(places))
    return leaf, position, members


def _usual(rows: Stretches, direct: NDArray[np.bool_], places: int) -> NDArray[np.float64]:
    """Mean time of the bursts that lie before each place without doubt, s; NaN without any."""
    mine = direct & (rows.place >= 0)
    count = np.bincount(rows.place[mine], minlength=places)
    total = np.bincount(rows.place[mine], rows.wall[mine], places)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


# Hardware counters of many stretches of time.


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
    locations = len(told.offsets) - 1
    return Instants(
        offsets_of(np.bincount(location[rows], minlength=locations)),
        told.time[rows],
        told.value[rows],
    )


# What the threads of processes do inside parallel regions, execution by execution.


@dataclass(frozen=True, eq=False)
class PhaseTeam:
    """What the threads of a process do in each execution of a parallel region."""

    # int64[k + 1]: Threads of execution e: rows ``offsets[e] .. offsets[e + 1]``, the master first.
    offsets: NDArray[np.int64]
    useful: NDArray[np.float64]  # float64[m]: Useful time of each, s
    in_mpi: NDArray[np.float64]  # float64[m]: Its time in MPI calls inside, s

    def at(self, rows: NDArray[np.int64]) -> PhaseTeam:
        """Some of the executions."""
        which, row = spread(self.offsets[rows], self.threads[rows])
        counts = np.bincount(which, minlength=len(rows))
        return PhaseTeam(offsets_of(counts), self.useful[row], self.in_mpi[row])

    @property
    def threads(self) -> NDArray[np.int64]:
        """Threads of each execution: int64[k]."""
        return np.diff(self.offsets)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean useful time of the threads of each execution, s: float64[k]."""
        return np.add.reduceat(self.useful, self.offsets[:-1]) / self.threads

    @property
    def busiest(self) -> NDArray[np.float64]:
        """Useful time of the busiest thread of each execution, s: float64[k]."""
        return np.maximum.reduceat(self.useful, self.offsets[:-1])

    @property
    def worst(self) -> int:
        """The thread that is the busiest in most of the time, from 0."""
        lead = np.flatnonzero(self.useful == np.repeat(self.busiest, self.threads))
        thread = lead - np.repeat(self.offsets[:-1], self.threads)[lead]
        return int(np.bincount(thread, self.useful[lead]).argmax())

    @property
    def imbalance(self) -> float:
        """Useful time of busiest threads over that of mean ones, minus 1."""
        mean = self.mean.sum()
        return float(self.busiest.sum() / mean - 1) if mean else 0.0

    @property
    def by_thread(self) -> NDArray[np.float64]:
        """Useful time of each thread number relative to the mean of the team, over executions."""
        thread = np.arange(len(self.useful)) - np.repeat(self.offsets[:-1], self.threads)
        mean = np.bincount(thread, np.repeat(self.mean, self.threads))
        own = np.bincount(thread, self.useful)
        return np.divide(own, mean, out=np.zeros_like(own), where=mean > 0)

    def busy(self) -> NDArray[np.float64]:
        """Longest time of a thread in useful code and MPI of each execution, s: float64[k]."""
        return np.maximum.reduceat(self.useful + self.in_mpi, self.offsets[:-1])


def teams(
    trace: Trace, regions: Stretches, process: NDArray[np.int64], useful: UsefulTimes
) -> tuple[PhaseTeam, dict[str, NDArray[np.float64]], tuple[str, ...]]:
    """Threads of the executions of regions; their useful time, and counts, summed up; notes."""
    bounds = np.asarray(trace.process_offsets, np.int64)
    which, location = spread(bounds[process], np.diff(bounds)[process])
    begin, end = regions.begin[which], regions.end[which]
    running = useful.running.inside(location, begin, end)
    apart = useful.apart.inside(location, begin, end) + delays(trace).inside(location, begin, end)
    in_calls = trace.calls().intervals()
    team = PhaseTeam(
        offsets_of(np.bincount(which, minlength=len(regions))),
        np.maximum(running - apart, 0) / _NS,
        in_calls.inside(location, begin, end) / _NS,
    )
    counts, notes = counted(trace, useful.running, location, begin, end)
    sums: dict[str, NDArray[np.float64]] = {
        name: np.bincount(which, each, len(regions)).astype(np.float64)
        for name, each in counts.items()
    }
    sums["useful"] = np.add.reduceat(team.useful, team.offsets[:-1])
    return team, sums, notes
