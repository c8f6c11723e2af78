"""Which stretches of a whole run a part of it consists of, and where each of them lies in the part.

A window is one piece, which keeps its times. The occurrences of a region are many: they follow one
another in the part, as if what lies between them had not been.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pieces", "joined", "spread"]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Stretches of time of a run, ascending and apart, none of them empty.

    Attributes
    ----------
    begin, end : int64[N]
        In the time of the whole run, ns.
    start : int64[N]
        Where each begins in the time of the part, ns; no earlier than the end of the one before.
    """

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def window(cls, begin: int, end: int) -> Pieces:
        """One piece, which keeps its times."""
        return cls(*(np.array([time], np.int64) for time in (begin, end, begin)))

    @classmethod
    def in_a_row(cls, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Pieces:
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

    def touch(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether any piece holds a time from `begin` to `end`, both included."""
        first = np.searchsorted(self.end, begin, side="left")
        touched: NDArray[np.bool_] = first < np.searchsorted(self.begin, end, side="right")
        return touched

    def of_pieces(self, inner: Pieces) -> Pieces:
        """Pieces of the part in the time of the whole run: a part of this part.

        Parameters
        ----------
        inner : Pieces
            Whose times are those of the part.
        """
        stop = self.start + self.end - self.begin
        first, count = Pieces(self.start, stop, self.start).overlap(inner.begin, inner.end)
        which, mine = spread(first, count)
        begin = np.maximum(inner.begin[which], self.start[mine])
        end = np.minimum(inner.end[which], stop[mine])
        shift = self.shift[mine]
        return Pieces(begin - shift, end - shift, begin + inner.shift[which])

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
