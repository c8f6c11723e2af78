"""From the records of all threads of a run to rows of a trace, which wait in the spool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from popmodel.trace import codes as states
from popmodel.trace.codes import Event
from popmodel.trace.tables import TraceWarning
from popmodel.tracer.clocks import RankClock, align, residual
from popmodel.tracer.events import PAIR, STATE, Converter, EventLoad, Tables
from popmodel.tracer.identities import (
    Communicators,
    Functions,
    FunctionsOf,
    Locate,
    Names,
    RegionsOf,
    Sites,
)
from popmodel.tracer.messages import Matcher
from popmodel.tracer.meta import Meta, sharing
from popmodel.tracer.raw import Process, Raw
from popmodel.tracer.records import RecordKind
from popmodel.tracer.repair import CallTables
from popmodel.tracer.temporary import Spool
from popmodel.tracer.thread_rows import Member, Rows, rows_of
from popmodel.units import format_time
from popmodel.values import dataclass

CHUNK = 1 << 17
"""Records that are converted at a time."""


@dataclass(frozen=True)
class _ConversionTimes:
    """Times of one process in the trace: ns since its first record."""

    clock: RankClock
    zero: int
    begin: int
    end: int

    def __call__(self, time: NDArray[np.uint64]) -> NDArray[np.int64]:
        return self.clock(time.astype(np.int64)) - self.zero


class Conversion:
    """Converts the records of a run.

    Attributes
    ----------
    threads : list of int
        Of each process.
    first : int64[P + 1]
        First location of each process, and the number of locations.
    duration : int
        ns.
    communicators, functions, names, sites
        Of the whole run.
    residual : int or None
        By how much times of different hosts may be wrong, ns.
    records : int
        Records of the tracer.
    calls : int64[65536]
        How often each MPI call was made.
    loads : list of Load
        What was recorded of each thread.
    counted : bool
        Whether hardware counters were read.
    only_masters_call : bool
        Whether no other thread calls MPI.
    warnings : Counter
        What is not there, or not as it should be.
    """

    def __init__(
        self,
        raw: Raw,
        spool: Spool,
        locate: Locate | None,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.raw = raw
        self.spool = spool
        self.progress = progress
        self.warnings: Counter[str] = Counter()
        self.only_masters_call = True
        self._warn(raw.warnings)
        self.rows: dict[int, Rows] = {p.rank: rows_of(p) for p in raw.processes}
        self.threads = [
            len(self.rows[rank].members) if rank in self.rows else 1 for rank in range(raw.size)
        ]
        self.first = np.concatenate([[0], np.cumsum(self.threads)])
        self.times = self._all_times()
        self.duration = max(each.end for each in self.times.values())
        self.communicators = Communicators.of(raw.processes, raw.size)
        self.functions, self.names = Functions(), Names()
        self.of_process = {p.rank: self.functions.of_process(p.meta) for p in raw.processes}
        if locate is not None:
            self.functions.locate(locate)
        self.sites = Sites.of([p.meta for p in raw.processes], locate)
        self.sharing = sharing(
            (p.meta.boot, p.meta.cpus.get(row[-1].thread.number, frozenset()))
            for p in raw.processes
            for row in self.rows[p.rank].members
            if row
        )
        self.calls = np.zeros(1 << 16, np.int64)
        self.records = sum(t.count for p in raw.processes for t in p.threads)
        self.done = 0
        self.matcher = Matcher(spool, self.records // 3)
        self.counted = False
        self.loads: list[EventLoad] = []
        self.nested = 0  # ns in regions inside regions
        # CPUs of each location, threads that may use no others, ns on one and waiting for one.
        self.cpus = np.zeros((4, int(self.first[-1])), np.int64)

    def run(self) -> list[tuple[str, int]]:
        """Convert everything; returns the streams of the spool in which the messages are."""
        call_tables = CallTables()
        for process in self.raw.processes:
            self._convert(process, call_tables)
            self.matcher.end_process(process.rank)
        for rank in self.raw.missing:
            never = np.array([(0, self.duration, states.NOT_CREATED)], STATE)
            self.spool.append(("states", int(self.first[rank])), never)
        if self.nested:
            took = format_time(self.nested / 1e9)
            self.warnings[f"nested parallel regions took {took} of the threads that begin them"] = 1
        messages = self.matcher.join()
        self.warnings.update(self.matcher.counts)
        return messages

    def _all_times(self) -> dict[int, _ConversionTimes]:
        clocks, said = align([p.meta for p in self.raw.processes])
        self._warn(said)
        self.residual = residual(clocks)
        spans = {}
        for process in self.raw.processes:
            clock = clocks[process.meta.boot]
            members = [each for row in self.rows[process.rank].members for each in row]
            begin = min([process.meta.begin, *(each.begin for each in members)])
            spans[process.rank] = clock, clock.one(begin), clock.one(process.end)
        zero = min(begin for _, begin, _ in spans.values())
        return {
            rank: _ConversionTimes(clock, zero, begin - zero, end - zero)
            for rank, (clock, begin, end) in spans.items()
        }

    def _convert(self, process: Process, call_tables: CallTables) -> None:
        rows, times = self.rows[process.rank], self.times[process.rank]
        self.warnings[
            "threads of nested parallel regions that ran beside a whole team, listed after it"
        ] += rows.nested
        self.warnings[
            "threads that the program created itself, listed after those of the team"
        ] += rows.own
        meta = process.meta
        tables = Tables(
            call_tables,
            self.communicators.of_process(meta),
            FunctionsOf(self.of_process[process.rank], self.functions),
            RegionsOf(self.names.of_process(meta), self.names),
            self.sites.of_process(meta),
            any(self.functions.lines),
        )
        self.counted = self.counted or bool(meta.counters)
        switches = 0
        everyone = sorted(chain.from_iterable(rows.members), key=lambda each: each.stop)
        last = {member.thread.number: member for member in everyone}
        for number, members in enumerate(rows.members):
            location = int(self.first[process.rank]) + number
            row = Converter(location, tables)
            if number == 0:
                self._events(location, row.application(times.begin, 1))
                self._states(location, row.begin(times.begin, states.RUNNING))
            for place, member in enumerate(members, start=1):
                followed = place < len(members)
                final = member is last[member.thread.number]
                loss = process.lost.get(member.thread.number) if final else None
                if member.first == 0:
                    self._processors(row, member, meta, times)
                ended = self._thread(member, row, times, loss, followed)
                if final:
                    self._used(row, ended, meta.usage.get(member.thread.number))
            end = times.end
            if process.broken is not None:
                self._lose(row, end, process.broken)
                end = self.duration
            self._states(location, row.end(end))
            if number == 0:
                self._events(location, row.application(times.end, 0))
            self.calls += row.calls
            self.loads.append(row.load)
            if number > 0 and row.calls.any():
                self.only_masters_call = False
            self.warnings.update(row.counts)
            switches += row.switches
            self.nested += row.nested
        if switches and len(rows.members) > 1:
            self.warnings[
                "threads shown as if traced throughout, although another thread of the process "
                "switched tracing off"
            ] += len(rows.members) - 1

    def _thread(
        self,
        member: Member,
        row: Converter,
        times: _ConversionTimes,
        loss: tuple[int, int] | None,
        followed: bool,
    ) -> int:
        """Convert a thread of the system; when it ended."""
        first = True
        close = None
        for records, last in _marked(member.thread.chunks(CHUNK, member.first, member.stop)):
            records["time"] = times(records["time"])
            if first and (member.thread.number > 0 or member.first > 0):
                base = states.IDLE if member.team else states.RUNNING
                self._states(row.row, row.go_on(int(records["time"][0]), base))
            first = False
            if last and member.stop == member.thread.count:
                # One that did not say when it ended went on to the end of its process.
                ended = followed or records["kind"][-1] == RecordKind.END
                close = int(records["time"][-1]) if ended else times.end
                if loss is not None:
                    close = times.clock.one(loss[0]) - times.zero
            done = row.feed(records, close)
            self._states(row.row, done.states)
            self._events(row.row, done.events)
            self.matcher.sent(row.row, done.sent)
            self.matcher.received(done.posted, done.received)
            self.done += len(records)
            self.tell(0.5 * self.done / max(self.records, 1))
        if close is None:  # it goes on later, or has said where it ends
            return int(records["time"][-1])
        if loss is not None:
            self._lose(row, close, loss[1])
        return close

    def _processors(
        self, row: Converter, member: Member, meta: Meta, times: _ConversionTimes
    ) -> None:
        """Say which part of the machine a thread has."""
        cpus = meta.cpus.get(member.thread.number)
        if cpus:
            time = times.clock.one(member.begin) - times.zero
            shared = self.sharing.get((meta.boot, cpus), 1)
            if not self.cpus[0, row.row]:
                self.cpus[:2, row.row] = len(cpus), shared
            pairs = [(time, len(cpus), Event.CPUS, 0), (time, shared, Event.SHARING, 1)]
            self._events(row.row, np.array(pairs, PAIR))

    def _used(self, row: Converter, time: int, usage: tuple[int, int] | None) -> None:
        """Say at the end of a thread what it had of it."""
        if usage is not None:
            used, waited = usage
            self.cpus[2:, row.row] += usage
            pairs = [(time, used, Event.USED, 0), (time, waited, Event.WAITED, 1)]
            self._events(row.row, np.array(pairs, PAIR))

    def _lose(self, row: Converter, time: int, reason: int) -> None:
        """Say that nothing is known of a thread from a time on."""
        self._states(row.row, row.begin(time, states.TRACING_DISABLED))
        self._events(row.row, np.array([(time, reason, Event.LOST, 0)], PAIR))

    def _states(self, location: int, rows: NDArray[np.void]) -> None:
        self.spool.append(("states", location), rows)

    def _events(self, location: int, rows: NDArray[np.void]) -> None:
        self.spool.append(("events", location), rows)

    def _warn(self, warnings: tuple[TraceWarning, ...] | list[TraceWarning]) -> None:
        for each in warnings:
            self.warnings[each.text] += each.count

    def tell(self, part: float) -> None:
        """Say which part of all is done."""
        if self.progress is not None:
            self.progress(part)


def _marked(chunks: Iterator[NDArray[np.void]]) -> Iterator[tuple[NDArray[np.void], bool]]:
    """Say of each chunk whether it is the last one."""
    before = None
    for chunk in chunks:
        if before is not None:
            yield before, False
        before = chunk
    if before is not None:
        yield before, True
