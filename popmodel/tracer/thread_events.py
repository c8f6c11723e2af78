"""The events of a thread, with the values that Extrae gives them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import among, distinct
from popmodel.tracer import message_ends as ends
from popmodel.tracer.message_ends import global_ids
from popmodel.tracer.raw_records import (
    INCOMPLETE,
    RECORD,
    SITE_SHIFT,
    CallTables,
    Construct,
    Guard,
    InCalls,
    Openings,
    RecordKind,
    after,
    closing,
    mend,
    nests,
    openings,
    still_open,
)
from popmodel.traces import codes as states
from popmodel.traces.caveats import BY_RATE
from popmodel.traces.codes import FILE_CALLS, Event

PAIR = np.dtype(
    [("time", np.int64), ("value", np.int64), ("event", np.uint32), ("joined", np.uint32)]
)
"""One event; `joined` if it stands on the line of the one before it."""

NESTED = "nested parallel regions (counted as part of the enclosing one)"
UNBEGUN = "ends of user regions without a start (dropped)"
BACKWARDS = "hardware counters that decreased (set to 0)"

_WAITING, _LOCKED = 3, 6  # Extrae's values of critical sections and locks
_CONSTRUCTS: Mapping[Construct, tuple[Event, int]] = {
    Construct.BARRIER: (Event.BARRIER, 1),
    Construct.IMPLICIT_BARRIER: (Event.BARRIER, 1),
    Construct.CRITICAL_WAIT: (Event.CRITICAL, _WAITING),
    Construct.CRITICAL_HOLD: (Event.CRITICAL, _LOCKED),
    Construct.LOCK_WAIT: (Event.SET_LOCK, _WAITING),
    Construct.LOCK_HOLD: (Event.SET_LOCK, _LOCKED),
    Construct.SINGLE: (Event.WORK_SHARING, 6),
    Construct.SECTIONS: (Event.WORK_SHARING, 5),
    Construct.SCHEDULING: (Event.OVERHEAD, 1),
    Construct.ORDERED: (Event.ORDERED, 1),
    Construct.TASKWAIT: (Event.TASKWAIT, 1),
    Construct.TASKGROUP: (Event.TASKGROUP, 1),
    Construct.JOIN: (Event.JOIN, 1),
}
_MOVING_BYTES = tuple(value for value, name in FILE_CALLS.items() if re.search("read|write", name))
_SUMS: Mapping[Guard, Event] = {
    Guard.LOCKS: Event.LOCKS_TAKEN,
    Guard.CRITICALS: Event.CRITICALS_TAKEN,
    Guard.ATOMICS: Event.ATOMICS_TAKEN,
}
"""What is told of each: the first of four."""
_SLOTS = 1 << 16  # more than the events of one record

Values = NDArray[np.int64] | NDArray[np.bool_] | int


class Tables(NamedTuple):
    """Numbers in the trace of what a process's records name."""

    calls: CallTables
    communicators: NDArray[np.int64]  # int64[n]: By local id
    # By address, and by the id of the name; they have a number for everything.
    functions: Mapping[int, int]
    regions: Mapping[int, int]
    # int64[n, 2]: Function and line of each call site; 0 where they are not known.
    sites: NDArray[np.int64]
    with_lines: bool = False  # Whether source lines of functions are known


class EventMaker:
    """Makes the events of one thread of the trace."""

    def __init__(self, tables: Tables, counts: Counter[str]) -> None:
        self._tables = tables
        self._counts = counts
        self._regions = np.empty(0, RECORD)
        self._read: tuple[int, int] | None = None
        self.nested = 0  # ns that threads were in regions inside regions, of those that begin them

    def restart(self) -> None:
        """Another thread of the system goes on: its counters begin anew."""
        self._read = None

    def make(
        self,
        records: NDArray[np.void],
        when: NDArray[np.int64],
        calls: InCalls,
        open_: NDArray[np.void],
    ) -> NDArray[np.void]:
        """Events of some records, in order."""
        events = _EventLines(when)
        kind = records["kind"]
        self._add_calls(events, records, calls)
        if (kind >= RecordKind.PARALLEL_BEGIN).any():
            self._add_openmp(events, records, open_)
            self._add_regions(events, records)
            omitted = np.flatnonzero(kind == RecordKind.LEFT_OUT)
            value = records["call"][omitted] + BY_RATE * (records["a"][omitted] != 0)
            events.add(omitted, 0, Event.LEFT_OUT, value)
            events.add(np.flatnonzero(kind == RecordKind.FLUSH_BEGIN), 0, Event.FLUSH, 1)
            events.add(np.flatnonzero(kind == RecordKind.FLUSH_END), 0, Event.FLUSH, 0)
            switched = np.flatnonzero(kind == RecordKind.TRACING)
            events.add(switched, 0, Event.TRACING, records["a"][switched] != 0)
            self._add_counters(events, records)
            self._add_delays(events, records)
            self._add_files(events, records, open_)
        return events.rows()

    def _add_calls(self, events: _EventLines, records: NDArray[np.void], calls: InCalls) -> None:
        tables = self._tables.calls
        call = records["call"][calls.enter]
        events.add(
            calls.enter, 0, tables.event[call], tables.value[call] + INCOMPLETE * calls.missed
        )
        events.add(calls.leave, 0, tables.event[call], 0)
        misses = calls.times - ~calls.missed
        events.add(calls.leave[misses > 0], 1, Event.MISSES, misses[misses > 0])
        callers = self._tables.sites[records["c"][calls.enter].view(np.uint64) >> SITE_SHIFT]
        known = callers[:, 0] > 0
        events.add(calls.enter[known], 5, Event.CALLER, callers[known, 0])
        events.add(calls.enter[known], 6, Event.CALLER_LINE, callers[known, 1])
        moving = calls.enter[tables.moves[call]]
        moved = records["b"][moving] + (records["c"][moving] & ((1 << SITE_SHIFT) - 1))
        events.add(moving[moved > 0], 1, Event.MPI_FILE_BYTES, moved[moved > 0])
        sized = calls.enter[tables.sized[call] & (records["a"][calls.enter] > 0)]
        if not len(sized):
            return
        some = records[sized]
        number = global_ids(some["a"], self._tables.communicators)
        events.add(sized, 1, Event.BYTES_SENT, some["b"])
        events.add(sized, 2, Event.BYTES_RECEIVED, some["c"] & ((1 << SITE_SHIFT) - 1))
        events.add(sized, 3, Event.COMMUNICATOR, number)
        roots = np.flatnonzero(records["kind"] == RecordKind.ROOT)
        roots = roots[calls.hold(roots)]
        events.add(calls.around(roots)[0], 4, Event.IS_ROOT, 1)

    def _add_openmp(
        self, events: _EventLines, records: NDArray[np.void], open_: NDArray[np.void]
    ) -> None:
        kind = records["kind"]
        tasks = (kind == RecordKind.TASK_BEGIN).astype(np.int64) - (kind == RecordKind.TASK_END)
        outermost = np.cumsum(tasks) + np.count_nonzero(open_["kind"] == RecordKind.TASK_BEGIN) == 0
        begins, ends = kind == RecordKind.PARALLEL_BEGIN, kind == RecordKind.PARALLEL_END
        # A region inside a region is part of it: in a trace only the outermost one is open.
        events.add(np.flatnonzero(begins & outermost), 0, Event.PARALLEL, 3)
        events.add(np.flatnonzero(ends & outermost), 0, Event.PARALLEL, 0)
        self._counts[NESTED] += int(np.count_nonzero(begins & ~outermost))
        inside = events.when[ends & ~outermost].sum() - events.when[begins & ~outermost].sum()
        self.nested += int(inside)
        self._add_functions(
            events, records, open_, Event.OUTLINED, RecordKind.TASK_BEGIN, RecordKind.TASK_END
        )
        self._add_functions(
            events, records, open_, Event.TASK, RecordKind.TASK_RUN, RecordKind.TASK_STOP
        )
        made = np.flatnonzero(kind == RecordKind.TASK_CREATE)
        events.add(made, 0, Event.NEW_TASK, _numbers(records["b"][made], self._tables.functions))
        rows = np.flatnonzero((kind == RecordKind.OMP_ENTER) | (kind == RecordKind.OMP_LEAVE))
        construct, entered = records["call"][rows], kind[rows] == RecordKind.OMP_ENTER
        for number in distinct(construct).tolist():
            event, value = _CONSTRUCTS[Construct(number)]
            chosen = construct == number
            kinds = np.full(np.count_nonzero(chosen), event)
            if event == Event.CRITICAL:
                kinds[records["b"][rows[chosen]] != 0] = Event.NAMED_CRITICAL
            events.add(rows[chosen], 0, kinds, np.where(entered[chosen], value, 0))
        for guard, first in _SUMS.items():
            mine = records["call"] == guard
            rows = np.flatnonzero(mine & (kind == RecordKind.GUARDED))
            events.add(rows, 0, first, records["b"][rows])
            events.add(rows, 1, first + 1, records["a"][rows])
            events.add(rows, 2, first + 2, records["c"][rows])
            rows = np.flatnonzero(mine & (kind == RecordKind.HELD))
            events.add(rows, 0, first + 3, records["b"][rows])

    def _add_functions(
        self,
        events: _EventLines,
        records: NDArray[np.void],
        open_: NDArray[np.void],
        event: Event,
        begin: RecordKind,
        end: RecordKind,
    ) -> None:
        """Events of a function that runs; when it ends, the one around it goes on."""
        kind = records["kind"]
        rows = np.flatnonzero((kind == begin) | (kind == end))
        if not len(rows):
            return
        step = np.where(kind[rows] == begin, 1, -1).astype(np.int8)
        functions = self._tables.functions
        function = _numbers(records["b"][rows], functions)
        stack = _numbers(open_["b"][open_["kind"] == begin], functions)
        running = after(step, function, stack.tolist(), 0)
        events.add(rows, 0, event, running)
        if event == Event.OUTLINED and self._tables.with_lines:
            events.add(
                rows, 1, Event.OUTLINED_LINE, running
            )  # lines have the numbers of their functions

    def _add_regions(self, events: _EventLines, records: NDArray[np.void]) -> None:
        """Numbers of regions that begin; 0 where the innermost ends, then the one around it.

        Tools that show the last value see the region that goes on.
        """
        kind = records["kind"]
        rows = np.flatnonzero((kind == RecordKind.USER_BEGIN) | (kind == RecordKind.USER_END))
        if not len(rows):
            return
        some = records[rows]
        step = np.where(some["kind"] == RecordKind.USER_BEGIN, 1, -1).astype(np.int8)
        group = some["a"].astype(np.int64)
        stack = self._regions["a"].astype(np.int64)
        if not nests(step, group, stack):
            self._add_crossing_regions(events, rows, some)
            return
        number = _numbers(group, self._tables.regions)
        around = after(step, number, _numbers(stack, self._tables.regions).tolist(), 0)
        self._regions = still_open(some, Openings(step, group, number), self._regions)
        events.add(rows, 0, Event.USER_REGION, np.where(step > 0, number, 0))
        goes_on = (step < 0) & (around > 0)
        events.add(rows[goes_on], 1, Event.USER_REGION, around[goes_on])

    def _add_crossing_regions(
        self, events: _EventLines, rows: NDArray[np.int64], records: NDArray[np.void]
    ) -> None:
        """Regions that do not lie inside each other: one that others are in ends after them.

        What was begun after it, and goes on, begins again on the same line.
        """
        open_ = list(self._regions)
        found: list[tuple[int, int, int]] = []
        for row, record in zip(rows.tolist(), records, strict=True):
            values: list[int] = []
            if record["kind"] == RecordKind.USER_BEGIN:
                open_.append(record)
                values.append(self._number(record))
            elif mine := [i for i, each in enumerate(open_) if each["a"] == record["a"]]:
                for depth in range(len(open_) - 1, mine[-1] - 1, -1):
                    values += [0, *map(self._number, open_[:depth][-1:])]
                values += map(self._number, open_[mine[-1] + 1 :])
                del open_[mine[-1]]
            else:
                self._counts[UNBEGUN] += 1
            found += [(row, slot, value) for slot, value in enumerate(values)]
        self._regions = np.array(open_, RECORD)
        row, slot, value = np.array(found, np.int64).reshape(-1, 3).T
        events.add(row, slot, Event.USER_REGION, value)

    def _number(self, record: np.void) -> int:
        return self._tables.regions[int(record["a"])]

    def _add_delays(self, events: _EventLines, records: NDArray[np.void]) -> None:
        """What was waited for a processor in the computing that ends, or when woken up."""
        rows = np.flatnonzero(records["kind"] == RecordKind.DELAYED)
        kinds = np.where(records["a"][rows] == 0, Event.DELAYED, Event.WOKEN)
        events.add(rows, 0, kinds, records["b"][rows])

    def _add_files(
        self, events: _EventLines, records: NDArray[np.void], open_: NDArray[np.void]
    ) -> None:
        """Calls for files, and what they moved, where they begin if that is known there."""
        kind = records["kind"]
        rows = np.flatnonzero((kind == RecordKind.FILE_ENTER) | (kind == RecordKind.FILE_LEAVE))
        if not len(rows):
            return
        some = records[rows]
        step = np.where(some["kind"] == RecordKind.FILE_ENTER, 1, -1).astype(np.int8)
        around = open_["call"][open_["kind"] == RecordKind.FILE_ENTER].tolist()
        events.add(rows, 0, Event.FILE_CALL, after(step, some["call"].astype(np.int64), around, 0))
        ends = np.flatnonzero((step < 0) & among(some["call"], _MOVING_BYTES))
        at_once = (ends > 0) & (step[ends - 1] > 0) & (rows[ends - 1] == rows[ends] - 1)
        events.add(rows[ends - at_once], 1, Event.FILE_BYTES, some["b"][ends])
        several = np.flatnonzero((step < 0) & (some["a"] > 1))
        events.add(rows[several], 2, Event.FILE_CALLS, some["a"][several])

    def _add_counters(self, events: _EventLines, records: NDArray[np.void]) -> None:
        """Counts since the reading before, on the line of the record that they follow."""
        kind = records["kind"]
        rows = np.flatnonzero(kind == RecordKind.COUNTERS)
        if not len(rows):
            return
        front = np.maximum(rows - 1, 0)
        joins = (kind[front] != RecordKind.COUNTERS) & (events.when[front] == events.when[rows])
        owner = np.where(joins, front, rows)
        # What was counted before a thread's first reading is not of the traced time.
        skipped = self._read is None
        before = self._read or (0, 0)
        for slot, (counter, name) in enumerate(((Event.INSTRUCTIONS, "b"), (Event.CYCLES, "c"))):
            counted = np.diff(records[name][rows], prepend=before[slot])[skipped:]
            self._counts[BACKWARDS] += int(np.count_nonzero(counted < 0))
            counted = np.maximum(counted, 0)
            events.add(owner[skipped:], 8 + slot, counter, counted, at=rows[skipped:])
        self._read = int(records["b"][rows[-1]]), int(records["c"][rows[-1]])


def _numbers(values: NDArray[np.int64], table: Mapping[int, int]) -> NDArray[np.int64]:
    """Numbers in the trace of what a process names."""
    distinct, place = np.unique(values, return_inverse=True)
    numbers = [table[each] for each in distinct.tolist()]
    return np.array(numbers, np.int64)[place.reshape(-1)]


class _EventLines:
    """Events as they are found, kind by kind; `rows` gives them in order, line by line."""

    def __init__(self, when: NDArray[np.int64]) -> None:
        self.when = when
        self._found: list[tuple[NDArray[np.int64], ...]] = []

    def add(
        self,
        rows: NDArray[np.int64],
        slot: NDArray[np.int64] | int,
        kinds: NDArray[np.int64] | int,
        values: Values,
        at: NDArray[np.int64] | None = None,
    ) -> None:
        """Add an event to each of these records, or at the time of others."""
        if len(rows):
            self._found.append(
                (
                    rows * _SLOTS + slot,
                    self.when[rows if at is None else at],
                    np.broadcast_to(np.asarray(kinds, np.int64), len(rows)),
                    np.broadcast_to(np.asarray(values).astype(np.int64), len(rows)),
                )
            )

    def rows(self) -> NDArray[np.void]:
        """All events."""
        if not self._found:
            return np.empty(0, PAIR)
        key, time, kind, value = (np.concatenate(each) for each in zip(*self._found, strict=True))
        order = np.argsort(key, kind="stable")
        key, time = key[order] // _SLOTS, time[order]
        rows = np.zeros(len(order), PAIR)
        rows["time"], rows["event"], rows["value"] = time, kind[order], value[order]
        rows["joined"][1:] = (key[1:] == key[:-1]) & (time[1:] == time[:-1])
        return rows


# From the records of a thread to its states and events, and to the ends of its messages.
#
# Chunk by chunk, with whatever is open at the end of one carried on to the next. The states of a
# thread tile its time: each lasts until the next one, and follows from what is open innermost. Only
# idle time is left out, as Extrae leaves it out: Dimemas' reader of traces adds it by itself, and
# takes states that say so for records out of order.


STATE = np.dtype([("begin", np.int64), ("end", np.int64), ("state", np.int64)])

NOT_RETURNED = "MPI calls that had not returned when their thread ended (assumed to end there)"
UNNUMBERED = "receives without a number (dropped)"


class ConvertedEvents(NamedTuple):
    """What became of some records: rows of `STATE`, `PAIR`, `SENT`, `POSTED` and `RECEIVED`."""

    states: NDArray[np.void]
    events: NDArray[np.void]
    sent: NDArray[np.void]
    posted: NDArray[np.void]
    received: NDArray[np.void]


class EventLoad(NamedTuple):
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

    def application(self, time: int, value: int) -> NDArray[np.void]:
        """The event that begins (1) or ends (0) a process."""
        return np.array([(time, value, Event.APPLICATION, 0)], PAIR)

    def end(self, time: int) -> NDArray[np.void]:
        """States up to the end of the process."""
        return self._states(np.array([time]), np.array([-1]))

    def feed(self, records: NDArray[np.void], close: int | None = None) -> ConvertedEvents:
        """Convert records, whose times are those of the trace."""
        tables = self.tables.calls
        self._records += len(records)
        told = records[records["kind"] == RecordKind.GUARDED]
        np.add.at(self._guarded, told["call"], told["b"])
        self.switches += int(np.count_nonzero(records["kind"] == RecordKind.TRACING))
        records = self._well_nested(records)
        if close is not None:
            records = self._closed(records, close)
        found = openings(records, tables.state)
        opened = openings(self._open, tables.state)
        time = records["time"].astype(np.int64)
        calls = InCalls.of(records, time, tables)
        when = _without_gaps(records, calls.times_of(time))
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
        converted = ConvertedEvents(
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
    def load(self) -> EventLoad:
        """How much was recorded so far."""
        locks, *sections = self._guarded[1:].tolist()
        return EventLoad(self._records, int(self.calls.sum()), locks, sum(sections))

    def _well_nested(self, records: NDArray[np.void]) -> NDArray[np.void]:
        found = openings(records, self.tables.calls.state)
        opened = openings(self._open, self.tables.calls.state)
        if nests(found.step, found.group, opened.group) and _plausible(records, found, self._open):
            return records
        return mend(records, found, self._open, opened, self.counts)

    def _closed(self, records: NDArray[np.void], time: int) -> NDArray[np.void]:
        """The records with an end of everything that is open."""
        open_ = still_open(records, openings(records, self.tables.calls.state), self._open)
        self.counts[NOT_RETURNED] += int(np.count_nonzero(open_["kind"] == RecordKind.ENTER))
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


def _without_gaps(records: NDArray[np.void], when: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times of records, where calls for files that are one follow without a pause: it is behind."""
    ends = np.flatnonzero((records["kind"] == RecordKind.FILE_LEAVE) & (records["c"] > 0))
    when[ends] = np.maximum(when[ends] - records["c"][ends], when[np.maximum(ends - 1, 0)])
    return when


def _plausible(records: NDArray[np.void], found: Openings, open_: NDArray[np.void]) -> bool:
    """Whether nothing is open that must have ended, though its end is not there."""
    kind = records["kind"]
    if not len(kind):
        return True
    entered = (kind == RecordKind.ENTER).astype(np.int64) - (kind == RecordKind.LEAVE)
    if np.cumsum(entered).max() + np.count_nonzero(open_["kind"] == RecordKind.ENTER) > 1:
        return False
    files = (kind == RecordKind.FILE_ENTER).astype(np.int64) - (kind == RecordKind.FILE_LEAVE)
    files = np.cumsum(files) + np.count_nonzero(open_["kind"] == RecordKind.FILE_ENTER)
    if np.any(files[kind == RecordKind.ENTER]):
        return False
    begins = kind == RecordKind.TASK_BEGIN
    tasks = np.cumsum(begins.astype(np.int64) - (kind == RecordKind.TASK_END))
    tasks += np.count_nonzero(open_["kind"] == RecordKind.TASK_BEGIN)
    level = records["call"][begins]
    if np.any((tasks[begins] > level) & (level > 0)):
        return False
    off = (kind == RecordKind.TRACING) & (found.step > 0)
    depth = len(open_) + np.cumsum(found.step, dtype=np.int64)
    return not np.any(depth[off] > 1)
