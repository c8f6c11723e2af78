"""Rows of devices in a Paraver trace, such as streams of GPUs: they are no threads of the program.

Extrae and nsys2prv give each stream a row behind those of the threads of its process. It has a name
in the ``.row`` file; without one it is known by its events, which tell of nothing but kernels and
transfers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import TraceError
from popmodel.trace.blocks import walk
from popmodel.trace.paraver.columns import SCHEMA, Arrays
from popmodel.trace.tables import offsets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.trace.paraver.tables import ParaverRecords
    from popmodel.trace.tables import EventTable

_NAMED = re.compile(r"(CUDA|HIP|GPU|ROCM)-D\d+\.S\d+|OpenCL-\w+-CQ\d+|Metrics GPU", re.IGNORECASE)
"""Names of rows: streams and command queues of Extrae, streams and counters of nsys2prv."""
_EVENTS = (
    range(63000001, 63500000),  # CUDA; 63000000 are the calls of the host
    range(63500001, 64000000),  # HIP; 63500000 likewise
    range(64100000, 64300000),  # OpenCL: accelerators, their kernels
)
"""Types of events that rows of devices have; threads that call the device have others as well."""


def device_rows(names: Sequence[str] | None, records: ParaverRecords) -> NDArray[np.bool_]:
    """Whether each location is a row of a device: bool[L]."""
    found = np.zeros(records.locations, bool)
    if any(type_ in each for type_ in records.types for each in _EVENTS):
        found = _have_no_others(records.events)
    if names is not None:
        found |= np.array([_NAMED.match(name) is not None for name in names], bool)
    return found


def _have_no_others(events: EventTable) -> NDArray[np.bool_]:
    """Whether locations have events, and only such as devices have."""
    offsets, types = events.offsets, events.type
    others = np.zeros(len(offsets) - 1, np.int64)
    for block in walk(types):
        other = np.ones(block.stop - block.start, bool)
        for each in _EVENTS:
            other &= (types[block] < each.start) | (types[block] >= each.stop)
        passed = np.concatenate([[0], np.cumsum(other)])
        bounds = np.clip(offsets, block.start, block.stop) - block.start
        others += passed[bounds[1:]] - passed[bounds[:-1]]
    found: NDArray[np.bool_] = (np.diff(offsets) > 0) & (others == 0)
    return found


def left_out(path: str, arrays: Arrays, device: NDArray[np.bool_]) -> Arrays:
    """Return columns without some locations, in memory; messages to or from them go with them."""
    first, kept = arrays["process_offsets"], ~device
    passed = np.concatenate([[0], np.cumsum(kept)])
    threads = np.diff(passed[first])
    if not threads.all():
        raise TraceError(
            path,
            f"process {int(np.argmin(threads)) + 1} has rows of devices (streams of GPUs) only",
            hint="popmodel analyses what processes do: trace their MPI calls as well",
        )
    made = dict(arrays)
    made["process_offsets"] = offsets_of(threads)
    made["node_of_location"] = arrays["node_of_location"][kept]
    number = np.cumsum(kept, dtype=np.int32) - 1
    for table, columns in SCHEMA.items():
        offsets = arrays[f"{table}.offsets"]
        rows = np.repeat(kept, np.diff(offsets))
        if table == "messages":
            rows &= kept[arrays["messages.receiver"]]
        counts = np.concatenate([[0], np.cumsum(rows)])
        made[f"{table}.offsets"] = offsets_of(np.diff(counts[offsets])[kept])
        for name in columns:
            column = arrays[f"{table}.{name}"]
            made[f"{table}.{name}"] = np.concatenate(
                [column[:0], *(column[block][rows[block]] for block in walk(column))]
            )
    for end in ("sender", "receiver"):
        made[f"messages.{end}"] = number[made[f"messages.{end}"]]
    return made
