"""MPI calls of the sequences of a program, with what each does to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.mpi_calls import action_of, collective_of, is_by_peer
from popmodel.simulator.program import COLLECTIVES
from popmodel.simulator.threads import ADDED, find_threads
from popmodel.values import dataclass

if TYPE_CHECKING:
    from typing import TypedDict

    from numpy.typing import NDArray

    from popmodel.simulator.threads import Threads
    from popmodel.trace import Trace
    from popmodel.trace.calls import Calls

    class Columns(TypedDict):
        """Calls as the compiled core takes them."""

        offsets: NDArray[np.int64]
        entry: NDArray[np.int64]
        exit: NDArray[np.int64]
        code: NDArray[np.int16]
        action: NDArray[np.uint8]


@dataclass(frozen=True)
class SequenceCalls:
    """The calls of a trace by sequence, and what each kind of them does.

    A process is a sequence, that of its master; where other threads call MPI, these are further
    ones, behind those of the processes (`popmodel.simulator.threads`).
    """

    # Of the trace, those of a sequence one after the other; with threads, what holds these too.
    calls: Calls
    # int64[S + 1]: Calls of sequence s are ``offsets[s] .. offsets[s + 1]``.
    offsets: NDArray[np.int64]
    action: NDArray[np.uint8]  # uint8[names]: `Action` of the calls of each name
    collective: NDArray[np.uint8]  # uint8[names]: Index into `COLLECTIVES`; of other calls any
    by_peer: NDArray[np.bool_]  # bool[names]: As in `popmodel.simulator.program.Collectives`
    location: NDArray[np.int64]  # int64[S]: Thread of each sequence
    owner: NDArray[np.int32]  # int32[S]: Process of each sequence
    threads: Threads | None = None  # Where other threads than masters call MPI

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
        rank = int(self.owner[int(np.searchsorted(self.offsets, call, side="right")) - 1])
        name = self.calls.names[self.calls.name[call]]
        return f"rank {rank} in {name} at {self.calls.entry[call] / 1e9:.9f} s"


def sequence_calls(trace: Trace) -> SequenceCalls:
    """Calls of a trace by sequence."""
    masters = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
    calls, threads = trace.calls(), find_threads(trace)
    location, owner = masters, np.arange(trace.processes, dtype=np.int32)
    offsets = np.append(calls.offsets[masters], calls.offsets[-1])
    if threads is not None:
        calls, offsets = threads.calls, threads.offsets
        location, owner = threads.location, threads.owner
    kinds = [collective_of(name) for name in calls.names]
    actions = [
        ADDED[name] if threads is not None and name in ADDED else action_of(group, name)
        for group, name in zip(calls.group, calls.names, strict=True)
    ]
    return SequenceCalls(
        calls,
        offsets,
        np.array(actions, dtype=np.uint8),
        np.array([COLLECTIVES.index(kind) if kind else 0 for kind in kinds], dtype=np.uint8),
        np.array([is_by_peer(name) for name in calls.names], dtype=bool),
        location,
        owner,
        threads,
    )
