"""Named arrays and a few facts in one file that can be mapped into memory.

Layout: a fixed head (magic, version, checksum and length of the table of contents, length of the
file), the table of contents as JSON, the arrays, each on a multiple of 64 bytes, and a checksum
(CRC-32) of each array. A file is written in any order but from sizes known beforehand, so columns
that are longer than memory can be filled piece by piece. Every byte that is used is checked when a
file is loaded, a block at a time.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from popmodel.kernel import _kernel
from popmodel.shapes import Named, Plain, Row, ShapeError, Text, Whole, record
from popmodel.values import dataclass

MAGIC = b"popmodel"
VERSION = 2
_HEAD = struct.Struct("<8sIIQQ")
_ALIGNMENT = 64
_KINDS = ("<i8", "<i4", "<u4")
_CONTENTS = record(
    {
        "facts": Named(Plain()),
        "arrays": Named(Row(Text(_KINDS), Whole(0), Whole(0))),  # kind, rows, place
    }
)
_CUT_SHORT = (
    b"popmodel: error: a cached trace was truncated, or became unreadable, "
    b"while it was in use\nhint: run the command again: it will read the trace itself\n"
)
_BLOCK = 1 << 20
"""Bytes read at a time to check them."""


class DamagedError(ValueError):
    """The file is not what was once written."""


@dataclass(frozen=True)
class Shape:
    """Type and number of elements of an array."""

    kind: str
    rows: int

    @property
    def size(self) -> int:
        """Bytes."""
        return np.dtype(self.kind).itemsize * self.rows


@dataclass(frozen=True)
class _Place:
    """Where an array lies in a file."""

    shape: Shape
    begin: int


@dataclass(frozen=True)
class _Contents:
    """What a file's table of contents says, and the file's length."""

    facts: dict[str, Any]
    places: dict[str, _Place]
    end: int


class Writer:
    """Lays out a file and fills its arrays from their beginnings, in pieces of any size.

    Attributes
    ----------
    size : int
        Bytes of the whole file.
    """

    def __init__(
        self,
        file: io.FileIO,
        facts: Mapping[str, Any],
        shapes: Mapping[str, Shape],
        *,
        checked: bool = True,
    ) -> None:
        self._file = file
        # The places depend on the length of the table, which the places are part of: they are
        # counted from its end.
        places, at = {}, 0
        for name, shape in shapes.items():
            places[name] = (shape.kind, shape.rows, at)
            at += -(-shape.size // _ALIGNMENT) * _ALIGNMENT
        table = json.dumps({"facts": facts, "arrays": places}, allow_nan=False).encode()
        start = _start(len(table))
        self._begin = {name: start + place for name, (_, _, place) in places.items()}
        self._end = {name: self._begin[name] + shape.size for name, shape in shapes.items()}
        self._at = dict(self._begin)
        self._crc32 = _crc32() if checked else None
        self._sums = dict.fromkeys(shapes, 0)
        self._sums_at = start + at
        self.size = self._sums_at + _sums_size(len(shapes))
        head = _HEAD.pack(MAGIC, VERSION, zlib.crc32(table), len(table), self.size)
        _write(file.fileno(), head + table, 0)
        os.truncate(file.fileno(), self.size)

    def append(self, name: str, values: np.ndarray) -> None:
        """Write the next elements of an array."""
        if self._at[name] + values.nbytes > self._end[name]:
            raise ValueError(f"array {name} is full")
        data = values.data.cast("B")
        _write(self._file.fileno(), data, self._at[name])
        if self._crc32 is not None:
            self._sums[name] = self._crc32(data, self._sums[name])
        self._at[name] += values.nbytes

    def arrays(self) -> dict[str, np.ndarray]:
        """Map the arrays, all of which must be complete, for reading and writing."""
        for name, at in self._at.items():
            if at != self._end[name]:
                raise ValueError(f"array {name} lacks {self._end[name] - at} bytes")
        return _map(self._file, _contents(self._file), writable=True)

    def seal(self, changed: Iterable[str] = ()) -> None:
        """Write the checksums; without them no file is loaded."""
        check = _Checker(self._file)
        for name in changed:
            self._sums[name] = check.sum(self._begin[name], self._end[name])
        sums = np.array(list(self._sums.values()), "<u4")
        _write(self._file.fileno(), sums.data.cast("B"), self._sums_at)


def _crc32() -> Callable[[bytes | memoryview, int], int]:
    """Return the fastest CRC-32 there is; all give the same."""
    try:
        from isal import isal_zlib
    except ImportError:  # no wheel for this platform
        return zlib.crc32
    return isal_zlib.crc32


class _Checker:
    """Sums parts of a file, reading blocks of it: mapping all of it would fill the memory."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._crc32 = _crc32()
        self._buffer = memoryview(bytearray(_BLOCK))

    def sum(self, at: int, end: int) -> int:
        found = 0
        while at < end:
            view = self._buffer[: min(end - at, len(self._buffer))]
            size = os.preadv(self._file.fileno(), [view], at)
            if not size:
                raise DamagedError("another length")
            found = self._crc32(view[:size], found)
            at += size
        return found


def _sums_size(arrays: int) -> int:
    return 4 * arrays


def _start(table: int) -> int:
    return -(-(_HEAD.size + table) // _ALIGNMENT) * _ALIGNMENT


def _write(descriptor: int, data: bytes | memoryview, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def load(file: io.FileIO) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Check a file and map its arrays into memory."""
    contents = _contents(file)
    size = _sums_size(len(contents.places))
    stored = os.pread(file.fileno(), size, contents.end - size)
    sums = np.frombuffer(stored, "<u4").tolist()
    check = _Checker(file)
    for wanted, (name, place) in zip(sums, contents.places.items(), strict=True):
        if check.sum(place.begin, place.begin + place.shape.size) != wanted:
            raise DamagedError(f"array {name} has another checksum")
    return contents.facts, _map(file, contents, writable=False)


def facts_of(file: io.FileIO) -> dict[str, Any]:
    """Facts of a file, whose arrays are not looked at."""
    return _contents(file).facts


def _contents(file: io.FileIO) -> _Contents:
    size = os.fstat(file.fileno()).st_size
    head = os.pread(file.fileno(), _HEAD.size, 0)
    if len(head) < _HEAD.size:
        raise DamagedError("too short")
    magic, version, checksum, length, end = _HEAD.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise DamagedError("another kind of file")
    if end != size or _start(length) > size:
        raise DamagedError("another length")
    table = os.pread(file.fileno(), length, _HEAD.size)
    if zlib.crc32(table) != checksum:
        raise DamagedError("wrong checksum")
    try:
        found = _CONTENTS.read(json.loads(table))
    except (ShapeError, RecursionError) as error:
        raise DamagedError(f"table of contents: {error}") from None
    places = {}
    for name, (kind, rows, place) in found["arrays"].items():
        at = _start(length) + place
        if at + Shape(kind, rows).size > size:
            raise DamagedError(f"array {name} does not fit")
        places[name] = _Place(Shape(kind, rows), at)
    return _Contents(found["facts"], places, size)


def _map(file: io.FileIO, contents: _Contents, *, writable: bool) -> dict[str, np.ndarray]:
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    mapped = mmap.mmap(file.fileno(), 0, access=access)
    weakref.finalize(mapped, _kernel.unguard, _kernel.guard(mapped, _CUT_SHORT))
    return {
        name: np.frombuffer(mapped, place.shape.kind, place.shape.rows, place.begin)
        for name, place in contents.places.items()
    }
