"""Numbers that threads tell at instants: sums since the one before, counts, marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.kernel import _kernel
from popmodel.trace.pieces import cut_instants, cut_readings
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.pieces import TracePieces


@dataclass(frozen=True)
class Instants:
    """Numbers, each told at an instant of its location."""

    # int64[L + 1]: Numbers of location l are ``offsets[l] .. offsets[l + 1]``, in order of time.
    offsets: NDArray[np.int64]
    time: NDArray[np.int64]  # int64[N]: When each is told, ns
    value: NDArray[np.int64]  # int64[N]: What is told

    @classmethod
    def none(cls, locations: int) -> Instants:
        """Nothing told."""
        return cls(np.zeros(locations + 1, np.int64), *np.empty((2, 0), np.int64))

    def __len__(self) -> int:
        return len(self.time)

    @property
    def location(self) -> NDArray[np.int64]:
        """Location of each."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

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
