"""The columns of a Paraver trace that was scanned, in memory or in temporary files."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces import workers
from popmodel.traces.resources import scratch_folder
from popmodel.traces.tables import EventTable, Int64, MessageTable, States, give_back, offsets_of

if TYPE_CHECKING:
    from popmodel.traces.paraver.text_scan import Scan

# Long traces on disk: what a scanner holds is written out whenever it gets too much.
#
# Streams and columns lie in files without a name, which vanish with the process. Each time, the
# streams of all locations are written as one *segment*, in order of location, with their lengths.
# Reading back goes by blocks of locations: the streams of a block lie together in each segment, so
# that a block costs one read per segment, and the columns come out in their final order.


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
        folder = scratch_folder(trace)
        hint = "name a directory that you can write to: --scratch DIR, or TMPDIR=DIR"
        problem = f"its records cannot be written to {folder}: {error.strerror or error}"
        if error.errno in _FULL:
            problem = f"not enough space for its records in {folder}"
            problem += f": {os.strerror(error.errno).lower()}"
            hint = "free some space there, or name another directory: --scratch DIR, or TMPDIR=DIR"
        raise TraceError(trace, problem, hint=hint) from None


def size_of(shapes: Shapes) -> int:
    return sum(np.dtype(kind).itemsize * rows for kind, rows in shapes.values())


class ColumnFile:
    """Arrays in one file, filled by rows, then mapped."""

    def __init__(self, file: IO[bytes], shapes: Shapes) -> None:
        self._file = file
        self._shapes = shapes
        self._begin, end = {}, 0
        for name, (kind, rows) in shapes.items():
            self._begin[name] = end
            end += -(-np.dtype(kind).itemsize * rows // _ALIGNMENT) * _ALIGNMENT
        os.truncate(file.fileno(), end)

    def put(self, name: str, row: int, values: np.ndarray) -> None:
        """Write elements of an array, from a row on."""
        view, at = values.data.cast("B"), self._begin[name] + row * values.itemsize
        while view:
            written = os.pwrite(self._file.fileno(), view, at)
            view, at = view[written:], at + written

    def arrays(self) -> dict[str, np.ndarray]:
        mapped = mmap.mmap(self._file.fileno(), 0)
        return {
            name: np.frombuffer(mapped, kind, rows, self._begin[name])
            for name, (kind, rows) in self._shapes.items()
        }


class Segment(NamedTuple):
    """Where in the file the streams of a segment begin, and their lengths."""

    blob: int
    lengths: int


class Spill:
    """Segments of one scanner in one temporary file."""

    def __init__(self, file: IO[bytes], locations: int, segments: Iterable[Segment] = ()) -> None:
        self._file = file
        self._locations = locations
        self.segments = list(segments)
        self._end = 0

    def drain(self, scanner: _kernel.Scanner, buffer: memoryview) -> None:
        """Move all that the scanner holds to the file, through the buffer."""
        lengths = scanner.lengths()
        blob = self._end
        while size := scanner.take(buffer):
            self._append(buffer[:size])
        self.segments.append(Segment(blob, self._end))
        self._append(lengths.astype(np.uint32).data.cast("B"))

    def _append(self, data: memoryview) -> None:
        while data:
            written = os.pwrite(self._file.fileno(), data, self._end)
            data = data[written:]
            self._end += written

    def lengths(self, segment: Segment, first: int = 0, stop: int | None = None) -> np.ndarray:
        """Bytes of the streams of some locations in a segment."""
        stop = self._locations if stop is None else stop
        lengths = np.empty(stop - first, np.uint32)
        self.read(lengths.data.cast("B"), segment.lengths + 4 * first)
        return lengths.astype(np.int64)

    def read(self, view: memoryview, at: int) -> None:
        """Fill a buffer from a byte of the file on."""
        while view:
            size = os.preadv(self._file.fileno(), [view], at)
            if not size:
                raise OSError(f"the temporary file ended at byte {at}")
            view, at = view[size:], at + size


class _Streams:
    """The streams of all spills, by location."""

    def __init__(self, spills: Sequence[Spill]) -> None:
        # A scanner begins with the first segment of its spill.
        self._segments = [
            (spill, segment, place == 0)
            for spill in spills
            for place, segment in enumerate(spill.segments)
        ]
        lengths = [spill.lengths(segment) for spill, segment, _ in self._segments]
        self.bytes: Int64 = np.sum(lengths, axis=0)

    def blocks(self, decoder: _kernel.Decoder, first: int, last: int, most: int) -> Iterator[None]:
        """Return the decoder one block of locations after the other, of about `most` bytes.

        Every time this yields, the decoder must be emptied.
        """
        # Where the block begins in each segment.
        at = [
            segment.blob + int(spill.lengths(segment, 0, first).sum())
            for spill, segment, _ in self._segments
        ]
        while first < last:
            stop = min(_block(self.bytes, first, most), last)
            lengths = np.array(
                [spill.lengths(segment, first, stop) for spill, segment, _ in self._segments]
            )
            sizes = lengths.sum(axis=1).tolist()
            # One location alone may be too long: then its segments go one group after the other.
            for begin, end in _groups(sizes, most):
                blobs = []
                for number in range(begin, end):
                    blob = bytearray(sizes[number] + PADDING)
                    self._segments[number][0].read(memoryview(blob)[: sizes[number]], at[number])
                    blobs.append(blob)
                fresh = [fresh for _, _, fresh in self._segments[begin:end]]
                decoder.restart(blobs, lengths[begin:end].ravel(), first, fresh)
                yield
            at = [begin + size for begin, size in zip(at, sizes, strict=True)]
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


# The columns that a scan ends in, in memory or in a temporary file.


SCHEMA: Mapping[str, Mapping[str, type[np.generic]]] = {
    "states": {"begin": np.int64, "end": np.int64, "state": np.int32},
    "events": {"time": np.int64, "type": np.uint32, "value": np.int64},
    "messages": {
        "sender": np.int32,
        "receiver": np.int32,
        "logical_send": np.int64,
        "physical_send": np.int64,
        "logical_receive": np.int64,
        "physical_receive": np.int64,
        "size": np.int64,
        "tag": np.int64,
    },
}
"""Name and type of each column, in the order in which the decoder fills them."""

TIME_ORDER = {"states": "begin", "events": "time", "messages": "physical_send"}
"""The column by which the rows of a location are ordered."""

TIMES = (
    "states.begin",
    "states.end",
    "events.time",
    *(f"messages.{each}_{way}" for each in ("logical", "physical") for way in ("send", "receive")),
)
"""The columns of times."""

ROWS = 1 << 14
"""Rows decoded at a time when columns go to a file."""
BLOCK = 1 << 23
"""Bytes of spilled streams read at a time."""
_PER_WORKER = 4  # parts of all locations, so that none waits long for the last

Arrays = dict[str, np.ndarray]
"""Columns by name, as ``events.time``; ``events.offsets`` and the like are the partitions."""


def shapes_of(counts: Iterable[Int64]) -> Shapes:
    """Shapes of all columns and offsets, by name, from the rows of each table by location."""
    shapes = {}
    for (table, columns), each in zip(SCHEMA.items(), counts, strict=True):
        rows = int(each.sum())
        shapes[f"{table}.offsets"] = ("<i8", len(each) + 1)
        for name, kind in columns.items():
            shapes[f"{table}.{name}"] = (np.dtype(kind).newbyteorder("<").str, rows)
    return shapes


def empty(rows: Mapping[str, int]) -> Arrays:
    """Columns in memory, not yet filled, with the given number of rows in each table."""
    return {
        f"{table}.{name}": np.empty(rows[table], kind)
        for table, columns in SCHEMA.items()
        for name, kind in columns.items()
    }


def _decoded(decoder: _kernel.Decoder, block: Arrays, origin: int) -> tuple[int, ...]:
    """Fill columns with the next rows, times less the origin; how many rows each table has."""
    filled = decoder.fill(*block.values())
    if origin:
        for name in TIMES:
            block[name] -= origin
    return filled


def in_memory(scanner: _kernel.Scanner, scan: Scan) -> Arrays:
    """Columns and offsets of all that the scanner holds."""
    offsets = {table: offsets_of(each) for table, each in zip(SCHEMA, scan.counts, strict=True)}
    arrays = empty({table: int(each[-1]) for table, each in offsets.items()})
    _decoded(scanner.decoder(), arrays, scan.first_time)
    arrays |= {f"{table}.offsets": each for table, each in offsets.items()}
    sort_locations(arrays, scan)
    return arrays


def write(
    scan: Scan, held: _kernel.Scanner | None, spills: Sequence[Spill], file: ColumnFile
) -> None:
    """Fill all columns and offsets of a file, from spills or from a scanner that holds all."""
    offsets = {table: offsets_of(each) for table, each in zip(SCHEMA, scan.counts, strict=True)}
    for table, each in offsets.items():
        file.put(f"{table}.offsets", 0, each)
    if not spills:
        assert held is not None
        _write_decoded(
            held.decoder(), empty(dict.fromkeys(SCHEMA, ROWS)), scan, file, dict.fromkeys(SCHEMA, 0)
        )
        return
    streams = _Streams(spills)
    # Locations that have as many bytes together as those of other threads.
    reach, parts = np.cumsum(streams.bytes), workers.threads()
    parts = 1 if parts == 1 else _PER_WORKER * parts
    edges = np.searchsorted(reach, np.arange(1, parts) * reach[-1] / parts) if parts > 1 else []
    edges = np.unique([0, *edges, len(reach)]).tolist()
    units = [(streams, *part, offsets, scan, file) for part in pairwise(edges)]
    for _ in workers.in_threads(_write_locations, units):
        pass


def _write_locations(
    streams: _Streams,
    first: int,
    last: int,
    offsets: Mapping[str, Int64],
    scan: Scan,
    file: ColumnFile,
) -> None:
    """Fill the columns of some locations, a block of rows at a time."""
    decoder, block = _kernel.Decoder(), empty(dict.fromkeys(SCHEMA, ROWS))
    rows = {table: int(each[first]) for table, each in offsets.items()}
    for _ in streams.blocks(decoder, first, last, BLOCK):
        _write_decoded(decoder, block, scan, file, rows)
        if workers.stopped():
            return
    for table, each in offsets.items():
        if rows[table] != each[last]:
            raise ValueError(f"{table} have {rows[table]} rows before location {last}")


def _write_decoded(
    decoder: _kernel.Decoder, block: Arrays, scan: Scan, file: ColumnFile, row: dict[str, int]
) -> None:
    """Write all that a decoder has, from a row of each table on, which moves."""
    while any(filled := _decoded(decoder, block, scan.first_time)):
        for (table, columns), rows in zip(SCHEMA.items(), filled, strict=True):
            for name in columns:
                file.put(f"{table}.{name}", row[table], block[f"{table}.{name}"][:rows])
            row[table] += rows


def sort_locations(arrays: Arrays, scan: Scan) -> None:
    """Put the rows of those locations in time order that the scanners found out of it.

    Rows of equal time keep their order, because the order of entry and exit matters.
    """
    for (table, columns), disordered in zip(SCHEMA.items(), scan.disordered, strict=True):
        offsets = arrays[f"{table}.offsets"]
        for location in np.flatnonzero(disordered):
            rows = slice(int(offsets[location]), int(offsets[location + 1]))
            order = np.argsort(arrays[f"{table}.{TIME_ORDER[table]}"][rows], kind="stable")
            for name in columns:
                column = arrays[f"{table}.{name}"]
                column[rows] = column[rows][order]
                give_back(column, rows.start, rows.stop)


def as_records(arrays: Arrays) -> tuple[States, EventTable, MessageTable]:
    return (
        States(**_table(arrays, "states")),
        EventTable(**_table(arrays, "events")),
        MessageTable(**_table(arrays, "messages")),
    )


def _table(arrays: Arrays, table: str) -> dict[str, np.ndarray]:
    return {name: arrays[f"{table}.{name}"] for name in ("offsets", *SCHEMA[table])}
