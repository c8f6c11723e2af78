"""Events of a Paraver trace that tell about the program, and not about its calls of MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import among
from popmodel.trace.event import Event
from popmodel.trace.paraver.numbers import MPI_TYPES, NUMBERS, OPENMP_TYPES, USER_EVENTS
from popmodel.trace.records import Others
from popmodel.trace.tables import EventTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OF_CALLS = tuple(
    NUMBERS[event]
    for event in (Event.BYTES_SENT, Event.BYTES_RECEIVED, Event.IS_ROOT, Event.COMMUNICATOR)
)
# Begin and end of processes and of tracing, and what the tracer told of the machine it ran on.
_OF_THE_RUN = tuple(
    NUMBERS[event]
    for event in (
        Event.APPLICATION,
        Event.TRACING,
        Event.CPUS,
        Event.SHARING,
        Event.USED,
        Event.WAITED,
        Event.DELAYED,
        Event.WOKEN,
    )
)


def others(events: EventTable) -> Others:
    """Events but those of MPI calls, of processes and of the tracer, and where they stand."""
    of_mpi = among(events.type, MPI_TYPES)
    kept = np.flatnonzero(~(of_mpi | among(events.type, (*_OF_CALLS, *_OF_THE_RUN))))
    turn, type_ = _turns(events, of_mpi)[kept], events.type[kept]
    lasting = (type_ >= USER_EVENTS.start) & (type_ < USER_EVENTS.stop)
    lasting |= among(type_, (*OPENMP_TYPES, NUMBERS[Event.USER_REGION]))
    return Others(
        EventTable(
            np.searchsorted(kept, events.offsets),
            events.time[kept],
            type_,
            events.value[kept],
        ),
        turn,
        lasting,
    )


def _turns(events: EventTable, of_mpi: NDArray[np.bool_]) -> NDArray[np.int64]:
    """`Others.turn` of all rows: calls of the location that have begun, and whether one goes on."""
    begins = of_mpi & (events.value != 0)
    begun = np.concatenate([[0], np.cumsum(begins)])
    counts = np.diff(events.offsets)
    before = np.repeat(begun[events.offsets[:-1]], counts)
    rows = np.arange(len(of_mpi))
    last = np.maximum.accumulate(np.where(of_mpi, rows, -1))
    goes_on = (last >= np.repeat(events.offsets[:-1], counts)) & begins[last]
    found: NDArray[np.int64] = 2 * (begun[1:] - before) - goes_on
    return found
