"""Which stretches of a whole run a part of it consists of, and where each of them lies in the part.

A window is one piece, which keeps its times. The occurrences of a region are many: they follow one
another in the part, as if what lies between them had not been.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.tables import offsets_of, part_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        """Time of all pieces together, ns."""
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


def spread(
    first: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row the numbers ``first .. first + count``: the row of each, and the number."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - (np.cumsum(count) - count - first)[row]


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
