"""Tables of records, by location: what a trace holds, as it stands there.

A *location* is one thread of one process. All times are integers in nanoseconds.
"""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Iterator
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from popmodel.base.values import dataclass

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]


class LocationTable:
    """Columns of numbers that are partitioned by location."""

    offsets: Int64

    @property
    def location(self) -> Int64:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @classmethod
    def none(cls, locations: int) -> Self:
        columns: dict[str, Any] = {
            column.name: np.empty(0, str(column.type).lower().rpartition("np.")[2].rstrip("]"))
            for column in dataclasses.fields(cast("Any", cls))
        }
        return cls(**columns | {"offsets": np.zeros(locations + 1, np.int64)})


@dataclass(frozen=True, eq=False)
class States(LocationTable):
    """What each thread was doing: one row per state record, in time order inside a location."""

    # int64[L + 1]: Rows of location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    offsets: Int64
    # int64[n]: Nanoseconds.
    begin: Int64
    end: Int64
    state: Int32  # int32[n]: 0 idle, 1 running, and so on; see `Labels.states`


@dataclass(frozen=True, eq=False)
class EventTable(LocationTable):
    """One row per pair of type and value; pairs of equal time keep the order of the file."""

    # int64[L + 1]: Rows of location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    offsets: Int64
    time: Int64  # int64[n]: Nanoseconds
    type: UInt32  # uint32[n]
    # int64[n]: Values from 2**63 up to 2**64 - 1 (addresses, broken counters) appear as negative
    # numbers of the same 64 bits.
    value: Int64

    def at(self, locations: slice) -> EventTable:
        """Those of some locations that follow one another, as views."""
        offsets = self.offsets[locations.start : locations.stop + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return EventTable(offsets - offsets[0], self.time[rows], self.type[rows], self.value[rows])


@dataclass(frozen=True, eq=False)
class MessageTable(LocationTable):
    """Point-to-point messages by sending location, in order of their physical send."""

    # int64[L + 1]: Rows sent by location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    offsets: Int64
    # int32[n]: Locations.
    sender: Int32
    receiver: Int32
    # int64[n]: Nanoseconds.
    logical_send: Int64
    physical_send: Int64
    logical_receive: Int64
    physical_receive: Int64
    size: Int64  # int64[n]: Bytes
    tag: Int64  # int64[n]


@dataclass(frozen=True)
class TraceWarning:
    """Something in a trace that is not as it should be but does not stop its use."""

    text: str
    count: int = 1
    first_line: int | None = None


def offsets_of(counts: Int64) -> Int64:
    """First row of each location, and the number of rows, from the rows of each: int64[L + 1]."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def location_of_row(offsets: Int64) -> Int32:
    """Location of each row of a table that is partitioned by `offsets`: int32[n]."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def part_of(offsets: Int64, rows: Int64) -> Int64:
    """Part of a table partitioned by `offsets` (location, process) that some rows are in: int64."""
    part: Int64 = np.searchsorted(offsets, rows, side="right") - 1
    return part


# Walks over long columns block by block, so that memory does not grow with the trace.
#
# The columns of a long trace are mapped from a file. What a walk has passed is given back to the
# system, which keeps it or not as memory allows; the next walk finds it again.


_BLOCK = 1 << 17


def walk(*columns: NDArray[Any], rows: int | None = None) -> Iterator[slice]:
    """Slices that cover the columns, in order; behind each, the columns' memory is given back."""
    count = len(columns[0]) if rows is None else rows
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        yield slice(begin, end)
        for column in columns:
            give_back(column, begin, end)


def walk_locations(
    offsets: NDArray[np.int64], *columns: NDArray[Any], rows: int
) -> Iterator[slice]:
    """Slices of locations that have up to `rows` rows together, or of one that has more.

    Behind each, the memory of the columns' rows is given back.
    """
    first, count = 0, len(offsets) - 1
    while first < count:
        full = int(np.searchsorted(offsets, offsets[first] + rows, side="right")) - 1
        last = min(max(first + 1, full), count)
        yield slice(first, last)
        for column in columns:
            give_back(column, int(offsets[first]), int(offsets[last]))
        first = last


def take(column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Values of some rows, which ascend."""
    taken = np.empty(len(rows), dtype=column.dtype)
    for block in walk(rows=len(rows)):
        some = rows[block]
        taken[block] = column[some]
        give_back(column, int(some[0]), int(some[-1]) + 1)
    return taken


def give_back(column: NDArray[Any], begin: int, end: int) -> None:
    """Release the pages that lie wholly inside a block of a mapped column."""
    owner: Any = column
    while isinstance(owner, np.ndarray):
        owner = owner.base
    mapped = owner.obj if isinstance(owner, memoryview) else owner
    if not isinstance(mapped, mmap.mmap):
        return
    start = column.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    first = -(-(start + begin * column.itemsize) // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + end * column.itemsize) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        mapped.madvise(mmap.MADV_DONTNEED, first, last - first)
