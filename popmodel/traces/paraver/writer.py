"""Writes Paraver traces: of plain numbers, of a trace in memory, of another with further events."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from popmodel.base import files
from popmodel.base.errors import FileError, TraceError, UsageError
from popmodel.traces.codes import Event
from popmodel.traces.gzip_blocks import GzipBlocks
from popmodel.traces.paraver.event_tables import ParaverRecords
from popmodel.traces.paraver.labels import Labels, beside, legend, read_beside, thread_names
from popmodel.traces.paraver.numbers import MPI_CALLS, MPI_TYPES, NUMBERS, SENT_TO_ONE
from popmodel.traces.paraver.reader import HeaderError, parse_header, read
from popmodel.traces.paraver.render import Renderer
from popmodel.traces.source import CHUNK, TraceSource, open_source, reason
from popmodel.traces.tables import location_of_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces.calls import CallTable
    from popmodel.traces.recorded_run import Trace

SUFFIXES = (".prv", ".prv.gz")
"""What names of files end in that are written so."""
WINDOW = 1 << 18
"""Lines that are written at a time."""
_DATE = "01/01/2000 at 00:00"
_EVENT = np.dtype([("time", "i8"), ("value", "u8"), ("type", "u4"), ("joined", "u4")])
_STATE = np.dtype([("begin", "i8"), ("end", "i8"), ("state", "i8")])
_ENDS = ("logical_send", "physical_send", "logical_receive", "physical_receive")
_MESSAGE = np.dtype([(name, "i8") for name in (*_ENDS, "sender", "receiver", "size", "tag")])
_NUMBERED = re.compile(r"MPI call (\d+):(\d+)")
_FIRST_OWN = 50_000
"""Value of the first MPI call whose name has no number elsewhere."""
_RECORDS = (b"1", b"2", b"3")
_JOINED = 1 << 12
"""Lines of a trace with further events that are written at a time."""


class TraceWriter:
    """Collects the records of one application and writes them as Extrae does.

    Processes, threads, nodes and ranks are counted from 0, times are integers in nanoseconds.
    """

    def __init__(
        self,
        threads: Sequence[int],
        *,
        nodes: Sequence[int] | None = None,
        node_of_process: Sequence[int] | None = None,
        communicators: Mapping[int, Sequence[int]] | None = None,
        duration: int | None = None,
        labels: Labels | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._threads = list(threads)
        self._nodes = [sum(threads)] if nodes is None else list(nodes)
        self._node_of = [0] * len(threads) if node_of_process is None else list(node_of_process)
        self._communicators = dict(communicators or {})
        self._duration = duration
        self._labels = labels
        self._names = names
        self._first = list(accumulate(self._threads, initial=0))
        self._records: list[tuple[int, str]] = []
        self._end = 0

    def state(self, process: int, thread: int, begin: int, end: int, state: int) -> None:
        where = self._where(process, thread)
        self._add(begin, f"1:{where}:{begin}:{end}:{state}", end)

    def event(self, process: int, thread: int, time: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Add events of one time, on one line: pairs of an `Event` or a type, and a value."""
        typed = ((NUMBERS[of] if isinstance(of, Event) else of, value) for of, value in pairs)
        values = "".join(f":{type_}:{value}" for type_, value in typed)
        if not values:
            raise UsageError("an event needs at least one pair of type and value")
        where = self._where(process, thread)
        self._add(time, f"2:{where}:{time}{values}", time)

    def message(
        self,
        sender: tuple[int, int],
        receiver: tuple[int, int],
        send: tuple[int, int],
        receive: tuple[int, int],
        size: int,
        tag: int = 0,
    ) -> None:
        ends = [
            f"{self._where(*who)}:{logical}:{physical}"
            for who, (logical, physical) in ((sender, send), (receiver, receive))
        ]
        self._add(send[1], f"3:{ends[0]}:{ends[1]}:{size}:{tag}", max(*send, *receive))

    def _where(self, process: int, thread: int) -> str:
        return f"{self._first[process] + thread + 1}:1:{process + 1}:{thread + 1}"

    def _add(self, time: int, line: str, end: int) -> None:
        self._records.append((time, line))
        self._end = max(self._end, end)

    def lines(self) -> Iterable[str]:
        """Yield the lines of the trace, records in order of time; those of equal time as added."""
        duration = self._end if self._duration is None else self._duration
        yield from header_lines(
            "01/01/2000 at 00:00",
            f"{duration}_ns",
            self._nodes,
            self._threads,
            self._node_of,
            self._communicators,
        )
        for _, line in sorted(self._records, key=itemgetter(0)):
            yield line

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace, and its ``.pcf`` and ``.row`` files; a ``.gz`` suffix compresses it.

        A file gets its name when it is complete.
        """
        target = Path(path)
        text = "".join(f"{line}\n" for line in self.lines()).encode()
        if target.suffix == ".gz":
            text = gzip.compress(text, mtime=0)
        files.write_bytes(target, text)
        write_beside(target, self._labels, self._names)


def header_lines(
    date: str,
    duration: str,
    nodes: Sequence[int],
    threads: Sequence[int],
    node_of_process: Sequence[int],
    communicators: Mapping[int, Sequence[int]],
) -> Iterable[str]:
    """Yield the first lines of a trace of one application, without their line ends."""
    cpus = ",".join(map(str, nodes))
    listed = f"{len(nodes)}({cpus})" if nodes else "0"
    tasks = ",".join(
        f"{count}:{node + 1}" for count, node in zip(threads, node_of_process, strict=True)
    )
    yield f"#Paraver ({date}):{duration}:{listed}:1:{len(threads)}({tasks}),{len(communicators)}"
    for number, ranks in communicators.items():
        members = "".join(f":{rank + 1}" for rank in ranks)
        yield f"c:1:{number}:{len(ranks)}{members}"


def write_beside(path: Path, labels: Labels | None, names: Sequence[str] | None) -> None:
    """Write the ``.pcf`` and the ``.row`` file of a trace."""
    if labels is not None:
        files.write_bytes(beside(path, ".pcf"), "".join(_pcf(labels)).encode())
    if names is not None:
        rows = "".join(f"{name}\n" for name in names)
        text = f"LEVEL THREAD SIZE {len(names)}\n{rows}"
        files.write_bytes(beside(path, ".row"), text.encode())


def _pcf(labels: Labels) -> Iterable[str]:
    yield "STATES\n"
    for state, name in labels.states.items():
        yield f"{state}    {name}\n"
    for type_, name in labels.event_types.items():
        yield f"\n\nEVENT_TYPE\n0    {type_}    {name}\n"
        values = labels.event_values.get(type_)
        if values:
            yield "VALUES\n"
            for value, value_name in values.items():
                yield f"{value}    {value_name}\n"
    yield "\n"


# A trace that is in memory, whatever it was made of: as text window by window of time, as merged
# traces are. Names come from the trace that it was made of.


def labels_of(trace: Trace) -> Labels:
    """Names of event types and values of a trace; none where its format has no such numbers."""
    records = (trace.whole or trace).records
    return records.labels if isinstance(records, ParaverRecords) else Labels()


def write_trace(path: str | os.PathLike[str], trace: Trace, labels: Labels) -> None:
    """Write a trace, and its ``.pcf`` and ``.row`` files; a ``.gz`` suffix compresses it."""
    target = Path(path)
    if not target.name.endswith(SUFFIXES):
        raise UsageError(f"{target}: must end in .prv or .prv.gz")
    calls = trace.calls()
    numbers, labels = _numbers(calls, labels)
    try:
        with files.written(target, read=partial(read)) as file:
            compressed = target.name.endswith(".gz")
            with GzipBlocks(file) if compressed else nullcontext(file) as out:
                _write_text(out, trace, calls, numbers)
            write_beside(target, labels, trace.names or thread_names(1, trace.threads.tolist()))
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise TraceError(target, problem, hint="write it elsewhere, or free some space") from None


def _numbers(calls: CallTable, labels: Labels) -> tuple[NDArray[np.int64], Labels]:
    """Type and value of the calls of each name, int64[names, 2], and labels that have them."""
    usual = legend({}, counters=False)
    types = {**usual.event_types, **labels.event_types}
    values: dict[int, dict[int, str]] = {
        **{type_: dict(named) for type_, named in usual.event_values.items()},
        **{type_: dict(named) for type_, named in labels.event_values.items()},
    }
    type_of = {group: type_ for type_, group in MPI_TYPES.items()}
    found = np.empty((len(calls.names), 2), np.int64)
    for row, (name, group) in enumerate(zip(calls.names, calls.group, strict=True)):
        type_ = type_of[group]
        of_type = values.setdefault(type_, {0: "Outside MPI"})
        found[row] = type_, _value(name, of_type)
        of_type[int(found[row, 1])] = name
        types.setdefault(type_, group.value)
    return found, Labels({**usual.states, **labels.states}, types, values)


def _value(name: str, named: Mapping[int, str]) -> int:
    for value, other in named.items():
        if other == name:
            return value
    for value, other in MPI_CALLS.items():
        if other == name and value not in named:
            return value
    numbered = _NUMBERED.fullmatch(name)
    if numbered and int(numbered[2]) not in named:
        return int(numbered[2])
    return max(_FIRST_OWN, *named, -1) + 1


def _write_text(
    file: IO[bytes] | GzipBlocks, trace: Trace, calls: CallTable, numbers: NDArray[np.int64]
) -> None:
    where, cpus, node_of = _places(trace)
    threads = trace.threads.tolist()
    communicators = {
        number: np.asarray(ranks).tolist() for number, ranks in trace.communicators.items()
    }
    header = header_lines(_DATE, f"{trace.end}_ns", cpus, threads, node_of, communicators)
    file.write("".join(f"{line}\n" for line in header).encode())
    for text in _windows(trace, calls, numbers, Renderer(where)):
        file.write(text)


def _windows(
    trace: Trace, calls: CallTable, numbers: NDArray[np.int64], renderer: Renderer
) -> Iterator[bytes]:
    states, of_state = _in_order("begin", *_states(trace))
    events, of_event = _in_order("time", *_events(trace, calls, numbers))
    messages, _ = _in_order("physical_send", _messages(trace), np.empty(0, np.int64))
    times = (states["begin"], events["time"], messages["physical_send"])
    edges = np.sort(np.concatenate(times))[WINDOW::WINDOW]
    bounds = [np.searchsorted(each, edges).tolist() for each in times]
    for first, last in zip(
        zip(*([0, *each] for each in bounds), strict=True),
        zip(*([*each, len(t)] for each, t in zip(bounds, times, strict=True)), strict=True),
        strict=True,
    ):
        s, e, m = (slice(*each) for each in zip(first, last, strict=True))
        yield renderer.render(states[s], events[e], messages[m], of_state[s], of_event[e])


def _in_order(
    time: str, rows: NDArray[np.void], location: NDArray[np.int64]
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    order = np.argsort(rows[time], kind="stable")
    return rows[order], location[order] if len(location) else location


def _states(trace: Trace) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    states = trace.states
    rows = np.empty(len(states.begin), _STATE)
    for name in ("begin", "end", "state"):
        rows[name] = getattr(states, name)
    return rows, location_of_row(states.offsets).astype(np.int64)


def _messages(trace: Trace) -> NDArray[np.void]:
    messages = trace.messages
    rows = np.empty(len(messages.size), _MESSAGE)
    for name in _MESSAGE.names or ():
        rows[name] = getattr(messages, name)
    return rows


def _sent_to_one(trace: Trace, calls: CallTable) -> NDArray[np.int64]:
    """Bytes sent as Extrae records them: of Alltoall those to one peer."""
    told = calls.collectives
    name = calls.name[told.call]
    found = told.sent.copy()
    for number in np.unique(told.communicator).tolist():
        members = len(trace.communicators.get(number, range(trace.processes)))
        mine = np.isin(calls.names, SENT_TO_ONE[:2])[name] & (told.communicator == number)
        found[mine] //= max(members, 1)
    return found


# Of events at one time: what the calls before are about, the begin of a call with what it tells of
# itself, what is told inside it; first of all the begin of a process, last of all its end.
_ENTRY, _ARGUMENT, _OTHER, _EXIT = 0, 1, 2, -1


def _events(
    trace: Trace, calls: CallTable, numbers: NDArray[np.int64]
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """All events in the order of each location, and the location of each."""
    location = location_of_row(calls.offsets).astype(np.int64)
    turn = 2 * (np.arange(len(calls)) - calls.offsets[location]) + 1
    type_, value = numbers[calls.name].T
    nothing = np.zeros(len(calls), np.int64)
    parts = [
        (location, turn, _ENTRY, calls.entry, type_, value),
        (location, turn + 1, _EXIT, calls.exit, type_, nothing),
    ]
    told = calls.collectives
    of = location[told.call], turn[told.call], _ARGUMENT, calls.entry[told.call]
    for event, column in (
        (Event.BYTES_SENT, _sent_to_one(trace, calls)),
        (Event.BYTES_RECEIVED, told.received),
        (Event.COMMUNICATOR, told.communicator),
    ):
        parts.append((*of, np.full(len(column), NUMBERS[event]), column))
    root = np.flatnonzero(told.is_root)
    of_root = location[told.call[root]], turn[told.call[root]]
    is_root = np.full(len(root), NUMBERS[Event.IS_ROOT])
    at = calls.entry[told.call[root]]
    parts.append((*of_root, _ARGUMENT, at, is_root, np.ones(len(root), np.int64)))
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    process = np.full(len(masters), NUMBERS[Event.APPLICATION])
    begin, last = np.zeros(len(masters), np.int64), np.iinfo(np.int64).max
    parts.append((masters, begin - 1, _ENTRY, begin, process, begin + 1))
    parts.append((masters, np.full(len(masters), last), _ENTRY, trace.ends(), process, begin))
    others = trace.records.others()
    parts.append(
        (
            location_of_row(others.events.offsets).astype(np.int64),
            others.turn,
            _OTHER,
            others.events.time,
            others.events.type.astype(np.int64),
            others.events.value,
        )
    )
    where = np.concatenate([part[0] for part in parts])
    turns = np.concatenate([part[1] for part in parts])
    place = np.concatenate([np.full(len(part[0]), part[2], np.int8) for part in parts])
    order = np.lexsort((place, turns, where))
    rows = np.empty(len(order), _EVENT)
    rows["time"] = np.concatenate([part[3] for part in parts])[order]
    rows["type"] = np.concatenate([part[4] for part in parts])[order]
    # Values above 2**63 are negative numbers of the same 64 bits in memory.
    values = np.concatenate([part[5].astype(np.int64) for part in parts])[order]
    rows["value"] = values.view(np.uint64)
    where = where[order]
    rows["joined"] = 0
    beside = (np.diff(rows["time"]) == 0) & (np.diff(where) == 0)
    # A call begins and ends on a line of its own: nothing could tell two events of one type apart.
    starts = (place[order] == _ENTRY) | (place[order] == _EXIT)
    rows["joined"][1:] = beside & ~starts[1:]
    return rows, where


def _places(trace: Trace) -> tuple[list[tuple[int, int, int]], list[int], list[int]]:
    """CPU, process and thread of each location; CPUs of each node; node of each process."""
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    of_location = np.asarray(trace.node_of_location).astype(np.int64)
    threads = np.bincount(of_location, minlength=len(trace.nodes))
    stated = np.zeros(len(threads), np.int64)
    stated[: len(trace.nodes)] = trace.nodes
    cpus = np.maximum(threads, stated)
    free = (np.cumsum(cpus) - cpus).tolist()
    where = []
    for process, (first, count) in enumerate(
        zip(masters.tolist(), trace.threads.tolist(), strict=True)
    ):
        for thread in range(count):
            node = int(of_location[first + thread])
            free[node] += 1
            where.append((free[node], process + 1, thread + 1))
    return where, cpus.tolist(), of_location[masters].tolist()


# A trace with further events: its lines as they are, in between those that are added. However long
# it is, only the added events are in memory.


def add_events(
    source: Path,
    target: Path,
    event: Event,
    label: str,
    values: Mapping[int, str],
    application: int,
    process: NDArray[np.int64],
    time: NDArray[np.int64],
    value: NDArray[np.int64],
) -> None:
    """Write a trace with further events of one kind, and its ``.pcf`` and ``.row`` files.

    They are on the first threads of processes of an application, by the clock of the file, in ns;
    `label` and `values` are what Paraver calls the kind and its values.
    """
    if target.exists() and target.samefile(source):
        raise UsageError(f"-o {target}: is the trace itself", "choose another path with -o")
    try:
        with files.written(target, read=partial(read)) as file:
            compressed = target.suffix == ".gz"
            with GzipBlocks(file) if compressed else nullcontext(file) as out:
                lines = _with_events(source, NUMBERS[event], application, process, time, value)
                while text := b"".join(islice(lines, _JOINED)):
                    out.write(text)
        pcf, problem = read_beside(source, ".pcf")
        named = "".join(f"{number}      {name}\n" for number, name in values.items())
        section = f"EVENT_TYPE\n0    {NUMBERS[event]}    {label}\nVALUES\n{named}\n"
        files.write_text(beside(target, ".pcf"), f"{(pcf or '').rstrip()}\n\n{section}")
        rows, _ = read_beside(source, ".row")
        if rows is not None:
            files.write_text(beside(target, ".row"), rows)
    except OSError as error:
        raise FileError(
            target, f"cannot be written: {reason(error)}", hint="choose another path with -o"
        ) from error
    if problem:
        raise TraceError(beside(source, ".pcf"), f"cannot be read: {problem}")


def _with_events(
    source: Path,
    number: int,
    application: int,
    process: NDArray[np.int64],
    time: NDArray[np.int64],
    value: NDArray[np.int64],
) -> Iterator[bytes]:
    """Lines of the trace and of the events, in order of time."""
    with open_source(source) as text:
        lines = _text_lines(text)
        first = next(lines, b"")
        try:
            header = parse_header(first.decode("utf-8", "replace").rstrip("\r\n"))
        except HeaderError as error:
            raise TraceError(source, str(error), hint="choose a Paraver trace") from None
        yield first if first.endswith(b"\n") else first + b"\n"
        before = sum(sum(one.threads) for one in header.applications[: application - 1])
        threads = header.applications[application - 1].threads
        cpu = np.array([before, *threads], np.int64).cumsum()[process] + 1
        order = np.argsort(time // header.unit, kind="stable")
        columns = (time // header.unit, cpu, process + 1, value)
        events = (
            (at, f"2:{where}:{application}:{task}:1:{at}:{number}:{what}\n".encode())
            for at, where, task, what in zip(*(c[order].tolist() for c in columns), strict=True)
        )
        at, event = next(events, (None, b""))
        for line in lines:
            if at is not None and line[:1] in _RECORDS:
                now = int(line.split(b":", 6)[5])
                while at is not None and at < now:
                    yield event
                    at, event = next(events, (None, b""))
            yield line if line.endswith(b"\n") else line + b"\n"
        if at is not None:
            yield event
            yield from (event for _, event in events)


def _text_lines(source: TraceSource) -> Iterator[bytes]:
    """Lines of a text with their ends; the last one may have none."""
    buffer = memoryview(bytearray(CHUNK))
    left = b""
    while size := source.readinto(buffer):
        *whole, left = (left + bytes(buffer[:size])).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if left:
        yield left
