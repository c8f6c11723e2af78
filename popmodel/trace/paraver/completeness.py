"""Whether a trace seems to lack records at its end, as a file does that was cut at a line's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.blocks import take
from popmodel.trace.event import Event
from popmodel.trace.paraver.calls import named_calls
from popmodel.trace.paraver.events import rows_where_value
from popmodel.trace.paraver.numbers import NUMBERS
from popmodel.trace.tables import TraceWarning, part_of
from popmodel.units import format_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.paraver.tables import ParaverRecords

END_TOLERANCE = 0.01
"""Part of the run that may lack records at its end: Extrae states the end of the last record."""
PROCESS_TOLERANCE = 0.1
"""Part of the run by which processes may end before others: they do not end at the same time."""
_ENDS = ("MPI_Finalize", "MPI_Session_finalize")
_NS = 1e9


def lacking(
    records: ParaverRecords, *, masters: NDArray[np.int64], origin: int, last: int, stated: int
) -> list[TraceWarning]:
    """Say what speaks for records that are lacking, and how often; nothing where nothing does.

    Notes
    -----
    The records of all applications together must reach to the end that the header states; one
    application may end before another. Processes are judged by their first threads, for the others
    have no records after their last parallel region; one without any record says nothing, and one
    that ends MPI, or itself, is whole however early that is.
    """
    if last - origin < (1 - END_TOLERANCE) * (stated - origin):
        found = f"the records end at {format_time(last / _NS)}" if last else "there are no records"
        text = f"{found}, the header states {format_time(stated / _NS)}: the file may be truncated"
        return [TraceWarning(text)]
    ends = _last_times(records)[masters]
    early = np.flatnonzero((ends > 0) & (ends < (1 - PROCESS_TOLERANCE) * ends.max(initial=0)))
    if len(early):
        early = early[~np.isin(early, _ended(records, masters))]
    if not len(early):
        return []
    text = "processes whose records end long before those of others: the file may be truncated"
    return [TraceWarning(text, len(early))]


def _last_times(records: ParaverRecords) -> NDArray[np.int64]:
    """End of the last state or event of each location, ns; 0 without any."""
    ends = np.zeros(records.locations, np.int64)
    for table, time in (
        (records.states, records.states.end),
        (records.events, records.events.time),
    ):
        some = table.offsets[1:] > table.offsets[:-1]
        ends[some] = np.maximum(ends[some], take(time, table.offsets[1:][some] - 1))
    return ends


def _ended(records: ParaverRecords, masters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Processes of which some thread ends MPI or the application."""
    events = records.events
    rows = rows_where_value(events, (NUMBERS[Event.APPLICATION],), (0,))
    finalised = named_calls(events, records.labels, 0, _ENDS)  # when they end is no matter
    locations = np.append(part_of(events.offsets, rows), [call.location for call in finalised])
    return np.searchsorted(masters, locations, side="right") - 1
