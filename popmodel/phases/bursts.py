"""Stretches of time of a run between its events: bursts, and parallel regions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.arrays import alike
from popmodel.structure.nest import leaves
from popmodel.trace.tables import part_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_NS = 1e9


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

    def at(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Stretches:
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
    events = structure.events
    offsets = np.asarray(events.offsets, np.int64)
    sequences = len(offsets) - 1
    sequence = events.sequence
    reached = _reached(sequence, np.asarray(events.end, np.int64), trace.begin, trace.end)
    previous = np.append(-1, structure.place[:-1]) if len(sequence) else np.empty(0, np.int64)
    first = offsets[:-1][np.diff(offsets) > 0]
    previous[first] = -1
    since = np.append(trace.begin, reached)[:-1] if len(sequence) else reached
    since[first] = trace.begin
    outside = np.flatnonzero(since <= events.begin)  # what is inside a region belongs to it
    last = np.full(sequences, -1, np.int64)
    until = np.full(sequences, trace.begin, np.int64)
    some = np.diff(offsets) > 0
    last[some] = structure.place[offsets[1:][some] - 1]
    until[some] = reached[offsets[1:][some] - 1]
    ends = np.maximum(trace.ends()[structure.program.owner], until)
    nothing = np.zeros(sequences, np.int64)

    def joined(inner: NDArray[Any], last: NDArray[Any], kind: type[Any]) -> NDArray[Any]:
        return np.concatenate([inner[outside], last]).astype(kind)

    return Stretches(
        joined(sequence, np.arange(sequences), np.int32),
        joined(structure.place, nothing - 1, np.int32),
        joined(previous, last, np.int32),
        joined(structure.execution, nothing, np.int64),
        joined(since, until, np.int64),
        joined(events.begin, ends, np.int64),
        joined(events.before, events.after, np.float64) / _NS,
        np.zeros(len(outside) + sequences, bool),
    )


def regions(structure: Structure) -> Stretches:
    """The parallel regions on the masters."""
    events = structure.events
    rows = np.flatnonzero(events.is_region)
    place = np.asarray(structure.place, np.int32)[rows]
    return Stretches(
        part_of(np.asarray(events.offsets, np.int64), rows).astype(np.int32),
        place,
        place,
        np.asarray(structure.execution, np.int64)[rows],
        np.asarray(events.begin, np.int64)[rows],
        np.asarray(events.end, np.int64)[rows],
        (events.end[rows] - events.begin[rows] - events.delayed[rows]) / _NS,
        np.zeros(len(rows), bool),
    )


def _reached(
    sequence: NDArray[np.int64], end: NDArray[np.int64], begin: int, last: int
) -> NDArray[np.int64]:
    """When all events of a sequence up to each one have ended: calls lie inside of regions."""
    shift = sequence * (last - begin + 1)
    reached: NDArray[np.int64] = np.maximum.accumulate(end + shift) - shift
    return reached


# Which burst is which where processes lack some calls.
#
# A process at the edge of a grid sends to fewer neighbours: what it computes before its first
# call is what the others compute before another one, which it does not have. Between two of its
# calls lie then several places; its burst is of the one whose bursts elsewhere take as long.


_LEAST = 1e-9
"""Seconds; shorter times are not told apart."""


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
