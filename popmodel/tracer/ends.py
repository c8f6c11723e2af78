"""The ends of messages in the records of a thread, with the times that name them in a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from popmodel.tracer.in_calls import CallTables, InCalls
from popmodel.tracer.records import Kind

SENT = np.dtype(
    [
        ("time", np.int64),
        ("partner", np.int64),
        ("communicator", np.int64),
        ("logical", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
    ]
)
"""A message that was sent. `partner` is rank << 32 | tag; `logical` is -1 outside of any call."""
POSTED = np.dtype([("number", np.int64), ("time", np.int64)])
"""A receive that was posted; the time is -1 outside of any call."""
RECEIVED = np.dtype(
    [
        ("number", np.int64),
        ("partner", np.int64),
        ("communicator", np.int64),
        ("begin", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
    ]
)
"""A receive that was completed. `begin` is the entry of the call if that counts as its posting,
else -1; `physical` is -1 outside of any call."""


def sent(
    records: NDArray[np.void],
    time: NDArray[np.int64],
    calls: InCalls,
    tables: CallTables,
    communicators: NDArray[np.int64],
    row: int,
) -> NDArray[np.void]:
    """Messages that were sent."""
    rows = np.flatnonzero(records["kind"] == Kind.SEND)
    found = np.empty(len(rows), SENT)
    some = records[rows]
    found["time"], found["partner"], found["size"] = time[rows], some["b"], some["c"]
    found["communicator"] = global_ids(some["a"], communicators)
    found["row"] = row
    enter, leave = calls.around(rows)
    at_entry = tables.sent_at_entry[records["call"][enter]]
    found["logical"] = np.where(calls.hold(rows), time[enter], -1)
    found["physical"] = np.where(at_entry, time[enter], time[leave])
    return found


def posted(
    records: NDArray[np.void], time: NDArray[np.int64], calls: InCalls, tables: CallTables
) -> NDArray[np.void]:
    """Receives that were posted."""
    rows = np.flatnonzero(records["kind"] == Kind.POST)
    found = np.empty(len(rows), POSTED)
    found["number"] = records["b"][rows]
    enter, leave = calls.around(rows)
    at_exit = tables.posted_at_exit[records["call"][enter]]
    when = np.where(at_exit, time[leave], time[enter])
    found["time"] = np.where(calls.hold(rows), when, -1)
    return found


def received(
    records: NDArray[np.void],
    time: NDArray[np.int64],
    calls: InCalls,
    tables: CallTables,
    communicators: NDArray[np.int64],
    row: int,
) -> tuple[NDArray[np.void], int]:
    """Receives that were completed, and how many of them lack their number."""
    kind = records["kind"]
    rows = np.flatnonzero(kind == Kind.RECEIVE)
    followed = np.append(kind[1:] == Kind.RECEIVED, False)[rows]
    lacking = int(np.count_nonzero(~followed))
    rows = rows[followed]
    found = np.empty(len(rows), RECEIVED)
    some = records[rows]
    found["number"] = records["b"][rows + 1]
    found["partner"], found["size"] = some["b"], some["c"]
    found["communicator"] = global_ids(some["a"], communicators)
    found["row"] = row
    enter, leave = calls.around(rows)
    inside = calls.hold(rows)
    begins = inside & tables.receive_begins[records["call"][enter]]
    found["begin"] = np.where(begins, time[enter], -1)
    found["physical"] = np.where(inside, time[leave], -1)
    return found, lacking


def global_ids(local: NDArray[np.uint32], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of communicators in the trace; 0 where the process never described one."""
    known = local < len(table)
    return np.where(known, table[np.where(known, local, 0)], 0)
