"""When the processes of a run end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.blocks import rows_where_type, take
from popmodel.trace.names import APPLICATION
from popmodel.trace.trace import part_of

if TYPE_CHECKING:
    from popmodel.trace.trace import Int64, Trace

__all__ = ["find"]


def find(trace: Trace) -> Int64:
    """End of each process, ns: what its master thread says, else its last record."""
    masters = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
    events, states = trace.events, trace.states
    ends = np.full(len(masters), trace.begin, dtype=np.int64)
    for table, times in ((events, events.time), (states, states.end)):
        last = np.asarray(table.offsets)[masters + 1]
        some = last > np.asarray(table.offsets)[masters]
        ends[some] = np.maximum(ends[some], times[last[some] - 1])
    over = rows_where_type(events.type, (APPLICATION,))
    over = over[take(events.value, over) == 0]
    location = part_of(events.offsets, over)
    process = np.searchsorted(masters, location)
    mine = process < len(masters)
    mine[mine] = masters[process[mine]] == location[mine]
    ends[process[mine]] = events.time[over[mine]]  # rows are in time order: the last one counts
    return ends
