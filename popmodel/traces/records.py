"""What a reader gives of a run: states, messages, and tables in the terms of MPI and OpenMP.

A reader gives a `Records`, or `RecordColumns` where it has its tables at once. A table that its
format does not have is empty. Whatever is made of them (parts of runs, efficiencies, replays) knows
these tables and no format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.values import NamedTuple
from popmodel.traces.device_rows import DeviceRows
from popmodel.traces.intervals import Instants, Intervals, Spans, TracePieces
from popmodel.traces.regions import Occurrences
from popmodel.traces.tables import EventTable, MessageTable, States, take

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.calls import CallTable
    from popmodel.traces.codes import Event


class Exact(NamedTuple):
    """Times of a format that knows fractions of nanoseconds, in which MPI calls take none."""

    entry: NDArray[np.float64]  # float64[n]: When each call of `CallTable` is made, ns
    end: NDArray[np.float64]  # float64[L]: When each location ends, ns


class CallSites(NamedTuple):
    """Where in the program calls of MPI are made."""

    # int32[n]: Index into `places` of each call; empty where there is one place for all.
    site: NDArray[np.int32]
    # The function that calls, and the place such as ``solver.c:42``; empty where not known.
    places: Sequence[tuple[str, str]]


class OpenMP(NamedTuple):
    """Parallel regions of OpenMP, on all threads."""

    # Parallel constructs, and outlined functions (the part of a region that a thread takes); what
    # they are is an index into the names.
    constructs: Spans
    functions: Spans
    # Name for people, and the label in the trace, by which those of one name are put in order.
    construct_names: Sequence[tuple[str, str]]
    function_names: Sequence[tuple[str, str]]


class Synchronisation(NamedTuple):
    """When threads wait for each other."""

    # Times in barriers; times of waiting for locks and critical sections, or of holding them. An
    # entry for each kind.
    barriers: tuple[Intervals, ...]
    locks: tuple[Intervals, ...]


class FunctionTimes(NamedTuple):
    """Time of threads in functions of the program: a row for each of both.

    A worker that takes part in a parallel region is in all functions that its master is in there.
    """

    names: tuple[str, ...]
    location: NDArray[np.int32]  # int32[N]
    function: NDArray[np.int32]  # int32[N]: Index into `names`
    visits: NDArray[np.int64]  # int64[N]: Those that begin in it
    inclusive: NDArray[np.int64]  # int64[N]: With all that they call, ns; once where they recur
    useful: NDArray[np.int64]  # int64[N]: Useful time in it, ns
    own: NDArray[np.int64]  # int64[N]: Useful time in which it is the innermost function, ns


class FileMoves(NamedTuple):
    """Calls that move bytes to or from files, where the trace says how many: a row for each."""

    location: NDArray[np.int64]  # int64[N], ascending
    # int64[N]: When the call goes on, ns.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    bytes: NDArray[np.int64]  # int64[N]
    reads: NDArray[np.bool_]  # bool[N]: Whether it reads; else it writes
    of_mpi: NDArray[np.bool_]  # bool[N]: Whether it is a call of MPI-IO


class Others(NamedTuple):
    """Events of a run that tell nothing about its calls of MPI, with the numbers of their
    format.
    """

    events: EventTable  # In the order of the trace
    # int64[n]: Where each stands among the calls of its location: ``2 * k + 1`` inside the k-th of
    # them (from 0), ``2 * k`` before it. Times alone do not tell, as calls can take none.
    turn: NDArray[np.int64]
    lasting: NDArray[np.bool_]  # bool[n]: Whether its value holds until the next event of its type

    @classmethod
    def none(cls, locations: int) -> Others:
        return cls(EventTable.none(locations), np.empty(0, np.int64), np.empty(0, np.bool_))


class Records(ABC):
    """Tables of a run, each made when it is asked for; `Trace` keeps what is needed again."""

    def __init__(self, locations: int) -> None:
        self.locations = locations

    @property
    @abstractmethod
    def states(self) -> States:
        """What each thread was doing."""

    def in_state(self, state: int) -> Intervals:
        """When threads are in a state (`popmodel.traces.codes`)."""
        return Intervals.in_state(self.states, state)

    @property
    def messages(self) -> MessageTable:
        """Point-to-point messages; none where the format has no records of them."""
        return MessageTable.none(self.locations)

    @property
    def events(self) -> EventTable:
        """Events with the numbers of their format; none where it has none."""
        return EventTable.none(self.locations)

    def others(self) -> Others:
        """Events that are about the program, and not about its calls of MPI."""
        return Others.none(self.locations)

    @abstractmethod
    def calls(self) -> CallTable:
        """MPI calls."""

    @property
    def exact(self) -> Exact | None:
        """Times to fractions of nanoseconds, where the format has no measured ones."""
        return None

    def sites(self) -> CallSites:
        """Where MPI is called; of a whole run: a row for each of its calls."""
        return CallSites(np.empty(0, np.int32), (("", ""),))

    def openmp(self) -> OpenMP:
        none = Spans.none(self.locations)
        return OpenMP(none, none, (), ())

    def synchronisation(self) -> Synchronisation:
        return Synchronisation((), ())

    def user_regions(self) -> Occurrences:
        return Occurrences((), *np.empty((4, 0), np.int64))

    def devices(self) -> DeviceRows:
        """Streams of devices such as GPUs, which are no locations, and calls to their runtime."""
        return DeviceRows.none(self.locations)

    def functions(
        self,
        process_offsets: NDArray[np.int64],  # noqa: ARG002
        pieces: TracePieces | None = None,  # noqa: ARG002
    ) -> FunctionTimes | None:
        """Time in functions of the program, in pieces of the run; None where nothing tells it."""
        return None

    def file_io(self) -> Intervals:
        """Calls of POSIX that open, read or write files, without those of the tracer itself."""
        return Intervals.none(self.locations)

    def file_moves(self) -> FileMoves | None:
        """Bytes that calls move to and from files, of a whole run; None where nothing says it."""
        return None

    def lock_waits(self) -> Instants:
        """Time, ns, that a thread waited for locks in its running state since the row before."""
        return Instants.none(self.locations)

    def misses(self) -> Instants:
        """Tests and probes in a row that found nothing, at the end of the call that has them."""
        return Instants.none(self.locations)

    def counters(self, counters: Sequence[Event | str], locations: slice) -> list[Instants]:
        """Readings of hardware counters: counts since the thread's reading before.

        Of those that have no `Event` by their names, the first words of `counter_names`. Of some
        locations that follow one another, so that nobody has to hold all readings.
        """
        return [Instants.none(locations.stop - locations.start) for _ in counters]

    def counter_names(self) -> list[str]:
        """All hardware counters of which there are readings, as people know them."""
        return []

    def marks(self) -> Mapping[Event, Instants]:
        """What the tracer tells about the trace; a kind without any may be missing."""
        return {}

    def ends(self) -> NDArray[np.int64]:
        """End of each thread, ns: what it says, else its last record; 0 without any."""
        states = self.states
        ends = np.zeros(self.locations, np.int64)
        some = states.offsets[1:] > states.offsets[:-1]
        ends[some] = take(states.end, states.offsets[1:][some] - 1)
        return ends


class RecordColumns(Records):
    """Tables that a reader has at once; the others are empty."""

    def __init__(
        self,
        states: States,
        calls: CallTable,
        messages: MessageTable | None = None,
        others: Others | None = None,
        ends: NDArray[np.int64] | None = None,
        exact: Exact | None = None,
        devices: DeviceRows | None = None,
    ) -> None:
        super().__init__(len(states.offsets) - 1)
        self._states, self._calls = states, calls
        self._messages, self._others, self._ends = messages, others, ends
        self._exact, self._devices = exact, devices

    @property
    def states(self) -> States:
        return self._states

    @property
    def exact(self) -> Exact | None:
        return self._exact

    @property
    def messages(self) -> MessageTable:
        return super().messages if self._messages is None else self._messages

    def others(self) -> Others:
        return super().others() if self._others is None else self._others

    def devices(self) -> DeviceRows:
        return super().devices() if self._devices is None else self._devices

    def calls(self) -> CallTable:
        return self._calls

    def ends(self) -> NDArray[np.int64]:
        return super().ends() if self._ends is None else self._ends.copy()
