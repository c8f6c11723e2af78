"""Scans the text of a trace, whole or in ranges at once, each with a scanner of its own.

An uncompressed trace is cut at line ends. What scanners know of their ranges is merged in order, so
that records, warnings and errors are those of one scanner that reads all: counts are added, and the
first record of a range is held against the last one before it, by location. The records of each
range lie in a file (`columns.Spill`), from which the columns of all are put together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces import workers
from popmodel.traces.paraver.columns import SCHEMA, Segment, Spill, temporary_files
from popmodel.traces.resources import current, scratch_folder, worker_folder
from popmodel.traces.source import CHUNK, TraceSource, foreign_file, open_source, text_ranges
from popmodel.traces.tables import Int64

LONGEST_HEADER = 1 << 26
HELD = 56 << 20
"""Bytes that scanners may hold together before their records go to disk."""
_LEAST_HELD = 1 << 23
RANGE = 1 << 25
"""Bytes of text from which on a range is worth a scanner of its own."""
_PER_WORKER = 2  # ranges, so that none waits long for the last
_MOST = 64  # ranges for an executor, which does not say how many it works on at once
DAMAGED = "the line is damaged: copy the trace again, or merge it again (mpi2prv)"
DAMAGED_GZIP = (
    "check with gzip -t: copy the file again if it is damaged, else merge it again (mpi2prv)"
)
TRUNCATED = "the file ends in the middle of a record"
INTERCOMMUNICATORS = "intercommunicators (ignored)"
NOTICES = (
    "comment lines (ignored)",
    "states out of time order (sorted)",
    "events out of time order (sorted)",
    "messages out of time order (sorted)",
    "overlapping states: the overlap counts twice",
    "records after the end time in the header",
    "messages to or from another application (ignored)",
    "communicators defined again with other ranks (the last definition counts)",
    INTERCOMMUNICATORS,
    "records of global operations (ignored: collectives are known by their events)",
    "no newline at the end of the file: the last record may be truncated",
)
"""Texts of what the scanner tallies, in its order."""
_OVERLAP, _AGAIN = 4, 7


class TextLayout(NamedTuple):
    """What a scanner has to know of the header."""

    threads: list[list[int]]  # Of each task, by application
    cpus: int  # 0: not stated
    unit: int  # ns
    duration: int  # ns
    application: int  # The one whose records are kept, from 1


@dataclass
class Scan:
    """What scanning a text, or ranges of it from its beginning on, tells beside the records."""

    # By table (states, events, messages) and location.
    counts: Int64  # int64[3, L]: Records
    disordered: NDArray[np.bool_]  # bool[3, L]: Whether they are out of time order
    # int64[3, L]: Time of the first record (of a state: its begin; of a message: its physical
    # send), its line, and time of the last record (of a state: its end); ns.
    first: Int64
    first_line: Int64
    last: Int64
    last_begin: Int64  # int64[L]: Begin of the last state, ns
    tallies: Int64  # int64[notices, 2]: Count and first line of each of `NOTICES`
    # By number: line of the first definition, the ranks there, and the ranks in the last one.
    communicators: dict[int, tuple[int, NDArray[np.int32], NDArray[np.int32]]]
    first_time: int  # Earliest and latest time of all records, ns; 0 without any
    last_time: int
    end_elsewhere: int  # When the last record of another application ends, ns
    lines: int

    @classmethod
    def of(cls, scanner: _kernel.Scanner) -> Scan:
        told = scanner.summary()
        for name in ("counts", "disordered", "first", "first_line", "last"):
            told[name] = told[name].reshape(len(SCHEMA), -1)
        told["disordered"] = told["disordered"].astype(bool)
        told["tallies"] = told["tallies"].reshape(len(NOTICES), 2)
        return cls(**told)

    def append(self, later: Scan) -> None:
        """Take in the scan of the range that follows."""
        both = (self.counts > 0) & (later.counts > 0)
        backwards = both & (later.first < self.last)
        overlap = backwards[0] & (later.first[0] >= self.last_begin)
        backwards[0] &= ~overlap
        self._tally(later.tallies[:, 0], later.tallies[:, 1])
        for notice, rows, table in (
            *((1 + table, backwards[table], table) for table in range(len(SCHEMA))),
            (_OVERLAP, overlap, 0),
        ):
            if rows.any():
                self._tally_one(notice, int(rows.sum()), int(later.first_line[table][rows].min()))
        for number, (line, first, last) in later.communicators.items():
            known = self.communicators.get(number)
            if known is not None and not np.array_equal(known[2], first):
                self._tally_one(_AGAIN, 1, line)
            at = (line + self.lines, first) if known is None else known[:2]
            self.communicators[number] = (*at, last)
        if later.counts.any():
            empty = not self.counts.any()
            self.first_time = later.first_time if empty else min(self.first_time, later.first_time)
            self.last_time = max(self.last_time, later.last_time)
        self.end_elsewhere = max(self.end_elsewhere, later.end_elsewhere)
        has = later.counts > 0
        self.first = np.where(self.counts > 0, self.first, later.first)
        self.first_line = np.where(self.counts > 0, self.first_line, later.first_line + self.lines)
        self.last = np.where(has, later.last, self.last)
        self.last_begin = np.where(has[0], later.last_begin, self.last_begin)
        self.disordered = self.disordered | later.disordered | backwards
        self.counts = self.counts + later.counts
        self.lines += later.lines

    def _tally(self, count: Int64, line: Int64) -> None:
        """Add counts of all notices, whose first lines count from where this scan ends."""
        line = line + self.lines
        known = self.tallies[:, 0] > 0
        first = np.where(known & (count > 0), np.minimum(self.tallies[:, 1], line), line)
        self.tallies[:, 1] = np.where(count > 0, first, self.tallies[:, 1])
        self.tallies[:, 0] += count

    def _tally_one(self, notice: int, count: int, line: int) -> None:
        counts, lines = np.zeros((2, len(NOTICES)), np.int64)
        counts[notice], lines[notice] = count, line
        self._tally(counts, lines)


class _Range(NamedTuple):
    """A scanned range, and where its records are: in a file, or few of them in the scanner."""

    scan: Scan
    spill: Spill | None = None
    scanner: _kernel.Scanner | None = None


def scan_text(
    path: Path, layout: TextLayout, files: ExitStack
) -> tuple[Scan, list[Spill], _kernel.Scanner | None]:
    """Scan a trace, and say in which files its records lie; few are in the scanner still.

    The files have no name and stay open until `files` is closed.
    """
    whole: Scan | None = None
    spills: list[Spill] = []
    scanner = None
    try:
        for part in _ranges(path, layout, files):
            scanner = part.scanner
            spills += [] if part.spill is None else [part.spill]
            if whole is None:
                whole = part.scan
            else:
                whole.append(part.scan)
    except _kernel.ScanError as error:
        number, reason = error.args
        raise _error(path, reason, number + (whole.lines if whole else 0)) from None
    assert whole is not None
    return whole, spills, scanner


def new_file(path: Path, files: ExitStack) -> IO[bytes]:
    """Make a file in the scratch folder for a trace."""
    folder = scratch_folder(path)
    return files.enter_context(tempfile.TemporaryFile(buffering=0, dir=folder))


def _ranges(path: Path, layout: TextLayout, files: ExitStack) -> Iterator[_Range]:
    """The ranges of a trace, in order, scanned by whoever may work."""
    given = current()
    executor, number = (given.executor, given.workers) if given else (None, 1)
    most = _MOST if executor is not None else _PER_WORKER * number if number > 1 else 1
    parts = text_ranges(path, most, RANGE)
    make = partial(new_file, path, files)
    if len(parts) < 2:
        yield _scan_range(path, layout, None, HELD, make)
    elif executor is None:
        held = max(HELD // number, _LEAST_HELD)
        units = [(path, layout, part, held, make) for part in parts]
        yield from workers.in_threads(_scan_range, units)
    else:
        with temporary_files(path):
            folder = worker_folder(path, files)
        targets = [folder / str(place) for place in range(len(parts))]
        jobs = [(path, layout, *both) for both in zip(parts, targets, strict=True)]
        results = workers.by_executor(_scan_apart, jobs, executor)
        for target, (found, segments) in zip(targets, results, strict=True):
            with temporary_files(path):
                file = files.enter_context(target.open("rb", buffering=0))
                target.unlink()
            yield _Range(found, Spill(file, found.counts.shape[1], segments))


def _scan_apart(
    path: Path, layout: TextLayout, part: tuple[int, int], target: Path
) -> tuple[Scan, list[Segment]]:
    """Scan a range in another process, which writes its records into a file with a name."""
    with ExitStack() as files:
        found, spill, _ = _scan_range(
            path, layout, part, HELD, lambda: files.enter_context(target.open("w+b", buffering=0))
        )
    assert spill is not None
    return found, spill.segments


def _scan_range(
    path: Path,
    layout: TextLayout,
    part: tuple[int, int] | None,
    held: int,
    new_file: Callable[[], IO[bytes]],
) -> _Range:
    """Scan a range, or all of a trace; the records of a range go to a file."""
    view = memoryview(bytearray(CHUNK))
    spill = None
    with open_source(path, part) as source:
        rest, lines = b"", 0
        if part is None or part[0] == 0:
            (_, rest), lines = read_header_line(source, path, view), 1
        scanner = _kernel.Scanner(*layout, lines)
        scanner.feed(rest)
        while (size := source.readinto(view)) and not workers.stopped():
            scanner.feed(view[:size])
            if scanner.held > held:
                spill = _drained(path, spill, scanner, view, new_file)
        scanner.finish()
    if part is not None or spill is not None:
        spill = _drained(path, spill, scanner, view, new_file)
        scanner.release()
    return _Range(Scan.of(scanner), spill, scanner)


def _drained(
    path: Path,
    spill: Spill | None,
    scanner: _kernel.Scanner,
    view: memoryview,
    new_file: Callable[[], IO[bytes]],
) -> Spill:
    with temporary_files(path):
        spill = spill or Spill(new_file(), len(scanner.lengths()))
        spill.drain(scanner, view)
    return spill


def _error(path: Path, reason: str, line: int) -> TraceError:
    hint = DAMAGED
    with open_source(path) as source:
        compressed = source.compressed
    if compressed:
        hint = DAMAGED_GZIP
    elif reason == TRUNCATED:
        hint = "copy the trace or run the program again"
    elif "is outside" in reason:
        hint = "header and records do not match: merge the trace again (mpi2prv)"
    return TraceError(path, reason, line=line, hint=hint)


def read_header_line(source: TraceSource, path: Path, view: memoryview) -> tuple[str, bytes]:
    """Return the first line and the bytes read after it."""
    text = bytearray()
    found = -1
    while found < 0 and len(text) < LONGEST_HEADER:
        size = source.readinto(view)
        if not size:
            break
        begin = len(text)
        text += view[:size]
        if begin == 0 and not b"#paraver ".startswith(text[:9].lower()):
            if foreign := foreign_file(path, bytes(text)):
                raise TraceError(path, f"is {foreign.name}", hint=foreign.advice)
            what = "the file is binary" if b"\0" in text[:4096] else "not a Paraver trace"
            raise TraceError(
                path,
                f"{what}: it does not begin with '#Paraver'",
                hint="give the .prv or .prv.gz file that Extrae wrote",
            )
        found = text.find(b"\n", begin)
    if not text:
        raise TraceError(path, "the file is empty", hint="trace the run again")
    line = text if found < 0 else text[:found]
    return line.decode("ascii", "backslashreplace").rstrip("\r"), bytes(text[len(line) + 1 :])
