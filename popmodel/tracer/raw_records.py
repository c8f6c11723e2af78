"""The records of a thread: their numbers, what they open and close, and how they are put right.

The numbers are those of ``microbench/tracer/record.h``, which explains them, and the MPI calls
those of the table ``calls.h`` that the library is built with.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import PopmodelError
from popmodel.machines.host.build import sources
from popmodel.traces.codes import (
    BOTH_WAYS,
    COMPLETING,
    INPUT_OUTPUT,
    LOOKING,
    MOVING,
    OTHER,
    RECEIVING_ON,
    RUNNING,
    SCHEDULING,
    SENDING,
    SENDING_ON,
    SYNCHRONISING,
    TOGETHER,
    TRACING_DISABLED,
    WAITING,
    Event,
)
from popmodel.traces.paraver.render import event_of

INCOMPLETE = 10_000
"""Added to the value of a call's event when a test has completed or a probe found nothing.

A reader of traces takes the plain value as a test that has completed a request.
"""

_LINE = re.compile(r"^\s*X\((\w+), (\d+), (\d+), (\d+), (\w+)\)", re.MULTILINE)
_LOOKS = frozenset(
    ("Iprobe", "Improbe", "Test", "Testall", "Testany", "Testsome", "Request_get_status",
     "Parrived", "Win_test")
)  # fmt: skip


class TracedCall(NamedTuple):
    """An MPI call."""

    name: str  # Without ``MPI_``
    event: Event  # What the call is about
    value: int  # Its number in a trace, by Extrae
    family: str  # As the table says: message, probe, completion, collective, ...

    @property
    def may_miss(self) -> bool:
        """Whether it can return without having completed or found anything."""
        return self.name in _LOOKS


@cache
def known_calls() -> Mapping[int, TracedCall]:
    """Return all calls by their number in records."""
    path = sources() / "tracer" / "calls.h"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PopmodelError(
            f"{path}: the table of MPI calls cannot be read: {error.strerror or error}",
            "reinstall popmodel: the package is incomplete",
        ) from None
    return {
        int(number): TracedCall(name, event_of(int(type_)), int(value), family)
        for name, number, type_, value, family in _LINE.findall(text)
    }


# What a raw file of the tracer holds. A test holds this and ``record.h`` together.


MAGIC = b"popmodel"
MARK = 0x01020304
VERSION = 2
LATEST = 1 << 62
"""The largest time that a clock may show, ns: 146 years after the start of a host, or 2116."""

HEADER = struct.Struct("=8s6I2Q16x")
"""Magic, mark, version, header size, record size, process, thread, thread id, begin."""

RECORD = np.dtype(
    [
        ("time", np.uint64),
        ("kind", np.uint16),
        ("call", np.uint16),
        ("a", np.uint32),
        ("b", np.int64),
        ("c", np.int64),
    ]
)


class RecordKind(IntEnum):
    """Kinds of records."""

    ENTER = 1
    LEAVE = 2
    SEND = 3
    POST = 4
    RECEIVE = 5
    RECEIVED = 6
    ROOT = 7
    COLLECT = 8
    COLLECTED = 9
    PARALLEL_BEGIN = 16
    PARALLEL_END = 17
    TASK_BEGIN = 18
    TASK_END = 19
    OMP_ENTER = 20
    OMP_LEAVE = 21
    TASK_CREATE = 22
    TASK_RUN = 23
    TASK_STOP = 24
    GUARDED = 25
    HELD = 26
    USER_BEGIN = 32
    USER_END = 33
    TRACING = 34
    LEFT_OUT = 35
    FILE_ENTER = 36
    FILE_LEAVE = 37
    COUNTERS = 40
    DELAYED = 41
    FLUSH_BEGIN = 48
    FLUSH_END = 49
    END = 63


SITE_SHIFT = 48
"""Field `c` of an ENTER has the number of the call site above these bits, and below them bytes."""


class Construct(IntEnum):
    """Constructs of OpenMP in OMP_ENTER and OMP_LEAVE."""

    BARRIER = 1
    IMPLICIT_BARRIER = 2
    CRITICAL_WAIT = 3
    CRITICAL_HOLD = 4
    LOCK_WAIT = 5
    LOCK_HOLD = 6
    SINGLE = 7
    SCHEDULING = 8
    SECTIONS = 9
    ORDERED = 10
    TASKWAIT = 11
    TASKGROUP = 12
    JOIN = 13


class Left(IntEnum):
    """Kinds of calls that LEFT_OUT says are not recorded."""

    LEFT_TESTS = 1
    LEFT_CHUNKS = 2
    LEFT_SINGLES = 3
    LEFT_RMA = 4
    LEFT_IO = 5


class Guard(IntEnum):
    """What GUARDED and HELD sum up."""

    LOCKS = 1
    CRITICALS = 2
    ATOMICS = 3


IS_KIND = np.zeros(1 << 16, dtype=bool)
"""Whether a number is a kind of record."""
IS_KIND[list(RecordKind)] = True


# Which state a thread is in, by what is open on it, as Extrae chooses them.


_BY_NAME = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), SENDING),
    **dict.fromkeys(("Recv", "Mrecv"), WAITING),
    **dict.fromkeys(("Irecv", "Imrecv", "Recv_init"), RECEIVING_ON),
    **dict.fromkeys(("Sendrecv", "Sendrecv_replace"), BOTH_WAYS),
    **dict.fromkeys(("Isendrecv", "Isendrecv_replace"), SENDING_ON),
    **dict.fromkeys(("Request_get_status", "Request_free", "Cancel"), OTHER),
    **dict.fromkeys(("Start", "Startall"), OTHER),
    **dict.fromkeys(
        ("Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic", "Win_attach",
         "Win_detach", "Win_free"),
        OTHER,
    ),
}  # fmt: skip
_BY_FAMILY = {
    "message": SENDING_ON,
    "probe": LOOKING,
    "completion": COMPLETING,
    "collective": TOGETHER,
    "icollective": TOGETHER,
    "neighbour": TOGETHER,
    "rma": MOVING,
    "io": INPUT_OUTPUT,
}

IN_CONSTRUCT: Mapping[Construct, int] = {
    Construct.BARRIER: SYNCHRONISING,
    Construct.IMPLICIT_BARRIER: SYNCHRONISING,
    Construct.CRITICAL_WAIT: SYNCHRONISING,
    Construct.LOCK_WAIT: SYNCHRONISING,
    Construct.SCHEDULING: SCHEDULING,
    Construct.ORDERED: SYNCHRONISING,
    Construct.TASKWAIT: SYNCHRONISING,
    Construct.TASKGROUP: SYNCHRONISING,
    Construct.JOIN: SCHEDULING,
}
"""States in constructs of OpenMP; in the others, user code runs."""


# Which records open and close something that decides a thread's state.


_PAIRS = {
    RecordKind.ENTER: (RecordKind.LEAVE, 0),
    RecordKind.PARALLEL_BEGIN: (RecordKind.PARALLEL_END, SCHEDULING),
    RecordKind.TASK_BEGIN: (RecordKind.TASK_END, RUNNING),
    RecordKind.TASK_RUN: (RecordKind.TASK_STOP, RUNNING),
    RecordKind.FLUSH_BEGIN: (RecordKind.FLUSH_END, INPUT_OUTPUT),
    RecordKind.FILE_ENTER: (RecordKind.FILE_LEAVE, INPUT_OUTPUT),
}
_KINDS = 1 << 6
_CONSTRUCTS = max(Construct) + 1

_STEP = np.zeros(_KINDS, np.int8)
_GROUP = np.zeros(_KINDS, np.int64)
_STATE = np.zeros(_KINDS, np.int64)
for _begin, (_end, _state) in _PAIRS.items():
    _STEP[_begin], _STEP[_end] = 1, -1
    _GROUP[_begin] = _GROUP[_end] = _begin
    _STATE[_begin] = _state

_IN_CONSTRUCT = np.full(1 << 16, -1, np.int64)
for _construct, _state in IN_CONSTRUCT.items():
    _IN_CONSTRUCT[_construct] = _state


class Openings(NamedTuple):
    """What records open and close."""

    step: NDArray[np.int8]  # int8[n]: 1 opens, -1 closes, 0 neither
    group: NDArray[np.int64]  # int64[n]: Only what is of the same group closes it
    value: NDArray[np.int64]  # int64[n]: State of the thread in what is opened


def openings(records: NDArray[np.void], state_of_call: NDArray[np.int64]) -> Openings:
    """What each record opens or closes."""
    kind, call = records["kind"], records["call"]
    step, group, value = _STEP[kind], _GROUP[kind], _STATE[kind]
    calls = kind == RecordKind.ENTER
    value[calls] = state_of_call[call[calls]]
    constructs = np.flatnonzero((kind == RecordKind.OMP_ENTER) | (kind == RecordKind.OMP_LEAVE))
    if len(constructs):
        # In the others, such as the body of a critical section, the thread goes on with its work.
        state = _IN_CONSTRUCT[call[constructs]]
        constructs, state = constructs[state >= 0], state[state >= 0]
        step[constructs] = np.where(kind[constructs] == RecordKind.OMP_ENTER, 1, -1)
        group[constructs] = _KINDS + np.minimum(call[constructs], _CONSTRUCTS)
        value[constructs] = state
    switches = np.flatnonzero(kind == RecordKind.TRACING)
    if len(switches):
        step[switches] = np.where(records["a"][switches] == 0, 1, -1)
        group[switches] = RecordKind.TRACING
        value[switches] = TRACING_DISABLED
    return Openings(step, group, value)


def still_open(
    records: NDArray[np.void], found: Openings, before: NDArray[np.void]
) -> NDArray[np.void]:
    """Records that opened what is open after these, the outermost first."""
    depth = len(before) + np.cumsum(found.step, dtype=np.int64)
    if not len(depth):
        return before
    least_after = np.minimum.accumulate(depth[::-1])[::-1]
    kept = np.flatnonzero((found.step > 0) & (depth <= least_after))
    return np.concatenate([before[: min(len(before), int(depth.min()))], records[kept]])


# Things that open and close inside each other on a thread: what is open after each record.
#
# All at once for a whole chunk of records where they nest as they should; record by record where
# they do not, because tracing was switched off in between, a record is lost, or a task was left for
# another one.


def after(
    step: NDArray[np.int8], value: NDArray[np.int64], stack: Iterable[int], outside: int
) -> NDArray[np.int64]:
    """Value of the innermost thing that is open after each record."""
    open_ = [outside, *stack]
    steps = np.concatenate([np.ones(len(open_), np.int8), step])
    values = np.concatenate([np.array(open_, np.int64), value])
    depth = np.cumsum(steps, dtype=np.int64)
    # Among the records after which so much is open, the last opening one opened what is open now.
    order = np.argsort(depth.astype(np.int16), kind="stable")
    opening = np.where(steps[order] > 0, np.arange(len(order)), 0)
    found = np.empty(len(order), np.int64)
    found[order] = values[order[np.maximum.accumulate(opening)]]
    return found[len(open_) :]


def nests(step: NDArray[np.int8], group: NDArray[np.int64], stack: NDArray[np.int64]) -> bool:
    """Whether every closing record is of the same group as the innermost thing then open."""
    steps = np.concatenate([np.ones(len(stack), np.int8), step])
    groups = np.concatenate([stack, group])
    depth = np.cumsum(steps, dtype=np.int64)
    if not len(depth):
        return True
    if depth.min() < 0 or depth.max() >= np.iinfo(np.int16).max:
        return False
    level = np.where(steps > 0, depth, depth + 1).astype(np.int16)
    order = np.argsort(level, kind="stable")
    closing = np.flatnonzero(steps[order] < 0)
    return bool(np.all(groups[order[closing]] == groups[order[closing - 1]]))


# Puts records right that do not nest, one after the other.
#
# Ends are lacking where tracing was switched off in between, where records were lost, or where a
# program jumped out of a call; then they are added at the latest possible time. Ends without a
# begin are left out. A task that waits can be left for another one, which crosses its wait: the
# wait then ends where the task is left.


_UNENDED = "calls and regions without a recorded end (ended at the next record that implies it)"
_UNBEGUN = "ends of calls and regions without a recorded start (dropped)"


def closing(open_: NDArray[np.void], time: int) -> NDArray[np.void]:
    """Records that end what other records opened."""
    records = open_.copy()
    records["time"] = time
    kind = open_["kind"]
    # Of every pair the end has the next number; tracing is switched by one kind.
    records["kind"] = np.where(kind == RecordKind.TRACING, kind, kind + 1)
    calls = (kind == RecordKind.ENTER) | (kind == RecordKind.FILE_ENTER)
    records["a"][calls | (kind == RecordKind.TRACING)] = 1
    records["b"][calls] = records["c"][calls] = 0
    return records


def mend(
    records: NDArray[np.void],
    found: Openings,
    before: NDArray[np.void],
    opened: Openings,
    counts: Counter[str],
) -> NDArray[np.void]:
    """Return records that nest."""
    levels = before["call"].tolist()
    stack = list(zip(opened.group.tolist(), levels, range(-len(before), 0), strict=True))
    both = np.concatenate([before, records])
    kinds, calls = records["kind"].tolist(), records["call"].tolist()
    steps, groups = found.step.tolist(), found.group.tolist()
    pieces: list[NDArray[np.void]] = []
    begin = 0  # of the records that are kept as they are

    def end_from(level: int, row: int, said: bool) -> None:
        """End what is open from a level on, in front of a record."""
        nonlocal begin
        if level >= len(stack):
            return
        rows = [index + len(before) for _, _, index in stack[level:][::-1]]
        pieces.append(records[begin:row])
        pieces.append(closing(both[rows], int(records["time"][row])))
        begin = row
        if said:
            counts[_UNENDED] += len(rows)
        del stack[level:]

    for row in np.flatnonzero(found.step).tolist():
        group = groups[row]
        if steps[row] > 0:
            if (
                kinds[row] == RecordKind.ENTER
            ):  # calls of MPI do not nest, nor lie in those for files
                level = _level(stack, RecordKind.FILE_ENTER)
                end_from(min(_level(stack, group), level), row, True)
            elif kinds[row] == RecordKind.TASK_BEGIN and calls[row]:
                level = next(
                    (
                        i
                        for i, (other, at_level, _) in enumerate(stack)
                        if other == group and at_level >= calls[row]
                    ),
                    len(stack),
                )
                end_from(level, row, True)
            elif kinds[row] == RecordKind.TRACING:
                end_from(0, row, False)
            stack.append((group, calls[row], row))
            continue
        level = next((i for i in reversed(range(len(stack))) if stack[i][0] == group), -1)
        if level < 0:
            pieces.append(records[begin:row])
            begin = row + 1
            counts[_UNBEGUN] += kinds[row] != RecordKind.TRACING
        else:
            end_from(level + 1, row, kinds[row] != RecordKind.TASK_STOP)
            del stack[level]
    pieces.append(records[begin:])
    return np.concatenate([np.empty(0, RECORD), *pieces])


def _level(stack: list[tuple[int, int, int]], group: int) -> int:
    """Where in a stack the first of a group is; its length where there is none."""
    return next((i for i, (other, _, _) in enumerate(stack) if other == group), len(stack))


# The MPI calls among some records: where they begin and end, and which of them found nothing.


# A send is over when its call returns, but these calls send and then do something else.
_SENT_AT_ENTRY = (
    *("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace"),
    *("Start", "Startall"),
)
# A receive is posted when its call begins; of these, a trace names the end.
_POSTED_AT_EXIT = ("Irecv", "Imrecv")
# A matched probe has taken the message before; a trace names the call that receives it.
_RECEIVE_BEGINS = ("Mrecv",)


class CallTables:
    """What the conversion asks of MPI calls, by their number."""

    def __init__(self) -> None:
        # kind of the call's event, its value, and the state of the thread
        self.event = np.zeros(1 << 16, np.int64)
        self.value = np.zeros(1 << 16, np.int64)
        self.state = np.full(1 << 16, OTHER, np.int64)
        # whether it tells bytes and communicator of a collective; can return without having found
        # anything
        self.sized = np.zeros(1 << 16, bool)
        self.moves = np.zeros(1 << 16, bool)  # whether it tells bytes that go to or from a file
        self.may_miss = np.zeros(1 << 16, bool)
        # by which of its ends a trace names it
        self.sent_at_entry = np.zeros(1 << 16, bool)
        for number, call in known_calls().items():
            self.event[number], self.value[number] = call.event, call.value
            self.state[number] = _BY_NAME.get(call.name) or _BY_FAMILY.get(call.family, OTHER)
            self.sized[number] = call.family in ("collective", "icollective")
            self.moves[number] = call.family == "io"
            self.may_miss[number] = call.may_miss
            self.sent_at_entry[number] = call.family == "neighbour" or call.name in _SENT_AT_ENTRY
        self.posted_at_exit = _flags(_POSTED_AT_EXIT)
        self.receive_begins = _flags(_RECEIVE_BEGINS)


def _flags(names: Iterable[str]) -> NDArray[np.bool_]:
    flags = np.zeros(1 << 16, bool)
    chosen = set(names)
    flags[[number for number, call in known_calls().items() if call.name in chosen]] = True
    return flags


class InCalls(NamedTuple):
    """Calls among some records."""

    # int64[n]: Rows of the records that begin and end them.
    enter: NDArray[np.int64]
    leave: NDArray[np.int64]
    missed: NDArray[np.bool_]  # bool[n]: Whether the call found nothing
    # int64[n]: How many calls it stands for: those in a row that found nothing are recorded as one,
    # the one after them that did find something included.
    times: NDArray[np.int64]
    between: NDArray[np.int64]  # int64[n]: Time between these, ns

    @classmethod
    def of(cls, records: NDArray[np.void], time: NDArray[np.int64], tables: CallTables) -> InCalls:
        """Find the calls; each has its begin and its end."""
        enter = np.flatnonzero(records["kind"] == RecordKind.ENTER)
        leave = np.flatnonzero(records["kind"] == RecordKind.LEAVE)
        ends = records[leave]
        may_miss = tables.may_miss[ends["call"]]
        length = time[leave] - time[enter]
        return cls(
            enter,
            leave,
            may_miss & (ends["a"] == 0),
            np.where(may_miss, np.maximum(ends["b"], 1), 1),
            np.where(may_miss, np.clip(ends["c"], 0, length), 0),
        )

    def times_of(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of all records, where calls that are recorded as one follow without a pause.

        The time between them is the user's. Where it lay is not recorded: it goes in front of calls
        that found something, because the end of that one is known, and else behind them.
        """
        when = time.copy()
        when[self.leave[self.missed]] -= self.between[self.missed]
        when[self.enter[~self.missed]] += self.between[~self.missed]
        return when

    def around(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that begin and end the call around each row; any where it is in none."""
        if not len(self.enter):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        call = np.maximum(np.searchsorted(self.enter, rows) - 1, 0)
        return self.enter[call], self.leave[call]

    def hold(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether there is a call around each row."""
        enter, leave = self.around(rows)
        inside: NDArray[np.bool_] = (enter < rows) & (rows < leave)
        return inside
