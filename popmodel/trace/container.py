"""Named arrays and a few facts in one file that can be mapped into memory.

Layout: a fixed head (magic, version, checksum and length of the table of contents, length of the
file), the table of contents as JSON, the arrays, each on a multiple of 64 bytes. A file is written
in any order but from sizes known beforehand, so columns that are longer than memory can be filled
piece by piece.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MAGIC = b"popmodel"
VERSION = 1
_HEAD = struct.Struct("<8sIIQQ")
_ALIGNMENT = 64
_KINDS = {"<i8", "<i4", "<u4"}


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


class Writer:
    """Lays out a file and fills its arrays from their beginnings, in pieces of any size.

    Parameters
    ----------
    file : io.FileIO
        Open for reading and writing, empty.
    facts : mapping
        Anything that JSON can hold.
    shapes : mapping of str to Shape
        The arrays.
    """

    def __init__(
        self, file: io.FileIO, facts: Mapping[str, Any], shapes: Mapping[str, Shape]
    ) -> None:
        self._file = file
        # The places depend on the length of the table, which the places are part of: they are
        # counted from its end.
        places, begins, at = {}, {}, 0
        for name, shape in shapes.items():
            places[name] = (shape.kind, shape.rows, at)
            begins[name] = at
            at += -(-shape.size // _ALIGNMENT) * _ALIGNMENT
        table = json.dumps({"facts": facts, "arrays": places}).encode()
        start = _start(len(table))
        self._at = {name: start + begin for name, begin in begins.items()}
        self._end = {name: self._at[name] + shape.size for name, shape in shapes.items()}
        head = _HEAD.pack(MAGIC, VERSION, zlib.crc32(table), len(table), start + at)
        _write(file.fileno(), head + table, 0)
        os.truncate(file.fileno(), start + at)

    def append(self, name: str, values: np.ndarray) -> None:
        """Write the next elements of an array."""
        if self._at[name] + values.nbytes > self._end[name]:
            raise ValueError(f"array {name} is full")
        _write(self._file.fileno(), values.data.cast("B"), self._at[name])
        self._at[name] += values.nbytes

    def finish(self) -> None:
        """Check that every array is complete."""
        for name, at in self._at.items():
            if at != self._end[name]:
                raise ValueError(f"array {name} lacks {self._end[name] - at} bytes")


def _start(table: int) -> int:
    return -(-(_HEAD.size + table) // _ALIGNMENT) * _ALIGNMENT


def _write(descriptor: int, data: bytes | memoryview, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def load(
    file: io.FileIO, *, writable: bool = False
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Map a file's arrays into memory.

    Returns
    -------
    facts : dict
    arrays : dict of str to array
        They read from (and, if `writable`, write to) the file, which may be closed and unlinked.

    Raises
    ------
    DamagedError
        The file is not of this form or version, or has another length than once written.
    OSError
        It cannot be read.
    """
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
    contents = json.loads(table)
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    mapped = mmap.mmap(file.fileno(), 0, access=access)
    arrays = {}
    for name, (kind, rows, place) in contents["arrays"].items():
        at = _start(length) + place
        if kind not in _KINDS or at + Shape(kind, rows).size > size:
            raise DamagedError(f"array {name} does not fit")
        arrays[name] = np.frombuffer(mapped, kind, rows, at)
    return contents["facts"], arrays
