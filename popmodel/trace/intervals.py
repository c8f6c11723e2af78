"""Sets of intervals by location: how long, how much of it before an instant or inside others.

Times are integer nanoseconds, so that sums and differences are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.kernel import _kernel
from popmodel.trace.blocks import walk, walk_locations
from popmodel.trace.pieces import cut_spans
from popmodel.trace.tables import offsets_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.trace.pieces import TracePieces
    from popmodel.trace.tables import States

_ROWS = 1 << 17  # intervals of which `alone` looks at once


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals of each location, in order of time."""

    # int64[L + 1]: Intervals of location l are ``offsets[l] .. offsets[l + 1]``.
    offsets: NDArray[np.int64]
    # int64[N]: Nanoseconds.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def of(
        cls, offsets: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> Intervals:
        """Intervals from columns of any layout."""
        return Intervals(*(np.ascontiguousarray(each, np.int64) for each in (offsets, begin, end)))

    @classmethod
    def none(cls, locations: int) -> Intervals:
        """No intervals."""
        return cls(np.zeros(locations + 1, np.int64), *np.empty((2, 0), np.int64))

    @classmethod
    def in_state(cls, states: States, state: int, pieces: TracePieces | None = None) -> Intervals:
        """Records of one state, or what of them lies in some pieces of the run.

        Where records overlap, which they should not, time counts once.
        """
        counts = np.zeros(len(states.offsets) - 1, np.int64)
        begins, ends = ([np.empty(0, np.int64)] for _ in range(2))
        for block in walk(states.state, states.begin, states.end):
            count, begin, end = _kernel.in_state(
                offsets=np.clip(states.offsets, block.start, block.stop) - block.start,
                begin=states.begin[block],
                end=states.end[block],
                state=states.state[block],
                wanted=state,
            )
            if pieces is not None:
                _, offsets, begin, end = cut_spans(offsets_of(count), begin, end, pieces)
                count = np.diff(offsets)
            counts += count
            begins.append(begin)
            ends.append(end)
        offsets = offsets_of(counts)
        begin, end = np.concatenate(begins), np.concatenate(ends)
        for location in _overlapping(offsets, begin, end):
            mine = slice(offsets[location], offsets[location + 1])
            before = np.maximum.accumulate(end[mine])[:-1]
            begin[mine][1:] = np.maximum(begin[mine][1:], before)
            end[mine] = np.maximum(end[mine], begin[mine])
        return cls.of(offsets, begin, end)

    def __len__(self) -> int:
        return len(self.begin)

    def cut(self, pieces: TracePieces) -> Intervals:
        """What of them lies in some pieces of the run (`popmodel.trace.pieces.cut_spans`)."""
        return Intervals(*cut_spans(self.offsets, self.begin, self.end, pieces)[1:])

    @property
    def location(self) -> NDArray[np.int64]:
        """Location of each interval."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def at(self, locations: NDArray[np.int64]) -> Intervals:
        """The intervals of these locations only; the others have none."""
        rows = self._rows(locations)
        return Intervals(np.searchsorted(rows, self.offsets), self.begin[rows], self.end[rows])

    def block(self, locations: slice) -> Intervals:
        """The intervals of consecutive locations, which are numbered from 0."""
        offsets = self.offsets[locations.start : locations.stop + 1]
        rows = slice(offsets[0], offsets[-1])
        return Intervals(offsets - offsets[0], self.begin[rows], self.end[rows])

    def _rows(self, locations: NDArray[np.int64]) -> NDArray[np.int64]:
        kept = np.zeros(len(self.offsets) - 1, dtype=bool)
        kept[locations] = True
        return np.flatnonzero(np.repeat(kept, np.diff(self.offsets)))

    def total(self) -> NDArray[np.int64]:
        """Summed length by location, ns."""
        return _kernel.lengths(self.offsets, self.begin, self.end)

    def passed(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length of all locations' intervals before each of some instants, ns."""
        lengths = np.zeros(len(time), np.int64)
        for instants, sign in ((self.begin, 1), (self.end, -1)):
            ordered = np.sort(instants)
            sums = np.concatenate([[0], np.cumsum(ordered)])  # may wrap around, the sum does not
            count = np.searchsorted(ordered, time)
            lengths += sign * (count * time - sums[count])
        return lengths

    def before(self, location: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length of a location's intervals before an instant, ns, for each pair."""
        if not len(self) or not len(time):
            return np.zeros(len(time), dtype=np.int64)
        passed = self._passed()
        first = self.offsets[location]
        index = _kernel.locate(self.offsets, self.begin, location, time)
        some = index >= first
        index = np.where(some, index, 0)
        length = passed[index] - passed[first] + np.minimum(time, self.end[index])
        return np.where(some, length - self.begin[index], 0)

    def inside(
        self,
        location: NDArray[np.int64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Length of a location's intervals between two instants, ns, for each triple."""
        return self.before(location, end) - self.before(location, begin)

    def within(self, other: Intervals) -> NDArray[np.int64]:
        """Length that both sets share, by location, ns."""
        return other._by_location(self.inside(other.location, other.begin, other.end))

    def starts(
        self,
        location: NDArray[np.int64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First interval of a location that begins in ``begin <= t < end``, and how many do."""
        first = _kernel.locate(self.offsets, self.begin, location, begin - 1) + 1
        last = _kernel.locate(self.offsets, self.begin, location, end - 1) + 1
        return first, last - first

    def _by_location(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        sums = np.concatenate([[0], np.cumsum(values)])
        by_location: NDArray[np.int64] = sums[self.offsets[1:]] - sums[self.offsets[:-1]]
        return by_location

    def _passed(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.end - self.begin)])


@dataclass(frozen=True)
class Spans(Intervals):
    """Intervals of several kinds."""

    what: NDArray[np.int64]  # int64[N]: Number of the kind

    @classmethod
    def none(cls, locations: int) -> Spans:
        """No spans."""
        return cls(np.zeros(locations + 1, np.int64), *np.empty((3, 0), np.int64))

    def cut(self, pieces: TracePieces) -> Spans:
        """What of them lies in some pieces of the run."""
        row, offsets, begin, end = cut_spans(self.offsets, self.begin, self.end, pieces)
        return Spans(offsets, begin, end, self.what[row])

    def at(self, locations: NDArray[np.int64]) -> Spans:
        """The spans of these locations only."""
        rows = self._rows(locations)
        return Spans(
            np.searchsorted(rows, self.offsets), self.begin[rows], self.end[rows], self.what[rows]
        )


def _overlapping(
    offsets: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> list[int]:
    """Locations in which an interval begins before the one before it ends."""
    early = np.flatnonzero(begin[1:] < end[:-1]) + 1
    location = np.searchsorted(offsets, early, side="right") - 1
    found: list[int] = distinct(location[offsets[location] < early]).tolist()
    return found


def alone(wanted: Sequence[Intervals], others: Sequence[Intervals]) -> Intervals:
    """Where at least one of `wanted` holds and none of `others`."""
    sets = [*wanted, *others]
    if not any(len(s) for s in wanted):
        return Intervals.none(len(sets[0].offsets) - 1)
    offsets = np.sum([s.offsets for s in sets], axis=0)
    blocks = [
        _alone([s.block(block) for s in wanted], [s.block(block) for s in others])
        for block in walk_locations(offsets, rows=_ROWS)
    ]
    return Intervals(
        offsets_of(np.concatenate([np.diff(part.offsets) for part in blocks])),
        np.concatenate([part.begin for part in blocks]),
        np.concatenate([part.end for part in blocks]),
    )


def _alone(wanted: Sequence[Intervals], others: Sequence[Intervals]) -> Intervals:
    """As `alone`, of some locations at once."""
    sets = [*wanted, *others]
    count = len(sets[0].offsets) - 1
    location = np.concatenate([s.location for s in sets for _ in range(2)])
    time = np.concatenate([t for s in sets for t in (s.begin, s.end)])
    step = np.concatenate([np.full(len(s), d, np.int32) for s in sets for d in (1, -1)])
    mine = np.concatenate([np.full(2 * len(s), i < len(wanted)) for i, s in enumerate(sets)])
    order = np.lexsort((time, location))
    location, time = location[order], time[order]
    step, mine = step[order], mine[order]
    # Every set is balanced within a location, so the sums are 0 again where the next one begins.
    held = (np.cumsum(np.where(mine, step, 0)) > 0) & (np.cumsum(np.where(mine, 0, step)) == 0)
    rows = np.flatnonzero(held[:-1] & (time[1:] > time[:-1]))
    bounds = np.searchsorted(location[rows], np.arange(count + 1))
    return Intervals.of(bounds, time[rows], time[rows + 1])
