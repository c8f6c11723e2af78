"""Reads archives of OTF2, given as their ``traces.otf2`` or as its directory."""

from __future__ import annotations

import mmap
import os
import re
import tempfile
import threading
from contextlib import ExitStack
from contextvars import copy_context
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from popmodel.base.arrays import among
from popmodel.base.errors import TraceError, UsageError
from popmodel.base.units import format_time
from popmodel.kernel import _kernel
from popmodel.traces.codes import Event
from popmodel.traces.device_rows import COLLECTIVE, COPY, KERNEL, DeviceRows
from popmodel.traces.intervals import Spans
from popmodel.traces.otf2.archive_regions import plan_metrics, plan_regions
from popmodel.traces.otf2.libotf2 import anchor_of, find_library
from popmodel.traces.paraver.columns import temporary_files
from popmodel.traces.paraver.event_tables import ParaverRecords
from popmodel.traces.paraver.numbers import DEVICE_CALLS, NUMBERS
from popmodel.traces.recorded_run import Trace
from popmodel.traces.records import FunctionTimes
from popmodel.traces.resources import memory_error, scratch_folder
from popmodel.traces.tables import EventTable, MessageTable, States, TraceWarning, offsets_of, walk
from popmodel.traces.workers import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.otf2.archive_regions import RegionPlan

BATCH = 1 << 15
"""Events that are read at a time."""
HELD = 1 << 28
"""Bytes of columns that are kept in memory; longer ones go to temporary files."""
LARGEST_TIME = 1 << 62
"""Nanoseconds of all threads together that sums can hold."""
EXPANSION = 32
"""Events, or definitions, that a byte of a file can hold, which may be compressed."""
MANY, ENDS = 1 << 20, 1 << 21
"""From so many events on cores read together, and there is room for so many messages at once."""
MOST_READERS, LONG = 16, 1 << 24
"""Cores that read at most; events from which on columns go to temporary files at once."""
PIECE = 1 << 21
"""Bytes that are written to them at a time."""
TYPES = tuple(
    NUMBERS[event]
    for event in (
        *(Event.BYTES_SENT, Event.BYTES_RECEIVED, Event.COMMUNICATOR, Event.IS_ROOT),
        *(Event.CALLER, Event.PARALLEL, Event.OUTLINED, Event.USER_REGION),
        *(Event.FILE_CALL, Event.FILE_BYTES, Event.MPI_FILE_BYTES),
    )
)
NOTICES = (
    "entries and exits of regions that do not match (filtered, rewound or lost)",
    "records of regions or communicators that are not defined (ignored)",
    "records out of time order (taken at the time of the one before)",
    "times that the measurement wrote its buffer to disk (not useful time)",
    "receives without the record of their begin (taken as begun where they end)",
    "readings of metrics that are of more than a thread (left out)",
    "samples (ignored: times are those of instrumented regions)",
    # And of what Python counts.
    "messages of which only one end is recorded (dropped)",
    "metrics of more than a thread (left out)",
)
"""Texts of what the kernel tallies, in its order."""
_STREAM, _METRIC = 2, 3
_ACCELERATOR = 2
_COMM_LOCATIONS, _COMM_GROUP, _COMM_SELF, _COMM_PROCESSES = 4, 5, 6, 7
_GLOBAL_RANKS = 1
_MPI = 4
_SHARED_MEMORY, _PARALLEL_IO = 1, 1
_NS = 1e9
_DAMAGED = "copy the archive again, with all of its files, or trace the run again"
_COLUMNS: Mapping[str, Mapping[str, type[np.generic]]] = {
    "states": {"begin": np.int64, "end": np.int64, "state": np.int32},
    "events": {"time": np.int64, "type": np.uint32, "value": np.int64},
}

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")
Defined = dict[str, list[tuple[Any, ...]]]


class ArchiveRecords(ParaverRecords):
    """Records of an archive."""

    function_times: FunctionTimes | None = None

    def functions(self, process_offsets: NDArray[np.int64]) -> FunctionTimes | None:  # noqa: ARG002
        return self.function_times


class _Process(NamedTuple):
    group: int  # Its location group
    locations: list[int]  # Its threads, the first one first


class _Thread(NamedTuple):
    location: int
    place: int  # Among all threads
    process: int
    is_first: bool  # Of its process
    events: int  # As the definitions state
    most: int  # Events that its file can hold


def read(path: str | os.PathLike[str], application: int = 1) -> Trace:
    """Read an archive; parameters as those of `popmodel.traces.read`."""
    anchor = anchor_of(Path(path))
    if application != 1:
        raise UsageError(f"{path}: no application {application}", "an archive has application 1")
    shown = os.fspath(path).encode(errors="backslashreplace").decode()
    try:
        with ExitStack() as files:
            return _read(find_library(), anchor, shown, files)
    except _kernel.Otf2Error as error:
        problem = f"cannot be read as an archive of OTF2: {str(error)[:200]}"
        raise TraceError(path, problem, hint=_DAMAGED) from None
    except MemoryError:
        raise memory_error(path) from None


def _read(library: str, anchor: Path, shown: str, files: ExitStack) -> Trace:
    readers = [_kernel.Otf2Reader(library, os.fspath(anchor))]
    reader = readers[0]
    file = anchor.with_suffix(".def")
    defined = reader.definitions(EXPANSION * file.stat().st_size if file.exists() else 0)
    strings = {self: text.decode(errors="replace") for self, text in defined.get("strings", ())}
    resolution, origin, _ = (defined.get("clock") or [(0, 0, 0)])[0]
    if not resolution:
        raise TraceError(anchor, "its clock has no resolution", hint=_DAMAGED)
    processes, streams = _processes(defined, anchor)
    plan = plan_regions(defined.get("regions", ()), strings)
    metrics, labels, wider = plan_metrics(defined, strings, plan.labels)
    communicators = _Communicators(defined, processes)
    contexts = defined.get("contexts", ())
    parallel = {self for self, kind in defined.get("io_paradigms", ()) if kind == _PARALLEL_IO}
    handles = [self for self, paradigm in defined.get("io_handles", ()) if paradigm in parallel]
    threads = _threads(defined, processes, anchor)
    if sum(thread.events for thread in threads) > MANY:
        more = range(1, min(usable_cores(), len(threads), MOST_READERS))
        readers += [_kernel.Otf2Reader(library, os.fspath(anchor)) for _ in more]
    for each in readers:
        each.describe(
            **plan.columns,
            **communicators.columns,
            metrics=metrics,
            contexts=np.array([self for self, _ in contexts], np.uint32),
            context_regions=np.array([region for _, region in contexts], np.uint32),
            parallel_handles=np.array(handles, np.uint32),
            types=np.array(TYPES, np.uint32),
            resolution=resolution,
            offset=origin,
        )
    tables = _tables(readers, threads, anchor, files)
    *columns, lost = reader.messages()
    offsets = offsets_of(np.bincount(columns[0], minlength=len(tables["events"]["offsets"]) - 1))
    messages = MessageTable(offsets, *columns)
    devices = _devices(reader, defined, strings, plan, processes, streams)
    shift = reader.first_time
    if shift:
        _move(tables, messages, devices, shift)
    end = reader.last_time - shift
    if end * (len(tables["events"]["offsets"]) - 1) > LARGEST_TIME:
        span = format_time(end / _NS)
        raise TraceError(anchor, f"its times span {span}: they are damaged", hint=_DAMAGED)
    process_offsets = offsets_of(np.array([len(each.locations) for each in processes], np.int64))
    records = ArchiveRecords(
        States(**tables["states"]),
        EventTable(**tables["events"]),
        messages,
        labels,
        end,
        shown,
        devices,
    )
    records.function_times = _function_times(reader, plan)
    nodes, node_of = _nodes(defined, processes)
    names = {self: strings.get(text, "") for self, text, *_ in defined.get("locations", ())}
    counted = zip(NOTICES, (*reader.tallies(), lost, wider), strict=True)
    said = [TraceWarning(text, count) for text, count in counted if count]
    if shift > 0:
        said.append(
            TraceWarning(
                f"times count from the first record, {format_time(shift / _NS)} after the begin "
                "that the archive states"
            )
        )
    return Trace(
        path=shown,
        application=1,
        begin=0,
        end=end,
        nodes=nodes,
        process_offsets=process_offsets,
        node_of_location=np.repeat(node_of, np.diff(process_offsets)).astype(np.int32),
        communicators=communicators.ranks(),
        records=records,
        names=tuple(names[each] for process in processes for each in process.locations),
        warnings=tuple(said),
        origin=max(shift, 0),
    )


# Processes and threads.


def _processes(defined: Defined, anchor: Path) -> tuple[list[_Process], list[int]]:
    """Processes in the order of their ranks, and the locations that are streams of devices."""
    groups = {self: type_ for self, _, type_, *_ in defined.get("processes", ())}
    of_group: dict[int, list[int]] = {}
    group_of: dict[int, int] = {}
    streams = []
    for self, _, type_, _, group in defined.get("locations", ()):
        if type_ == _STREAM or (groups.get(group) == _ACCELERATOR and type_ != _METRIC):
            streams.append(self)
        elif type_ != _METRIC and group in groups and self not in group_of:
            of_group.setdefault(group, []).append(self)
            group_of[self] = group
    ranks = _of_mpi(defined, group_of)
    masters = {group: location for location, group in reversed(ranks)}
    order = dict.fromkeys(group for _, group in ranks)
    order.update(dict.fromkeys(group for group in groups if group in of_group))
    found = []
    for group in order:
        first = masters.get(group, of_group[group][0])
        found.append(_Process(group, [first, *(o for o in of_group[group] if o != first)]))
    if not found:
        raise TraceError(anchor, "it defines no process with a thread", hint=_DAMAGED)
    return found, streams


def _threads(defined: Defined, processes: Sequence[_Process], anchor: Path) -> list[_Thread]:
    """All threads in their order."""
    stated = {self: number for self, _, _, number, _ in defined.get("locations", ())}
    found: list[_Thread] = []
    for process, (_, locations) in enumerate(processes):
        for location in locations:
            is_first = location == locations[0]
            most = _most_events(anchor, location)
            events = min(stated[location], most)
            found.append(_Thread(location, len(found), process, is_first, events, most))
    return found


def _of_mpi(defined: Defined, group_of: Mapping[int, int]) -> list[tuple[int, int]]:
    """Location and location group of each rank of MPI."""
    first = {group: location for location, group in reversed([*group_of.items()])}
    for _, type_, paradigm, _, members in defined.get("groups", ()):
        if paradigm == _MPI and type_ == _COMM_LOCATIONS:
            return [(each, group_of[each]) for each in members if each in group_of]
        if paradigm == _MPI and type_ == _COMM_PROCESSES:
            return [(first[each], each) for each in members if each in first]
    return []


def _nodes(
    defined: Defined, processes: Sequence[_Process]
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Threads of each node, and the node of each process."""
    tree = {self: (kind, parent) for self, _, kind, parent in defined.get("nodes", ())}
    texts: dict[int, bytes] = dict(defined.get("strings", ()))
    shared = {node for node, domain in defined.get("domains", ()) if domain == _SHARED_MEMORY}
    shared |= {node for node, (kind, _) in tree.items() if texts.get(kind) == b"node"}
    place = {self: node for self, _, _, node, _ in defined.get("processes", ())}
    number: dict[int, int] = {}
    threads: list[int] = []
    node_of = []
    for process in processes:
        at = place.get(process.group, -1)
        passed: set[int] = set()
        while at in tree and at not in shared and at not in passed:
            passed.add(at)
            at = tree[at][1]
        where = at if at in shared else place.get(process.group, -1)
        if where not in number:
            number[where] = len(number)
            threads.append(0)
        threads[number[where]] += len(process.locations)
        node_of.append(number[where])
    return tuple(threads), np.array(node_of, np.int64)


_COPIES = re.compile("memcpy|memset|copy|transfer", re.IGNORECASE)
_NO_ACTIVITY = re.compile("idle|(?<!a)sync|wait", re.IGNORECASE)


def _devices(
    reader: _kernel.Otf2Reader,
    defined: Defined,
    strings: Mapping[int, str],
    plan: RegionPlan,
    processes: Sequence[_Process],
    streams: Sequence[int],
) -> DeviceRows:
    """What streams of devices do; a location group of its own is a device."""
    rows = {self: (strings.get(name, ""), group) for self, name, *_, group in defined["locations"]}
    of_group = {process.group: number for number, process in enumerate(processes)}
    groups = {self: strings.get(name, "") for self, name, *_ in defined.get("processes", ())}
    creators = {self: by for self, *_, by in defined.get("processes", ())}
    number: dict[str, int] = {}
    device, process_of, counts = [], [], []
    spans = [np.empty((3, 0), np.int64)]
    for stream in streams:
        group = rows[stream][1]
        by = group if group in of_group else creators[group]
        process_of.append(of_group.get(by, 0))
        of = groups[group] if group not in of_group else f"device of process {of_group[group] + 1}"
        device.append(number.setdefault(of, len(number)))
        spans.append(_activity(reader, plan, stream, process_of[-1]))
        counts.append(spans[-1].shape[1])
    begin, end, what = np.concatenate(spans, axis=1)
    return DeviceRows(
        names=tuple(rows[stream][0] or f"stream {stream}" for stream in streams),
        device=np.array(device, np.int32),
        process=np.array(process_of, np.int32),
        devices=tuple(number),
        activity=Spans(offsets_of(np.array(counts, np.int64)), begin, end, what),
        calls=Spans.none(sum(len(process.locations) for process in processes)),
    )


def _activity(
    reader: _kernel.Otf2Reader, plan: RegionPlan, stream: int, process: int
) -> NDArray[np.int64]:
    """Begin, end and kind of what a stream does: int64[3, n]."""
    reader.open(stream, -1, process, False)
    while reader.read(BATCH):
        pass
    *_, time, type_, value = reader.columns()
    rows = np.flatnonzero(among(type_, DEVICE_CALLS))
    time, value = time[rows], value[rows]
    some = np.flatnonzero(value[:-1])
    kinds = np.array([_kind(name) for name in plan.names] or [-1], np.int64)[value[some] - 1]
    doing = kinds >= 0
    return np.stack([time[some], time[some + 1], kinds])[:, doing]


def _kind(name: str) -> int:
    if _NO_ACTIVITY.search(name):
        return -1
    if "nccl" in name.lower() or "rccl" in name.lower():
        return COLLECTIVE
    return COPY if _COPIES.search(name) else KERNEL


class _Communicators:
    """Communicators of MPI, as processes; the kernel knows them by their place in the list."""

    def __init__(self, defined: Defined, processes: Sequence[_Process]) -> None:
        self.processes = len(processes)
        self.base: list[int] = []  # process of each rank of the whole program
        process_of = {each: p for p, process in enumerate(processes) for each in process.locations}
        of_group = {process.group: p for p, process in enumerate(processes)}
        groups = {}
        for self_, type_, paradigm, flags, members in defined.get("groups", ()):
            if paradigm != _MPI:
                continue
            groups[self_] = type_, flags, members
            if type_ in (_COMM_LOCATIONS, _COMM_PROCESSES):
                known = process_of if type_ == _COMM_LOCATIONS else of_group
                self.base = [known.get(each, -1) for each in members]
        self.references: list[int] = []
        self.members: list[list[int]] = []  # processes
        self.own: list[bool] = []
        self.far: list[list[int]] = []  # what ranks in records mean
        self.near: list[list[int]] = []  # and what to processes that are not in here
        listed = {group for group, (type_, _, _) in groups.items() if type_ >= _COMM_GROUP}
        for self_, _, group in defined.get("communicators", ()):
            if group not in listed:
                continue
            type_, flags, _ = groups[group]
            members = self._processes(groups[group])
            ranks = self.base if flags & _GLOBAL_RANKS else members
            self._add(self_, members, ranks, [], type_ == _COMM_SELF)
        for self_, group, other in defined.get("intercommunicators", ()):
            if group in groups and other in groups:
                far, near = (self._processes(groups[each]) for each in (other, group))
                self._add(self_, [], far, near, False)

    def _add(
        self, reference: int, members: list[int], far: list[int], near: list[int], own: bool
    ) -> None:
        self.references.append(reference)
        self.members.append(members)
        self.far.append(far)
        self.near.append(near)
        self.own.append(own)

    def _processes(self, group: tuple[int, int, list[int]]) -> list[int]:
        type_, _, members = group
        if type_ == _COMM_SELF:
            return []
        found = [self.base[each] for each in members if each < len(self.base)]
        return [each for each in found if each >= 0]

    @property
    def numbers(self) -> list[int]:
        """Number of each; those of which each process has its own count on from there."""
        found, free = [], 1
        for place, own in enumerate(self.own):
            told = own or self.members[place]
            found.append(free if told else 0)
            free += self.processes if own else bool(told)
        return found

    @property
    def columns(self) -> dict[str, Any]:
        """As the kernel takes them."""
        return {
            "communicators": np.array(self.references, np.uint32),
            "number": np.array(self.numbers, np.int64),
            "own": np.array(self.own, np.uint8),
            "members": self.members,
            "far": self.far,
            "near": self.near,
        }

    def ranks(self) -> dict[int, NDArray[np.int32]]:
        """Ranks of each by its number."""
        found = {}
        for number, members, own in zip(self.numbers, self.members, self.own, strict=True):
            if own:
                each = range(self.processes)
                found.update({number + rank: np.array([rank], np.int32) for rank in each})
            elif members:
                found[number] = np.array(members, np.int32)
        return found


# States and events, in memory or mapped from temporary files.


def _tables(
    readers: Sequence[_kernel.Otf2Reader],
    threads: Sequence[_Thread],
    anchor: Path,
    files: ExitStack,
) -> dict[str, dict[str, NDArray[Any]]]:
    """Read all threads, each reader a part of them: columns of states and events."""
    events = np.cumsum([thread.events for thread in threads])
    ends = np.searchsorted(events, events[-1] * np.arange(1, len(readers)) / len(readers))
    # Threads of a process stay together: workers are in the functions that their master is in.
    first = np.flatnonzero([*(thread.is_first for thread in threads), True])
    bounds = [0, *first[np.searchsorted(first, ends)].tolist(), len(threads)]
    parts = [threads[begin:end] for begin, end in pairwise(bounds)]
    is_long = events[-1] > LONG
    if events[-1] > MANY:
        for reader, part in zip(readers, parts, strict=True):
            rows = 0 if is_long else sum(thread.events for thread in part)
            reader.reserve(ENDS // len(readers), rows)
    # Long columns go to files from the begin: pieces stay in the cache of a core.
    limit = PIECE if is_long else HELD
    opened = [_open_files(anchor, files) if is_long else [] for _ in readers]
    stop = threading.Event()

    def read(part: int) -> list[tuple[int, int]]:
        to = opened[part]
        return _read_threads(readers[part], parts[part], limit, anchor, files, to, stop)

    ends_of_parts = _at_once(read, range(len(readers)), stop)
    if any(opened):
        with temporary_files(anchor):
            for reader, written in zip(readers, opened, strict=True):
                written += [] if written else _open_files(anchor, files)
                reader.write([file.fileno() for file in written])
            _at_once(_append, [*zip(*opened, strict=True)], stop)
            kinds = [kind for of in _COLUMNS.values() for kind in of.values()]
            columns = [_mapped(file, kind) for file, kind in zip(opened[0], kinds, strict=True)]
    patches = [reader.patches() for reader in readers]
    for reader in readers[1:]:
        readers[0].gather(reader)
    if not any(opened):
        columns = [*readers[0].columns()]
    tables: dict[str, dict[str, NDArray[Any]]] = {}
    for number, (table, of) in enumerate(_COLUMNS.items()):
        tables[table] = dict(zip(of, columns[3 * number :], strict=False))
    offsets = [(0, 0)]
    for ends, (where, value) in zip(ends_of_parts, patches, strict=True):
        states, event = offsets[-1]
        tables["events"]["value"][event + where] = value
        offsets += [(states + state_rows, event + event_rows) for state_rows, event_rows in ends]
    for table, column in zip(_COLUMNS, zip(*offsets, strict=True), strict=True):
        tables[table]["offsets"] = np.array(column, np.int64)
    return tables


def _read_threads(
    reader: _kernel.Otf2Reader,
    threads: Sequence[_Thread],
    limit: int,
    anchor: Path,
    files: ExitStack,
    opened: list[IO[bytes]],
    stop: threading.Event,
) -> list[tuple[int, int]]:
    """Read some threads; how many states and events there were after each."""
    rows = []
    for thread in threads:
        if stop.is_set():
            break
        reader.open(thread.location, thread.place, thread.process, thread.is_first)
        read = 0
        while reader.read(BATCH) and not stop.is_set():
            read += BATCH
            if read > thread.most:
                problem = f"location {thread.location} has more records than its file can hold"
                raise TraceError(anchor, problem, hint=_DAMAGED)
            if reader.held > limit:
                with temporary_files(anchor):
                    opened += [] if opened else _open_files(anchor, files)
                    reader.write([file.fileno() for file in opened])
        rows.append(reader.rows())
    return rows


def _at_once(
    work: Callable[[_Task], _Done], tasks: Sequence[_Task], stop: threading.Event
) -> list[_Done]:
    """Do all tasks, each on a thread of its own; an error of one, or of the user, stops them."""
    if len(tasks) == 1:
        return [work(tasks[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(tasks)) as pool:
        done = [pool.submit(copy_context().run, work, task) for task in tasks]
        try:
            return [each.result() for each in done]
        except BaseException:
            stop.set()
            raise


def _most_events(anchor: Path, location: int) -> int:
    """Events that a file can hold, if it is there: damage can make the library read for ever."""
    try:
        size = (anchor.with_suffix("") / f"{location}.evt").stat().st_size
    except OSError:
        return 1 << 48
    return EXPANSION * size


def _open_files(anchor: Path, files: ExitStack) -> list[IO[bytes]]:
    """A temporary file for each column."""
    folder = scratch_folder(anchor)
    with temporary_files(anchor):
        return [
            files.enter_context(tempfile.TemporaryFile(buffering=0, dir=folder))
            for of in _COLUMNS.values()
            for _ in of
        ]


def _append(columns: Sequence[IO[bytes]]) -> None:
    """Append to the first file what the others hold."""
    for other in columns[1:]:
        left = _mapped(other, np.uint8).data
        while left:
            left = left[columns[0].write(left) :]


def _mapped(file: IO[bytes], kind: type[np.generic]) -> NDArray[Any]:
    size = os.fstat(file.fileno()).st_size
    return np.frombuffer(mmap.mmap(file.fileno(), size) if size else b"", kind)


def _move(
    tables: dict[str, dict[str, NDArray[Any]]],
    messages: MessageTable,
    devices: DeviceRows,
    shift: int,
) -> None:
    """Let times count from the first record."""
    columns = [tables["states"]["begin"], tables["states"]["end"], tables["events"]["time"]]
    columns += [devices.activity.begin, devices.activity.end]
    for way in ("send", "receive"):
        columns += [getattr(messages, f"logical_{way}"), getattr(messages, f"physical_{way}")]
    for column in columns:
        for block in walk(column):
            column[block] -= shift


def _function_times(reader: _kernel.Otf2Reader, plan: RegionPlan) -> FunctionTimes | None:
    location, region, *columns = reader.functions()
    some = np.unique(region)
    function = np.searchsorted(some, region).astype(np.int32)
    names = tuple(plan.names[row] for row in some.tolist())
    return FunctionTimes(names, location, function, *columns) if names else None
