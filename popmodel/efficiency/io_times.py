"""Time in I/O: in MPI-IO, and in calls of POSIX where a trace has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
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
    # Bytes that each thread reads and writes in these calls; None where the trace does not say it.
    read: Times | None = None
    written: Times | None = None

    def aggregates(self, masters: NDArray[np.int64]) -> dict[str, float]:
        """Scalars that formulas use; `masters` are the first threads of the processes."""
        by_process = np.add.reduceat(self.mpi + self.posix, masters)
        values = {"io_sum": float(by_process.sum()), "io_max": float(by_process.max())}
        for name, times in (("mpi_io_sum", self.mpi), ("posix_io_sum", self.posix)):
            if times.any():
                values[name] = float(times.sum())
        return values

    def to_dict(self, masters: NDArray[np.int64]) -> dict[str, Any]:
        """Times and bytes by thread, and all bytes over the longest I/O of a process, for JSON."""
        columns = {"mpi_io": self.mpi, "posix_io": self.posix}
        if self.read is not None and self.written is not None:
            columns |= {"bytes_read": self.read, "bytes_written": self.written}
        found: dict[str, Any] = {name: column.tolist() for name, column in columns.items()}
        if self.read is not None and self.written is not None:
            moved = float(self.read.sum() + self.written.sum())
            found["io_bandwidth"] = moved / self.aggregates(masters)["io_max"]
        return found


def measure_io(trace: Trace) -> IOTimes | None:
    """Measure the I/O of a run; None where none is recorded."""
    posix = trace.records.file_io()
    if len(posix):
        calls = trace.calls()
        posix = alone([posix], [Intervals.of(calls.offsets, calls.entry, calls.exit)])
    times = IOTimes(mpi_io(trace).total() / _NS, posix.total() / _NS, *_moved(trace))
    return times if times.mpi.any() or times.posix.any() else None


def _moved(trace: Trace) -> tuple[Times, Times] | tuple[None, None]:
    """Bytes that each thread reads and writes; of a part of a run in the calls that begin there.

    A call of POSIX inside one of MPI moves what that one says.
    """
    whole = trace.whole or trace
    moves = whole.derived("file_moves", lambda run: run.records.file_moves())
    if moves is None:
        return None, None
    calls = whole.calls()
    around = np.asarray(_kernel.locate(calls.offsets, calls.entry, moves.location, moves.begin))
    in_mpi = around >= calls.offsets[moves.location]
    in_mpi &= np.append(calls.exit, 0)[around] >= moves.end
    counted = moves.of_mpi | ~in_mpi
    if trace.pieces is not None:
        counted &= trace.pieces.holding(moves.begin) >= 0
    read, written = (
        np.bincount(moves.location[some], moves.bytes[some], trace.locations).astype(np.float64)
        for some in (counted & moves.reads, counted & ~moves.reads)
    )
    return read, written
