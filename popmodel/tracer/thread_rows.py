"""Which thread of the system is which thread of the trace.

A process's first thread is its thread 1. A thread of an OpenMP team has the number that it has in
the outermost team. Runtimes end threads when a team shrinks and make others later: those of one
number share a row, one after the other. All other threads follow: those of nested teams, and those
that the program made itself; of these one that begins after another has ended takes its row. A
program that starts a thread for every piece of work has as many rows as threads at a time: what a
row does not use counts as lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from popmodel.base.errors import TraceError
from popmodel.tracer.meta import AGAIN
from popmodel.tracer.raw_records import RecordKind

if TYPE_CHECKING:
    from popmodel.tracer.raw import Process, RawThread

_MOST = 1 << 16


class Member(NamedTuple):
    """A thread of the system in a row of the trace."""

    thread: RawThread
    team: bool  # Whether an OpenMP runtime made it: outside of regions it is idle then
    # First and last record, on the clock of its host.
    begin: int
    end: int
    ended: bool  # Whether it ended then; one that did not say so went on to the end of its process


class Rows(NamedTuple):
    """Rows of a process."""

    # Threads of the system of each row, one after the other; a row can have none.
    members: list[list[Member]]
    nested: int  # Threads of nested teams
    own: int  # Threads that the program made itself


def rows_of(process: Process) -> Rows:
    """Rows of a process."""
    wanted: dict[int, list[Member]] = {0: []}
    others: list[list[Member]] = []
    nested = own = 0
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
            continue
        if team and number > 0 and begins["call"][0] <= 1:
            row = wanted.setdefault(number, [])
            if all(member.begin >= each.end or member.end <= each.begin for each in row):
                row.append(member)
                continue
        nested, own = nested + team, own + (not team)
        for row in others:
            if row[-1].ended and row[-1].end <= member.begin:
                row.append(member)
                break
        else:
            others.append([member])
    rows = [
        sorted(wanted.get(number, ()), key=lambda each: each.begin)
        for number in range(max(wanted) + 1)
    ]
    return Rows([*rows, *others], int(nested), own)
