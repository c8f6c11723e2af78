"""Long traces on disk: what a scanner holds is written out whenever it gets too much.

Streams and columns lie in files without a name, which vanish with the process. Each time, the
streams of all locations are written as one *segment*, in order of location, with their lengths.
Reading back goes by blocks of locations: the streams of a block lie together in each segment, so
that a block costs one read per segment, and the columns come out in their final order.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from popmodel.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.values import dataclass

PADDING = 64
"""Bytes that the decoder may look at beyond the end of a blob."""
_ALIGNMENT = 64
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Shapes = Mapping[str, tuple[str, int]]
"""Type and number of elements of arrays by name."""


@contextmanager
def temporary_files(trace: Path) -> Iterator[None]:
    """Say of which trace the records could not be written to a temporary file, and what to do."""
    try:
        yield
    except OSError as error:
        where = "" if tempfile.tempdir is None else f" to {tempfile.tempdir}"
        hint = "set TMPDIR to a directory that you can write to"
        problem = f"its records cannot be written{where}: {error.strerror or error}"
        if error.errno in _FULL:
            problem = f"not enough space for its records in {tempfile.tempdir}"
            problem += f": {os.strerror(error.errno).lower()}"
            hint = "free some space there, set TMPDIR to another directory"
        raise TraceError(trace, problem, hint=hint) from None


def size_of(shapes: Shapes) -> int:
    """Bytes of all arrays."""
    return sum(np.dtype(kind).itemsize * rows for kind, rows in shapes.values())


class ColumnFile:
    """Arrays in one file, filled from their beginnings in pieces of any size, then mapped."""

    def __init__(self, file: IO[bytes], shapes: Shapes) -> None:
        self._file = file
        self._shapes = shapes
        self._begin, end = {}, 0
        for name, (kind, rows) in shapes.items():
            self._begin[name] = end
            end += -(-np.dtype(kind).itemsize * rows // _ALIGNMENT) * _ALIGNMENT
        self._at = dict(self._begin)
        os.truncate(file.fileno(), end)

    def append(self, name: str, values: np.ndarray) -> None:
        """Write the next elements of an array."""
        view = values.data.cast("B")
        while view:
            written = os.pwrite(self._file.fileno(), view, self._at[name])
            view, self._at[name] = view[written:], self._at[name] + written

    def arrays(self) -> dict[str, np.ndarray]:
        """Map the arrays, all of which must be complete."""
        mapped = mmap.mmap(self._file.fileno(), 0)
        found = {}
        for name, (kind, rows) in self._shapes.items():
            lacking = self._begin[name] + np.dtype(kind).itemsize * rows - self._at[name]
            if lacking:
                raise ValueError(f"array {name} lacks {lacking} bytes")
            found[name] = np.frombuffer(mapped, kind, rows, self._begin[name])
        return found


@dataclass(frozen=True)
class _Segment:
    blob: int
    lengths: int


class Spill:
    """Segments in one temporary file."""

    def __init__(self, file: IO[bytes], locations: int) -> None:
        self._file = file
        self._locations = locations
        self._segments: list[_Segment] = []
        self._end = 0

    def drain(self, scanner: _kernel.Scanner, buffer: memoryview) -> None:
        """Move all that the scanner holds to the file, through the buffer."""
        lengths = scanner.lengths()
        blob = self._end
        while size := scanner.take(buffer):
            self._append(buffer[:size])
        self._segments.append(_Segment(blob, self._end))
        self._append(lengths.astype(np.uint32).data.cast("B"))

    def _append(self, data: memoryview) -> None:
        while data:
            written = os.pwrite(self._file.fileno(), data, self._end)
            data = data[written:]
            self._end += written

    def _lengths(self, segment: _Segment, first: int, stop: int) -> np.ndarray:
        lengths = np.empty(stop - first, np.uint32)
        self._read(lengths.data.cast("B"), segment.lengths + 4 * first)
        return lengths.astype(np.int64)

    def _read(self, view: memoryview, at: int) -> None:
        while view:
            size = os.preadv(self._file.fileno(), [view], at)
            if not size:
                raise OSError(f"the temporary file ended at byte {at}")
            view, at = view[size:], at + size

    def blocks(self, decoder: _kernel.Decoder, most: int) -> Iterator[None]:
        """Return the decoder one block after the other, of about `most` bytes or one stream.

        Every time this yields, the decoder must be emptied.
        """
        total = np.zeros(self._locations, np.int64)
        for segment in self._segments:
            total += self._lengths(segment, 0, self._locations)
        blobs = [segment.blob for segment in self._segments]  # where each block begins
        first = 0
        while first < self._locations:
            stop = _block(total, first, most)
            lengths = np.array([self._lengths(each, first, stop) for each in self._segments])
            sizes = lengths.sum(axis=1).tolist()
            # One location alone may be too long: then its segments go one group after the other.
            for begin, end in _groups(sizes, most):
                read = []
                for number in range(begin, end):
                    blob = bytearray(sizes[number] + PADDING)
                    self._read(memoryview(blob)[: sizes[number]], blobs[number])
                    read.append(blob)
                decoder.restart(read, lengths[begin:end].ravel(), first, begin == 0)
                yield
            blobs = [at + size for at, size in zip(blobs, sizes, strict=True)]
            first = stop


def _block(total: np.ndarray, first: int, most: int) -> int:
    """End of the longest run of locations from `first` with at most `most` bytes; at least one."""
    reach = first + int(np.searchsorted(np.cumsum(total[first:]), most, side="right"))
    return max(first + 1, reach)


def _groups(sizes: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Split consecutive sizes into runs of at most `most` in all; at least one each."""
    begin, held = 0, 0
    for number, size in enumerate(sizes):
        if number > begin and held + size > most:
            yield begin, number
            begin, held = number, 0
        held += size
    yield begin, len(sizes)
