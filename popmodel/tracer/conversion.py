"""From a raw directory to a Paraver trace.

Twice through the run. First thread by thread: records become states, events and ends of messages,
which wait in a temporary file; the ends of messages are joined. Then window by window of time:
what all threads have in it is brought in order and written as text.

`popmodel.traces.paraver.writer.TraceWriter` holds all records and sorts them at the end, which is
right for tests and examples; only its header and its files of names serve here.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base import files
from popmodel.base.errors import TraceError, UsageError
from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.tracer.clocks import RankClock, align, residual
from popmodel.tracer.identities import (
    Communicators,
    Functions,
    Locate,
    Names,
    Sites,
    names_of_values,
)
from popmodel.tracer.message_ends import MESSAGE, Matcher
from popmodel.tracer.meta import Cpus, Meta
from popmodel.tracer.raw import Process, Raw, read
from popmodel.tracer.raw_records import CallTables, RecordKind, known_calls
from popmodel.tracer.temporary import Spool
from popmodel.tracer.thread_events import PAIR, STATE, Converter, EventLoad, Tables
from popmodel.tracer.thread_rows import Member, Rows, rows_of
from popmodel.traces import codes as states
from popmodel.traces import trace_formats
from popmodel.traces.caveats import crowded
from popmodel.traces.codes import Event
from popmodel.traces.gzip_blocks import GzipBlocks
from popmodel.traces.paraver.labels import legend
from popmodel.traces.paraver.render import Renderer
from popmodel.traces.paraver.writer import header_lines, write_beside
from popmodel.traces.tables import TraceWarning

CHUNK = 1 << 17
"""Records that are converted at a time."""
WINDOW = 1 << 18
"""Rows that are written at a time."""
_SUFFIXES = (".prv.gz", ".prv")


class _ConversionTimes(NamedTuple):
    """Times of one process in the trace: ns since its first record."""

    clock: RankClock
    zero: int
    begin: int
    end: int

    def __call__(self, time: NDArray[np.uint64]) -> NDArray[np.int64]:
        return self.clock(time.astype(np.int64)) - self.zero


class Conversion:
    """Converts the records of a run."""

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
        self.threads = [  # of each process
            len(self.rows[rank].members) if rank in self.rows else 1 for rank in range(raw.size)
        ]
        # first location of each process, and the number of locations
        self.first = np.concatenate([[0], np.cumsum(self.threads)])
        self.times = self._all_times()
        self.duration = max(each.end for each in self.times.values())  # ns
        self.communicators = Communicators.of(raw.processes, raw.size)
        self.functions, self.names = Functions(), Names()
        self.of_process = {p.rank: self.functions.of_process(p.meta) for p in raw.processes}
        if locate is not None:
            self.functions.locate(locate)
        self.sites = Sites.of([p.meta for p in raw.processes], locate)
        self.at_a_time = _at_a_time(self.times)
        self.sharing = _sharing(
            (
                (p.meta.boot, self.at_a_time[p.rank]),
                p.meta.cpus.get(row[-1].thread.number, frozenset()),
            )
            for p in raw.processes
            for row in self.rows[p.rank].members
            if row
        )
        self.calls = np.zeros(1 << 16, np.int64)  # how often each MPI call was made
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
        self.residual = residual(clocks)  # ns by which times of different hosts may be wrong
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
        listed = "listed after those of the team"
        self.warnings[f"threads of nested parallel regions, {listed}"] += rows.nested
        self.warnings[f"threads that the program created itself, {listed}"] += rows.own
        meta = process.meta
        tables = Tables(
            call_tables,
            self.communicators.of_process(meta),
            self.of_process[process.rank],
            self.names.of_process(meta),
            self.sites.of_process(meta),
            any(self.functions.lines),
        )
        self.counted = self.counted or bool(meta.counters)
        switches = 0
        for number, members in enumerate(rows.members):
            location = int(self.first[process.rank]) + number
            row = Converter(location, tables)
            if number == 0:
                self._events(location, row.application(times.begin, 1))
                self._states(location, row.begin(times.begin, states.RUNNING))
            for place, member in enumerate(members, start=1):
                self._processors(row, member, process, times)
                loss = process.lost.get(member.thread.number)
                ended = self._thread(member, row, times, loss, followed=place < len(members))
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
        *,
        followed: bool,
    ) -> int:
        """Convert a thread of the system; when it ended."""
        left = member.thread.count
        close = None
        for records in member.thread.chunks(CHUNK):
            records["time"] = times(records["time"])
            if left == member.thread.count and member.thread.number > 0:
                base = states.IDLE if member.team else states.RUNNING
                self._states(row.row, row.begin(int(records["time"][0]), base))
            left -= len(records)
            if not left:
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
        assert close is not None  # a thread without records is in no row
        if loss is not None:
            self._lose(row, close, loss[1])
        return close

    def _processors(
        self, row: Converter, member: Member, process: Process, times: _ConversionTimes
    ) -> None:
        """Say which part of the machine a thread has."""
        cpus = process.meta.cpus.get(member.thread.number)
        if cpus:
            time = times.clock.one(member.begin) - times.zero
            host = process.meta.boot, self.at_a_time[process.rank]
            shared = self.sharing.get((host, cpus), 1)
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


def _at_a_time(times: Mapping[int, _ConversionTimes]) -> dict[int, int]:
    """Numbers of processes, the same for those that were there at a time."""
    numbers: dict[int, int] = {}
    number = end = 0
    for rank, of_process in sorted(times.items(), key=lambda item: item[1].begin):
        number += bool(numbers) and of_process.begin >= end
        end = max(end, of_process.end)
        numbers[rank] = number
    return numbers


_Host: TypeAlias = tuple[str, int]


def _sharing(threads: Iterable[tuple[_Host, Cpus]]) -> dict[tuple[_Host, Cpus], int]:
    """How many threads may use no other processors than these, by host and processors."""
    numbers = Counter(threads)
    return {
        (host, cpus): sum(
            number
            for (other, theirs), number in numbers.items()
            if other == host and theirs and theirs <= cpus
        )
        for host, cpus in numbers
    }


# The text of a trace: window by window of time, what all threads have in it.


def write_text(
    done: Conversion, file: BinaryIO, messages: list[tuple[str, int]], *, compressed: bool
) -> None:
    """Write what was converted as a Paraver trace."""
    where, cpus, node_of = _places(done)
    first = done.raw.processes[0].meta
    date = time.strftime("%d/%m/%Y at %H:%M", time.gmtime(first.realtime // 10**9))
    header = header_lines(
        date, f"{done.duration}_ns", cpus, done.threads, node_of, done.communicators.members
    )
    with GzipBlocks(file) if compressed else nullcontext(file) as out:
        for line in header:
            out.write(line.encode() + b"\n")
        for text in _windows(done, Renderer(where), messages):
            out.write(text)


def _windows(
    done: Conversion, renderer: Renderer, messages: list[tuple[str, int]]
) -> Iterator[bytes]:
    locations = range(int(done.first[-1]))
    of_states = [("states", each) for each in locations if done.spool.count(("states", each))]
    of_events = [("events", each) for each in locations if done.spool.count(("events", each))]
    edges = done.spool.edges([*of_states, *of_events, *messages], WINDOW)
    for number, edge in enumerate(edges, start=1):
        parts = {
            kind: [done.spool.take_before(key, edge) for key in keys]
            for kind, keys in (("s", of_states), ("e", of_events), ("m", messages))
        }
        where = {
            kind: np.repeat([key[1] for key in keys], [len(part) for part in parts[kind]])
            for kind, keys in (("s", of_states), ("e", of_events))
        }
        yield renderer.render(
            np.concatenate([np.empty(0, STATE), *parts["s"]]),
            np.concatenate([np.empty(0, PAIR), *parts["e"]]),
            np.concatenate([np.empty(0, MESSAGE), *parts["m"]]),
            where["s"].astype(np.int64),
            where["e"].astype(np.int64),
        )
        done.tell(0.5 + 0.5 * number / len(edges))


def _places(done: Conversion) -> tuple[list[tuple[int, int, int]], list[int], list[int]]:
    """CPU, process and thread of each location; CPUs of each node; node of each process."""
    hosts: dict[str, int] = {}
    meta_of = {p.rank: p.meta for p in done.raw.processes}
    node_of = [
        hosts.setdefault(meta_of[rank].host, len(hosts)) if rank in meta_of else 0
        for rank in range(done.raw.size)
    ]
    cpus = [0] * len(hosts)
    for rank, node in enumerate(node_of):
        cpus[node] += done.threads[rank]
    free = np.concatenate([[0], np.cumsum(cpus)]).tolist()
    where = []
    for rank, node in enumerate(node_of):
        for thread in range(done.threads[rank]):
            free[node] += 1
            where.append((free[node], rank + 1, thread + 1))
    return where, cpus, node_of


def names_of_rows(done: Conversion) -> list[str]:
    """Names of the threads, for the ``.row`` file."""
    return [
        f"THREAD 1.{rank + 1}.{thread + 1}"
        for rank, count in enumerate(done.threads)
        for thread in range(count)
    ]


# A run, from its raw directory to its trace.


@dataclass(frozen=True)
class Merged:
    """A merged trace."""

    path: Path  # The ``.prv`` or ``.prv.gz`` file
    size: int  # Its bytes
    raw_size: int  # Bytes of the records that it was made from
    processes: int
    hosts: int
    threads: tuple[int, ...]  # Of each process
    duration: int  # ns
    records: int  # Records of the tracer
    loads: tuple[EventLoad, ...]  # What was recorded of each thread
    calls: Mapping[str, int]  # How often each MPI call was made, the most frequent first
    only_masters_call: bool  # Whether no other thread calls MPI, as a replay needs
    messages: int
    message_bytes: int
    # By how much times of different hosts may be wrong, ns; None where that is unknown.
    clock_residual: int | None
    library: str  # The MPI, as it calls itself; empty where there was none
    openmp: Mapping[str, int]  # How many processes had their OpenMP observed in which way
    # How many processes read hardware counters (key ``""``), or why they did not.
    counters: Mapping[str, int]
    warnings: tuple[TraceWarning, ...]  # What is not there, or not as it should be
    spawned: bool = False  # Whether another run started this one by MPI_Comm_spawn
    crowding: tuple[str, ...] = ()  # Whether threads shared CPUs or waited for them
    metas: tuple[Meta, ...] = ()  # What each process wrote about itself


def merge(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    locate: Locate | None = None,
    progress: Callable[[float], None] | None = None,
) -> Merged:
    """Merge the raw files of a run into a trace."""
    target = _target(output)
    runs = read(directory)
    if len(runs) > 1:
        raise TraceError(
            Path(directory),
            f"contains {len(runs)} runs",
            hint="merge_runs makes a trace of each, as popmodel trace merge does",
        )
    return _merged_run(runs[0], target, locate, progress)


def merge_runs(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    locate: Locate | None = None,
    progress: Callable[[float], None] | None = None,
    check: Callable[[Path], object] | None = None,
) -> tuple[Merged, ...]:
    """Merge the raw files of all runs in a directory, each into a trace."""
    target = _target(output)
    runs = read(directory)
    paths = [target]
    if len(runs) > 1:
        paths = [of_run(target, number) for number in range(1, len(runs) + 1)]
        if check is not None:
            for path in paths:
                check(path)
    made = []
    for number, (raw, path) in enumerate(zip(runs, paths, strict=True)):

        def part(done: float, number: int = number) -> None:
            if progress is not None:
                progress((number + done) / len(runs))

        made.append(_merged_run(raw, path, locate, part))
    return tuple(made)


def of_run(target: Path, number: int) -> Path:
    """The trace of one of several runs."""
    suffix = next(suffix for suffix in _SUFFIXES if target.name.endswith(suffix))
    return target.with_name(f"{target.name.removesuffix(suffix)}.run{number}{suffix}")


def _target(output: str | os.PathLike[str]) -> Path:
    target = Path(output)
    if not target.name.endswith(_SUFFIXES):
        raise UsageError(f"{target}: must end in .prv or .prv.gz")
    return target


def _merged_run(
    raw: Raw, target: Path, locate: Locate | None, progress: Callable[[float], None] | None
) -> Merged:
    spool = Spool(target.absolute().parent)
    try:
        done = Conversion(raw, spool, locate, progress)
        size = _written(done, done.run(), target)
    finally:
        spool.close()
    return _merged(done, target, size)


def _written(done: Conversion, messages: list[tuple[str, int]], target: Path) -> int:
    """Write the trace and the files beside it; gives its bytes."""
    try:
        with files.written(target, read=partial(trace_formats.read)) as file:
            write_text(done, file, messages, compressed=target.name.endswith(".gz"))
            file.flush()
            size = file.tell()
            named = names_of_values(done.calls, done.functions, done.names, done.sites)
            write_beside(target, legend(named, counters=done.counted), names_of_rows(done))
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise TraceError(target, problem, hint="write it elsewhere, or free some space") from None
    return size


def _merged(done: Conversion, target: Path, size: int) -> Merged:
    metas = [p.meta for p in done.raw.processes]
    for process in done.raw.processes:
        masks = process.meta.cpus
        last = (row[-1].thread.number for row in done.rows[process.rank].members if row)
        process.meta.cpus = {number: masks[number] for number in last if number in masks}
    cpus, sharing, used, waited = done.cpus
    named = Counter(
        {
            f"MPI_{known_calls()[number].name}": int(done.calls[number])
            for number in np.flatnonzero(done.calls).tolist()
        }
    )
    return Merged(
        path=target,
        size=size,
        raw_size=32 * done.records,
        processes=done.raw.size,
        hosts=len({meta.host for meta in metas}),
        threads=tuple(done.threads),
        duration=done.duration,
        records=done.records,
        loads=tuple(done.loads),
        calls=dict(named.most_common()),
        only_masters_call=done.only_masters_call,
        messages=done.matcher.messages,
        message_bytes=done.matcher.bytes,
        clock_residual=done.residual,
        library=metas[0].library,
        openmp=Counter(meta.openmp for meta in metas if meta.openmp is not None),
        counters=Counter(
            "" if meta.counters else str(meta.no_counters)
            for meta in metas
            if meta.counters or meta.no_counters is not None
        ),
        warnings=tuple(TraceWarning(t, count) for t, count in done.warnings.items() if count),
        spawned=done.raw.spawned,
        crowding=tuple(crowded(cpus, sharing, used, waited, done.first)),
        metas=tuple(metas),
    )


# What a trace is worth: how much the tracer cost, and what it could not see.


class TracingCost(NamedTuple):
    """Seconds, the least and the most: for a thread whose own data stay in the caches, or not."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Between both, s."""
        return (self.low + self.high) / 2


# From paired runs (``tests/benchmarks/tracer.py``).
RECORD_COST = TracingCost(25e-9, 80e-9)
"""Of a record, with its share of the pages that the file takes."""
CALL_COST = TracingCost(10e-9, 60e-9)
"""What the wrapper of an MPI call adds to its records: handles that it looks up, requests that it
remembers."""
LOCK_COST, SECTION_COST = TracingCost(4e-9, 15e-9), TracingCost(40e-9, 150e-9)
"""Of a lock that was free and of a critical section, which are summed up."""
_MARGIN = TracingCost(0.75, 1.5)
"""What loops that measure leave out: the program's own calls, its branches, the luck of the caches.
In paired runs (message rates, LULESH, NPB UA) what was added lay in the range that this gives."""


def held_up(merged: Merged) -> TracingCost:
    """Estimate for how long the thread was held up that was held up most, s."""
    each = zip(RECORD_COST, CALL_COST, LOCK_COST, SECTION_COST, strict=True)
    low, high = (
        margin
        * max(
            (sum(n * cost for n, cost in zip(load, costs, strict=True)) for load in merged.loads),
            default=0.0,
        )
        for margin, costs in zip(_MARGIN, each, strict=True)
    )
    return TracingCost(low, high)


def overhead(merged: Merged) -> TracingCost:
    """Estimate what was added to the time of the thread that was held up most."""
    whole = merged.duration * 1e-9
    parts = held_up(merged)
    return TracingCost(*(part / (whole - part) if 2 * part < whole else 1.0 for part in parts))


def not_seen(merged: Merged) -> list[str]:
    """What a reader of the trace might miss, and why it is not there; one line each."""
    lines = []
    if not merged.library:
        lines.append("no MPI: the program did not call MPI_Init, or its MPI is statically linked")
    if blind := merged.openmp.get("none", 0):
        who = plural(blind, "process", "processes")
        lines.append(f"no OpenMP in {who}: switched off (--openmp off)")
    for why, processes in sorted(merged.counters.items()):
        if why:
            who = plural(processes, "process", "processes")
            lines.append(f"no hardware counters in {who}: {why}")
    if merged.clock_residual is None:
        lines.append("agreement of the clocks of the hosts unknown: they were not compared")
    lines += [
        f"{warning.text} ({warning.count:,})" if warning.count > 1 else warning.text
        for warning in merged.warnings
    ]
    return lines
