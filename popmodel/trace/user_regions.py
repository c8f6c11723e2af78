"""Regions that users mark in their programs, and how long each thread is inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.pieces import spread
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.pieces import TracePieces
    from popmodel.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class Occurrences:
    """When threads are inside regions; a region inside itself counts once."""

    names: tuple[str, ...]  # Of the regions, each once, in alphabetical order
    label: NDArray[np.int64]  # int64[N]: Index into `names`
    location: NDArray[np.int64]  # int64[N]
    # int64[N]: Nanoseconds; of one region and location in order.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def in_order(cls, names: tuple[str, ...], *columns: NDArray[np.int64]) -> Occurrences:
        """Label, location, begin and end of occurrences in any order."""
        label, location, begin, _ = columns
        order = np.lexsort((begin, location, label))
        return cls(names, *(column[order] for column in columns))

    def of(self, name: str) -> Occurrences:
        """The occurrences of one of the regions."""
        mine = np.flatnonzero(self.label == self.names.index(name))
        columns = (self.label, self.location, self.begin, self.end)
        return Occurrences(self.names, *(column[mine] for column in columns))

    def cut(self, pieces: TracePieces) -> Occurrences:
        """What of them lies inside some pieces of the run."""
        which, piece = spread(*pieces.overlap(self.begin, self.end))
        begin = np.maximum(self.begin[which], pieces.begin[piece]) + pieces.shift[piece]
        end = np.minimum(self.end[which], pieces.end[piece]) + pieces.shift[piece]
        return Occurrences.in_order(self.names, self.label[which], self.location[which], begin, end)


def user_regions(trace: Trace) -> Occurrences:
    """Find the regions that a user has marked; found once for each trace."""
    return trace.derived("user_regions", lambda trace: trace.records.user_regions())
