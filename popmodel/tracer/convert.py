"""From the records of a thread to its states and events, and to the ends of its messages.

Chunk by chunk, with whatever is open at the end of one carried on to the next. The states of a
thread tile its time: each lasts until the next one, and follows from what is open innermost. Only
idle time is left out, as Extrae leaves it out: Dimemas' reader of traces adds it by itself, and
takes states that say so for records out of order.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.trace import states
from popmodel.trace.event import Event
from popmodel.tracer import ends
from popmodel.tracer.events import PAIR, EventMaker, Tables
from popmodel.tracer.in_calls import InCalls
from popmodel.tracer.mend import closing, mend
from popmodel.tracer.nesting import after, nests
from popmodel.tracer.openings import Openings, openings, still_open
from popmodel.tracer.records import RECORD, Guard, Kind
from popmodel.values import dataclass

STATE = np.dtype([("begin", np.int64), ("end", np.int64), ("state", np.int64)])

NOT_RETURNED = "MPI calls that had not returned when their thread ended (assumed to end there)"
UNNUMBERED = "receives without a number (dropped)"


@dataclass(frozen=True)
class Converted:
    """What became of some records: rows of `STATE`, `PAIR`, `SENT`, `POSTED` and `RECEIVED`."""

    states: NDArray[np.void]
    events: NDArray[np.void]
    sent: NDArray[np.void]
    posted: NDArray[np.void]
    received: NDArray[np.void]


class Load(NamedTuple):
    """What was recorded of a thread: records, MPI calls, locks and critical sections."""

    records: int
    calls: int
    locks: int
    sections: int


class Converter:
    """One thread of the trace, which one thread of the system after another can be.

    Attributes
    ----------
    calls : int64[65536]
        How often each MPI call was made.
    counts : Counter
        What is not as it should be.
    load : Load
        How much was recorded.
    """

    def __init__(self, row: int, tables: Tables) -> None:
        self.row = row
        self.tables = tables
        self.counts: Counter[str] = Counter()
        self.calls = np.zeros(1 << 16, np.int64)
        self._records = 0
        self._guarded = np.zeros(max(Guard) + 1, np.int64)
        self.switches = 0  # how often tracing was switched on or off
        self._events = EventMaker(tables, self.counts)
        self._open = np.empty(0, RECORD)
        self._base = self._state = states.NOT_CREATED
        self._since = 0

    def begin(self, time: int, base: int) -> NDArray[np.void]:
        """Let a thread of the system begin, in state `base` while nothing is open on it."""
        self._base = base
        self._events.restart()
        return self._states(np.array([time]), np.array([base]))

    @property
    def nested(self) -> int:
        """Time in regions inside regions so far, ns, of the threads that begin them."""
        return self._events.nested

    def go_on(self, time: int, base: int) -> NDArray[np.void]:
        """Let another thread of the system go on, maybe while the one before it waits."""
        if not len(self._open):
            return self.begin(time, base)
        self._events.restart()
        return np.empty(0, STATE)

    def application(self, time: int, value: int) -> NDArray[np.void]:
        """The event that begins (1) or ends (0) a process."""
        return np.array([(time, value, Event.APPLICATION, 0)], PAIR)

    def end(self, time: int) -> NDArray[np.void]:
        """States up to the end of the process."""
        return self._states(np.array([time]), np.array([-1]))

    def feed(self, records: NDArray[np.void], close: int | None = None) -> Converted:
        """Convert records, whose times are those of the trace."""
        tables = self.tables.calls
        self._records += len(records)
        told = records[records["kind"] == Kind.GUARDED]
        np.add.at(self._guarded, told["call"], told["b"])
        self.switches += int(np.count_nonzero(records["kind"] == Kind.TRACING))
        records = self._well_nested(records)
        if close is not None:
            records = self._closed(records, close)
        found = openings(records, tables.state)
        opened = openings(self._open, tables.state)
        time = records["time"].astype(np.int64)
        calls = InCalls.of(records, time, tables)
        when = calls.times_of(time)
        found.value[calls.enter[calls.missed]] = states.LOOKING
        inner = after(found.step, found.value, opened.value.tolist(), self._base)
        changes = found.step != 0
        rows = self._states(when[changes], inner[changes])
        if close is not None:
            self._base = states.IDLE
            rows = np.concatenate([rows, self._states(np.array([close]), np.array([states.IDLE]))])
        about_messages = tables, self.tables.communicators, self.row
        received, lacking = ends.received(records, time, calls, *about_messages)
        self.counts[UNNUMBERED] += lacking
        converted = Converted(
            rows,
            self._events.make(records, when, calls, self._open),
            ends.sent(records, time, calls, *about_messages),
            ends.posted(records, time, calls, tables),
            received,
        )
        self._open = still_open(records, found, self._open)
        called = np.bincount(records["call"][calls.enter], calls.times, len(self.calls))
        self.calls += called.astype(np.int64)
        return converted

    @property
    def load(self) -> Load:
        """How much was recorded so far."""
        locks, *sections = self._guarded[1:].tolist()
        return Load(self._records, int(self.calls.sum()), locks, sum(sections))

    def _well_nested(self, records: NDArray[np.void]) -> NDArray[np.void]:
        found = openings(records, self.tables.calls.state)
        opened = openings(self._open, self.tables.calls.state)
        if nests(found.step, found.group, opened.group) and _plausible(records, found, self._open):
            return records
        return mend(records, found, self._open, opened, self.counts)

    def _closed(self, records: NDArray[np.void], time: int) -> NDArray[np.void]:
        """The records with an end of everything that is open."""
        open_ = still_open(records, openings(records, self.tables.calls.state), self._open)
        self.counts[NOT_RETURNED] += int(np.count_nonzero(open_["kind"] == Kind.ENTER))
        return np.concatenate([records, closing(open_[::-1], time)])

    def _states(self, time: NDArray[np.int64], state: NDArray[np.int64]) -> NDArray[np.void]:
        """States but idle ones up to the last change; what begins there is carried on."""
        time = np.concatenate([[self._since], time]).astype(np.int64)
        state = np.concatenate([[self._state], state]).astype(np.int64)
        lasting = np.append(
            time[1:] > time[:-1], True
        )  # of several changes at once the last counts
        time, state = time[lasting], state[lasting]
        new = np.append(True, state[1:] != state[:-1])
        time, state = time[new], state[new]
        rows = np.empty(len(time) - 1, STATE)
        rows["begin"], rows["end"], rows["state"] = time[:-1], time[1:], state[:-1]
        self._since, self._state = int(time[-1]), int(state[-1])
        busy: NDArray[np.void] = rows[rows["state"] != states.IDLE]
        return busy


def _plausible(records: NDArray[np.void], found: Openings, open_: NDArray[np.void]) -> bool:
    """Whether nothing is open that must have ended, though its end is not there."""
    kind = records["kind"]
    if not len(kind):
        return True
    entered = (kind == Kind.ENTER).astype(np.int64) - (kind == Kind.LEAVE)
    if np.cumsum(entered).max() + np.count_nonzero(open_["kind"] == Kind.ENTER) > 1:
        return False
    begins = kind == Kind.TASK_BEGIN
    tasks = np.cumsum(begins.astype(np.int64) - (kind == Kind.TASK_END))
    tasks += np.count_nonzero(open_["kind"] == Kind.TASK_BEGIN)
    level = records["call"][begins]
    if np.any((tasks[begins] > level) & (level > 0)):
        return False
    off = (kind == Kind.TRACING) & (found.step > 0)
    depth = len(open_) + np.cumsum(found.step, dtype=np.int64)
    return not np.any(depth[off] > 1)
