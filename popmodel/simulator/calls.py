"""MPI calls of the master threads, with what each does to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.simulator.mpi_calls import BUFFERED, action_of, collective_of
from popmodel.simulator.program import COLLECTIVES
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace

__all__ = ["MasterCalls", "Timetable", "master_calls", "turns"]

ONLY_MASTERS = "the replay covers MPI calls of master threads only (MPI_THREAD_FUNNELED)"


@dataclass(frozen=True)
class MasterCalls:
    """One row per MPI call of a master thread, by process and in order.

    Attributes
    ----------
    offsets : int64[P + 1]
        Calls of process p are ``offsets[p] .. offsets[p + 1]``.
    process : int64[K]
        Process of each call.
    location : int64[K]
        Location of its thread.
    entry, exit : int64[K]
        Nanoseconds.
    code : int32[K]
        Index into `names`.
    names : tuple of str
        Such as ``MPI_Send``.
    action, collective, buffered : int8[K]
        `Action` of the call, index into `COLLECTIVES` or -1, and whether a send never waits.
    """

    offsets: NDArray[np.int64]
    process: NDArray[np.int64]
    location: NDArray[np.int64]
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    code: NDArray[np.int32]
    names: tuple[str, ...]
    action: NDArray[np.int8]
    collective: NDArray[np.int8]
    buffered: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.entry)

    def where(self, call: int) -> str:
        """Rank, name and time of a call, for messages to people."""
        return (
            f"rank {self.process[call]} in {self.names[self.code[call]]} at "
            f"{self.entry[call] / 1e9:.9f} s"
        )


@dataclass(frozen=True)
class Timetable:
    """Some calls of each process by a time of theirs: who is where at which time.

    Attributes
    ----------
    call : int64[n]
        The calls, ascending.
    offsets : int64[P + 1]
        Those of process p are ``call[offsets[p] : offsets[p + 1]]``.
    time : int64[n]
        Nanoseconds, ascending within a process.
    """

    call: NDArray[np.int64]
    offsets: NDArray[np.int64]
    time: NDArray[np.int64]

    @classmethod
    def of(
        cls, calls: MasterCalls, chosen: NDArray[np.bool_], times: NDArray[np.int64]
    ) -> Timetable:
        """The chosen calls by `times`, which is their entry or their exit."""
        call = np.flatnonzero(chosen)
        return cls(call, np.searchsorted(call, calls.offsets).astype(np.int64), times[call])

    def find(
        self,
        process: NDArray[np.int64],
        time: NDArray[np.int64],
        *,
        shared: bool,
        after: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Call of each process at exactly each time, or -1.

        Calls can share a time where the clock is coarse, so those who ask for the same process and
        time get its calls there in turn.

        Parameters
        ----------
        process, time : int64[m]
            Whose call, and when.
        shared : bool
            Whether a call may serve several: what the last of a time serves if others are left.
        after : int64[m], optional
            The call has to come after this one.
        """
        time = np.ascontiguousarray(time, dtype=np.int64)
        first = _kernel.locate(self.offsets, self.time, process, time - 1) + 1
        last = _kernel.locate(self.offsets, self.time, process, time)
        index = first + turns(process, time)
        if after is not None:
            index = np.maximum(index, np.searchsorted(self.call, after, side="right"))
        if shared:
            index = np.minimum(index, last)
        found = np.full(len(index), -1, dtype=np.int64)
        there = (index >= first) & (index <= last)
        if after is not None:
            there[there] = self.call[index[there]] > after[there]
        found[there] = self.call[index[there]]
        return found


def turns(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many earlier rows are the same."""
    order = np.lexsort(columns)  # stable
    new = np.ones(len(order), dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    starts = np.flatnonzero(new)
    turns = np.empty(len(order), dtype=np.int64)
    turns[order] = np.arange(len(order)) - starts[np.cumsum(new) - 1]
    return turns


def master_calls(trace: Trace) -> MasterCalls:
    """Calls of the master threads of a trace.

    Raises
    ------
    ReplayError
        If another thread calls MPI.
    """
    masters = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
    calls = trace.calls()
    _refuse_other_threads(trace, masters)
    # With no call on other threads, the calls of the masters are all calls, in order.
    bounds = np.asarray(calls.offsets, dtype=np.int64)
    offsets = np.append(bounds[masters], bounds[-1])
    process = np.repeat(np.arange(trace.processes), np.diff(offsets))
    actions = [action_of(*each) for each in zip(calls.group, calls.names, strict=True)]
    kinds = [collective_of(name) for name in calls.names]
    collectives = [-1 if kind is None else COLLECTIVES.index(kind) for kind in kinds]
    code = calls.name
    return MasterCalls(
        offsets=offsets,
        process=process,
        location=masters[process],
        entry=np.ascontiguousarray(calls.entry, dtype=np.int64),
        exit=np.ascontiguousarray(calls.exit, dtype=np.int64),
        code=code.astype(np.int32),
        names=calls.names,
        action=np.array(actions, dtype=np.int8)[code],
        collective=np.array(collectives, dtype=np.int8)[code],
        buffered=np.array([name in BUFFERED for name in calls.names], dtype=np.int8)[code],
    )


def _refuse_other_threads(trace: Trace, masters: NDArray[np.int64]) -> None:
    calls = trace.calls()
    count = np.diff(calls.offsets)
    count[masters] = 0
    location = np.flatnonzero(count)
    if len(location):
        where = int(location[0])
        row = int(calls.offsets[where])
        process = int(np.searchsorted(masters, where, side="right")) - 1
        name = calls.names[calls.name[row]]
        raise ReplayError(
            f"{trace.path}: thread {where - masters[process]} of rank {process} calls {name} at "
            f"{calls.entry[row] / 1e9:.9f} s ({plural(int(count.sum()), 'MPI call')} of threads "
            "that are not their process's master)",
            ONLY_MASTERS,
        )
