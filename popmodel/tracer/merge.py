"""From a raw directory to a Paraver trace.

Twice through the run. First thread by thread: records become states, events and ends of messages,
which wait in a temporary file; the ends of messages are joined. Then window by window of time:
what all threads have in it is brought in order and written as text.

`popmodel.trace.paraver.writer.TraceWriter` holds all records and sorts them at the end, which is
right for tests and examples; only its header and its files of names serve here.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from popmodel import files
from popmodel.errors import TraceError, UsageError
from popmodel.trace import states
from popmodel.trace.event import Event
from popmodel.trace.paraver.legend import legend
from popmodel.trace.paraver.render import Renderer
from popmodel.trace.paraver.writer import header_lines, write_beside
from popmodel.trace.tables import TraceWarning
from popmodel.tracer.calls import calls
from popmodel.tracer.clocks import Clock, align, residual
from popmodel.tracer.convert import STATE, Load, Row
from popmodel.tracer.events import PAIR, Tables
from popmodel.tracer.identities import Communicators, Functions, Locate, Names, Sites
from popmodel.tracer.in_calls import CallTables
from popmodel.tracer.legend import names_of_values
from popmodel.tracer.messages import MESSAGE, Matcher
from popmodel.tracer.meta import Meta
from popmodel.tracer.packing import packed
from popmodel.tracer.processors import sharing
from popmodel.tracer.raw import Process, Raw, read
from popmodel.tracer.records import Kind
from popmodel.tracer.rows import Member, Rows, rows_of
from popmodel.tracer.spool import Spool
from popmodel.values import dataclass

__all__ = ["Merged", "merge", "merge_runs", "of_run"]

_SUFFIXES = (".prv.gz", ".prv")

CHUNK = 1 << 17
"""Records that are converted at a time."""
WINDOW = 1 << 18
"""Rows that are written at a time."""


@dataclass(frozen=True)
class Merged:
    """A merged trace.

    Attributes
    ----------
    path : Path
        The ``.prv`` or ``.prv.gz`` file.
    size : int
        Its bytes.
    raw_size : int
        Bytes of the records that it was made from.
    processes, hosts : int
    threads : tuple of int
        Of each process.
    duration : int
        ns.
    records : int
        Records of the tracer.
    loads : tuple of Load
        What was recorded of each thread.
    calls : mapping of str to int
        How often each MPI call was made, the most frequent first.
    only_masters_call : bool
        Whether no other thread calls MPI, as a replay needs.
    messages, message_bytes : int
    clock_residual : int or None
        By how much times of different hosts may be wrong, ns; None where that is unknown.
    library : str
        The MPI, as it calls itself; empty where there was none.
    openmp : mapping of str to int
        How many processes had their OpenMP observed in which way.
    counters : mapping of str to int
        How many processes read hardware counters (key ``""``), or why they did not.
    warnings : tuple of TraceWarning
        What is not there, or not as it should be.
    spawned : bool
        Whether another run started this one by MPI_Comm_spawn.
    """

    path: Path
    size: int
    raw_size: int
    processes: int
    hosts: int
    threads: tuple[int, ...]
    duration: int
    records: int
    loads: tuple[Load, ...]
    calls: Mapping[str, int]
    only_masters_call: bool
    messages: int
    message_bytes: int
    clock_residual: int | None
    library: str
    openmp: Mapping[str, int]
    counters: Mapping[str, int]
    warnings: tuple[TraceWarning, ...]
    spawned: bool = False


def merge(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    locate: Locate | None = None,
    progress: Callable[[float], None] | None = None,
) -> Merged:
    """Merge the raw files of a run into a trace.

    Parameters
    ----------
    directory : path
        The raw directory.
    output : path
        A ``.prv`` or ``.prv.gz`` file; it gets its name when it is complete, as do the ``.pcf``
        and the ``.row`` file beside it.
    locate : callable, optional
        Finds names and source lines of parallel regions and of calls.
    progress : callable, optional
        Is told the part that is done.

    Raises
    ------
    TraceError
        The raw directory cannot be used or holds several runs, or the trace cannot be written.
    UsageError
        The output has another suffix.
    """
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
    """Merge the raw files of all runs in a directory, each into a trace.

    Parameters
    ----------
    directory, locate, progress
        As those of `merge`.
    output : path
        The trace of the only run; of several those of runs 1, 2, ... are called ``app.run1.prv.gz``
        and so on, where this is ``app.prv.gz``.
    check : callable, optional
        Is told the names of these several before any is written, and may refuse them.

    Raises
    ------
    TraceError, UsageError
        As `merge`.
    """
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
        return _Merge(raw, spool, locate, progress).write(target)
    finally:
        spool.close()


@dataclass(frozen=True)
class _Times:
    """Times of one process in the trace: ns since its first record."""

    clock: Clock
    zero: int
    begin: int
    end: int

    def __call__(self, time: NDArray[np.uint64]) -> NDArray[np.int64]:
        return self.clock(time.astype(np.int64)) - self.zero


class _Merge:
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
        self.loads: list[Load] = []

    def write(self, target: Path) -> Merged:
        call_tables = CallTables()
        for process in self.raw.processes:
            self._convert(process, call_tables)
            self.matcher.end_process(process.rank)
        for rank in self.raw.missing:
            never = np.array([(0, self.duration, states.NOT_CREATED)], STATE)
            self.spool.append(("states", int(self.first[rank])), never)
        messages = self.matcher.join()
        self.warnings.update(self.matcher.counts)
        try:
            with files.written(target) as file:
                self._text(file, messages, compressed=target.name.endswith(".gz"))
                file.flush()
                size = file.tell()
                named = names_of_values(self.calls, self.functions, self.names, self.sites)
                write_beside(target, legend(named, counters=self.counted), self._row_names())
        except OSError as error:
            problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
            raise TraceError(
                target, problem, hint="write it elsewhere, or free some space"
            ) from None
        return self._merged(target, size)

    def _all_times(self) -> dict[int, _Times]:
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
            rank: _Times(clock, zero, begin - zero, end - zero)
            for rank, (clock, begin, end) in spans.items()
        }

    def _convert(self, process: Process, call_tables: CallTables) -> None:
        rows, times = self.rows[process.rank], self.times[process.rank]
        self.warnings["threads of nested parallel regions, listed after those of the team"] += (
            rows.nested
        )
        self.warnings[
            "threads that the program created itself, listed after those of the team"
        ] += rows.own
        meta = process.meta
        tables = Tables(
            call_tables,
            self.communicators.of_process(meta),
            _Functions(self.of_process[process.rank], self.functions),
            _Regions(self.names.of_process(meta), self.names),
            self.sites.of_process(meta),
            any(self.functions.lines),
        )
        self.counted = self.counted or bool(meta.counters)
        switches = 0
        for number, members in enumerate(rows.members):
            location = int(self.first[process.rank]) + number
            row = Row(location, tables)
            if number == 0:
                self._events(location, row.application(times.begin, 1))
                self._states(location, row.begin(times.begin, states.RUNNING))
            for place, member in enumerate(members, start=1):
                followed = place < len(members)
                loss = process.lost.get(member.thread.number)
                self._processors(row, member, meta, times)
                ended = self._thread(
                    member, row, times, loss, master=number == 0, followed=followed
                )
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
        if switches and len(rows.members) > 1:
            self.warnings[
                "threads shown as if traced throughout, although another thread of the process "
                "switched tracing off"
            ] += len(rows.members) - 1

    def _thread(
        self,
        member: Member,
        row: Row,
        times: _Times,
        loss: tuple[int, int] | None,
        *,
        master: bool,
        followed: bool,
    ) -> int:
        """Convert a thread of the system; when it ended."""
        if not master:
            begin = times.clock.one(member.begin) - times.zero
            base = states.IDLE if member.team else states.RUNNING
            self._states(row.row, row.begin(begin, base))
        close = None
        for records, last in _marked(member.thread.chunks(CHUNK)):
            records["time"] = times(records["time"])
            if last:
                # One that did not say when it ended went on to the end of its process.
                ended = followed or records["kind"][-1] == Kind.END
                close = int(records["time"][-1]) if ended else times.end
                if loss is not None:
                    close = times.clock.one(loss[0]) - times.zero
            done = row.feed(records, close)
            self._states(row.row, done.states)
            self._events(row.row, done.events)
            self.matcher.sent(row.row, done.sent)
            self.matcher.received(done.posted, done.received)
            self.done += len(records)
            self._tell(0.5 * self.done / max(self.records, 1))
        assert close is not None  # a thread without records has no row
        if loss is not None:
            self._lose(row, close, loss[1])
        return close

    def _processors(self, row: Row, member: Member, meta: Meta, times: _Times) -> None:
        """Say which part of the machine a thread has."""
        cpus = meta.cpus.get(member.thread.number)
        if cpus:
            time = times.clock.one(member.begin) - times.zero
            shared = self.sharing.get((meta.boot, cpus), 1)
            pairs = [(time, len(cpus), Event.CPUS, 0), (time, shared, Event.SHARING, 1)]
            self._events(row.row, np.array(pairs, PAIR))

    def _used(self, row: Row, time: int, usage: tuple[int, int] | None) -> None:
        """Say at the end of a thread what it had of it."""
        if usage is not None:
            used, waited = usage
            pairs = [(time, used, Event.USED, 0), (time, waited, Event.WAITED, 1)]
            self._events(row.row, np.array(pairs, PAIR))

    def _lose(self, row: Row, time: int, reason: int) -> None:
        """Say that nothing is known of a thread from a time on."""
        self._states(row.row, row.begin(time, states.TRACING_DISABLED))
        self._events(row.row, np.array([(time, reason, Event.LOST, 0)], PAIR))

    def _states(self, location: int, rows: NDArray[np.void]) -> None:
        self.spool.append(("states", location), rows)

    def _events(self, location: int, rows: NDArray[np.void]) -> None:
        self.spool.append(("events", location), rows)

    def _text(self, file: BinaryIO, messages: list[tuple[str, int]], *, compressed: bool) -> None:
        where, cpus, node_of = self._places()
        first = self.raw.processes[0].meta
        date = time.strftime("%d/%m/%Y at %H:%M", time.gmtime(first.realtime // 10**9))
        header = header_lines(
            date, f"{self.duration}_ns", cpus, self.threads, node_of, self.communicators.members
        )
        renderer = Renderer(where)
        with packed(file) if compressed else nullcontext(file) as out:
            for line in header:
                out.write(line.encode() + b"\n")
            for text in self._windows(renderer, messages):
                out.write(text)

    def _windows(self, renderer: Renderer, messages: list[tuple[str, int]]) -> Iterator[bytes]:
        locations = range(int(self.first[-1]))
        of_states = [("states", each) for each in locations if self.spool.count(("states", each))]
        of_events = [("events", each) for each in locations if self.spool.count(("events", each))]
        edges = self.spool.edges([*of_states, *of_events, *messages], WINDOW)
        for number, edge in enumerate(edges, start=1):
            parts = {
                kind: [self.spool.take_before(key, edge) for key in keys]
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
            self._tell(0.5 + 0.5 * number / len(edges))

    def _places(self) -> tuple[list[tuple[int, int, int]], list[int], list[int]]:
        """CPU, process and thread of each location; CPUs of each node; node of each process."""
        hosts: dict[str, int] = {}
        meta_of = {p.rank: p.meta for p in self.raw.processes}
        node_of = [
            hosts.setdefault(meta_of[rank].host, len(hosts)) if rank in meta_of else 0
            for rank in range(self.raw.size)
        ]
        cpus = [0] * len(hosts)
        for rank, node in enumerate(node_of):
            cpus[node] += self.threads[rank]
        free = np.concatenate([[0], np.cumsum(cpus)]).tolist()
        where = []
        for rank, node in enumerate(node_of):
            for thread in range(self.threads[rank]):
                free[node] += 1
                where.append((free[node], rank + 1, thread + 1))
        return where, cpus, node_of

    def _row_names(self) -> list[str]:
        return [
            f"THREAD 1.{rank + 1}.{thread + 1}"
            for rank, count in enumerate(self.threads)
            for thread in range(count)
        ]

    def _merged(self, target: Path, size: int) -> Merged:
        metas = [p.meta for p in self.raw.processes]
        named = Counter(
            {
                f"MPI_{calls()[number].name}": int(self.calls[number])
                for number in np.flatnonzero(self.calls).tolist()
            }
        )
        return Merged(
            path=target,
            size=size,
            raw_size=32 * self.records,
            processes=self.raw.size,
            hosts=len({meta.host for meta in metas}),
            threads=tuple(self.threads),
            duration=self.duration,
            records=self.records,
            loads=tuple(self.loads),
            calls=dict(named.most_common()),
            only_masters_call=self.only_masters_call,
            messages=self.matcher.messages,
            message_bytes=self.matcher.bytes,
            clock_residual=self.residual,
            library=metas[0].library,
            openmp=Counter(meta.openmp for meta in metas if meta.openmp is not None),
            counters=Counter(
                "" if meta.counters else str(meta.no_counters)
                for meta in metas
                if meta.counters or meta.no_counters is not None
            ),
            warnings=tuple(TraceWarning(t, count) for t, count in self.warnings.items() if count),
            spawned=self.raw.spawned,
        )

    def _warn(self, warnings: tuple[TraceWarning, ...] | list[TraceWarning]) -> None:
        for each in warnings:
            self.warnings[each.text] += each.count

    def _tell(self, part: float) -> None:
        if self.progress is not None:
            self.progress(part)


class _Functions(dict[int, int]):
    """Functions of a process by address; one that it never described gets a number, too."""

    def __init__(self, known: Mapping[int, int], all_: Functions) -> None:
        super().__init__(known)
        self._all = all_

    def __missing__(self, address: int) -> int:
        self[address] = number = self._all.unknown(address)
        return number


class _Regions(dict[int, int]):
    """The user's regions of a process by id."""

    def __init__(self, known: Mapping[int, int], all_: Names) -> None:
        super().__init__(known)
        self._all = all_

    def __missing__(self, own: int) -> int:
        self[own] = number = self._all.number(f"region {own}")
        return number


def _marked(chunks: Iterator[NDArray[np.void]]) -> Iterator[tuple[NDArray[np.void], bool]]:
    """Say of each chunk whether it is the last one."""
    before = None
    for chunk in chunks:
        if before is not None:
            yield before, False
        before = chunk
    if before is not None:
        yield before, True
