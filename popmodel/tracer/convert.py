"""From the records of a thread to its states and events, and to the ends of its messages.

Chunk by chunk, with whatever is open at the end of one carried on to the next. The states of a
thread tile its time: each lasts until the next one, and each follows from what is open innermost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from popmodel.trace.names import (
    APPLICATION,
    BYTES_RECEIVED,
    BYTES_SENT,
    COMMUNICATOR,
    CYCLES,
    INSTRUCTIONS,
    IS_ROOT,
)
from popmodel.tracer import states
from popmodel.tracer.calls import INCOMPLETE, calls
from popmodel.tracer.mend import closing, mend
from popmodel.tracer.nesting import after, nests
from popmodel.tracer.openings import Openings, openings, still_open
from popmodel.tracer.records import RECORD, Construct, Kind

__all__ = ["Converted", "Row", "Tables"]

PARALLEL, SECTIONS_OR_SINGLE, BARRIER, JOIN = 60000001, 60000002, 60000005, 60000016
NAMED_CRITICAL, CRITICAL, SET_LOCK, OVERHEAD, ORDERED = (
    60000006,
    60000007,
    60000008,
    60000010,
    60000033,
)
OUTLINED, LINE, REGION, TASKWAIT, TASK, NEW_TASK, TASKGROUP = (
    60000018, 60000118, 60000019, 60000022, 60000023, 60000024, 60000027,
)  # fmt: skip
FLUSH, TRACING = 40000003, 40000012
MISSES = 50000304

STATE = np.dtype([("begin", np.int64), ("end", np.int64), ("state", np.int64)])
PAIR = np.dtype([("time", np.int64), ("value", np.int64), ("type", np.int64), ("joined", np.int64)])
"""One event; `joined` if it stands on the line of the one before it."""
SENT = np.dtype(
    [
        ("time", np.int64),
        ("partner", np.int64),
        ("communicator", np.int64),
        ("logical", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
    ]
)
"""A message that was sent; `logical` is -1 where tracing was off."""
POSTED = np.dtype([("number", np.int64), ("time", np.int64)])
RECEIVED = np.dtype(
    [
        ("number", np.int64),
        ("partner", np.int64),
        ("communicator", np.int64),
        ("begin", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
    ]
)
"""A message that was received. `begin` is the entry of the call if that counts as its posting."""

# A send is over when its call returns, but these calls send and then do something else.
_SENT_AT_ENTRY = (
    "Sendrecv",
    "Sendrecv_replace",
    "Isendrecv",
    "Isendrecv_replace",
    "Start",
    "Startall",
)
# A receive is posted when its call begins; of these, a trace names the end.
_POSTED_AT_EXIT = ("Irecv", "Imrecv")
# A matched probe has taken the message before; a trace names the call that receives it.
_RECEIVE_BEGINS = ("Mrecv",)
_SIZED = ("collective", "icollective")
NESTED = "nested parallel regions, taken as part of the one around them"
_SLOTS = 16  # events of one record, at most


def _flags(*names: str) -> NDArray[np.bool_]:
    flags = np.zeros(1 << 16, bool)
    flags[[number for number, call in calls().items() if call.name in names]] = True
    return flags


class CallTables:
    """What the conversion asks of a call, by its number."""

    def __init__(self) -> None:
        self.known = np.zeros(1 << 16, bool)
        self.type = np.zeros(1 << 16, np.int64)
        self.value = np.zeros(1 << 16, np.int64)
        self.sized = np.zeros(1 << 16, bool)
        self.may_miss = np.zeros(1 << 16, bool)
        for number, call in calls().items():
            self.known[number] = True
            self.type[number], self.value[number] = call.type, call.value
            self.sized[number] = call.family in _SIZED
            self.may_miss[number] = call.may_miss
        self.sent_at_entry = _flags(*_SENT_AT_ENTRY)
        self.posted_at_exit = _flags(*_POSTED_AT_EXIT)
        self.receive_begins = _flags(*_RECEIVE_BEGINS)
        self.state = states.states_of_calls()


@dataclass(frozen=True)
class Tables:
    """Numbers in the trace of what a process's records name.

    Attributes
    ----------
    calls : CallTables
    communicators : int64[n]
        By local id.
    functions, regions : mapping of int to int
        By address and by id of the name; those of unknown ones are made by the two callables.
    with_lines : bool
        Whether source lines of functions are known.
    """

    calls: CallTables
    communicators: NDArray[np.int64]
    functions: Mapping[int, int]
    regions: Mapping[int, int]
    with_lines: bool = False


@dataclass
class Converted:
    """What became of some records."""

    states: NDArray[np.void]
    events: NDArray[np.void]
    sent: NDArray[np.void]
    posted: NDArray[np.void]
    received: NDArray[np.void]


@dataclass
class Row:
    """One thread of the trace, which one thread of the system after another can be.

    Parameters
    ----------
    row : int
        Location in the trace.
    tables : Tables
    """

    row: int
    tables: Tables
    counts: Counter[str] = field(default_factory=Counter)
    calls: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1 << 16, np.int64))
    last: int = 0
    _state: int = states.NOT_CREATED
    _since: int = 0
    _base: int = states.NOT_CREATED
    _open: NDArray[np.void] = field(default_factory=lambda: np.empty(0, RECORD))
    _regions: NDArray[np.void] = field(default_factory=lambda: np.empty(0, RECORD))
    _read: tuple[int, int] | None = None

    def begin(self, time: int, base: int) -> NDArray[np.void]:
        """Let a thread of the system begin, in state `base` while nothing is open on it."""
        self._base = base
        self._read = None
        return self._states(np.array([time]), np.array([base]))

    def application(self, time: int, value: int) -> NDArray[np.void]:
        """The event that begins (1) or ends (0) a process."""
        return np.array([(time, value, APPLICATION, 0)], PAIR)

    def end(self, time: int) -> NDArray[np.void]:
        """State up to the end of the process."""
        return self._states(np.array([time]), np.array([-1]))

    def feed(self, records: NDArray[np.void], close: int | None = None) -> Converted:
        """Convert records, whose times are those of the trace.

        Parameters
        ----------
        records : RECORD[n]
            They do not end inside an MPI call unless they are the thread's last.
        close : int, optional
            The thread of the system ends with these records: when.
        """
        records = self._well_nested(records)
        if close is not None:
            records = self._closed(records, close)
        found = openings(records, self.tables.calls.state)
        opened = openings(self._open, self.tables.calls.state)
        time = records["time"].astype(np.int64)
        looks = _Looks.of(records, time, self.tables.calls)
        found.value[looks.enter[looks.missed]] = states.LOOKING
        inner = after(found.step, found.value, opened.value, self._base)
        changes = found.step != 0
        when = looks.exits(time)
        rows = self._states(when[changes], inner[changes])
        if close is not None:
            self._base = states.IDLE
            rows = np.concatenate([rows, self._states(np.array([close]), np.array([states.IDLE]))])
        converted = Converted(
            rows,
            self._events(records, when, found, looks),
            self._sent(records, time, looks),
            self._posted(records, time, looks),
            self._received(records, time, looks),
        )
        self._open = still_open(records, found, self._open)
        self.calls += np.bincount(
            records["call"][looks.enter], looks.times, len(self.calls)
        ).astype(np.int64)
        if len(records):
            self.last = max(self.last, int(time[-1]))
        return converted

    def _well_nested(self, records: NDArray[np.void]) -> NDArray[np.void]:
        found = openings(records, self.tables.calls.state)
        opened = openings(self._open, self.tables.calls.state)
        if nests(found.step, found.group, opened.group.tolist()) and _plausible(
            records, found, self._open
        ):
            return records
        return mend(records, found, self._open, opened, self.counts)

    def _closed(self, records: NDArray[np.void], time: int) -> NDArray[np.void]:
        """The records with an end of everything that is open."""
        found = openings(records, self.tables.calls.state)
        open_ = still_open(records, found, self._open)
        self.counts["MPI calls that had not returned when their thread ended"] += int(
            np.count_nonzero(open_["kind"] == Kind.ENTER)
        )
        return np.concatenate([records, closing(open_[::-1], time)])

    def _states(self, time: NDArray[np.int64], state: NDArray[np.int64]) -> NDArray[np.void]:
        """States up to the last change; what begins there is carried on."""
        time = np.concatenate([[self._since], time]).astype(np.int64)
        state = np.concatenate([[self._state], state]).astype(np.int64)
        lasting = np.append(
            time[1:] > time[:-1], True
        )  # of several changes at once the last counts
        time, state = time[lasting], state[lasting]
        new = np.append(True, state[1:] != state[:-1])
        time, state = time[new], state[new]
        # What lies before the first change has begun when the carried state began.
        rows = np.empty(len(time) - 1, STATE)
        rows["begin"], rows["end"], rows["state"] = time[:-1], time[1:], state[:-1]
        self._since, self._state = int(time[-1]), int(state[-1])
        return rows

    def _events(
        self, records: NDArray[np.void], when: NDArray[np.int64], found: Openings, looks: _Looks
    ) -> NDArray[np.void]:
        events = _Events(when)
        tables = self.tables.calls
        call = records["call"]
        value = tables.value[call[looks.enter]] + INCOMPLETE * looks.missed
        events.add(looks.enter, 0, tables.type[call[looks.enter]], value)
        events.add(looks.leave, 0, tables.type[call[looks.leave]], np.zeros(len(looks.leave)))
        folded = looks.missed & (looks.times > 1)
        events.add(looks.leave[folded], 1, MISSES, looks.times[folded])
        self._add_collectives(events, records, looks)
        self._add_openmp(events, records, found)
        self._add_regions(events, records)
        kind = records["kind"]
        events.add(np.flatnonzero(kind == Kind.FLUSH_BEGIN), 0, FLUSH, 1)
        events.add(np.flatnonzero(kind == Kind.FLUSH_END), 0, FLUSH, 0)
        switched = np.flatnonzero(kind == Kind.TRACING)
        events.add(switched, 0, TRACING, records["a"][switched] != 0)
        self._add_counters(events, records)
        return events.rows()

    def _add_collectives(self, events: _Events, records: NDArray[np.void], looks: _Looks) -> None:
        enter = looks.enter
        enter = enter[self.tables.calls.sized[records["call"][enter]] & (records["a"][enter] > 0)]
        for slot, type_, values in (
            (1, BYTES_SENT, records["b"][enter]),
            (2, BYTES_RECEIVED, records["c"][enter]),
            (3, COMMUNICATOR, self._communicator(records["a"][enter])),
        ):
            events.add(enter, slot, type_, values)
        roots = np.flatnonzero(records["kind"] == Kind.ROOT)
        events.add(looks.enter_of(roots)[looks.inside(roots)], 4, IS_ROOT, 1)

    def _communicator(self, local: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Numbers in the trace; 0 where the process never described it."""
        table = self.tables.communicators
        known = local < len(table)
        return np.where(known, table[np.where(known, local, 0)], 0)

    def _add_openmp(self, events: _Events, records: NDArray[np.void], found: Openings) -> None:
        kind = records["kind"]
        tasks = (kind == Kind.TASK_BEGIN).astype(np.int64) - (kind == Kind.TASK_END)
        outermost = np.cumsum(tasks) + np.count_nonzero(self._open["kind"] == Kind.TASK_BEGIN) == 0
        begins, ends = kind == Kind.PARALLEL_BEGIN, kind == Kind.PARALLEL_END
        # A region inside a region is part of it: in a trace only the outermost one is open.
        events.add(np.flatnonzero(begins & outermost), 0, PARALLEL, 3)
        events.add(np.flatnonzero(ends & outermost), 0, PARALLEL, 0)
        self.counts[NESTED] += int(np.count_nonzero(begins & ~outermost))
        self._add_functions(events, records, OUTLINED, Kind.TASK_BEGIN, Kind.TASK_END)
        self._add_functions(events, records, TASK, Kind.TASK_RUN, Kind.TASK_STOP)
        made = np.flatnonzero(kind == Kind.TASK_CREATE)
        events.add(made, 0, NEW_TASK, self._functions(records["b"][made]))
        for kind_, on in ((Kind.OMP_ENTER, True), (Kind.OMP_LEAVE, False)):
            rows = np.flatnonzero(kind == kind_)
            construct = records["call"][rows]
            for number, (type_, begin, end) in _CONSTRUCTS.items():
                some = rows[construct == number]
                types = np.full(len(some), type_)
                if type_ == CRITICAL:
                    types[records["b"][some] != 0] = NAMED_CRITICAL
                events.add(some, 0, types, begin if on else end)

    def _add_functions(
        self, events: _Events, records: NDArray[np.void], type_: int, begin: Kind, end: Kind
    ) -> None:
        """Events of a function that runs; when it ends, the one around it goes on."""
        kind = records["kind"]
        rows = np.flatnonzero((kind == begin) | (kind == end))
        if not len(rows):
            return
        step = np.where(kind[rows] == begin, 1, -1).astype(np.int8)
        function = self._functions(records["b"][rows])
        stack = self._functions(self._open["b"][self._open["kind"] == begin])
        running = after(step, function, stack.tolist(), 0)
        events.add(rows, 0, type_, running)
        if type_ == OUTLINED and self.tables.with_lines:
            events.add(rows, 1, LINE, running)  # lines have the numbers of their functions

    def _functions(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        return _translated(addresses, self.tables.functions)

    def _add_regions(self, events: _Events, records: NDArray[np.void]) -> None:
        kind = records["kind"]
        rows = np.flatnonzero((kind == Kind.USER_BEGIN) | (kind == Kind.USER_END))
        if not len(rows):
            return
        some = records[rows]
        step = np.where(some["kind"] == Kind.USER_BEGIN, 1, -1).astype(np.int8)
        group = some["a"].astype(np.int64)
        number = _translated(group, self.tables.regions)
        stack = self._regions["a"].astype(np.int64)
        if nests(step, group.astype(np.int32), stack.tolist()):
            running = after(step, number, _translated(stack, self.tables.regions).tolist(), 0)
            self._regions = still_open(some, Openings(step, group, number), self._regions)
        else:
            running = self._crossing_regions(some, number)
        events.add(rows, 0, REGION, running)

    def _crossing_regions(
        self, records: NDArray[np.void], number: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Regions that do not lie inside each other: the one that was begun last is shown."""
        open_ = list(self._regions)
        running = np.zeros(len(records), np.int64)
        for row, record in enumerate(records):
            if record["kind"] == Kind.USER_BEGIN:
                open_.append(record)
            else:
                mine = [i for i, each in enumerate(open_) if each["a"] == record["a"]]
                if mine:
                    del open_[mine[-1]]
                else:
                    self.counts["ends of regions that were not begun, left out"] += 1
            if open_:
                running[row] = _translated(
                    np.array([open_[-1]["a"]], np.int64), self.tables.regions
                )[0]
        self._regions = np.array(open_, RECORD)
        return running

    def _add_counters(self, events: _Events, records: NDArray[np.void]) -> None:
        """Counts since the reading before, on the line of the record that they follow."""
        kind = records["kind"]
        rows = np.flatnonzero(kind == Kind.COUNTERS)
        if not len(rows):
            return
        owner = np.maximum.accumulate(np.where(kind != Kind.COUNTERS, np.arange(len(kind)), -1))
        owner = np.where(owner[rows] >= 0, owner[rows], rows)
        first = self._read is None
        for slot, type_, name, before in (
            (8, INSTRUCTIONS, "b", self._read and self._read[0]),
            (9, CYCLES, "c", self._read and self._read[1]),
        ):
            counted = np.diff(records[name][rows], prepend=before or 0)
            backwards = counted < 0
            self.counts["hardware counters that ran backwards, taken as standing"] += int(
                np.count_nonzero(backwards)
            )
            # What was counted before a thread's first reading is not of the traced time.
            events.add(
                owner[first:], slot, type_, np.where(backwards, 0, counted)[first:], at=rows[first:]
            )
        self._read = int(records["b"][rows[-1]]), int(records["c"][rows[-1]])

    def _sent(
        self, records: NDArray[np.void], time: NDArray[np.int64], looks: _Looks
    ) -> NDArray[np.void]:
        rows = np.flatnonzero(records["kind"] == Kind.SEND)
        sent = np.empty(len(rows), SENT)
        some = records[rows]
        sent["time"], sent["partner"], sent["size"] = time[rows], some["b"], some["c"]
        sent["communicator"] = self._communicator(some["a"])
        sent["row"] = self.row
        inside = looks.inside(rows)
        enter, leave = looks.enter_of(rows), looks.leave_of(rows)
        at_entry = self.tables.calls.sent_at_entry[records["call"][enter]]
        sent["logical"] = np.where(inside, time[enter], -1)
        sent["physical"] = np.where(at_entry, time[enter], time[leave])
        return sent

    def _posted(
        self, records: NDArray[np.void], time: NDArray[np.int64], looks: _Looks
    ) -> NDArray[np.void]:
        rows = np.flatnonzero(records["kind"] == Kind.POST)
        posted = np.empty(len(rows), POSTED)
        posted["number"] = records["b"][rows]
        enter, leave = looks.enter_of(rows), looks.leave_of(rows)
        at_exit = self.tables.calls.posted_at_exit[records["call"][enter]]
        when = np.where(at_exit, time[leave], time[enter])
        posted["time"] = np.where(looks.inside(rows), when, -1)
        return posted

    def _received(
        self, records: NDArray[np.void], time: NDArray[np.int64], looks: _Looks
    ) -> NDArray[np.void]:
        kind = records["kind"]
        rows = np.flatnonzero(kind == Kind.RECEIVE)
        followed = np.append(kind[1:] == Kind.RECEIVED, False)[rows]
        self.counts["receives without their number, left out"] += int(np.count_nonzero(~followed))
        rows = rows[followed]
        received = np.empty(len(rows), RECEIVED)
        some = records[rows]
        received["number"] = records["b"][rows + 1]
        received["partner"], received["size"] = some["b"], some["c"]
        received["communicator"] = self._communicator(some["a"])
        received["row"] = self.row
        enter, leave = looks.enter_of(rows), looks.leave_of(rows)
        begins = self.tables.calls.receive_begins[records["call"][enter]]
        inside = looks.inside(rows)
        received["begin"] = np.where(inside & begins, time[enter], -1)
        received["physical"] = np.where(inside, time[leave], -1)
        return received


_CONSTRUCTS: Mapping[Construct, tuple[int, int, int]] = {
    Construct.BARRIER: (BARRIER, 1, 0),
    Construct.IMPLICIT_BARRIER: (BARRIER, 1, 0),
    # Extrae's: 3 while a thread waits for the lock, 6 while it has it.
    Construct.CRITICAL_WAIT: (CRITICAL, 3, 0),
    Construct.CRITICAL_HOLD: (CRITICAL, 6, 0),
    Construct.LOCK_WAIT: (SET_LOCK, 3, 0),
    Construct.LOCK_HOLD: (SET_LOCK, 6, 0),
    Construct.SINGLE: (SECTIONS_OR_SINGLE, 6, 0),
    Construct.SECTIONS: (SECTIONS_OR_SINGLE, 5, 0),
    Construct.SCHEDULING: (OVERHEAD, 1, 0),
    Construct.ORDERED: (ORDERED, 1, 0),
    Construct.TASKWAIT: (TASKWAIT, 1, 0),
    Construct.TASKGROUP: (TASKGROUP, 1, 0),
    Construct.JOIN: (JOIN, 1, 0),
}


def _plausible(records: NDArray[np.void], found: Openings, open_: NDArray[np.void]) -> bool:
    """Whether nothing is open that must have ended, though its end is not there."""
    kind = records["kind"]
    entered = (kind == Kind.ENTER).astype(np.int64) - (kind == Kind.LEAVE)
    if len(kind) and np.cumsum(entered).max() + np.count_nonzero(open_["kind"] == Kind.ENTER) > 1:
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


def _translated(values: NDArray[np.int64], table: Mapping[int, int]) -> NDArray[np.int64]:
    """Numbers in the trace of what a process names."""
    distinct, place = np.unique(values, return_inverse=True)
    numbers = [table[each] for each in distinct.tolist()]
    return np.array(numbers, np.int64)[place.reshape(-1)]


@dataclass(frozen=True)
class _Looks:
    """MPI calls of some records: where they begin and end, and which found nothing."""

    enter: NDArray[np.int64]
    leave: NDArray[np.int64]
    missed: NDArray[np.bool_]
    times: NDArray[np.int64]
    between: NDArray[np.int64]

    @classmethod
    def of(cls, records: NDArray[np.void], time: NDArray[np.int64], tables: CallTables) -> _Looks:
        enter = np.flatnonzero(records["kind"] == Kind.ENTER)
        leave = np.flatnonzero(records["kind"] == Kind.LEAVE)
        ends = records[leave]
        missed = tables.may_miss[ends["call"]] & (ends["a"] == 0)
        length = time[leave] - time[enter]
        return cls(
            enter,
            leave,
            missed,
            np.where(missed, np.maximum(ends["b"], 1), 1),
            np.where(missed, np.clip(ends["c"], 0, length), 0),
        )

    def exits(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of all records; calls in a row that found nothing end as if at once.

        The time between them is the user's. Where it lay is not known, so it follows them.
        """
        when = time.copy()
        when[self.leave] -= self.between
        return when

    def enter_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Record that begins the call around each row; any where there is none."""
        return self._of(self.enter, rows)

    def leave_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Record that ends it."""
        return self._of(self.leave, rows)

    def inside(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether there is a call around each row."""
        return (self.enter_of(rows) < rows) & (rows < self.leave_of(rows))

    def _of(self, ends: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(ends):
            return np.zeros(len(rows), np.int64)
        return ends[np.maximum(np.searchsorted(self.enter, rows) - 1, 0)]


class _Events:
    """Events as they are found, kind by kind; `rows` gives them in order, line by line."""

    def __init__(self, when: NDArray[np.int64]) -> None:
        self._when = when
        self._found: list[tuple[NDArray[np.int64], ...]] = []

    def add(
        self,
        rows: NDArray[np.int64],
        slot: int,
        types: int | NDArray[np.int64],
        values: int | NDArray[np.int64] | NDArray[np.bool_],
        at: NDArray[np.int64] | None = None,
    ) -> None:
        """Add an event to each of these records, or at the time of others."""
        if len(rows):
            n = len(rows)
            time = self._when[rows if at is None else at]
            self._found.append(
                (
                    rows * _SLOTS + slot,
                    time,
                    np.broadcast_to(np.asarray(types, np.int64), n),
                    np.broadcast_to(np.asarray(values).astype(np.int64), n),
                )
            )

    def rows(self) -> NDArray[np.void]:
        """All events."""
        if not self._found:
            return np.empty(0, PAIR)
        key, time, type_, value = (np.concatenate(each) for each in zip(*self._found, strict=True))
        order = np.argsort(key, kind="stable")
        key, time = key[order] // _SLOTS, time[order]
        rows = np.zeros(len(order), PAIR)
        rows["time"], rows["type"], rows["value"] = time, type_[order], value[order]
        rows["joined"][1:] = (key[1:] == key[:-1]) & (time[1:] == time[:-1])
        return rows
