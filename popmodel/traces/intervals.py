"""Times of threads: pieces that make a part of a run, instants, sets of intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import distinct, spread
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.traces.tables import LocationTable, States, offsets_of, part_of, walk, walk_locations

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Which stretches of a whole run a part of it consists of, and where each of them lies in the part.
#
# A window is one piece, which keeps its times. The occurrences of a region are many: they follow
# one another in the part, as if what lies between them had not been.


@dataclass(frozen=True, eq=False)
class TracePieces:
    """Stretches of time of a run, ascending and apart, none of them empty."""

    # int64[N]: In the time of the whole run, ns.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    # int64[N]: Where each begins in the time of the part, ns; no earlier than the end of the one
    # before.
    start: NDArray[np.int64]

    @classmethod
    def window(cls, begin: int, end: int) -> TracePieces:
        """One piece, which keeps its times."""
        return cls(*(np.array([time], np.int64) for time in (begin, end, begin)))

    @classmethod
    def in_a_row(cls, begin: NDArray[np.int64], end: NDArray[np.int64]) -> TracePieces:
        """Pieces of which each begins where the one before ends; the first keeps its times."""
        passed = np.cumsum(end - begin)
        return cls(begin, end, begin[0] + passed - (end - begin))

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def length(self) -> int:
        return int((self.end - self.begin).sum())

    @property
    def shift(self) -> NDArray[np.int64]:
        """What is added to the times of each piece: int64[N]."""
        return self.start - self.begin

    def moved(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the run in the time of the part, ns.

        What lies between two pieces is where they meet; what lies before the first or after the
        last is at the begin or the end of the part.
        """
        piece = np.maximum(np.searchsorted(self.begin, time, side="right") - 1, 0)
        moved: NDArray[np.int64] = (
            np.clip(time, self.begin[piece], self.end[piece]) + self.shift[piece]
        )
        return moved

    def holding(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """The piece that each time lies in, both ends included, or -1."""
        piece = np.searchsorted(self.begin, time, side="right") - 1
        return np.where((piece >= 0) & (time <= self.end[np.maximum(piece, 0)]), piece, -1)

    def overlap(
        self, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first piece with ``piece end > begin and piece begin < end``, and how many follow."""
        first = np.searchsorted(self.end, begin, side="right")
        return first, np.maximum(np.searchsorted(self.begin, end, side="left") - first, 0)

    def passed(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Time of all pieces together before each time of the run, ns."""
        length = self.end - self.begin
        before = np.cumsum(length) - length
        piece = np.maximum(np.searchsorted(self.begin, time, side="right") - 1, 0)
        passed: NDArray[np.int64] = before[piece] + np.clip(
            time - self.begin[piece], 0, length[piece]
        )
        return passed

    def touch(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether any piece holds a time from `begin` to `end`, both included."""
        touched: NDArray[np.bool_] = self.touched(begin, end)[1] > 0
        return touched

    def touched(
        self, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first piece that holds a time from `begin` to `end`, and how many do."""
        first = np.searchsorted(self.end, begin, side="left")
        return first, np.maximum(np.searchsorted(self.begin, end, side="right") - first, 0)

    def of_pieces(self, inner: TracePieces) -> TracePieces:
        """Pieces of the part in the time of the whole run: a part of this part."""
        stop = self.start + self.end - self.begin
        first, count = TracePieces(self.start, stop, self.start).overlap(inner.begin, inner.end)
        which, mine = spread(first, count)
        begin = np.maximum(inner.begin[which], self.start[mine])
        end = np.minimum(inner.end[which], stop[mine])
        shift = self.shift[mine]
        return TracePieces(begin - shift, end - shift, begin + inner.shift[which])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Begin and end of each piece, in the time of the whole run."""
        return iter(zip(self.begin.tolist(), self.end.tolist(), strict=True))


def joined(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of the union of intervals in any order: ascending, apart, none empty."""
    some = np.flatnonzero(end > begin)
    order = some[np.argsort(begin[some], kind="stable")]
    begin, reached = begin[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.concatenate([[True], begin[1:] > reached[:-1]])[: len(begin)])
    last = np.append(first[1:] - 1, len(begin) - 1)[: len(first)]
    return begin[first], reached[last]


def cut_spans(
    offsets: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    pieces: TracePieces,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What of some spans lies in the pieces; those that only touch a piece have no length there."""
    if len(pieces) == 1:
        first, last = int(pieces.begin[0]), int(pieces.end[0])
        row = np.flatnonzero((end >= first) & (begin <= last))
        begin, end = np.maximum(begin[row], first), np.minimum(end[row], last)
        shift = pieces.shift
    else:
        row, piece = spread(*pieces.touched(begin, end))
        begin = np.maximum(begin[row], pieces.begin[piece])
        end = np.minimum(end[row], pieces.end[piece])
        shift = pieces.shift[piece]
    if shift.any():
        begin, end = begin + shift, end + shift
    return row, np.searchsorted(row, offsets), begin, end


def cut_instants(
    offsets: NDArray[np.int64], time: NDArray[np.int64], pieces: TracePieces
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Instants inside the pieces, both edges included: their rows, offsets and times."""
    piece = pieces.holding(time)
    row = np.flatnonzero(piece >= 0)
    return row, np.searchsorted(row, offsets), time[row] + pieces.shift[piece[row]]


def cut_readings(
    offsets: NDArray[np.int64],
    time: NDArray[np.int64],
    value: NDArray[np.int64],
    pieces: TracePieces,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Readings of a counter, which count since the one before: offsets, times and values.

    Where that time extends over an edge of a piece, the count is divided in proportion to the time,
    as if it had risen evenly, and a reading at the edge is added (of 0 at a begin).
    """
    piece = pieces.holding(time)
    # Pairs of readings of a thread between which there may be an edge.
    first = np.flatnonzero((piece[1:] != piece[:-1]) | (piece[1:] < 0))
    first = first[part_of(offsets, first) == part_of(offsets, first + 1)]
    since, until, counted = time[first], time[first + 1], value[first + 1]

    pair, begun = _between(pieces.begin, since, until)
    other, ended = _between(pieces.end, since, until)
    share = pieces.end[ended] - np.maximum(since[other], pieces.begin[ended])
    share = share / (until - since)[other]
    added = np.concatenate([first[pair], first[other]])
    at = np.concatenate([pieces.begin[begun], pieces.end[ended]])
    which = np.concatenate([begun, ended])
    values = np.concatenate([np.zeros_like(pair), _share(counted[other], share)])
    order = np.lexsort((at, added))
    added, at, which, values = added[order], at[order], which[order], values[order]

    value = value.copy()
    mine = piece[first + 1]
    begin = pieces.begin[mine]
    over = (mine >= 0) & (since < begin) & (begin < until)
    share = (until - begin)[over] / (until - since)[over]
    value[first[over] + 1] = _share(counted[over], share)

    inside = np.flatnonzero(piece >= 0)
    before = np.searchsorted(inside, added + 1)
    some = np.bincount(part_of(offsets, added), minlength=len(offsets) - 1)
    return (
        np.searchsorted(inside, offsets) + offsets_of(some),
        np.insert((time + pieces.shift[piece])[inside], before, at + pieces.shift[which]),
        np.insert(value[inside], before, values),
    )


def _between(
    edges: NDArray[np.int64], since: NDArray[np.int64], until: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges between each two times: the pair, and the edge."""
    first = np.searchsorted(edges, since, side="right")
    return spread(first, np.maximum(np.searchsorted(edges, until, side="left") - first, 0))


def _share(counted: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(counted * share).astype(np.int64)


# Numbers that threads tell at instants: sums since the one before, counts, marks.


@dataclass(frozen=True)
class Instants(LocationTable):
    """Numbers, each told at an instant of its location."""

    # int64[L + 1]: Numbers of location l are ``offsets[l] .. offsets[l + 1]``, in order of time.
    offsets: NDArray[np.int64]
    time: NDArray[np.int64]  # int64[N]: When each is told, ns
    value: NDArray[np.int64]  # int64[N]: What is told

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, pieces: TracePieces) -> Instants:
        """Those inside some pieces of the run, both edges included."""
        row, offsets, time = cut_instants(self.offsets, self.time, pieces)
        return Instants(offsets, time, self.value[row])

    def divided(self, pieces: TracePieces) -> Instants:
        """What is counted inside some pieces, of counts since the one before (`cut_readings`)."""
        return Instants(*cut_readings(self.offsets, self.time, self.value, pieces))

    def total(self) -> NDArray[np.int64]:
        """Sum by location."""
        until = self._until()
        by_location: NDArray[np.int64] = until[self.offsets[1:]] - until[self.offsets[:-1]]
        return by_location

    def before(self, location: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of what is told up to an instant, which counts, for each pair."""
        if not len(self.time):
            return np.zeros(len(time), dtype=np.int64)
        until, first = self._until(), self.offsets[location]
        index = _kernel.locate(self.offsets, self.time, location, time)
        return np.where(index >= first, until[np.maximum(index + 1, 0)] - until[first], 0)

    def inside(
        self, location: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Sum of what is told in ``begin < t <= end``, for each triple."""
        return self.before(location, end) - self.before(location, begin)

    def _until(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.value)])


# Sets of intervals by location: how long, how much of it before an instant or inside others.
#
# Times are integer nanoseconds, so that sums and differences are exact.


_ROWS = 1 << 17  # intervals of which `alone` looks at once


@dataclass(frozen=True)
class Intervals(LocationTable):
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
    def in_state(cls, states: States, state: int, pieces: TracePieces | None = None) -> Intervals:
        """Records of one state, or what of them lies in some pieces of the run.

        Where records overlap, which they should not, time counts once.
        """
        counts = np.zeros(len(states.offsets) - 1, np.int64)
        begins, ends = _Pieces(), _Pieces()
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
        begin, end = begins.together(), ends.together()
        for location in _overlapping(offsets, begin, end):
            mine = slice(offsets[location], offsets[location + 1])
            before = np.maximum.accumulate(end[mine])[:-1]
            begin[mine][1:] = np.maximum(begin[mine][1:], before)
            end[mine] = np.maximum(end[mine], begin[mine])
        return cls.of(offsets, begin, end)

    def __len__(self) -> int:
        return len(self.begin)

    def cut(self, pieces: TracePieces) -> Intervals:
        """What of them lies in some pieces of the run (`popmodel.traces.intervals.cut_spans`)."""
        return Intervals(*cut_spans(self.offsets, self.begin, self.end, pieces)[1:])

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
        inside = self.inside(other.location, other.begin, other.end)
        sums = np.concatenate([[0], np.cumsum(inside)])
        by_location: NDArray[np.int64] = sums[other.offsets[1:]] - sums[other.offsets[:-1]]
        return by_location

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

    def _passed(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.end - self.begin)])


@dataclass(frozen=True)
class Spans(Intervals):
    """Intervals of several kinds."""

    what: NDArray[np.int64]  # int64[N]: Number of the kind

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


class _Pieces:
    """A column in pieces, put together as soon as they are long: then they may lie in a file."""

    def __init__(self) -> None:
        self._long: list[NDArray[np.int64]] = []
        self._short = [np.empty(0, np.int64)]
        self._rows = 0

    def append(self, values: NDArray[np.int64]) -> None:
        self._short.append(values)
        self._rows += len(values)
        if self._rows > _LONG_ROWS:
            self._long.append(np.concatenate(self._short))
            self._short, self._rows = [], 0

    def together(self) -> NDArray[np.int64]:
        return np.concatenate([*self._long, *self._short])


_LONG_ROWS = 1 << 19


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
