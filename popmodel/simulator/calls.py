"""MPI calls of the master threads, with what each does to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.simulator.mpi_calls import action_of, collective_of
from popmodel.simulator.program import COLLECTIVES
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from typing import TypedDict

    from numpy.typing import NDArray

    from popmodel.trace import Trace
    from popmodel.trace.calls import Calls

    class Columns(TypedDict):
        """Calls as the compiled core takes them."""

        offsets: NDArray[np.int64]
        entry: NDArray[np.int64]
        exit: NDArray[np.int64]
        code: NDArray[np.int16]
        action: NDArray[np.uint8]


__all__ = ["ONLY_MASTERS", "MasterCalls", "master_calls"]

ONLY_MASTERS = "the replay covers MPI calls of master threads only (MPI_THREAD_FUNNELED)"


@dataclass(frozen=True)
class MasterCalls:
    """The calls of a trace, which are all of master threads, and what each kind of them does.

    Attributes
    ----------
    calls : Calls
        Of the trace; with none on other threads, those of a process follow one another.
    offsets : int64[P + 1]
        Calls of process p are ``offsets[p] .. offsets[p + 1]``.
    action : uint8[names]
        `Action` of the calls of each name.
    collective : uint8[names]
        Index into `COLLECTIVES`; of other calls any.
    """

    calls: Calls
    offsets: NDArray[np.int64]
    action: NDArray[np.uint8]
    collective: NDArray[np.uint8]

    @property
    def columns(self) -> Columns:
        """The calls as the compiled core takes them."""
        return {
            "offsets": self.offsets,
            "entry": self.calls.entry,
            "exit": self.calls.exit,
            "code": self.calls.name,
            "action": self.action,
        }

    def where(self, call: int) -> str:
        """Rank, name and time of a call, for messages to people."""
        rank = int(np.searchsorted(self.offsets, call, side="right")) - 1
        name = self.calls.names[self.calls.name[call]]
        return f"rank {rank} in {name} at {self.calls.entry[call] / 1e9:.9f} s"


def master_calls(trace: Trace) -> MasterCalls:
    """Calls of the master threads of a trace.

    Raises
    ------
    ReplayError
        If another thread calls MPI.
    """
    masters = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
    calls = trace.calls()
    _refuse_other_threads(trace, calls, masters)
    kinds = [collective_of(name) for name in calls.names]
    return MasterCalls(
        calls,
        np.append(calls.offsets[masters], calls.offsets[-1]),
        np.array(list(map(action_of, calls.group, calls.names)), dtype=np.uint8),
        np.array([COLLECTIVES.index(kind) if kind else 0 for kind in kinds], dtype=np.uint8),
    )


def _refuse_other_threads(trace: Trace, calls: Calls, masters: NDArray[np.int64]) -> None:
    count = np.diff(calls.offsets)
    count[masters] = 0
    location = np.flatnonzero(count)
    if len(location):
        where = int(location[0])
        row = int(calls.offsets[where])
        process = int(np.searchsorted(masters, where, side="right")) - 1
        raise ReplayError(
            f"{trace.path}: thread {where - masters[process]} of rank {process} calls "
            f"{calls.names[calls.name[row]]} at {calls.entry[row] / 1e9:.9f} s "
            f"({plural(int(count.sum()), 'MPI call')} of threads that are not their process's "
            "master)",
            ONLY_MASTERS,
        )
