"""Writes traces as archives of OTF2, which viewers such as Vampir open.

An archive holds calls of MPI with their messages and collectives, parallel regions with their
teams, barriers and locks, the user's regions, calls for files with their bytes, counters of the
hardware. Regions of their own tell the states of threads where these do not follow from the others.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.errors import FileError, UsageError
from popmodel.kernel import _kernel
from popmodel.traces.calls import FOUND_NOTHING
from popmodel.traces.codes import FILE_CALLS, Event
from popmodel.traces.otf2.archive_regions import (
    MPI,
    NO_STATE,
    STATE_NAMES,
    TEST,
    plan_regions,
)
from popmodel.traces.otf2.libotf2 import find_library
from popmodel.traces.paraver.events import select, where_nonzero
from popmodel.traces.paraver.labels import legend
from popmodel.traces.paraver.numbers import COUNTERS, NUMBERS
from popmodel.traces.paraver.writer import labels_of
from popmodel.traces.source import reason
from popmodel.traces.tables import location_of_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.traces.intervals import Instants
    from popmodel.traces.recorded_run import Trace

SUFFIX = ".otf2"
# Records of the kernel.
ENTER, LEAVE, SEND, ISEND, RECEIVE, POST, COMPLETE, SENT = range(8)
COLLECTIVE_BEGIN, COLLECTIVE_END, REQUEST, COMPLETE_COLLECTIVE, FORK, JOIN = range(8, 14)
TEAM_BEGIN, TEAM_END, METRIC, PROGRAM_BEGIN, PROGRAM_END = range(14, 19)
OPERATION_BEGIN, OPERATION_END = range(19, 21)
# Numbers of OTF2.
_USER, _OPENMP, _MPI, _MEASUREMENT_SYSTEM = 1, 3, 4, 6
_FUNCTION, _PARALLEL, _CRITICAL, _BARRIER, _FILE_IO, _ARTIFICIAL = 1, 5, 12, 15, 27, 31
_LOCATIONS, _GROUP = 4, 5
_PROCESS, _ACCELERATOR, _THREAD, _STREAM, _CUDA = 1, 2, 1, 2, 5
_ACTIVITIES = ("kernel", "memcpy", "nccl collective")
"""Names of what streams do, by its kind."""
_NONE = 0xFFFFFFFF
_ORDER = (
    *("clock", "string", "node", "process", "location", "region", "group", "communicator"),
    *("handle", "counter"),
)
"""Kinds of definitions: what one names comes before it."""
_OPERATIONS = {
    name: number
    for number, name in enumerate(
        (
            *("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather"),
            *("allgatherv", "alltoall", "alltoallv", "alltoallw", "allreduce", "reduce"),
            *("reduce_scatter", "scan", "exscan", "reduce_scatter_block"),
        )
    )
}
"""Collectives by their number in OTF2; others are written as Alltoallv, which tells all amounts."""
_ACTIONS = (  # of the kernel, by names of calls
    (re.compile(r"MPI_[bsr]?send", re.IGNORECASE), 1),
    (re.compile(r"MPI_i[bsr]?send", re.IGNORECASE), 2),
    (re.compile(r"MPI_m?recv", re.IGNORECASE), 3),
    (re.compile(r"MPI_im?recv", re.IGNORECASE), 4),
    (re.compile(r"MPI_sendrecv(_replace)?", re.IGNORECASE), 5),
    (re.compile(r"MPI_start(all)?", re.IGNORECASE), 6),
    (re.compile(r"MPI_(wait|test)(all|any|some)?( .*)?", re.IGNORECASE), 8),
    (re.compile(r"MPI_neighbor_\w+", re.IGNORECASE), 11),
    (re.compile(r"MPI_i(neighbor_|sendrecv)\w+", re.IGNORECASE), 12),
)
COUNTED = (*COUNTERS, Event.DELAYED, Event.WOKEN)
"""What threads count that is written as metrics, beside other counters of the hardware."""
_POSIX, _MPI_FILES = 0, 1  # handles that stand for all files, by class of their paradigm
# Where records of one time stand: readings, what ends with a call, ends of regions, regions
# without length, begins of regions, what begins with a call.
_READING, _AT_EXIT, _END, _INSTANT, _BEGIN, _AT_ENTRY = range(6)


def write_archive(path: str | os.PathLike[str], trace: Trace) -> tuple[str, ...]:
    """Write a trace as ``x.otf2``, ``x.def`` and ``x``; what it does not hold, a sentence each.

    Raises
    ------
    UsageError
        If OTF2's library is missing, or the trace has no measured times.
    FileError
        If the archive cannot be written.
    """
    target = Path(path)
    if not trace.timed:
        raise UsageError(
            f"{trace.path}: has no measured times, which an archive holds",
            "replay it first: popmodel whatif TRACE --save-trace FILE",
        )
    library, name = find_library(), target.name.removesuffix(SUFFIX)
    _refuse_others(target, name)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=target.parent) as folder:
            said = _Archive(trace).write(library, folder, name)
            for part in (name, f"{name}.def", f"{name}{SUFFIX}"):
                new = target.parent / part
                if new.is_dir():
                    shutil.rmtree(new)
                (Path(folder) / part).replace(new)
    except (OSError, _kernel.Otf2Error) as error:
        problem = reason(error) if isinstance(error, OSError) else str(error)[:200]
        hint = "choose another path with -o"
        raise FileError(target, f"cannot be written: {problem}", hint=hint) from error
    return said


def _refuse_others(target: Path, name: str) -> None:
    """What has the names of the other parts may be somebody's: only those of an archive go."""
    folder, definitions = target.parent / name, target.parent / f"{name}.def"
    entries = [*folder.iterdir()] if folder.is_dir() else []
    of_archive = target.exists() and all(each.suffix in (".evt", ".def") for each in entries)
    for part, fits in ((folder, folder.is_dir()), (definitions, definitions.is_file())):
        if part.exists() and not (of_archive and fits):
            problem = f"{part} exists, and is no part of this archive"
            raise FileError(target, problem, hint="choose another name with -o")


class _Archive:
    """What an archive is made of."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.calls = trace.calls()
        self.definitions: list[tuple[Any, ...]] = []
        self.regions: list[tuple[Any, ...]] = []
        self.texts: dict[str, int] = {}
        self.where: list[NDArray[np.int64]] = []
        self.keys: list[NDArray[np.int64]] = []
        self.records: list[NDArray[np.int64]] = []

    def text(self, text: str) -> int:
        """Number of a string."""
        if text not in self.texts:
            self.texts[text] = len(self.texts)
            self.definitions.append(("string", self.texts[text], text.encode()))
        return self.texts[text]

    def region(self, name: str, role: int, paradigm: int) -> int:
        """A new region."""
        self.regions.append((len(self.regions), self.text(name), role, paradigm, _NONE, 0))
        self.definitions.append(
            ("region", len(self.regions) - 1, self.text(name), self.text(""), role, paradigm)
        )
        return len(self.regions) - 1

    def add(
        self,
        location: NDArray[np.int64],
        time: NDArray[np.int64],
        place: int | NDArray[np.int64],
        ties: Sequence[NDArray[np.int64] | int],
        kind: int | NDArray[np.int64],
        *arguments: NDArray[np.int64] | int,
    ) -> None:
        """Add records: their order at one time, and their arguments."""
        columns = (time, kind, *arguments, *[0] * (6 - len(arguments)))
        rows = np.stack([np.broadcast_to(column, len(time)) for column in columns], axis=1)
        keys = np.stack([np.broadcast_to(key, len(time)) for key in (*ties[::-1], place, time)])
        self.where.append(np.asarray(location, np.int64))
        self.keys.append(keys.astype(np.int64))
        self.records.append(rows.astype(np.int64))

    def spans(
        self,
        location: NDArray[np.int64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
        rank: int,
        opens: Sequence[tuple[Any, ...]],
        closes: Sequence[tuple[Any, ...]],
    ) -> None:
        """Add what begins and ends; what has a higher rank is inside what has the same times."""
        row = np.arange(len(begin))
        instant = begin == end
        for step, record in enumerate(opens):
            place = np.where(instant, _INSTANT, _BEGIN)
            first = np.where(instant, row, -end)
            self.add(location, begin, place, (first, rank, step), *record)
        for step, record in enumerate(closes, 10):
            place = np.where(instant, _INSTANT, _END)
            first = np.where(instant, row, -begin)
            self.add(location, end, place, (first, np.where(instant, rank, -rank), step), *record)

    def write(self, library: str, folder: str, name: str) -> tuple[str, ...]:
        """Write all, and say what is left out."""
        trace = self.trace
        teams = self._places()
        said = self._calls()
        self._threads(teams)
        self._files()
        streams = self._devices()
        self._program()
        telling = {
            state: self.region(
                STATE_NAMES.get(state, f"state {state}"), _ARTIFICIAL, _MEASUREMENT_SYSTEM
            )
            for state in sorted({NO_STATE, *np.unique(trace.states.state).tolist()})
        }
        plan = plan_regions(self.regions, {number: text for text, number in self.texts.items()})
        writer = _kernel.Otf2Writer(library, folder, name)
        writer.describe(
            plan.columns["state"],
            (plan.columns["kind"] == MPI).astype(np.uint8),
            np.array([*telling], np.int32),
            np.array([*telling.values()], np.uint32),
        )
        where, rows = np.concatenate(self.where), np.concatenate(self.records)
        order = np.lexsort((*np.concatenate(self.keys, axis=1), where))
        bounds = np.searchsorted(where[order], np.arange(trace.locations + len(streams) + 1))
        states, masters = trace.states, set(trace.process_offsets[:-1].tolist())
        threads = [
            self.text(f"OMP thread {thread}" if thread else "Master thread")
            for count in trace.threads.tolist()
            for thread in range(count)
        ]
        groups = [
            (name, process, _THREAD)
            for name, process in zip(threads, trace.process_of_location().tolist(), strict=True)
        ]
        for location, (name_, group, kind) in enumerate([*groups, *streams]):
            mine = rows[order[bounds[location] : bounds[location + 1]]]
            of = slice(0, 0)  # streams have no states
            if kind == _THREAD:
                of = slice(*states.offsets[location : location + 2].tolist())
            count = writer.location(
                location,
                location in masters,
                np.ascontiguousarray(mine[:, 0]),
                mine[:, 1].astype(np.uint8),
                np.ascontiguousarray(mine[:, 2:]).reshape(-1),
                np.ascontiguousarray(states.begin[of]),
                np.ascontiguousarray(states.end[of]),
                np.ascontiguousarray(states.state[of]),
            )
            self.definitions.append(("location", location, name_, count, group, kind))
        self.definitions.append(("clock", 1_000_000_000, max(trace.end, 0)))
        self.definitions.sort(key=lambda definition: _ORDER.index(definition[0]))
        writer.finish(np.arange(len(bounds) - 1, dtype=np.uint64), self.definitions)
        return tuple(said)

    def _places(self) -> list[int]:
        """Define nodes, processes and their teams of threads; the communicator of each team."""
        trace, text, add = self.trace, self.text, self.definitions.append
        add(("node", 0, text("machine"), text("machine"), _NONE))
        nodes = trace.node_of_location[trace.process_offsets[:-1]].tolist()
        for node in sorted(set(nodes)):
            add(("node", node + 1, text(f"node {node}"), text("node"), 0))
        for process, node in enumerate(nodes):
            add(("process", process, text(f"MPI Rank {process}"), node + 1, _PROCESS, _NONE))
        masters = trace.process_offsets[:-1].tolist()
        add(("group", 0, text(""), _LOCATIONS, _MPI, masters))
        add(("group", 1, text(""), _LOCATIONS, _OPENMP, list(range(trace.locations))))
        self.communicators = {
            number: np.asarray(ranks).tolist() for number, ranks in trace.communicators.items()
        }
        everybody = list(range(trace.processes))
        self.number = {number: place for place, number in enumerate(self.communicators)}
        whole = next((n for n, ranks in self.communicators.items() if ranks == everybody), None)
        if whole is None:
            self.communicators[0] = everybody
            self.number[0] = len(self.number)
        self.number.setdefault(0, self.number.get(whole or 0, 0))
        self.world = self.number[whole or 0]
        for number, ranks in self.communicators.items():
            place = self.number[number]
            shown = text("MPI_COMM_WORLD" if place == self.world else f"communicator {number}")
            add(("group", place + 2, text(""), _GROUP, _MPI, ranks))
            add(("communicator", place, shown, place + 2))
        teams = []
        for process, (first, last) in enumerate(
            zip(masters, trace.process_offsets[1:].tolist(), strict=True)
        ):
            teams.append(len(self.communicators) + process)
            add(("group", teams[-1] + 2, text(""), _GROUP, _OPENMP, list(range(first, last))))
            add(("communicator", teams[-1], text(f"team of rank {process}"), teams[-1] + 2))
        return teams

    def _devices(self) -> list[tuple[int, int, int]]:
        """Streams of devices: name, location group and type of each; and calls to the runtime."""
        trace, rows = self.trace, self.trace.devices
        names = [self.region(name, _FUNCTION, _CUDA) for name in rows.call_names]
        region = np.array(names or [0], np.int64)[rows.calls.what]
        self.spans(*_places(rows.calls), 8, [(ENTER, region)], [(LEAVE, region)])
        if not rows.names:
            return []
        doing = [self.region(name, _FUNCTION, _CUDA) for name in _ACTIVITIES]
        region = np.array(doing, np.int64)[rows.activity.what]
        location, begin, end = _places(rows.activity)
        location = location + trace.locations
        self.spans(location, begin, end, 0, [(ENTER, region)], [(LEAVE, region)])
        nodes = trace.node_of_location[trace.process_offsets[:-1]].tolist()
        groups: dict[tuple[int, int], int] = {}
        found = []
        for name, device, process in zip(
            rows.names, rows.device.tolist(), rows.process.tolist(), strict=True
        ):
            if (device, process) not in groups:
                groups[device, process] = trace.processes + len(groups)
                shown, node = self.text(rows.devices[device]), nodes[process] + 1
                self.definitions.append(
                    ("process", groups[device, process], shown, node, _ACCELERATOR, process)
                )
            found.append((self.text(name), groups[device, process], _STREAM))
        return found

    def _program(self) -> None:
        trace = self.trace
        masters = np.asarray(trace.process_offsets[:-1], np.int64)
        states = trace.states
        some = states.offsets[masters + 1] > states.offsets[masters]
        begin = np.full(len(masters), trace.begin, np.int64)
        begin[some] = states.begin[states.offsets[masters][some]]
        end = np.maximum(trace.ends(), begin)
        self.add(masters, begin, -1, (0, 0, 0), PROGRAM_BEGIN, self.text(trace.path))
        self.add(masters, end, _AT_ENTRY + 1, (0, 0, 0), PROGRAM_END)

    def _calls(self) -> list[str]:
        calls = self.calls
        location = location_of_row(calls.offsets).astype(np.int64)
        plain = [name.removesuffix(FOUND_NOTHING) for name in calls.names]
        numbers = {name: self.region(name, _FUNCTION, _MPI) for name in dict.fromkeys(plain)}
        region = np.array([numbers[name] for name in plain] or [0], np.int64)[calls.name]
        self.spans(location, calls.entry, calls.exit, 9, [(ENTER, region)], [(LEAVE, region)])
        self._collectives(location)
        done, lost = self._messages(location)
        plan = plan_regions(self.regions, {number: text for text, number in self.texts.items()})
        tests = np.array(
            [plan.columns["traits"][numbers[name]] & TEST > 0 for name in plain] or [0]
        )
        missed = np.array([name.endswith(FOUND_NOTHING) for name in calls.names] or [False])
        found = tests.astype(bool)[calls.name] & ~missed.astype(bool)[calls.name]
        found[done] = False
        row = np.flatnonzero(found)  # what they completed is not known: a send
        self.inside(row, location, _AT_EXIT, SENT, len(self.trace.messages.size) + row)
        return [f"{lost} messages without a call of MPI are left out"] if lost else []

    def inside(
        self,
        row: NDArray[np.int64],
        location: NDArray[np.int64],
        place: int,
        kind: int | NDArray[np.int64],
        *arguments: NDArray[np.int64] | int,
    ) -> None:
        """Add records inside calls: when they begin, or when they end."""
        calls = self.calls
        time = (calls.entry if place == _AT_ENTRY else calls.exit)[row]
        instant = calls.entry[row] == calls.exit[row]
        where = np.where(instant, _INSTANT, place)
        tie = np.where(instant, row, 0)
        step = 1 if place == _AT_ENTRY else 2
        self.add(location[row], time, where, (tie, 9, step), kind, *arguments)

    def _collectives(self, location: NDArray[np.int64]) -> None:
        calls, told = self.calls, self.calls.collectives
        row = told.call
        if not len(row):
            return
        process = self.trace.process_of_location()[location[row]].astype(np.int64)
        comm = np.array([self.number.get(each, self.world) for each in told.communicator.tolist()])
        size, rank = np.ones(len(row), np.int64), np.zeros(len(row), np.int64)
        for number, ranks in self.communicators.items():
            mine = np.flatnonzero(comm == self.number[number])
            rank_of = np.zeros(self.trace.processes, np.int64)
            rank_of[ranks] = np.arange(len(ranks))
            size[mine], rank[mine] = len(ranks), rank_of[process[mine]]
        names = [name.lower().removeprefix("mpi_") for name in calls.names]
        operation = np.array(
            [_OPERATIONS.get(n, _OPERATIONS.get(n.removeprefix("i"), 9)) for n in names]
        )[calls.name[row]]
        blocking = np.array([n in _OPERATIONS or n[:1] != "i" for n in names])[calls.name[row]]
        root = _roots(comm, process, rank, told.is_root)
        sent, received = reached(operation, size, rank, told.is_root, told.sent, told.received)
        at = row[blocking]
        self.inside(at, location, _AT_ENTRY, COLLECTIVE_BEGIN)
        kinds = np.where(blocking, COLLECTIVE_END, COMPLETE_COLLECTIVE)
        request = len(self.trace.messages.size) + len(calls) + row
        later = row[~blocking]
        self.inside(later, location, _AT_ENTRY, REQUEST, request[~blocking])
        self.inside(row, location, _AT_EXIT, kinds, operation, comm, root, sent, received, request)

    def _messages(self, location: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """Add messages; the calls that complete receives, and how many messages have no calls."""
        trace, calls, messages = self.trace, self.calls, self.trace.messages
        action = np.zeros(len(calls.names), np.uint8)
        for number, name in enumerate(calls.names):
            for pattern, does in _ACTIONS:
                if pattern.fullmatch(name):
                    action[number] = does
        send, post, wait, _ = _kernel.match_messages(
            offsets=calls.offsets,
            entry=calls.entry,
            exit=calls.exit,
            code=calls.name,
            action=action,
            process_of=np.arange(trace.locations, dtype=np.int32),
            message_offsets=messages.offsets,
            receiver=messages.receiver,
            logical_send=messages.logical_send,
            logical_receive=messages.logical_receive,
            physical_receive=messages.physical_receive,
        )
        row = np.flatnonzero((send >= 0) & (post >= 0) & (wait >= 0))
        begins, posts, waits = (column[row].astype(np.int64) for column in (send, post, wait))
        process = trace.process_of_location().astype(np.int64)
        sender, receiver = process[messages.sender[row]], process[messages.receiver[row]]
        tag, size = messages.tag[row], messages.size[row]
        nonblocking = np.isin(action[calls.name[begins]], (2, 6, 12))
        kind = np.where(nonblocking, ISEND, SEND)
        self.inside(begins, location, _AT_ENTRY, kind, receiver, self.world, tag, size, row)
        at_once = posts == waits
        done, begun = waits[at_once], posts[~at_once]
        arguments = (sender, self.world, tag, size, row)

        def some(chosen: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
            return [np.broadcast_to(each, len(row))[chosen] for each in arguments]

        self.inside(done, location, _AT_EXIT, RECEIVE, *some(at_once))
        self.inside(begun, location, _AT_ENTRY, POST, row[~at_once])
        self.inside(waits[~at_once], location, _AT_EXIT, COMPLETE, *some(~at_once))
        return waits, len(messages.size) - len(row)

    def _threads(self, teams: Sequence[int]) -> None:
        """Parallel regions, barriers, locks, the user's regions and counters."""
        trace = self.trace
        records = trace.records
        openmp, waits = records.openmp(), records.synchronisation()
        process = trace.process_of_location()
        size = trace.threads[process[openmp.constructs.location]]
        self.spans(*_places(openmp.constructs), 0, [(FORK, size)], [(JOIN,)])
        names = [
            self.region(f"!$omp parallel @{name}", _PARALLEL, _OPENMP)
            for name, _ in openmp.function_names
        ]
        region = np.array(names or [0], np.int64)[openmp.functions.what]
        team = np.array(teams, np.int64)[process[openmp.functions.location]]
        self.spans(
            *_places(openmp.functions),
            1,
            [(TEAM_BEGIN, team), (ENTER, region)],
            [(LEAVE, region), (TEAM_END, team)],
        )
        marked = records.user_regions()
        names = [self.region(name, _FUNCTION, _USER) for name in marked.names]
        region = np.array(names or [0], np.int64)[marked.label]
        self.spans(
            marked.location, marked.begin, marked.end, 2, [(ENTER, region)], [(LEAVE, region)]
        )
        for kinds, name, role in (
            (waits.barriers, "!$omp barrier", _BARRIER),
            (waits.locks, "!$omp critical", _CRITICAL),
        ):
            for spans in kinds:
                if len(spans):
                    number = self.region(name, role, _OPENMP)
                    self.spans(*_places(spans), 3, [(ENTER, number)], [(LEAVE, number)])
        types = legend({}, counters=True).event_types
        everywhere = slice(0, trace.locations)
        told = {
            types[NUMBERS[event]]: records.counters((event,), everywhere)[0] for event in COUNTED
        }
        told[types[NUMBERS[Event.LOCKS_WAITED]]] = records.lock_waits()
        others = {name.split()[0] for name in records.counter_names()} - {*COUNTERS.values()}
        told |= {name: records.counters((name,), everywhere)[0] for name in sorted(others)}
        for number, (name, readings) in enumerate(told.items()):
            if len(readings):
                self._readings(number, name, readings)

    def _files(self) -> None:
        """Calls for files, and operations on these, also of MPI: what they move."""
        trace, (events, turn, _) = self.trace, self.trace.records.others()
        call = NUMBERS[Event.FILE_CALL]
        started = select(events, (call,))
        calls, opening = where_nonzero(started, (call,), trace.end)
        values, kind = np.unique(started.value[opening], return_inverse=True)
        named = {**FILE_CALLS, **labels_of(trace).event_values.get(call, {})}
        names = [named.get(value, f"I/O call {value}") for value in values.tolist()]
        region = np.array([self.region(name, _FILE_IO, 0) for name in names] or [0])[kind]
        moving = select(events, (NUMBERS[Event.FILE_BYTES],))
        number = np.searchsorted(started.row[opening], moving.row, side="right") - 1
        fits = moving.time <= np.append(calls.end, -1)[number]  # there may be no call before
        fits &= _locations(moving) == np.append(calls.location, -1)[number]
        some, moved = _first(number[fits], moving.value[fits])
        begin = OPERATION_BEGIN, _POSIX, _modes(names)[kind[some]], 0, moved, some
        end = OPERATION_END, _POSIX, moved, some
        others = np.delete(np.arange(len(calls)), some)
        for rows, begins, ends in ((others, (), ()), (some, (begin,), (end,))):
            enter, leave = ((record, region[rows]) for record in (ENTER, LEAVE))
            self.spans(*_places(calls, rows), 10, [enter, *begins], [*ends, leave])
        moving = select(events, (NUMBERS[Event.MPI_FILE_BYTES],))  # in calls of MPI
        fits = turn[moving.row] % 2 == 1
        row = self.calls.offsets[_locations(moving)[fits]] + turn[moving.row[fits]] // 2
        row, moved = _first(row, moving.value[fits])
        mode = _modes(self.calls.names)[self.calls.name[row]]
        where, number = _locations(self.calls), len(calls) + row
        self.inside(row, where, _AT_ENTRY, OPERATION_BEGIN, _MPI_FILES, mode, 0, moved, number)
        self.inside(row, where, _AT_EXIT, OPERATION_END, _MPI_FILES, moved, number)
        for handle, name in ((_POSIX, "POSIX"), (_MPI_FILES, "MPI-IO")):
            self.definitions.append(("handle", handle, self.text(name), handle))

    def _readings(self, number: int, name: str, told: Instants) -> None:
        """Add a metric, which adds up from the begin; the first reading is of a time before."""
        self.definitions.append(("counter", number, self.text(name), self.text("")))
        location, row = told.location, np.arange(len(told))
        first = np.flatnonzero(np.diff(location, prepend=-1))
        sums = np.cumsum(told.value)
        before = np.repeat(sums[first] - told.value[first], np.diff(np.append(first, len(row))))
        begin = location[first], told.time[first]
        self.add(*begin, _READING, (row[first], number, 0), METRIC, number, 0)
        self.add(location, told.time, _READING, (row, number, 1), METRIC, number, sums - before)


def _first(
    number: NDArray[np.int64], value: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct numbers, ascending, and the first value of each."""
    found, row = np.unique(number, return_index=True)
    return found, value[row]


def _modes(names: Sequence[str]) -> NDArray[np.int64]:
    """Whether calls read, write or flush files, by their names."""
    ways = ("write" in name.lower() or 2 * ("sync" in name.lower()) for name in names)
    return np.array([*ways] or [0], np.int64)


def _locations(table: Any) -> NDArray[np.int64]:
    return location_of_row(table.offsets).astype(np.int64)


def _places(
    spans: Any, rows: NDArray[np.int64] | slice = slice(None)
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return spans.location[rows], spans.begin[rows], spans.end[rows]


def _roots(
    comm: NDArray[np.int64],
    process: NDArray[np.int64],
    rank: NDArray[np.int64],
    is_root: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Rank of the root of each call's collective: the k-th of a process on a communicator."""
    order = np.lexsort((np.arange(len(comm)), process, comm))
    same = (np.diff(comm[order], prepend=-1) == 0) & (np.diff(process[order], prepend=-1) == 0)
    place = np.arange(len(comm))
    turn = np.empty(len(comm), np.int64)
    turn[order] = place - np.maximum.accumulate(np.where(same, 0, place))
    _, collective = np.unique(np.stack([comm, turn]), axis=1, return_inverse=True)
    collective = collective.reshape(-1)
    root = np.full(len(comm), _NONE, np.int64)
    root[collective[is_root]] = rank[is_root]
    found: NDArray[np.int64] = root[collective]
    return found


def reached(
    operation: NDArray[np.int64],
    size: NDArray[np.int64],
    rank: NDArray[np.int64],
    is_root: NDArray[np.bool_],
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bytes as Score-P counts them, once for each process that they reach."""

    def of(*names: str) -> NDArray[np.bool_]:
        return np.isin(operation, [_OPERATIONS[name] for name in names])

    to_all = (of("bcast") & is_root) | of("allreduce", "allgather", "allgatherv")
    from_all = (of("reduce") & is_root) | of("allreduce", "reduce_scatter", "reduce_scatter_block")
    puts, gets = sent * np.where(to_all, size, 1), received * np.where(from_all, size, 1)
    gets = np.where(of("bcast") & is_root, sent, gets)
    puts = np.where(of("reduce") & is_root, received, puts)
    scan, exscan = of("scan"), of("exscan")
    puts = np.where(scan | exscan, sent * (size - rank - exscan), puts)
    gets = np.where(scan | exscan, sent * (rank + scan), gets)
    return puts, gets
