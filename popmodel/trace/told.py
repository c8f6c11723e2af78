"""What popmodel's tracer tells in a trace about the trace itself, in event types of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.blocks import rows_where_type, take
from popmodel.trace.trace import part_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Trace

__all__ = ["TYPES", "Told", "told"]

TYPES = range(40009000, 40010000)
"""Event types that the tracer keeps for this; Extrae has none of them."""


@dataclass(frozen=True)
class Told:
    """Events by location and, inside a location, in order of time.

    Attributes
    ----------
    location, process : int64[N]
    time : int64[N]
        Nanoseconds.
    value : int64[N]
    """

    location: NDArray[np.int64]
    process: NDArray[np.int64]
    time: NDArray[np.int64]
    value: NDArray[np.int64]


def told(trace: Trace, type_: int) -> Told:
    """Events of one of `TYPES`: few, and found in one pass for all of them."""
    types, every = trace.derived("told", _find)
    rows = np.flatnonzero(types == type_)
    return Told(every.location[rows], every.process[rows], every.time[rows], every.value[rows])


def _find(trace: Trace) -> tuple[NDArray[np.uint32], Told]:
    events = trace.events
    rows = rows_where_type(events.type, TYPES)
    location = part_of(events.offsets, rows)
    process = part_of(trace.process_offsets, location)
    found = Told(location, process, take(events.time, rows), take(events.value, rows))
    return take(events.type, rows), found
