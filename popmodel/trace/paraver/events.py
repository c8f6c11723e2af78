"""How things stand in events: rows of some types, and what their values open and close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.blocks import take, walk
from popmodel.trace.instants import Instants
from popmodel.trace.intervals import Intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.trace.tables import Events

__all__ = ["instants", "numbered", "rows_where_type", "where_nonzero"]

_SMALL = 1 << 16
"""Values up to which a table is quicker than to sort."""


def rows_where_type(column: NDArray[np.uint32], types: Sequence[int]) -> NDArray[np.int64]:
    """Rows whose type is one of a few, ascending.

    Parameters
    ----------
    column : uint32[n]
        Types of events.
    types : sequence of int
        At least one.
    """
    low, high = min(types), max(types)
    found = [np.empty(0, dtype=np.int64)]
    for block in walk(column):
        part = column[block]
        # One comparison settles nearly all events: unsigned differences below `low` are large.
        near = np.flatnonzero(part - np.uint32(low) <= high - low)
        if high - low + 1 > len(set(types)):
            near = near[np.isin(part[near], types)]
        found.append(near + block.start)
    return np.concatenate(found)


def instants(events: Events, types: Sequence[int]) -> Instants:
    """Times and values of the events of some types."""
    rows = rows_where_type(events.type, types)
    offsets = np.searchsorted(rows, events.offsets)
    return Instants(offsets, take(events.time, rows), take(events.value, rows))


def numbered(
    known: Sequence[int], types: NDArray[np.uint32], values: NDArray[np.int64]
) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Distinct pairs of type and value, in order, and the number of each row's pair.

    Parameters
    ----------
    known : sequence of int
        All types that occur.
    types : uint32[n]
    values : int64[n]
    """
    if not len(values):
        return [], np.empty(0, np.int64)
    ordered = sorted(known)
    if values.min() >= 0 and values.max() < _SMALL:
        distinct, index = np.arange(values.max() + 1), values
    else:
        distinct, index = np.unique(values, return_inverse=True)
    key = np.searchsorted(ordered, types) * len(distinct) + index
    there = np.bincount(key) > 0
    pairs = (divmod(each, len(distinct)) for each in np.flatnonzero(there).tolist())
    found = [(ordered[type_], int(distinct[value])) for type_, value in pairs]
    return found, (np.cumsum(there) - 1)[key]


def where_nonzero(
    events: Events, types: Sequence[int], end: int
) -> tuple[Intervals, NDArray[np.int64]]:
    """Intervals in which the last event of `types` had a value other than 0.

    Parameters
    ----------
    events : Events
        Of a trace.
    types : sequence of int
        Event types; usually one of them occurs.
    end : int
        Where an interval ends that is still open, ns.

    Returns
    -------
    Intervals
    row : int64[N]
        The event that opens each of them.
    """
    rows = rows_where_type(events.type, types)
    offsets = np.searchsorted(rows, events.offsets)
    time, on = take(events.time, rows), take(events.value, rows) != 0
    before = np.zeros(len(on), dtype=bool)
    before[1:] = on[:-1]
    before[offsets[:-1][offsets[:-1] < len(on)]] = False
    opening = np.flatnonzero(on & ~before)
    closing = np.flatnonzero(~on & before)
    ends = np.full(len(opening), end, dtype=np.int64)
    following = np.searchsorted(closing, opening)
    closed = following < len(closing)
    # The next closing event has to be of the same location as the opening one.
    location = np.searchsorted(offsets, opening, side="right")
    closed[closed] = closing[following[closed]] < offsets[location[closed]]
    ends[closed] = time[closing[following[closed]]]
    found = Intervals.of(np.searchsorted(opening, offsets), time[opening], ends)
    return found, rows[opening]
