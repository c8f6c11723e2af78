"""Puts records right that do not nest, one after the other.

Ends are lacking where tracing was switched off in between, where records were lost, or where a
program jumped out of a call; then they are added at the latest possible time. Ends without a begin
are left out. A task that waits can be left for another one, which crosses its wait: the wait then
ends where the task is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from popmodel.tracer.records import RECORD, Openings, RecordKind, known_calls, states_of_calls
from popmodel.values import dataclass

_UNENDED = "calls and regions without a recorded end (ended at the next record that implies it)"
_UNBEGUN = "ends of calls and regions without a recorded start (dropped)"


def closing(open_: NDArray[np.void], time: int) -> NDArray[np.void]:
    """Records that end what other records opened."""
    records = open_.copy()
    records["time"] = time
    kind = open_["kind"]
    # Of every pair the end has the next number; tracing is switched by one kind.
    records["kind"] = np.where(kind == RecordKind.TRACING, kind, kind + 1)
    calls = kind == RecordKind.ENTER
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
            if kinds[row] == RecordKind.ENTER:  # calls of MPI do not nest
                end_from(_level(stack, group), row, True)
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
_EXCHANGES = "neighbour"
"""Family of calls that do so, too."""
# A receive is posted when its call begins; of these, a trace names the end.
_POSTED_AT_EXIT = ("Irecv", "Imrecv")
# A matched probe has taken the message before; a trace names the call that receives it.
_RECEIVE_BEGINS = ("Mrecv",)
_SIZED = ("collective", "icollective")


class CallTables:
    """What the conversion asks of MPI calls, by their number.

    Attributes
    ----------
    event, value : int64[65536]
        Kind of the call's event (`popmodel.trace.codes.Event`), and its value.
    state : int64[65536]
        Of the thread.
    sized : bool[65536]
        Whether the call tells bytes and communicator of a collective.
    may_miss : bool[65536]
        Whether it can return without having found anything.
    sent_at_entry, posted_at_exit, receive_begins : bool[65536]
        By which of its ends a trace names it.
    """

    def __init__(self) -> None:
        self.event = np.zeros(1 << 16, np.int64)
        self.value = np.zeros(1 << 16, np.int64)
        self.sized = np.zeros(1 << 16, bool)
        self.may_miss = np.zeros(1 << 16, bool)
        self.sent_at_entry = np.zeros(1 << 16, bool)
        for number, call in known_calls().items():
            self.event[number], self.value[number] = call.event, call.value
            self.sized[number] = call.family in _SIZED
            self.may_miss[number] = call.may_miss
            self.sent_at_entry[number] = call.family == _EXCHANGES or call.name in _SENT_AT_ENTRY
        self.state = states_of_calls()
        self.posted_at_exit = _flags(_POSTED_AT_EXIT)
        self.receive_begins = _flags(_RECEIVE_BEGINS)


def _flags(names: Iterable[str]) -> NDArray[np.bool_]:
    flags = np.zeros(1 << 16, bool)
    chosen = set(names)
    flags[[number for number, call in known_calls().items() if call.name in chosen]] = True
    return flags


@dataclass(frozen=True)
class InCalls:
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
