"""Writes a trace that is in memory, whatever it was made of, as a Paraver trace.

The states, messages and calls of MPI of a `Trace`, and its other events where it has any; names
come from the trace that it was made of. As text window by window of time, as merged traces are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from popmodel import files
from popmodel.errors import TraceError, UsageError
from popmodel.trace.event import Event
from popmodel.trace.paraver.labels import Labels
from popmodel.trace.paraver.legend import legend
from popmodel.trace.paraver.numbers import MPI_CALLS, MPI_TYPES, NUMBERS, SENT_TO_ONE
from popmodel.trace.paraver.packing import packed
from popmodel.trace.paraver.reader import read
from popmodel.trace.paraver.render import Renderer
from popmodel.trace.paraver.tables import ParaverRecords
from popmodel.trace.paraver.writer import header_lines, write_beside
from popmodel.trace.tables import location_of_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.calls import CallTable
    from popmodel.trace.trace import Trace

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


def labels_of(trace: Trace) -> Labels:
    """Names of event types and values of a trace; none where its format has no such numbers."""
    records = (trace.whole or trace).records
    return records.labels if isinstance(records, ParaverRecords) else Labels()


def write(path: str | os.PathLike[str], trace: Trace, labels: Labels) -> None:
    """Write a trace, and its ``.pcf`` and ``.row`` files; a ``.gz`` suffix compresses it."""
    target = Path(path)
    if not target.name.endswith(SUFFIXES):
        raise UsageError(f"{target}: must end in .prv or .prv.gz")
    calls = trace.calls()
    numbers, labels = _numbers(calls, labels)
    try:
        with files.written(target, read=partial(read)) as file:
            compressed = target.name.endswith(".gz")
            with packed(file) if compressed else nullcontext(file) as out:
                _write_text(out, trace, calls, numbers)
            write_beside(target, labels, trace.names or _names(trace))
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


def _write_text(file: BinaryIO, trace: Trace, calls: CallTable, numbers: NDArray[np.int64]) -> None:
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


def _names(trace: Trace) -> list[str]:
    return [
        f"THREAD 1.{process + 1}.{thread + 1}"
        for process, count in enumerate(trace.threads.tolist())
        for thread in range(count)
    ]
