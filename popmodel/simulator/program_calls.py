"""Threads that call MPI on their own (MPI_THREAD_MULTIPLE): each a sequence of the program.

In a process whose other threads call MPI, every thread of its parallel regions becomes a sequence:
forked by the master where a region begins, joined where it ends, and held at the barriers inside.
These dependencies are messages of no size from the process to itself, which take no time on any
network; they belong to calls that are added to those of MPI. So the time that a thread waits for
its team is found by the replay, as waiting in MPI is.

A thread that calls MPI outside of all parallel regions (of another thread library) is a sequence
from its first record to its last, without forks and joins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import NamedTuple, dataclass
from popmodel.simulator.mpi_calls import Action, action_of, collective_of, is_by_peer
from popmodel.simulator.program import COLLECTIVES
from popmodel.traces.calls import CallGroup

if TYPE_CHECKING:
    from typing import TypedDict

    from numpy.typing import NDArray

    from popmodel.traces import Trace
    from popmodel.traces.calls import CallTable
    from popmodel.traces.intervals import Intervals

    class CallColumns(TypedDict):
        """Calls as the compiled core takes them."""

        offsets: NDArray[np.int64]
        entry: NDArray[np.int64]
        exit: NDArray[np.int64]
        code: NDArray[np.int16]
        action: NDArray[np.uint8]


ADDED = {
    "OpenMP fork": Action.SEND,
    "OpenMP join": Action.RECEIVE,
    "OpenMP barrier": Action.RECEIVE,
    "OpenMP release": Action.SEND,
    "OpenMP first fork": Action.RECEIVE,
    "OpenMP next fork": Action.SENDRECEIVE,
    "OpenMP end": Action.SEND,
    "OpenMP barrier of a team": Action.SENDRECEIVE,
}
"""Calls that stand for what OpenMP does: on masters, then on other threads."""
_NAMES = tuple(ADDED)


class _SimulatedCall(NamedTuple):
    """A call that is added."""

    location: int
    name: str
    entry: int
    exit: int


@dataclass(frozen=True)
class CallThreads:
    """Sequences of a run whose threads call MPI, those of the masters first."""

    location: NDArray[np.int64]  # int64[S]: Of each sequence
    owner: NDArray[np.int32]  # int32[S]: Its process
    calls: CallTable  # The calls of the run and those added, by sequence
    offsets: NDArray[np.int64]  # int64[S + 1]: Calls of each sequence
    # int64[n]: Of each call among those of the run; added ones have rows behind these.
    row: NDArray[np.int64]
    # int32[F]: Calls of the messages that fork, join and hold threads.
    send: NDArray[np.int32]
    receive: NDArray[np.int32]
    ends: NDArray[np.int64]  # int64[S]: When each sequence ends, ns
    loose: int  # Threads that call MPI outside of all parallel regions
    unmatched: int  # Parallel regions with barriers that not all threads have


def find_threads(trace: Trace) -> CallThreads | None:
    """Find the sequences of a run; None where only masters call MPI."""
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    calls = trace.calls()
    count = np.diff(calls.offsets)
    others = count.copy() if trace.timed else np.ones_like(count)
    others[masters] = 0
    if not others.any():
        return None
    owner = trace.process_of_location()
    threaded = np.unique(owner[np.flatnonzero(others)]).tolist()
    ends = trace.records.ends()
    team = CallTeam(trace)
    for process in threaded:
        team.add(process, count)
    extra = np.array(sorted(team.sequences), np.int64)
    location = np.concatenate([masters, extra])
    ends_of = np.concatenate(
        [trace.ends(), [team.ends.get(each, int(ends[each])) for each in extra.tolist()]]
    ).astype(np.int64)
    return _merged(calls, location, owner[location], team, ends_of)


class CallTeam:
    """The calls that are added for the teams of some processes, and the messages between them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        openmp = trace.records.openmp()
        self._constructs, self._functions = openmp.constructs, openmp.functions
        self._barriers = trace.records.synchronisation().barriers
        self.calls: list[_SimulatedCall] = []  # that are added
        self.messages: list[tuple[int, int]] = []  # those that send and receive each
        self.sequences: set[int] = set()  # locations of threads, without masters
        # When such a thread has nothing left to do, ns; of others it is their last record.
        self.ends: dict[int, int] = {}
        self.loose = 0  # threads that call MPI outside of all parallel regions
        self.unmatched = 0  # parallel regions with barriers that not all threads have

    def add(self, process: int, count: NDArray[np.int64]) -> None:
        """Add what the teams of a process do; `count` has the calls of each location."""
        first, stop = self._trace.process_offsets[process : process + 2].tolist()
        if not self._trace.timed:  # processors of their own
            self.sequences.update(range(first + 1, stop))
            return
        regions = _within(self._constructs, first, *_EVER)
        loose = [t for t in range(first + 1, stop) if count[t] and self._is_loose(t, regions)]
        self.sequences.update(loose)
        self.loose += len(loose)
        forks: dict[int, int] = {}  # the call of each thread that sends its latest join
        for begin, end in regions:
            members = [
                t
                for t in range(first + 1, stop)
                if t not in loose and self._takes_part(t, begin, end)
            ]
            if members:
                self._region(first, members, begin, end, forks)
        for thread, call in forks.items():
            self.ends[thread] = self.calls[call].exit

    def _is_loose(self, thread: int, regions: list[tuple[int, int]]) -> bool:
        calls = self._trace.calls()
        mine = slice(int(calls.offsets[thread]), int(calls.offsets[thread + 1]))
        begins = np.array([begin for begin, _ in regions], np.int64)
        ends = np.array([end for _, end in regions], np.int64)
        region = np.searchsorted(begins, calls.entry[mine], side="right") - 1
        inside = (region >= 0) & (calls.exit[mine] <= np.append(ends, 0)[region])
        return not bool(inside.all())

    def _takes_part(self, thread: int, begin: int, end: int) -> bool:
        calls = self._trace.calls()
        mine = slice(int(calls.offsets[thread]), int(calls.offsets[thread + 1]))
        if np.any((calls.entry[mine] >= begin) & (calls.exit[mine] <= end)):
            return True
        work = (self._functions, *self._barriers)
        return any(_within(each, thread, begin, end) for each in work)

    def _region(
        self, master: int, members: list[int], begin: int, end: int, forks: dict[int, int]
    ) -> None:
        """One parallel region: fork, barriers, join."""
        self.sequences.update(members)
        fork = self._call(master, "OpenMP fork", begin, begin)
        for thread in members:
            if thread in forks:  # from its work in one region to that in the next
                earlier = forks[thread]
                since = self.calls[earlier].entry
                self.calls[earlier] = _SimulatedCall(thread, "OpenMP next fork", since, begin)
                waits = earlier
            else:
                waits = self._call(thread, "OpenMP first fork", self._trace.begin, begin)
            self.messages.append((fork, waits))
        self._hold(master, members, begin, end)
        done = max(self._work_ends(master, begin, end), begin)
        join = self._call(master, "OpenMP join", done, end)
        for thread in members:
            ready = self._work_ends(thread, begin, end)
            forks[thread] = self._call(thread, "OpenMP end", ready, ready)
            self.messages.append((forks[thread], join))

    def _hold(self, master: int, members: list[int], begin: int, end: int) -> None:
        """Barriers of the team inside a region: of each kind the k-th of all threads is one."""
        for barriers in self._barriers:
            held_by = [_within(barriers, each, begin, end) for each in (master, *members)]
            if len({len(each) for each in held_by}) > 1:
                self.unmatched += 1
                continue
            for (since, until), *others in zip(*held_by, strict=True):
                gather = self._call(master, "OpenMP barrier", since, until)
                release = self._call(master, "OpenMP release", until, until)
                for thread, (entered, left) in zip(members, others, strict=True):
                    held = self._call(thread, "OpenMP barrier of a team", entered, left)
                    self.messages += [(held, gather), (release, held)]

    def _work_ends(self, thread: int, begin: int, end: int) -> int:
        """When a thread has done its part of a region, as far as the trace tells."""
        work = [_within(each, thread, begin, end) for each in (self._functions, *self._barriers)]
        return max((spans[-1][1] for spans in work if spans), default=end)

    def _call(self, location: int, name: str, entry: int, exit_: int) -> int:
        self.calls.append(_SimulatedCall(location, name, entry, exit_))
        return len(self.calls) - 1


_EVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _within(spans: Intervals, location: int, begin: int, end: int) -> list[tuple[int, int]]:
    """Intervals of a location that lie between two times."""
    first, stop = spans.offsets[location], spans.offsets[location + 1]
    since = int(first + np.searchsorted(spans.begin[first:stop], begin, side="left"))
    until = int(first + np.searchsorted(spans.end[first:stop], end, side="right"))
    return list(
        zip(spans.begin[since:until].tolist(), spans.end[since:until].tolist(), strict=True)
    )


def _merged(
    calls: CallTable,
    location: NDArray[np.int64],
    owner: NDArray[np.int32],
    team: CallTeam,
    ends: NDArray[np.int64],
) -> CallThreads:
    """The calls of the run and those added, in order of their entry by sequence."""
    own, added = len(calls), team.calls
    counts = np.diff(calls.offsets)
    sequence_of = np.full(len(counts), -1)
    sequence_of[location] = np.arange(len(location))
    sequence = np.repeat(sequence_of, counts)
    names = (*calls.names, *_NAMES)
    code = [len(calls.names) + _NAMES.index(each.name) for each in added]
    entry = np.append(calls.entry, np.array([each.entry for each in added], np.int64))
    exit_ = np.append(calls.exit, np.array([each.exit for each in added], np.int64))
    name = np.append(calls.name, np.array(code, np.int16))
    sequence = np.concatenate([sequence, [sequence_of[each.location] for each in added]])
    # Of calls at one time the one that ends first comes first; then as they were added.
    order = np.lexsort((exit_, entry, sequence)).astype(np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    collectives = calls.collectives
    moved = np.argsort(place[collectives.call], kind="stable")
    arguments = collectives.at(moved, place[collectives.call][moved])
    # What calls tell of their messages, in formats that add no calls.
    columns: dict[str, Any] = {
        name: getattr(calls, name) for name in ("partner", "tag", "bytes", "request")
    }
    of_messages = {name: column[order] for name, column in columns.items() if column is not None}
    merged = replace(
        calls,
        offsets=np.searchsorted(sequence[order], np.arange(len(location) + 1)),
        entry=entry[order],
        exit=exit_[order],
        name=name[order],
        names=names,
        group=(*calls.group, *[CallGroup.OTHER] * len(_NAMES)),
        collectives=arguments,
        **of_messages,
    )
    messages = np.array(team.messages, np.int64).reshape(-1, 2) + own
    return CallThreads(
        location,
        owner.astype(np.int32),
        merged,
        merged.offsets,
        order,
        place[messages[:, 0]].astype(np.int32),
        place[messages[:, 1]].astype(np.int32),
        ends,
        team.loose,
        team.unmatched,
    )


# MPI calls of the sequences of a program, with what each does to it.


@dataclass(frozen=True)
class SequenceCalls:
    """The calls of a trace by sequence, and what each kind of them does.

    A process is a sequence, that of its master; where other threads call MPI, these are further
    ones, behind those of the processes.
    """

    # Of the trace, those of a sequence one after the other; with threads, what holds these too.
    calls: CallTable
    # int64[S + 1]: Calls of sequence s are ``offsets[s] .. offsets[s + 1]``.
    offsets: NDArray[np.int64]
    action: NDArray[np.uint8]  # uint8[names]: `Action` of the calls of each name
    collective: NDArray[np.uint8]  # uint8[names]: Index into `COLLECTIVES`; of other calls any
    by_peer: NDArray[np.bool_]  # bool[names]: As in `popmodel.simulator.program.Collectives`
    location: NDArray[np.int64]  # int64[S]: Thread of each sequence
    owner: NDArray[np.int32]  # int32[S]: Process of each sequence
    threads: CallThreads | None = None  # Where other threads than masters call MPI

    @property
    def columns(self) -> CallColumns:
        """The calls as the compiled core takes them."""
        return {
            "offsets": self.offsets,
            "entry": self.calls.entry,
            "exit": self.calls.exit,
            "code": self.calls.name,
            "action": self.action,
        }

    def where(self, call: int) -> str:
        """Rank, name and time of a call, for messages to people."""
        rank = int(self.owner[int(np.searchsorted(self.offsets, call, side="right")) - 1])
        name = self.calls.names[self.calls.name[call]]
        return f"rank {rank} in {name} at {self.calls.entry[call] / 1e9:.9f} s"


def sequence_calls(trace: Trace) -> SequenceCalls:
    """Calls of a trace by sequence."""
    location = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
    owner = np.arange(trace.processes, dtype=np.int32)
    calls, threads = trace.calls(), find_threads(trace)
    offsets = np.append(calls.offsets[location], calls.offsets[-1])
    if threads is not None:
        calls, offsets = threads.calls, threads.offsets
        location, owner = threads.location, threads.owner
    kinds = [collective_of(name) for name in calls.names]
    actions = [
        ADDED[name] if threads is not None and name in ADDED else action_of(group, name)
        for group, name in zip(calls.group, calls.names, strict=True)
    ]
    return SequenceCalls(
        calls,
        offsets,
        np.array(actions, dtype=np.uint8),
        np.array([COLLECTIVES.index(kind) if kind else 0 for kind in kinds], dtype=np.uint8),
        np.array([is_by_peer(name) for name in calls.names], dtype=bool),
        location,
        owner,
        threads,
    )
