"""Which thread of the system is which thread of the trace.

A process's first thread is its thread 1. A thread of an OpenMP team has the number that it has in
the outermost team. Runtimes end threads when a team shrinks and make others later: those of one
number share a row, one after the other. All other threads, those of nested teams and those that the
program made itself, follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from popmodel.errors import TraceError
from popmodel.tracer.meta import AGAIN
from popmodel.tracer.raw import Process, RawThread
from popmodel.tracer.records import Kind

__all__ = ["Member", "rows_of"]

_MOST = 1 << 16


@dataclass(frozen=True)
class Member:
    """A thread of the system in a row of the trace.

    Attributes
    ----------
    thread : RawThread
    team : bool
        Whether an OpenMP runtime made it: outside of regions it is idle then.
    begin, end : int
        First and last record, on the clock of its host.
    """

    thread: RawThread
    team: bool
    begin: int
    end: int


@dataclass(frozen=True)
class Rows:
    """Rows of a process.

    Attributes
    ----------
    members : tuple of tuple of Member
        Threads of the system of each row, one after the other; a row can have none.
    nested : int
        Rows of threads that belong to nested teams only.
    own : int
        Rows of threads that the program made itself.
    """

    members: tuple[tuple[Member, ...], ...]
    nested: int
    own: int


def rows_of(process: Process) -> Rows:
    """Rows of a process.

    Raises
    ------
    TraceError
        A thread has an impossible number.
    """
    wanted: dict[int, list[Member]] = {0: []}
    others: list[tuple[Member, ...]] = []
    nested = own = 0
    for thread in process.threads:
        if not thread.count:
            continue
        first = thread.first()
        begins = first[first["kind"] == Kind.TASK_BEGIN]
        # Who comes across a region is no thread that a runtime made for one.
        team = thread.number > 0 and first["kind"][0] != Kind.PARALLEL_BEGIN and len(begins) > 0
        member = Member(thread, bool(team), int(first["time"][0]), thread.last_time)
        number = int(begins["a"][0]) if team else 0
        if number >= _MOST:
            raise TraceError(
                thread.path,
                f"a thread has number {number} in its team",
                hint="the file is damaged: " + AGAIN,
            )
        if thread.number == 0:
            wanted[0].append(member)
        elif team and number > 0 and begins["call"][0] <= 1:
            row = wanted.setdefault(number, [])
            if all(member.begin >= each.end or member.end <= each.begin for each in row):
                row.append(member)
            else:
                nested += 1
                others.append((member,))
        else:
            nested += bool(team)
            own += not team
            others.append((member,))
    rows = [
        tuple(sorted(wanted.get(number, ()), key=lambda each: each.begin))
        for number in range(max(wanted) + 1)
    ]
    return Rows((*rows, *others), nested, own)
