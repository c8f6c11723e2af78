"""Which thread of the system is which thread of the trace.

A process's first thread is its thread 1. A thread of an OpenMP team has the number that it has in
the outermost team. Runtimes end threads when a team shrinks and make others later: those of one
number share a row, one after the other. All other threads, those of nested teams and those that the
program made itself, follow; of these, too, one that begins after another has ended takes its row. A
program that starts a thread for every piece of work has as many rows as threads at a time: what a
row does not use counts as lost.
"""

from __future__ import annotations

from popmodel.errors import TraceError
from popmodel.tracer.meta import AGAIN
from popmodel.tracer.raw import Process, RawThread
from popmodel.tracer.records import Kind
from popmodel.values import dataclass

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
    ended : bool
        Whether it ended then; one that did not say so went on to the end of its process.
    """

    thread: RawThread
    team: bool
    begin: int
    end: int
    ended: bool


@dataclass(frozen=True)
class Rows:
    """Rows of a process.

    Attributes
    ----------
    members : tuple of tuple of Member
        Threads of the system of each row, one after the other; a row can have none.
    nested : int
        Threads that belong to nested teams only.
    own : int
        Threads that the program made itself.
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
    others: dict[bool, list[list[Member]]] = {True: [], False: []}  # by whether they are of a team
    nested = own = 0
    for thread in process.threads:
        if not thread.count:
            continue
        first = thread.first()
        begins = first[first["kind"] == Kind.TASK_BEGIN]
        # Who comes across a region is no thread that a runtime made for one.
        team = thread.number > 0 and first["kind"][0] != Kind.PARALLEL_BEGIN and len(begins) > 0
        last = thread.read(thread.count - 1, thread.count)[0]
        member = Member(
            thread,
            bool(team),
            int(first["time"][0]),
            int(last["time"]),
            bool(last["kind"] == Kind.END),
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
                nested += 1
                _place(others[True], member)
        else:
            nested += bool(team)
            own += not team
            _place(others[bool(team)], member)
    rows = [
        tuple(sorted(wanted.get(number, ()), key=lambda each: each.begin))
        for number in range(max(wanted) + 1)
    ]
    rest = sorted(
        (tuple(row) for row in (*others[True], *others[False])),
        key=lambda row: row[0].thread.number,
    )
    return Rows((*rows, *rest), nested, own)


def _place(rows: list[list[Member]], member: Member) -> None:
    """Put a thread into the first row whose last thread has ended by then, else into a new one."""
    for row in rows:
        if row[-1].ended and row[-1].end <= member.begin:
            row.append(member)
            return
    rows.append([member])
