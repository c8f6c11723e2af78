"""Rows of devices in a Paraver trace, such as streams of GPUs: which they are and what they run.

Extrae and nsys2prv give each stream a row behind those of the threads of its process. It has a name
in the ``.row`` file; without one it is known by its events, which tell of nothing but kernels and
transfers. A stream of Extrae is in state `RUNNING` while it runs a kernel and in `MOVING` while it
copies; nsys2prv writes no states, but events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import among
from popmodel.base.errors import TraceError
from popmodel.traces.codes import MOVING, RUNNING
from popmodel.traces.device_rows import (
    COLLECTIVE,
    COPY,
    KERNEL,
    DeviceRows,
    devices_of,
    is_device_row,
    is_stream,
)
from popmodel.traces.intervals import Intervals, Spans
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
from popmodel.traces.tables import offsets_of, part_of, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.paraver.event_tables import ParaverRecords
    from popmodel.traces.paraver.labels import Labels
    from popmodel.traces.tables import EventTable, Int64

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


def streams_of(
    records: ParaverRecords,
    of_device: NDArray[np.bool_],
    names: Sequence[str],
    process_offsets: Int64,
    node_of_location: NDArray[np.int32],
) -> DeviceRows:
    """Streams among all rows of a trace, and what they do; calls of threads are none yet."""
    rows = np.flatnonzero(of_device)
    streams = rows[[is_stream(names[row]) for row in rows.tolist()]]
    process = part_of(process_offsets, streams)
    nodes = [
        f"node{node + 1}" if node_of_location.any() else "" for node in node_of_location[streams]
    ]
    chosen = tuple(names[row] for row in streams.tolist())
    device, devices = devices_of(chosen, nodes, process.tolist())
    return DeviceRows(
        names=chosen,
        device=device,
        process=process.astype(np.int32),
        devices=devices,
        activity=_activity(records, streams),
        calls=Spans.none(int((~of_device).sum())),
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
    location = np.concatenate([spans.location for spans in kinds.values()])
    begin, end_ = (
        np.concatenate([getattr(spans, name) for spans in kinds.values()])
        for name in ("begin", "end")
    )
    what = np.repeat(np.array([*kinds], np.int64), [len(spans) for spans in kinds.values()])
    order = np.lexsort((begin, location))
    row = np.searchsorted(streams, location[order])
    offsets = offsets_of(np.bincount(row, minlength=len(streams)))
    return Spans(offsets, begin[order], end_[order], what[order])


def without_devices(
    path: str, process_offsets: Int64, arrays: columns.Arrays, device: NDArray[np.bool_]
) -> tuple[Int64, columns.Arrays]:
    """Columns without some locations, in memory; messages to or from them go with them."""
    kept = ~device
    threads = np.diff(np.concatenate([[0], np.cumsum(kept)])[process_offsets])
    if not threads.all():
        raise TraceError(
            path,
            f"process {int(np.argmin(threads)) + 1} has rows of devices (streams of GPUs) only",
            hint="popmodel analyses what processes do: trace their MPI calls as well",
        )
    made: columns.Arrays = {}
    number = np.cumsum(kept, dtype=np.int32) - 1
    for table, names in columns.SCHEMA.items():
        offsets = arrays[f"{table}.offsets"]
        rows = np.repeat(kept, np.diff(offsets))
        if table == "messages":
            rows &= kept[arrays["messages.receiver"]]
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
