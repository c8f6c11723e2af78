"""Time in I/O: in MPI-IO, and in calls of POSIX where a trace has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.values import dataclass
from popmodel.traces.calls import mpi_io
from popmodel.traces.intervals import Intervals, alone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces import Trace

    Times = NDArray[np.float64]

_NS = 1e9


@dataclass(frozen=True, eq=False)
class IOTimes:
    """Time of each thread in I/O, float64[T], s; where a run has any."""

    mpi: Times  # In calls of MPI-IO
    posix: Times  # In calls of POSIX outside MPI, without the tracer's own

    def aggregates(self, masters: NDArray[np.int64]) -> dict[str, float]:
        """Scalars that formulas use; `masters` are the first threads of the processes."""
        by_process = np.add.reduceat(self.mpi + self.posix, masters)
        values = {"io_sum": float(by_process.sum()), "io_max": float(by_process.max())}
        for name, times in (("mpi_io_sum", self.mpi), ("posix_io_sum", self.posix)):
            if times.any():
                values[name] = float(times.sum())
        return values

    def to_dict(self) -> dict[str, list[float]]:
        """Times by thread, for JSON."""
        return {"mpi_io": self.mpi.tolist(), "posix_io": self.posix.tolist()}


def measure_io(trace: Trace) -> IOTimes | None:
    """Measure the I/O of a run; None where none is recorded."""
    posix = trace.records.file_io()
    if len(posix):
        calls = trace.calls()
        posix = alone([posix], [Intervals.of(calls.offsets, calls.entry, calls.exit)])
    times = IOTimes(mpi_io(trace).total() / _NS, posix.total() / _NS)
    return times if times.mpi.any() or times.posix.any() else None
