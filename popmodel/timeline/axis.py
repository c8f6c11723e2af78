"""Equal steps of time, and how much of each is covered by intervals of many threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.blocks import walk
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.intervals import Intervals


@dataclass(frozen=True)
class Axis:
    """Columns of equal length, one after the other."""

    begin: int  # When the first begins, ns
    step: int  # How long each is, ns
    columns: int  # How many there are
    end: int  # Where the last one ends, ns; it may be shorter than the others

    @classmethod
    def over(cls, begin: int, length: int, most: int) -> Axis:
        """Up to `most` equal columns that cover a length, ns; none is shorter than a nanosecond."""
        step = max(1, -(-length // most))
        columns = max(1, -(-length // step))
        return cls(begin, step, columns, begin + columns * step)

    def covered(
        self,
        spans: Intervals,
        lane: NDArray[np.int64],
        some: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int64]:
        """Time of each lane's intervals in each column, ns: int64[lanes, columns].

        All sums are exact. Where intervals overlap, each counts.
        """
        lanes, width = int(lane.max(initial=0)) + 1, self.columns + 2
        # How much more of a column is covered than of the one before it: an interval's begin makes
        # two differences, its end undoes them.
        change = np.zeros(lanes * width, np.int64)
        for block in walk(spans.begin, spans.end):
            bounds = np.clip(spans.offsets, block.start, block.stop)
            row = np.repeat(lane, bounds[1:] - bounds[:-1])
            begin, end = spans.begin[block], spans.end[block]
            if some is not None:
                counting = some[block]
                row, begin, end = row[counting], begin[counting], end[counting]
            for time, sign in ((begin, 1), (end, -1)):
                since = np.clip(time, self.begin, self.end) - self.begin
                column, over = np.divmod(since, self.step)
                at = row * width + column
                np.add.at(change, at, sign * (self.step - over))
                np.add.at(change, at + 1, sign * over)
        found = change.reshape(lanes, width)
        np.cumsum(found, axis=1, out=found)
        return found[:, : self.columns]
