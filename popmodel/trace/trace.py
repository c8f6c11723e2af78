"""A measured run: columns of states, events and messages, partitioned by location.

A *location* is one thread of one process. Locations are process-major: those of process ``p`` are
``process_offsets[p]`` up to ``process_offsets[p + 1]``. All times are integers in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from popmodel.trace.labels import Labels
from popmodel.units import format_time, plural, team
from popmodel.values import cut, dataclass

if TYPE_CHECKING:
    import pandas

    from popmodel.trace.calls import Calls
    from popmodel.trace.pieces import Pieces

Derived = TypeVar("Derived")

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class States:
    """What each thread was doing: one row per state record, in time order inside a location.

    Attributes
    ----------
    offsets : int64[L + 1]
        Rows of location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    begin, end : int64[n]
        Nanoseconds.
    state : int32[n]
        0 idle, 1 running, and so on; see `Labels.states`.
    """

    offsets: Int64
    begin: Int64
    end: Int64
    state: Int32


@dataclass(frozen=True, eq=False)
class Events:
    """One row per pair of type and value; pairs of equal time keep the order of the file.

    Attributes
    ----------
    offsets : int64[L + 1]
        Rows of location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    time : int64[n]
        Nanoseconds.
    type : uint32[n]
    value : int64[n]
        Values from 2**63 up to 2**64 - 1 (addresses, broken counters) appear as negative numbers
        of the same 64 bits.
    """

    offsets: Int64
    time: Int64
    type: UInt32
    value: Int64


@dataclass(frozen=True, eq=False)
class Messages:
    """Point-to-point messages by sending location, in order of their physical send.

    Attributes
    ----------
    offsets : int64[L + 1]
        Rows sent by location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    sender, receiver : int32[n]
        Locations.
    logical_send, physical_send, logical_receive, physical_receive : int64[n]
        Nanoseconds.
    size : int64[n]
        Bytes.
    tag : int64[n]
    """

    offsets: Int64
    sender: Int32
    receiver: Int32
    logical_send: Int64
    physical_send: Int64
    logical_receive: Int64
    physical_receive: Int64
    size: Int64
    tag: Int64


@dataclass(frozen=True)
class TraceWarning:
    """Something in a trace that is not as it should be but does not stop its use."""

    text: str
    count: int = 1
    first_line: int | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """One application of a trace.

    Attributes
    ----------
    path : str
        Where it was read from, for people: what is no UTF-8 is escaped.
    application : int
        Its number in the trace, from 1.
    applications : int
        How many the trace holds.
    begin, end : int
        The window of analysis in nanoseconds; by default 0 and the duration in the header.
    nodes : tuple of int
        CPUs of each node; empty where the header does not state them.
    process_offsets : int64[P + 1]
        First location of each process, and the number of locations.
    node_of_location : int32[L]
        From 0.
    communicators : mapping of int to int32 array
        Ranks, from 0, of each communicator.
    states, events, messages
        The records.
    labels : Labels
        Names of states, event types and values.
    names : tuple of str or None
        Names of the locations, where there is a ``.row`` file.
    warnings : tuple of TraceWarning
        What was found wanting while reading.
    whole : Trace or None
        Of a part of a run, the trace it was cut from.
    pieces : Pieces or None
        Of a part of a run, which stretches of the whole it consists of.
    """

    path: str
    application: int
    begin: int
    end: int
    nodes: tuple[int, ...]
    process_offsets: Int64
    node_of_location: Int32
    communicators: Mapping[int, Int32]
    states: States
    events: Events
    messages: Messages
    labels: Labels
    names: tuple[str, ...] | None = None
    warnings: tuple[TraceWarning, ...] = ()
    applications: int = 1
    whole: Trace | None = None
    pieces: Pieces | None = None
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        records = plural(sum(map(len, (self.states.begin, self.events.time))), "record")
        shown = f"{team(self.threads)}, {format_time(self.duration / 1e9)}, {records}"
        return cut(f"<Trace {self.path}: {shown}>")

    @property
    def processes(self) -> int:
        """How many processes there are."""
        return len(self.process_offsets) - 1

    @property
    def threads(self) -> Int64:
        """Threads of each process: int64[P]."""
        return np.diff(self.process_offsets)

    @property
    def locations(self) -> int:
        """How many threads there are in all."""
        return int(self.process_offsets[-1])

    @property
    def duration(self) -> int:
        """Length of the window of analysis in nanoseconds."""
        return self.end - self.begin

    def window(self, begin: int, end: int) -> Trace:
        """Return the part of the run between two times; see `popmodel.trace.window.cut`."""
        from popmodel.trace.window import cut

        return cut(self, begin, end)

    def calls(self) -> Calls:
        """MPI calls of all locations, paired once and kept; see `popmodel.trace.calls.pair`."""
        from popmodel.trace.calls import pair

        return self.derived("calls", pair)

    def ends(self) -> Int64:
        """When each process ends, ns: int64[P]; see `popmodel.trace.ends`."""
        from popmodel.trace.ends import find

        return self.derived("ends", find)

    def derived(self, name: str, make: Callable[[Trace], Derived]) -> Derived:
        """What is made of this trace once, when it is first asked for, and kept under a name."""
        if name not in self._derived:
            self._derived[name] = make(self)
        made: Derived = self._derived[name]
        return made

    def mpi_name(self, type_: int, value: int) -> str:
        """Name of an MPI call, for instance ``MPI_Send`` for 50000001 and 1."""
        return self.labels.mpi_name(type_, value)

    def process_of_location(self) -> Int32:
        """Process of each location: int32[L]."""
        return np.repeat(np.arange(self.processes, dtype=np.int32), self.threads)

    def to_dataframe(self, table: str) -> pandas.DataFrame:
        """Return ``"states"``, ``"events"``, ``"messages"`` or ``"calls"`` as a pandas table.

        The columns are those of the table, with ``process`` and ``thread`` (from 0) before them.
        """
        from popmodel.trace.frames import frame

        return frame(self, table)


def location_of_row(offsets: Int64) -> Int32:
    """Location of each row of a table that is partitioned by `offsets`: int32[n]."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def part_of(offsets: Int64, rows: Int64) -> Int64:
    """Part of a table partitioned by `offsets` (location, process) that some rows are in: int64."""
    part: Int64 = np.searchsorted(offsets, rows, side="right") - 1
    return part
