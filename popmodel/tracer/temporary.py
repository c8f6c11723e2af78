"""Records on their way through a merge: many streams in one temporary file.

Each stream is written in order and read in order of its first field, a time, by windows of time.
The file has no name and vanishes with the process.
"""

from __future__ import annotations

import errno
import os
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.base.errors import TraceError

STRIDE = 1 << 9
"""Every so many rows a stream remembers a time: that is how windows and rows are found."""

Rows = NDArray[np.void]


class _Stream:
    """Rows of one dtype; `extents` say where in the file they are."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.dtype = dtype
        self.count = 0
        self.starts: list[int] = []  # first row of each extent
        self.places: list[int] = []
        self.samples: list[int] = []  # times of rows 0, STRIDE, 2 STRIDE, ...
        self.taken = 0


class Spool:
    """Streams of rows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise _unwritable(folder, error) from None
        self._end = 0
        self._streams: dict[Hashable, _Stream] = {}

    def close(self) -> None:
        """Return the room back."""
        self._file.close()

    def append(self, key: Hashable, rows: Rows) -> None:
        """Add rows to a stream."""
        if not len(rows):
            return
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(rows.dtype)
        time = rows[rows.dtype.names[0]] if rows.dtype.names else rows
        stream.samples += time[-stream.count % STRIDE :: STRIDE].tolist()
        stream.starts.append(stream.count)
        stream.places.append(self._end)
        stream.count += len(rows)
        view = memoryview(np.ascontiguousarray(rows).view(np.uint8).data).cast("B")
        while view:
            try:
                written = os.pwrite(self._file.fileno(), view, self._end)
            except OSError as error:
                raise _unwritable(self._folder, error) from None
            view = view[written:]
            self._end += written

    def drop(self, key: Hashable) -> None:
        """Forget a stream."""
        self._streams.pop(key, None)

    def count(self, key: Hashable) -> int:
        """How many rows a stream has."""
        stream = self._streams.get(key)
        return stream.count if stream else 0

    def read(self, key: Hashable, begin: int = 0, end: int | None = None) -> Rows:
        """Return rows of a stream."""
        stream = self._streams[key]
        end = stream.count if end is None else end
        rows = np.empty(end - begin, stream.dtype)
        view = memoryview(rows.view(np.uint8).data).cast("B") if len(rows) else memoryview(b"")
        number = bisect_right(stream.starts, begin) - 1
        while begin < end:
            last = stream.starts[number + 1] if number + 1 < len(stream.starts) else stream.count
            stop = min(last, end)
            size = (stop - begin) * stream.dtype.itemsize
            place = stream.places[number] + (begin - stream.starts[number]) * stream.dtype.itemsize
            self._fill(view[:size], place)
            view, begin, number = view[size:], stop, number + 1
        return rows

    def take_before(self, key: Hashable, time: int) -> Rows:
        """Return the rows that come before a time and were not taken yet."""
        stream = self._streams[key]
        # The edge lies behind the last sample before it, and in front of the next one.
        sample = bisect_left(stream.samples, time) - 1
        low = max(sample * STRIDE, stream.taken)
        block = self.read(key, low, min(max((sample + 1) * STRIDE, low), stream.count))
        names = stream.dtype.names or ()
        end = low + int(np.count_nonzero(block[names[0]] < time))
        begin, stream.taken = stream.taken, end
        return self.read(key, begin, end)

    def edges(self, keys: Iterable[Hashable], most: int) -> list[int]:
        """Times that cut streams into windows of about `most` rows; the last one is open."""
        chosen = [self._streams[key] for key in keys if key in self._streams]
        samples = np.sort(
            np.concatenate([np.empty(0, np.int64), *(np.array(s.samples) for s in chosen)])
        ).astype(np.int64)
        each = max(most // STRIDE, 1)
        edges = distinct(samples[each::each])
        return [*edges.tolist(), int(np.iinfo(np.int64).max)]

    def _fill(self, view: memoryview, place: int) -> None:
        while view:
            try:
                size = os.preadv(self._file.fileno(), [view], place)
            except OSError as error:
                raise _unreadable(self._folder, error.strerror or str(error)) from None
            if not size:
                raise _unreadable(self._folder, f"it ends at byte {place}")
            view, place = view[size:], place + size


def _unreadable(folder: Path, why: str) -> TraceError:
    problem = f"a temporary file there cannot be read: {why.lower()}"
    return TraceError(folder, problem, hint="write the trace to another directory")


def _unwritable(folder: Path, error: OSError) -> TraceError:
    what = (error.strerror or str(error)).lower()
    hint = "write it to a directory with more space: up to three times that of the raw files"
    if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        hint = "write the trace to another directory"
    return TraceError(folder, f"a temporary file cannot be written there: {what}", hint=hint)
