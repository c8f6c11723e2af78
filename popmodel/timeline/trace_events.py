"""Runs in the Trace Event Format, which Perfetto and Chrome's viewer show."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel._version import __version__
from popmodel.base import files
from popmodel.base.arrays import distinct, numbered, spread
from popmodel.base.errors import FileError
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.efficiency.measure import refuse_untimed
from popmodel.timeline.lanes import (
    Arrows,
    LaneClock,
    NamedRegions,
    measured_messages,
    regions_of,
    replayed_messages,
    rows_of,
)
from popmodel.timeline.timeline import replay_of
from popmodel.traces.codes import IDLE, NOT_CREATED, STATES

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from popmodel.traces import Trace
    from popmodel.traces.calls import CallTable
    from popmodel.traces.tables import States


# What a thread does, as slices that nest: regions, in them calls of MPI and states.


class Name(NamedTuple):
    """What a slice is called, and what kind of thing that is."""

    name: str
    category: str


class Slices(NamedTuple):
    """Slices of a thread in order: what contains others comes before them."""

    # int64[n]: Nanoseconds.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    what: NDArray[np.int64]  # int64[n]: Index into names


class ThreadEvents:
    """Slices of the threads of a run, one thread at a time."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._regions: NamedRegions = regions_of(trace)
        self._first = np.searchsorted(self._regions.location, np.arange(trace.locations + 1))
        self._calls: CallTable = trace.calls()
        whole = trace.whole or trace
        one = trace.pieces is None or len(trace.pieces) == 1
        # One window keeps its times: of each thread its own states are cut, never all of them.
        self._states: States = whole.states if one else trace.states
        self._state_names: dict[int, int] = {}
        kinds = ["region"] * self._regions.marked
        kinds += ["parallel region"] * (len(self._regions.names) - len(kinds))
        groups = [group.value for group in self._calls.group]
        self.first_call = len(kinds)  # number of the first name of a call
        # What slices can be; grows with the states that threads are found in.
        self.names = [
            *map(Name, self._regions.names, kinds),
            *map(Name, self._calls.names, groups),
        ]

    def of(self, location: int) -> Slices:
        spans, calls = self._regions, self._calls
        mine = slice(int(self._first[location]), int(self._first[location + 1]))
        rows = slice(int(calls.offsets[location]), int(calls.offsets[location + 1]))
        regions = Slices(spans.begin[mine], spans.end[mine], spans.label[mine])
        called = calls.name[rows].astype(np.int64) + self.first_call
        inside = Slices(calls.entry[rows], calls.exit[rows], called)
        beside = self._beside(location, regions, inside)
        begin, end, what = (
            np.concatenate(each) for each in zip(regions, inside, beside, strict=True)
        )
        # Of things that begin at once the longer one is outside; of equal ones the region is.
        rank = np.repeat(np.arange(3), [len(each.begin) for each in (regions, inside, beside)])
        order = np.lexsort((rank, -end, begin))
        return Slices(begin[order], end[order], what[order])

    def _beside(self, location: int, regions: Slices, calls: Slices) -> Slices:
        """States where no call says what the thread does, cut where regions begin and end."""
        states, trace = self._states, self._trace
        rows = slice(int(states.offsets[location]), int(states.offsets[location + 1]))
        state = states.state[rows]
        begin = np.maximum(states.begin[rows], trace.begin)
        end = np.minimum(states.end[rows], trace.end)
        some = (end > begin) & (state != IDLE) & (state != NOT_CREATED)
        begin, end, what = begin[some], end[some], self._numbers(state[some])
        edges = distinct(np.concatenate([*regions[:2], *calls[:2], [_NEVER]]))
        first = np.searchsorted(edges, begin, side="right")
        last = np.searchsorted(edges, end, side="left")
        row, edge = spread(first, np.maximum(last - first, 0) + 1)
        since = np.where(edge == first[row], begin[row], edges[edge - 1])
        until = np.minimum(end[row], edges[edge])
        over = np.append(np.maximum.accumulate(calls.end), 0)
        call = np.searchsorted(calls.begin, since, side="right") - 1
        free = (call < 0) | (over[call] <= since)
        return Slices(since[free], until[free], what[row[free]])

    def _numbers(self, state: NDArray[np.int32]) -> NDArray[np.int64]:
        there, which = numbered(state.astype(np.int64))
        for each in there.tolist():
            if each not in self._state_names:
                self._state_names[each] = len(self.names)
                self.names.append(Name(STATES.get(each, f"state {each}"), "state"))
        return np.array([self._state_names[each] for each in there.tolist()], np.int64)[which]


_NEVER = np.iinfo(np.int64).max


def replayed_slices(
    clock: LaneClock, process: int, called: NDArray[np.int64], computing: int
) -> Slices:
    """What a process does in a replay: calls that take time there, and computing between them."""
    calls = clock.calls
    mine = slice(int(calls.offsets[process]), int(calls.offsets[process + 1]))
    begin, end = clock.shown(calls.begin[mine]), clock.shown(calls.end[mine])
    last = clock.shown(clock.last[process : process + 1])
    since = np.concatenate([begin, [clock.begin], end])
    until = np.concatenate([end, begin, last])
    what = np.concatenate([called[mine], np.full(len(begin) + 1, computing)])
    order = np.argsort(since, kind="stable")
    order = order[until[order] > since[order]]
    return Slices(since[order], until[order], what[order])


# Writes runs in the Trace Event Format, which Perfetto and Chrome's viewer show.
#
# A process of the run is one there, with its threads; regions hold calls of MPI, and states stand
# between these. Messages are flows from call to call. The ideal replay follows as further
# processes, with 0 where the run begins. Times are in microseconds with three decimals: whole
# nanoseconds.
#
# The format: "Trace Event Format", Google, the JSON Object Format; of its events complete ones (X),
# metadata (M) and flows (s, f).


SUFFIXES = (".perfetto.json", ".perfetto.json.gz")
"""Of its files."""

_AT_ONCE = 4096
"""Events that are written together."""
_COMPUTING = Name("computing", "state")


@dataclass(frozen=True)
class Exported:
    """What was written."""

    # How many there are, of the measured run.
    slices: int
    messages: int
    notes: tuple[str, ...]  # What the file does not hold as it is, a sentence each


def export(trace: Trace, path: str | os.PathLike[str]) -> Exported:
    """Write a run, and its replay on an ideal network, to a file; compressed if its name says so.

    Memory holds the slices of one thread at a time.
    """
    refuse_untimed(trace)
    events = _Events(trace)
    try:
        with files.written(path) as file:
            if Path(path).name.endswith(".gz"):
                # without the time, equal runs are equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0, compresslevel=6) as packed:
                    packed.writelines(_document(trace, events))
            else:
                file.writelines(_document(trace, events))
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint="choose another path with -o") from error
    return Exported(events.slices, events.messages, tuple(events.notes()))


def _document(trace: Trace, events: _Events) -> Iterator[bytes]:
    """The file, in pieces."""
    about = {"tool": f"popmodel {__version__}", "trace": _text(trace.path)}
    yield b'{"displayTimeUnit":"ns","otherData":' + json.dumps(about, allow_nan=False).encode()
    yield b',"traceEvents":['
    lines, before = iter(events), "\n"
    while some := list(islice(lines, _AT_ONCE)):
        yield (before + ",\n".join(some)).encode()
        before = ",\n"
    yield b"\n]}\n"


class _Events:
    """Events of a run, each as its text."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._replay, self._why_no_replay = replay_of(trace)
        self.slices = self.messages = 0  # written of the measured run
        self.shortened = 0  # slices that ended behind the one that they are in

    def notes(self) -> Iterator[str]:
        """What is not in the file as it is in the trace."""
        if self._replay is None:
            yield f"no ideal replay beside the run: {self._why_no_replay}"
        if self.shortened:
            yield (
                f"{plural(self.shortened, 'slice ends', 'slices end')} with the region or call "
                "around, which the trace says to end before"
            )

    def __iter__(self) -> Iterator[str]:
        trace, threads = self._trace, ThreadEvents(self._trace)
        # Numbers as of processes and threads of a system: the master has that of its process, none
        # is 0, which viewers take for the idle one, and none is there twice.
        process = trace.process_of_location()
        masters = np.asarray(trace.process_offsets, np.int64)
        for rank in range(trace.processes):
            yield from _process(int(masters[rank]) + 1, f"rank {rank}", rank)
        for location in range(trace.locations):
            master = int(masters[process[location]])
            place = master + 1, location + 1
            yield from _thread(*place, f"thread {location - master}", location - master)
            slices = threads.of(location)
            self.slices += len(slices.begin)
            yield from self._slices(place, slices, threads.names)
        rows = rows_of(trace, trace.locations)
        arrows = _inside(measured_messages(trace, rows, len(trace.messages.size)), trace)
        self.messages = len(arrows)
        yield from _flows(arrows, masters[process], np.arange(trace.locations), 0)
        yield from self._replayed(threads)
        yield from self._devices()

    def _devices(self) -> Iterator[str]:
        """What each stream of a device does: a thread of the process that the device is."""
        devices, first = self._trace.devices, self._trace.locations + self._trace.processes
        names = [Name(name, "device") for name in ("kernel", "copy", "collective")]
        activity = devices.activity
        for number, name in enumerate(devices.devices):
            streams = np.flatnonzero(devices.device == number).tolist()
            pid = first + streams[0] + 1
            yield from _process(pid, name, 2 * self._trace.processes + number)
            for place, row in enumerate(streams):
                yield from _thread(pid, first + row + 1, devices.names[row], place)
                mine = slice(int(activity.offsets[row]), int(activity.offsets[row + 1]))
                slices = Slices(activity.begin[mine], activity.end[mine], activity.what[mine])
                self.slices += len(slices.begin)
                yield from self._slices((pid, first + row + 1), slices, names)

    def _replayed(self, threads: ThreadEvents) -> Iterator[str]:
        if self._replay is None:
            return
        trace, clock = self._trace, self._replay.clock
        names = [*threads.names, _COMPUTING]
        calls = (trace.whole or trace).calls()
        called = calls.name[clock.calls.call].astype(np.int64) + threads.first_call
        first = trace.locations
        for rank in range(trace.processes):
            place = first + rank + 1, first + rank + 1
            name = f"rank {rank}, ideal network"
            yield from _process(place[0], name, trace.processes + rank)
            yield from _thread(*place, "thread 0", 0)
            slices = replayed_slices(clock, rank, called, len(names) - 1)
            yield from self._slices(place, slices, names)
        rows = rows_of(trace, trace.locations)
        program, moments = self._replay.program, self._replay.moments
        arrows = replayed_messages(trace, program, moments, rows, len(program.messages))
        process = first + trace.process_of_location().astype(np.int64)
        yield from _flows(arrows, process, process, len(trace.messages.size))

    def _slices(
        self, place: tuple[int, int], slices: Slices, names: Sequence[Name]
    ) -> Iterator[str]:
        """Slices of a thread; one that ends behind what it is in ends with that."""
        texts = (json.dumps(_text(each.name), allow_nan=False) for each in names)
        heads = [
            f'{{"ph":"X","pid":{place[0]},"tid":{place[1]},"name":{text},'
            f'"cat":"{each.category}","ts":'
            for each, text in zip(names, texts, strict=True)
        ]
        around: list[int] = []
        for begin, end, what in zip(*(each.tolist() for each in slices), strict=True):
            while around and around[-1] <= begin:
                around.pop()
            if around and end > around[-1]:
                end = around[-1]
                self.shortened += 1
            if end > begin:
                around.append(end)
            yield f'{heads[what]}{_time(begin)},"dur":{_time(end - begin)}}}'


def _process(pid: int, name: str, place: int) -> Iterator[str]:
    yield _metadata("process_name", pid, pid, {"name": name})
    yield _metadata("process_sort_index", pid, pid, {"sort_index": place})


def _thread(pid: int, tid: int, name: str, place: int) -> Iterator[str]:
    yield _metadata("thread_name", pid, tid, {"name": name})
    yield _metadata("thread_sort_index", pid, tid, {"sort_index": place})


def _metadata(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    event = {"ph": "M", "pid": pid, "tid": tid, "name": name, "args": args}
    return json.dumps(event, separators=(",", ":"), allow_nan=False)


def _inside(arrows: Arrows, trace: Trace) -> Arrows:
    """Messages of which both calls are there."""
    first = np.minimum(arrows.sent, arrows.received)
    last = np.maximum(arrows.sent, arrows.received)
    return arrows.at(np.flatnonzero((first >= trace.begin) & (last <= trace.end)))


def _flows(
    arrows: Arrows, pid: np.ndarray[Any, Any], tid: np.ndarray[Any, Any], before: int
) -> Iterator[str]:
    """Messages as flows, whose numbers begin behind those before; `pid` and `tid` by location.

    A flow leads to the slice that holds its time: the receiving call ends a nanosecond later. One
    that takes no time ends where it begins.
    """
    received = np.maximum(arrows.received - 1, arrows.sent)
    columns: Iterable[np.ndarray[Any, Any]] = (
        pid[arrows.sender] + 1, tid[arrows.sender] + 1, arrows.sent,
        pid[arrows.receiver] + 1, tid[arrows.receiver] + 1, received, arrows.size,
    )  # fmt: skip
    rows = zip(*(each.tolist() for each in columns), strict=True)
    for number, (pid_, tid_, sent, other, thread, end, size) in enumerate(rows, before):
        head = f'"cat":"message","name":"message","id":{number}'
        yield (
            f'{{"ph":"s",{head},"pid":{pid_},"tid":{tid_},"ts":{_time(sent)},'
            f'"args":{{"bytes":{size}}}}}'
        )
        yield (f'{{"ph":"f","bp":"e",{head},"pid":{other},"tid":{thread},"ts":{_time(end)}}}')


def _time(nanoseconds: int) -> str:
    """Microseconds, exact to the nanosecond."""
    whole, rest = divmod(nanoseconds, 1000)
    return f"{whole}.{rest:03d}"


def _text(text: str) -> str:
    """Text as any reader of JSON takes it: bytes that are no UTF-8 are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
