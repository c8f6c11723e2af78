"""Rows of devices in a Paraver trace, such as streams of GPUs: which they are and what they run.

Extrae and nsys2prv give each stream a row behind those of the threads of its process. It has a name
in the ``.row`` file; without one it is known by its events, which tell of nothing but kernels and
transfers. A stream of Extrae is in state `RUNNING` while it runs a kernel and in `MOVING` while it
copies; nsys2prv writes no states, but events.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from popmodel.base.arrays import among
from popmodel.traces.codes import IDLE, MOVING, OTHER, RUNNING
from popmodel.traces.device_rows import COLLECTIVE, COPY, KERNEL, DeviceRows
from popmodel.traces.intervals import Intervals, Spans, alone
from popmodel.traces.paraver import columns
from popmodel.traces.paraver.events import select, where_nonzero
from popmodel.traces.paraver.numbers import (
    COLLECTIVES,
    COPIES,
    DEVICE_CALLS,
    DEVICE_EVENTS,
    KERNELS,
    OPENCL_CALLS,
    TRANSFERS,
)
from popmodel.traces.tables import EventTable, Int64, States, offsets_of, part_of, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.paraver.event_tables import ParaverRecords
    from popmodel.traces.paraver.labels import Labels

WithStates = TypeVar("WithStates", bound="ParaverRecords")
_STREAM = re.compile(
    r"(?P<kind>CUDA|HIP|GPU|ROCM)-D(?P<device>\d+)\.S\d+(?:-(?P<node>\S+))?"
    r"|GPU_(?P<uuid>[\w-]+)\.\d+|(?P<queues>OpenCL-\w+)-CQ\d+(?:-(?P<host>\S+))?",
    re.IGNORECASE,
)
"""Names of rows: streams and command queues of Extrae, streams of nsys2prv (without node)."""
_SAMPLED = re.compile(r"Metrics GPU", re.IGNORECASE)
"""Rows of nsys2prv with sampled counters of a device, which tell nothing of its streams."""
_CALL_LABEL = "library call"  # "CUDA library call", of any number: older versions have another one


def call_types(labels: Labels, types: Collection[int]) -> list[int]:
    """Types among some that are calls of threads to the runtime of a device."""
    return sorted(
        type_
        for type_ in types
        if type_ in DEVICE_CALLS
        or type_ in OPENCL_CALLS
        or (
            any(type_ in some for some in DEVICE_EVENTS)
            and labels.event_types.get(type_, "").lower().endswith(_CALL_LABEL)
        )
    )


def device_rows(names: Sequence[str] | None, records: ParaverRecords) -> NDArray[np.bool_]:
    """Whether each location is a row of a device: bool[L]."""
    found = np.zeros(records.locations, bool)
    if any(type_ in some for type_ in records.types for some in DEVICE_EVENTS):
        found = _have_no_others(records.events, call_types(records.labels, records.types))
    if names is not None:
        found |= np.array([is_device_row(name) for name in names], bool)
    return found


def _have_no_others(events: EventTable, calls: Sequence[int]) -> NDArray[np.bool_]:
    """Whether locations have events, and only such as devices have."""
    offsets, types = events.offsets, events.type
    others = np.zeros(len(offsets) - 1, np.int64)
    for block in walk(types):
        other = np.ones(block.stop - block.start, bool)
        for some in DEVICE_EVENTS:
            other &= (types[block] < some.start) | (types[block] >= some.stop)
        other |= among(types[block], calls)
        passed = np.concatenate([[0], np.cumsum(other)])
        bounds = np.clip(offsets, block.start, block.stop) - block.start
        others += passed[bounds[1:]] - passed[bounds[:-1]]
    found: NDArray[np.bool_] = (np.diff(offsets) > 0) & (others == 0)
    return found


def is_device_row(name: str) -> bool:
    """Whether a row of this name is of a device: a stream, a command queue, sampled counters."""
    return bool(_STREAM.match(name) or _SAMPLED.match(name))


def devices_of(
    names: Sequence[str], nodes: Sequence[str], processes: Sequence[int]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Device of each stream, int32[R], and names of the devices.

    Streams with the same number of device on the same node (that of the name, else the given one,
    which may be empty) are of one device, and those with the same UUID are; a stream whose name
    tells no device is of its process's own.
    """
    number: dict[str, int] = {}
    device = []
    for name, node, process in zip(names, nodes, processes, strict=True):
        found = _STREAM.match(name)
        if found is None:
            key = f"device of process {process + 1}"
        elif found["uuid"]:
            key = f"GPU_{found['uuid']}"
        elif found["queues"]:
            place = found["host"] or node
            key = found["queues"] + (f"-{place}" if place else "")
        else:
            key = "-".join(
                filter(None, (found["kind"], f"D{found['device']}", found["node"] or node))
            )
        device.append(number.setdefault(key, len(number)))
    return np.array(device, np.int32), tuple(number)


def streams_of(
    records: ParaverRecords,
    of_device: NDArray[np.bool_],
    names: Sequence[str],
    process_offsets: Int64,
    node_of_location: NDArray[np.int32],
) -> DeviceRows:
    """Streams among all rows of a trace, and what they do; calls of threads are none yet.

    `node_of_location`, from 1, tells devices of different nodes apart where their names do not.
    """
    rows = np.flatnonzero(of_device)
    # Rows that are known by what they do are streams, too.
    streams = rows[[not _SAMPLED.match(names[row]) for row in rows.tolist()]]
    process = part_of(process_offsets, streams)
    several = len(set(node_of_location.tolist())) > 1
    nodes = [f"node{node}" if several else "" for node in node_of_location[streams].tolist()]
    chosen = tuple(names[row] for row in streams.tolist())
    device, devices = devices_of(chosen, nodes, process.tolist())
    return DeviceRows(
        names=chosen,
        device=device,
        process=process.astype(np.int32),
        devices=devices,
        activity=_activity(records, streams),
        calls=Spans.none(int(host_threads(process_offsets, of_device).sum())),
        left_out=tuple(names[row] for row in np.setdiff1d(rows, streams).tolist()),
    )


def _activity(records: ParaverRecords, streams: Int64) -> Spans:
    """What streams do: by their states, else by their events."""
    kinds = {
        KERNEL: records.in_state(RUNNING).at(streams),
        COPY: records.in_state(MOVING).at(streams),
    }
    if not any(map(len, kinds.values())):
        found = select(records.events, (*KERNELS, *TRANSFERS, *COLLECTIVES))
        end = int(records.last_times().max(initial=0))
        kinds = {}
        for kind, types in ((KERNEL, KERNELS), (COPY, TRANSFERS), (COLLECTIVE, COLLECTIVES)):
            spans, opening = where_nonzero(found, types, end)
            if kind == COPY:
                some = among(found.value[opening], COPIES)
                counts = np.append(0, np.cumsum(some))[spans.offsets]
                spans = Intervals(counts, spans.begin[some], spans.end[some])
            kinds[kind] = spans.at(streams)
    location, *columns = _in_order(kinds)
    row = np.searchsorted(streams, location)
    return Spans(offsets_of(np.bincount(row, minlength=len(streams))), *columns)


def _in_order(kinds: Mapping[int, Intervals]) -> tuple[NDArray[np.int64], ...]:
    """Location, begin, end and kind of intervals of several kinds, by location and time."""
    parts = [
        (spans.location, spans.begin, spans.end, np.full(len(spans), kind, np.int64))
        for kind, spans in kinds.items()
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return tuple(column[order] for column in columns)


NO_STATES = (
    "no states of threads: those with events are taken to compute whenever they are not in a call "
    "of MPI or of the device's runtime"
)


def with_states(records: WithStates, process_offsets: Int64) -> WithStates:
    """Give the threads of a trace without states (nsys2prv) those that their calls tell.

    Masters without any event are idle, so that the run lasts as long as its trace.
    """
    calls = [records.devices().calls, records.calls().intervals()]
    telling = np.diff(records.events.offsets) > 0
    silent = np.zeros(len(telling), bool)
    silent[process_offsets[:-1]] = True
    silent &= ~telling
    kinds = {
        RUNNING: alone([_throughout(telling, records.end)], calls),
        OTHER: alone(calls, []),
        IDLE: _throughout(silent, records.end),
    }
    location, begin, end, what = _in_order(kinds)
    counts = np.bincount(location, minlength=records.locations)
    states = States(offsets_of(counts), begin, end, what.astype(np.int32))
    return records.with_states(states, NO_STATES)


def _throughout(chosen: NDArray[np.bool_], end: int) -> Intervals:
    """One interval over the whole trace for each of some locations."""
    count = int(chosen.sum())
    return Intervals(
        offsets_of(chosen.astype(np.int64)), np.zeros(count, np.int64), np.full(count, end)
    )


def host_threads(process_offsets: Int64, device: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Locations of threads; of a process without any the first, for one without records."""
    kept = ~device
    of_process = np.add.reduceat(kept, process_offsets[:-1], dtype=np.int64)
    kept[process_offsets[:-1][of_process == 0]] = True
    return kept


def without_devices(
    process_offsets: Int64, arrays: columns.Arrays, device: NDArray[np.bool_]
) -> tuple[Int64, columns.Arrays]:
    """Columns of `host_threads`, in memory; messages to or from others go with them."""
    kept = host_threads(process_offsets, device)
    threads = np.diff(np.concatenate([[0], np.cumsum(kept)])[process_offsets])
    made: columns.Arrays = {}
    number = np.cumsum(kept, dtype=np.int32) - 1
    for table, names in columns.SCHEMA.items():
        offsets = arrays[f"{table}.offsets"]
        rows = np.repeat(~device, np.diff(offsets))
        if table == "messages":
            rows &= ~device[arrays["messages.receiver"]]
        counts = np.concatenate([[0], np.cumsum(rows)])
        made[f"{table}.offsets"] = offsets_of(np.diff(counts[offsets])[kept])
        for name in names:
            column = arrays[f"{table}.{name}"]
            made[f"{table}.{name}"] = np.concatenate(
                [column[:0], *(column[block][rows[block]] for block in walk(column))]
            )
    for end in ("sender", "receiver"):
        made[f"messages.{end}"] = number[made[f"messages.{end}"]]
    return offsets_of(threads), made
