"""Compressed text in blocks: a gzip file that any gunzip reads, and several readers at once.

Each block is a member of the file (RFC 1952) that holds whole lines. Behind the last one, members
without text carry the index in their extra fields: ``PB`` lists the blocks, two numbers of 32 bits
each (bytes in the file and of text); ``PE``, the last member, says in 64 bits where the index
begins. Files of others, and files that were put together of several, have no such end: they are
read in one piece.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from popmodel.traces.workers import threads

BLOCK = 1 << 20
"""Bytes of text in a block, about."""
_LISTED = 8000  # blocks in one extra field, which has at most 65,535 bytes
_BLOCKS, _END = b"PB", b"PE"
_HEAD = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff"  # with an extra field; no time, unknown system
_EMPTY = b"\x03\x00" + bytes(8)  # deflated nothing, its checksum and length


def _member(field: bytes, data: bytes) -> bytes:
    """A member without text."""
    return _HEAD + struct.pack("<H2sH", len(data) + 4, field, len(data)) + data + _EMPTY


_LAST = len(_member(_END, bytes(8)))


class GzipBlocks:
    """Compresses what is written, line by line, into a file that stays open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._text: list[bytes] = []  # of the block that is not full
        self._held = 0
        self._pool = ThreadPoolExecutor(threads())
        self._pending: deque[tuple[int, Future[bytes]]] = deque()
        self._sizes: list[tuple[int, int]] = []

    def write(self, data: bytes) -> None:
        begin = 0
        while (end := data.find(b"\n", begin + max(BLOCK - self._held, 0)) + 1) > 0:
            self._add(b"".join((*self._text, memoryview(data)[begin:end])))
            self._text, self._held, begin = [], 0, end
        self._text.append(data[begin:])
        self._held += len(data) - begin

    def _add(self, block: bytes) -> None:
        self._pending.append((len(block), self._pool.submit(_compressed, block)))
        self._drain(2 * threads())

    def _drain(self, most: int) -> None:
        while len(self._pending) > most:
            size, packed = self._pending.popleft()
            self._sizes.append((len(packed.result()), size))
            self._file.write(packed.result())

    def __enter__(self) -> GzipBlocks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        with self._pool:
            if kind is not None:
                return
            if self._held or not self._sizes:
                self._add(b"".join(self._text))
            self._drain(0)
        for first in range(0, len(self._sizes), _LISTED):
            listed = np.array(self._sizes[first : first + _LISTED], "<u4")
            self._file.write(_member(_BLOCKS, listed.tobytes()))
        self._file.write(_member(_END, struct.pack("<Q", sum(size for size, _ in self._sizes))))


def _compressed(block: bytes) -> bytes:
    """A member of its own: the same bytes wherever it is made."""
    try:
        from isal import isal_zlib as zlib
    except ImportError:  # no wheel for this platform: the standard library does, more slowly
        import zlib  # type: ignore[no-redef]
    return bytes(zlib.compress(block, 1, wbits=31))


def read_index(path: Path) -> np.ndarray | None:
    """Bytes in the file and of text of each block, int64[blocks, 2]; None without an index."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _LAST:
            return None
        file.seek(size - _LAST)
        last = file.read(_LAST)
        (begin,) = struct.unpack("<Q", last[-8 - len(_EMPTY) : -len(_EMPTY)])
        if last != _member(_END, struct.pack("<Q", begin)) or begin > size - _LAST:
            return None
        file.seek(begin)
        text, listed = file.read(size - _LAST - begin), b""
    while text:
        data = text[16 : 16 + int.from_bytes(text[14:16], "little")]
        if not text.startswith(_member(_BLOCKS, data)) or len(data) % 8:
            return None
        listed, text = listed + data, text[len(_member(_BLOCKS, data)) :]
    blocks = np.frombuffer(listed, "<u4").reshape(-1, 2).astype(np.int64)
    return blocks if int(blocks[:, 0].sum()) == begin else None


def block_ranges(path: Path, most: int, least: int) -> list[tuple[int, int]]:
    """Cut a file into ranges of whole blocks, of at least some bytes of text about each."""
    blocks = read_index(path)
    if blocks is None:
        return []
    text = np.cumsum(blocks[:, 1])
    count = int(min(most, text[-1] // least))
    if count < 2:
        return []
    stops = np.searchsorted(text, np.arange(1, count) * text[-1] // count) + 1
    edges = np.append(0, np.cumsum(blocks[:, 0]))[np.unique(stops[stops < len(text)])]
    return list(pairwise([0, *edges.tolist(), path.stat().st_size]))
