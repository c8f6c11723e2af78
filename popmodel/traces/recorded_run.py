"""A measured run: its processes and threads, and what is recorded of them.

A *location* is one thread of one process. Locations are process-major: those of process ``p`` are
``process_offsets[p]`` up to ``process_offsets[p + 1]``. All times are integers in nanoseconds since
the first record, whatever the clock of the file says then (`Trace.origin`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from popmodel.base.errors import UsageError
from popmodel.base.units import format_time, team
from popmodel.base.values import cut, dataclass
from popmodel.traces.intervals import Instants, TracePieces
from popmodel.traces.tables import Int32, Int64, MessageTable, States, TraceWarning, location_of_row

if TYPE_CHECKING:
    import pandas

    from popmodel.traces.calls import CallTable
    from popmodel.traces.codes import Event
    from popmodel.traces.device_rows import DeviceRows
    from popmodel.traces.records import CallSites, Records

Derived = TypeVar("Derived")
TABLES = ("states", "events", "messages", "calls")


@dataclass(frozen=True, eq=False)
class Trace:
    """One application of a trace."""

    path: str  # Where it was read from, for people: what is no UTF-8 is escaped
    application: int  # Its number in the trace, from 1
    # The window of analysis in nanoseconds; by default from the first record to the end that the
    # header states.
    begin: int
    end: int
    nodes: tuple[int, ...]  # CPUs of each node; empty where the header does not state them
    # int64[P + 1]: First location of each process, and the number of locations.
    process_offsets: Int64
    node_of_location: Int32  # int32[L]: From 0
    communicators: Mapping[int, Int32]  # Ranks, from 0, of each communicator
    # What the reader gives of the run, and, of a part of a run, what is left of it.
    records: Records
    names: tuple[str, ...] | None = None  # Names of the locations, where there is a ``.row`` file
    warnings: tuple[TraceWarning, ...] = ()  # What was found wanting while reading
    applications: int = 1  # How many the trace holds
    # Whether times were measured; else they are those of computing alone, and calls take none.
    timed: bool = True
    whole: Trace | None = None  # Of a part of a run, the trace it was cut from
    pieces: TracePieces | None = (
        None  # Of a part of a run, which stretches of the whole it consists of
    )
    # Time of the first record by the clock of the file, ns: what times of a trace are less than
    # those in its file.
    origin: int = 0
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        shown = f"{team(self.threads)}, {format_time(self.duration / 1e9)}"
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

    @property
    def states(self) -> States:
        """What each thread was doing; of a part of a run cut anew whenever it is asked for."""
        return self.records.states

    @property
    def messages(self) -> MessageTable:
        """Point-to-point messages; of a part of a run cut anew whenever it is asked for."""
        return self.records.messages

    @property
    def devices(self) -> DeviceRows:
        """Streams of devices such as GPUs, which are no threads, and calls to their runtime."""
        return self.derived("devices", lambda trace: trace.records.devices())

    def window(self, begin: int, end: int) -> Trace:
        """Return the part of the run between two times; see `popmodel.traces.run_parts.cut`."""
        from popmodel.traces.run_parts import cut

        return cut(self, begin, end)

    def calls(self) -> CallTable:
        """MPI calls of all locations."""
        return self.derived("calls", lambda trace: trace.records.calls())

    def call_warnings(self) -> tuple[TraceWarning, ...]:
        """Warnings of the MPI calls."""
        return self.derived("call_warnings", lambda trace: trace.calls().warnings)

    def release_calls(self) -> None:
        """Let go of the MPI calls, which are many; they are made again when they are asked for."""
        for trace in (self, self.whole or self):
            if "calls" in trace._derived:
                trace.call_warnings()
                del trace._derived["calls"]

    def sites(self) -> CallSites:
        """Where MPI is called; a row for each of the calls of the whole run."""
        whole = self.whole or self
        return whole.derived("sites", lambda trace: trace.records.sites())

    def marks(self, kind: Event) -> Instants:
        """What the tracer tells of one kind about the trace."""
        marks = self.derived("marks", lambda trace: trace.records.marks())
        return marks[kind] if kind in marks else Instants.none(self.locations)

    def ends(self) -> Int64:
        """When each process ends, ns: what its master thread says, else its last record."""
        ends = np.maximum(self.records.ends(), self.begin)
        masters: Int64 = ends[self.process_offsets[:-1]]
        return masters

    def derived(self, name: str, make: Callable[[Trace], Derived]) -> Derived:
        """What is made of this trace once, when it is first asked for, and kept under a name."""
        if name not in self._derived:
            self._derived[name] = make(self)
        made: Derived = self._derived[name]
        return made

    def process_of_location(self) -> Int32:
        """Process of each location: int32[L]."""
        return np.repeat(np.arange(self.processes, dtype=np.int32), self.threads)

    def to_dataframe(self, table: str) -> pandas.DataFrame:
        """Return ``"states"``, ``"events"``, ``"messages"`` or ``"calls"`` as a pandas table.

        The columns are those of the table, with ``process`` and ``thread`` (from 0) before them.
        """
        import pandas

        if table not in TABLES:
            known = ", ".join(TABLES)
            raise UsageError(f"a trace has no table {table!r}", f"choose one of {known}")
        records = self.calls() if table == "calls" else getattr(self.records, table)
        location = location_of_row(records.offsets)
        process = self.process_of_location()[location]
        data = {"process": process, "thread": location - self.process_offsets[process]}
        for field_ in fields(records):
            column = getattr(records, field_.name)
            if field_.name != "offsets" and isinstance(column, np.ndarray):
                data[field_.name] = column
        if table == "calls":
            data["name"] = np.array([*records.names, ""], object)[records.name]
        return pandas.DataFrame(data)
