"""Walks over long columns block by block, so that memory does not grow with the trace.

The columns of a cached trace are mapped from a file. What a walk has passed is given back to the
system, which keeps it or not as memory allows; the next walk finds it again.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
