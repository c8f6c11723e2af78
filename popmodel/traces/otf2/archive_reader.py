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
from popmodel.traces.intervals import Spans, TracePieces
from popmodel.traces.otf2.archive_processes import (
    DAMAGED,
    NO_LOCATION,
    ArchiveCommunicators,
    ArchiveProcess,
    Defined,
    nodes_of,
    processes_of,
)
from popmodel.traces.otf2.archive_regions import RegionPlan, plan_metrics, plan_regions
from popmodel.traces.otf2.libotf2 import anchor_of, find_library
from popmodel.traces.paraver.columns import temporary_files
from popmodel.traces.paraver.device_streams import with_states
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
_PARALLEL_IO = 1
_NS = 1e9
_COLUMNS: Mapping[str, Mapping[str, type[np.generic]]] = {
    "states": {"begin": np.int64, "end": np.int64, "state": np.int32},
    "events": {"time": np.int64, "type": np.uint32, "value": np.int64},
}

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


class ArchiveRecords(ParaverRecords):
    function_times: FunctionTimes | None = None
    anchor, shift = Path(), 0  # What is read, and how much later its times are there

    def functions(
        self,
        process_offsets: NDArray[np.int64],
        pieces: TracePieces | None = None,
    ) -> FunctionTimes | None:
        """Of pieces the archive is read again: its functions are no events of the trace."""
        if pieces is None:
            return self.function_times
        found = _read(self.anchor, self._path, [pieces.begin + self.shift, pieces.end + self.shift])
        return found.records.functions(process_offsets)


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
    return _read(anchor, os.fspath(path), [*np.empty((2, 0), np.int64)])


def _read(anchor: Path, path: str, pieces: Sequence[NDArray[np.int64]]) -> Trace:
    """Read an archive, and times of its functions in pieces of it; of all without any."""
    try:
        with ExitStack() as files:
            return _read_all(find_library(), anchor, path, files, pieces)
    except _kernel.Otf2Error as error:
        raise TraceError(path, _damage(anchor, str(error)[:200]), hint=DAMAGED) from None
    except MemoryError:
        raise memory_error(path) from None


def _damage(anchor: Path, said: str) -> str:
    """What is wrong with an archive: of its files, else what the library has said."""
    with anchor.open("rb") as file:
        if b"OTF2" not in file.read(8):
            return "is no anchor file of an archive in OTF2: empty, compressed or something else"
    folder = anchor.with_suffix("")
    definitions = folder.with_suffix(".def")
    if not definitions.exists() or not definitions.stat().st_size:
        return f"the archive lacks its definitions: {definitions.name} is missing or empty"
    if empty := [file.name for file in sorted(folder.glob("*.evt")) if not file.stat().st_size]:
        return f"the archive lacks events: {folder.name}/{empty[0]} is empty"
    if "local event reader" in said:
        return f"the archive lacks events: files {folder.name}/*.evt are missing or damaged"
    return f"cannot be read as an archive of OTF2: {said}"


def _read_all(
    library: str,
    anchor: Path,
    path: str,
    files: ExitStack,
    pieces: Sequence[NDArray[np.int64]],
) -> Trace:
    readers = [_kernel.Otf2Reader(library, os.fspath(anchor))]
    reader = readers[0]
    file = anchor.with_suffix(".def")
    defined = reader.definitions(EXPANSION * file.stat().st_size if file.exists() else 0)
    strings = {self: text.decode(errors="replace") for self, text in defined.get("strings", ())}
    resolution, origin, _ = (defined.get("clock") or [(0, 0, 0)])[0]
    if not resolution:
        raise TraceError(anchor, "its clock has no resolution", hint=DAMAGED)
    processes, streams = processes_of(defined, anchor)
    plan = plan_regions(defined.get("regions", ()), strings)
    metrics, labels, wider = plan_metrics(defined, strings, plan.labels)
    communicators = ArchiveCommunicators(defined, processes)
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
            piece_begin=pieces[0],
            piece_end=pieces[1],
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
        raise TraceError(anchor, f"its times span {span}: they are damaged", hint=DAMAGED)
    process_offsets = offsets_of(np.array([len(each.locations) for each in processes], np.int64))
    told = States(**tables["states"]), EventTable(**tables["events"]), messages
    records = ArchiveRecords(*told, labels, end, path, devices)
    if streams and not len(records.states.state):
        records = with_states(records, process_offsets)
    records.function_times = _function_times(reader, plan)
    records.anchor, records.shift = anchor, shift
    nodes, node_of = nodes_of(defined, processes)
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
        path=path,
        application=1,
        begin=0,
        end=end,
        nodes=nodes,
        process_offsets=process_offsets,
        node_of_location=np.repeat(node_of, np.diff(process_offsets)).astype(np.int32),
        communicators=communicators.ranks(),
        records=records,
        names=tuple(names.get(each, "") for process in processes for each in process.locations),
        warnings=tuple(said),
        origin=max(shift, 0),
    )


# Processes and threads.


def _threads(defined: Defined, processes: Sequence[ArchiveProcess], anchor: Path) -> list[_Thread]:
    """All threads in their order."""
    stated = {self: number for self, _, _, number, _ in defined.get("locations", ())}
    stated[NO_LOCATION] = 0
    found: list[_Thread] = []
    for process, (_, locations) in enumerate(processes):
        for location in locations:
            is_first = location == locations[0]
            most = _most_events(anchor, location)
            events = min(stated[location], most)
            found.append(_Thread(location, len(found), process, is_first, events, most))
    return found


_DATA_TRANSFER, _ALLOCATIONS = 30, range(35, 38)  # roles of OTF2
_COPIES = re.compile("memcpy|memset|copy|transfer", re.IGNORECASE)
_NO_ACTIVITY = re.compile("idle|(?<!a)sync|wait", re.IGNORECASE)


def _devices(
    reader: _kernel.Otf2Reader,
    defined: Defined,
    strings: Mapping[int, str],
    plan: RegionPlan,
    processes: Sequence[ArchiveProcess],
    streams: Sequence[int],
) -> DeviceRows:
    """What streams of devices do; a location group of its own is a device."""
    rows = {self: (strings.get(name, ""), group) for self, name, *_, group in defined["locations"]}
    of_group = {process.group: number for number, process in enumerate(processes)}
    groups = {self: strings.get(name, "") for self, name, *_ in defined.get("processes", ())}
    creators = {self: by for self, *_, by in defined.get("processes", ())}
    roles = (role for _, _, role, *_ in defined.get("regions", ()))
    kinds = np.array([*map(_kind, plan.names, roles)] or [-1], np.int64)
    number: dict[str, int] = {}
    names, device, process_of, counts = [], [], [], []
    spans = [np.empty((3, 0), np.int64)]
    for stream in streams:
        name, group = rows[stream]
        process = of_group.get(group if group in of_group else creators[group], 0)
        activity = _activity(reader, kinds, stream, process)
        if group in of_group and not activity.size:
            continue  # of no device, such as memory that rocprofv3 says is allocated
        of = groups[group] if group not in of_group else f"device of process {process + 1}"
        names.append(name or f"stream {stream}")
        device.append(number.setdefault(of, len(number)))
        process_of.append(process)
        spans.append(activity)
        counts.append(activity.shape[1])
    begin, end, what = np.concatenate(spans, axis=1)
    return DeviceRows(
        names=tuple(names),
        device=np.array(device, np.int32),
        process=np.array(process_of, np.int32),
        devices=tuple(number),
        activity=Spans(offsets_of(np.array(counts, np.int64)), begin, end, what),
        calls=Spans.none(sum(len(process.locations) for process in processes)),
    )


def _activity(
    reader: _kernel.Otf2Reader, kind_of: NDArray[np.int64], stream: int, process: int
) -> NDArray[np.int64]:
    """Begin, end and kind of what a stream does, by the kind of each region: int64[3, n]."""
    reader.open(stream, -1, process, False)
    while reader.read(BATCH):
        pass
    *_, time, type_, value = reader.columns()
    rows = np.flatnonzero(among(type_, DEVICE_CALLS))
    time, value = time[rows], value[rows]
    some = np.flatnonzero(value[:-1])
    kinds = kind_of[value[some] - 1]
    doing = kinds >= 0
    return np.stack([time[some], time[some + 1], kinds])[:, doing]


def _kind(name: str, role: int) -> int:
    if _NO_ACTIVITY.search(name) or role in _ALLOCATIONS:
        return -1
    if "nccl" in name.lower() or "rccl" in name.lower():
        return COLLECTIVE
    return COPY if role == _DATA_TRANSFER or _COPIES.search(name) else KERNEL


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
        if thread.location != NO_LOCATION:
            reader.open(thread.location, thread.place, thread.process, thread.is_first)
        read = 0
        while thread.location != NO_LOCATION and reader.read(BATCH) and not stop.is_set():
            read += BATCH
            if read > thread.most:
                problem = f"location {thread.location} has more records than its file can hold"
                raise TraceError(anchor, problem, hint=DAMAGED)
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
