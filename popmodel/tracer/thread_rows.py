"""Which thread of the system is which thread of the trace.

A process's first thread is its thread 1. A thread of an OpenMP team has the number that it has in
the outermost team. Runtimes end threads when a team shrinks and make others later: those of one
number share a row, one after the other. What a thread of a nested team does goes into the row of a
thread that is idle or waits for its team meanwhile: there are as many rows as threads at a time,
however many the runtime makes for nested teams. All other threads follow, those that the program
made itself, too; of these one that begins after another has ended takes its row. A program that
starts a thread for every piece of work has as many rows as threads at a time: what a row does not
use counts as lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from popmodel.errors import TraceError
from popmodel.tracer.meta import AGAIN
from popmodel.tracer.records import Construct, RecordKind, openings
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.tracer.raw import Process, RawThread

_MOST = 1 << 16
_CHUNK = 1 << 16  # records that are looked at together
_NEVER = 1 << 62
_NO_STATES = np.zeros(1 << 16, np.int64)
_WAITS = (Construct.BARRIER, Construct.IMPLICIT_BARRIER, Construct.TASKWAIT, Construct.JOIN)


@dataclass(frozen=True)
class Member:
    """A thread of the system in a row of the trace, or some of its records."""

    thread: RawThread
    team: bool  # Whether an OpenMP runtime made it: outside of regions it is idle then
    # First and last record, on the clock of its host.
    begin: int
    end: int
    ended: bool  # Whether it ended then; one that did not say so went on to the end of its process
    first: int  # Number of its first record
    stop: int  # Number of the record after its last


@dataclass(frozen=True)
class Rows:
    """Rows of a process."""

    # Threads of the system of each row, one after the other; a row can have none.
    members: tuple[tuple[Member, ...], ...]
    nested: int  # Threads of nested teams that ran beside a whole team
    own: int  # Threads that the program made itself


def rows_of(process: Process) -> Rows:
    """Rows of a process."""
    wanted: dict[int, list[Member]] = {0: []}
    of_nested: list[Member] = []
    own: list[list[Member]] = []
    owned = 0
    for thread in process.threads:
        if not thread.count:
            continue
        first = thread.first()
        begins = first[first["kind"] == RecordKind.TASK_BEGIN]
        # Who comes across a region is no thread that a runtime made for one.
        team = (
            thread.number > 0 and first["kind"][0] != RecordKind.PARALLEL_BEGIN and len(begins) > 0
        )
        last = thread.read(thread.count - 1, thread.count)[0]
        member = Member(
            thread,
            bool(team),
            int(first["time"][0]),
            int(last["time"]),
            bool(last["kind"] == RecordKind.END),
            0,
            thread.count,
        )
        number = int(begins["a"][0]) if team else 0
        if number >= _MOST:
            raise TraceError(
                thread.path,
                f"a thread has an impossible number in its team: {number}",
                hint="the file is damaged: " + AGAIN,
            )
        if thread.number == 0:
            wanted[0].append(member)
        elif team and number > 0 and begins["call"][0] <= 1:
            row = wanted.setdefault(number, [])
            if all(member.begin >= each.end or member.end <= each.begin for each in row):
                row.append(member)
            else:
                of_nested.append(member)
        elif team:
            of_nested.append(member)
        else:
            owned += 1
            _place(own, member)
    rows = [
        sorted(wanted.get(number, ()), key=lambda each: each.begin)
        for number in range(max(wanted) + 1)
    ]
    beside, nested = _share(rows, of_nested) if of_nested else ([], 0)
    rest = sorted((*beside, *own), key=lambda row: row[0].thread.number)
    return Rows(tuple(map(tuple, (*rows, *rest))), nested, owned)


def _place(rows: list[list[Member]], member: Member) -> None:
    """Put a thread into the first row whose last thread has ended by then, else into a new one."""
    for row in rows:
        if row[-1].ended and row[-1].end <= member.begin:
            row.append(member)
            return
    rows.append([member])


def _share(rows: list[list[Member]], nested: list[Member]) -> tuple[list[list[Member]], int]:
    """Put what threads of nested teams do where rows of the team have nothing to do."""
    free = [_Gaps(row) for row in rows]
    beside: list[list[Member]] = []
    threads = set()
    pieces = chain.from_iterable(_pieces(member) for member in nested)
    for level, piece in sorted(pieces, key=lambda each: each[1].begin):
        if piece.ended and any(gaps.take(piece, level) for gaps in free):
            continue
        threads.add(piece.thread.number)
        _place(beside, piece)
    for number, gaps in enumerate(free):
        rows[number] = gaps.filled()
    return beside, len(threads)


class _Gaps:
    """When a row has nothing to do: between two records of a thread that is idle, or waits."""

    def __init__(self, row: list[Member]) -> None:
        self._row = row
        self._taken: list[list[tuple[int, Member]]] = [[] for _ in (*row, None)]
        self._until = end = 0
        gaps = []
        for number, member in enumerate(row):
            gaps += [np.array([[number], [0], [end], [member.begin], [0]]), _gaps(member, number)]
            end = member.end if member.ended else _NEVER
        gaps.append(np.array([[len(row)], [0], [end], [_NEVER], [0]]))
        columns = np.concatenate(gaps, axis=1)
        self._member, self._record, self._begin, self._end, self._level = columns

    def take(self, piece: Member, level: int) -> bool:
        """Let a piece of a thread have a gap, if there is one; pieces come in order of time."""
        gap = int(np.searchsorted(self._begin, piece.begin, side="right")) - 1
        if gap < 0 or piece.begin < self._until or piece.end > self._end[gap]:
            return False
        if level <= self._level[gap]:
            return False
        self._until = piece.end
        self._taken[self._member[gap]].append((int(self._record[gap]), piece))
        return True

    def filled(self) -> list[Member]:
        """The row with what has taken its gaps."""
        filled: list[Member] = []
        for member, taken in zip(self._row, self._taken[:-1], strict=True):
            first = member.first
            for record, piece in taken:
                if record > first:
                    filled.append(replace(member, first=first, stop=record))
                filled.append(piece)
                first = record
            filled.append(replace(member, first=first))
        return filled + [piece for _, piece in self._taken[-1]]


def _gaps(member: Member, number: int) -> NDArray[np.int64]:
    """Gaps of a thread: its number, the record behind each, begin, end, and regions around it."""
    found = []
    record, time, depth, level, waits = 0, member.begin, 0, 0, False
    for records in member.thread.chunks(_CHUNK):
        kind = records["kind"]
        times = np.concatenate([[time], records["time"].astype(np.int64)])
        step = openings(records, _NO_STATES).step.astype(np.int64)
        depths = np.concatenate([[depth], depth + np.cumsum(step)])
        step = (kind == RecordKind.TASK_BEGIN).astype(np.int64) - (kind == RecordKind.TASK_END)
        levels = np.concatenate([[level], level + np.cumsum(step)])
        waiting = np.concatenate([[waits], _waits(records, waits)])
        free = waiting[:-1] | ((depths[:-1] == 0) & member.team)
        gaps = np.flatnonzero(free & (times[1:] > times[:-1]))
        columns = record + gaps, times[gaps], times[gaps + 1], levels[gaps]
        found.append(np.stack([np.full(len(gaps), number), *columns]))
        time, depth, level, waits = times[-1], depths[-1], levels[-1], waiting[-1]
        record += len(records)
    return np.concatenate(found, axis=1)


def _waits(records: NDArray[np.void], before: bool) -> NDArray[np.bool_]:
    """Whether a thread waits for others, or for the begin of a region, after each record."""
    kind = records["kind"]
    entered = (kind == RecordKind.OMP_ENTER) & np.isin(records["call"], _WAITS)
    waits = np.concatenate([[before], entered | (kind == RecordKind.PARALLEL_BEGIN)])
    counted = 1 + np.flatnonzero(kind == RecordKind.COUNTERS)  # they change nothing
    waits[counted] = waits[counted - 1]
    return waits[1:].astype(bool)


def _pieces(member: Member) -> Iterator[tuple[int, Member]]:
    """What a thread does for one region after the other, and how deep that one is nested."""
    records = np.concatenate(list(member.thread.chunks(_CHUNK)))
    kind = np.append(records["kind"], 0)
    step = openings(records, _NO_STATES).step.astype(np.int64)
    ends = 1 + np.flatnonzero((np.cumsum(step) == 0) & (step < 0))
    ends += kind[ends] == RecordKind.COUNTERS
    whole = len(ends)
    first = 0
    for number, stop in enumerate((*ends.tolist(), len(records))):
        begins = np.flatnonzero(kind[first:stop] == RecordKind.TASK_BEGIN)
        if len(begins):
            begin, end = records["time"][[first, stop - 1]].tolist()
            piece = Member(
                member.thread, member.team, begin, end, number < whole, first=first, stop=stop
            )
            yield int(records["call"][first + begins[0]]), piece
            first = stop
