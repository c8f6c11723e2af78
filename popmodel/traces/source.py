"""The text of a trace as bytes or lines; other tools' files, and what to do instead."""

from __future__ import annotations

import errno
import fnmatch
import gzip
import io
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from popmodel.base.errors import TraceError
from popmodel.base.values import NamedTuple
from popmodel.traces.gzip_blocks import block_ranges

# Formats of other tools that popmodel does not read: their names, and what to do instead.
#
# A file is known by how it begins, else by its name; a folder by the names of the files in it.


HEAD = 1 << 12
"""Bytes from the beginning of a file that tell."""
_ENTRIES = 2000
"""Entries of a folder that are looked at."""

_AGAIN = "record the run with popmodel trace -- COMMAND"
_TABLE = "give its runtime in a table of runs (popmodel docs tables)"


class Foreign(NamedTuple):
    """A format that is not read."""

    name: str  # What the file is, with its article
    names: tuple[str, ...]  # Patterns of names of files, also in a folder of that format
    advice: str  # What to do
    magic: tuple[bytes, ...] = ()  # How such a file begins
    words: tuple[bytes, ...] = ()  # What stands in the beginning of such a text


FOREIGN = (
    Foreign(
        "part of an archive in OTF2, such as Score-P writes",
        ("*.evt", "traces.def"),
        "give the archive's .otf2 file, or its directory",
        (b"\x03B\x01",),
    ),
    Foreign(
        "a profile in Cube's format, such as Score-P and Scalasca write",
        ("*.cubex", "*.cube", "*.cube.gz"),
        f"popmodel metrics FILE.cubex shows its efficiencies; it has no course of time: else "
        f"{_AGAIN}, or {_TABLE}",
        (b"anchor.xml",),
    ),
    Foreign("a measurement of Score-P", ("scorep.cfg", "scorep-*"), _AGAIN),
    Foreign(
        "an experiment of Extra-P",
        ("*.extra-p",),
        "save it as text or JSON lines: popmodel predict and popmodel signature read these",
    ),
    Foreign(
        "a database of HPCToolkit",
        ("*.hpcrun", "*.hpctrace", "experiment.xml", "experiment.mt", "cct.db", "hpctoolkit-*"),
        f"its samples tell no messages: {_AGAIN}",
        (b"HPCTOOLKIT", b"HPCRUN-"),
    ),
    Foreign(
        "a profile of Caliper",
        ("*.cali",),
        f"its records tell no messages: {_AGAIN}, or {_TABLE}",
        (b"__rec=",),
    ),
    Foreign(
        "a report of TALP",
        (),
        f"popmodel metrics FILE.json, so named and unpacked, shows its efficiencies; it has no "
        f"course of time: else {_AGAIN}",
        words=(b'"dlbVersion"', b'"popMetrics"'),
    ),
    Foreign(
        "what TALP prints of a run",
        (),
        "popmodel metrics reads its report: DLB_ARGS='--talp --talp-output-file=talp.json'",
        words=(b"# Monitoring Region ",),
    ),
    Foreign(
        "a report of Nsight Systems",
        ("*.nsys-rep", "*.qdrep", "*.qdstrm"),
        "nsys2prv makes a Paraver trace of it",
    ),
    Foreign(
        "an SQLite database, such as Nsight Systems exports",
        ("*.sqlite", "*.sqlite3"),
        "nsys2prv makes a Paraver trace of the .nsys-rep file",
        (b"SQLite format 3\0",),
    ),
    Foreign(
        "a trace of Charm++'s Projections",
        ("*.sts", "*.projrc"),
        f"{_AGAIN}, if it is an MPI program",
        (b"PROJECTIONS",),
    ),
    Foreign(
        "a trace of TAU",
        ("tautrace.*", "*.trc", "*.edf"),
        f"tau_convert -paraver makes a Paraver trace of it; else {_AGAIN}",
    ),
    Foreign(
        "a profile of TAU",
        ("profile.*.*.*", "MULTI__*", "*.ppk"),
        f"a profile has no course of time: {_AGAIN}, or {_TABLE}",
        words=(b"templated_functions",),
    ),
    Foreign("a trace of Intel Trace Collector", ("*.stf", "*.stf.*"), _AGAIN),
    Foreign("a trace in OTF", ("*.otf", "*.events.z"), _AGAIN),
    Foreign("a trace of MPE (Jumpshot)", ("*.clog2", "*.slog2", "*.clog"), _AGAIN),
    Foreign("a trace in Paje's format", ("*.paje",), _AGAIN, (b"%EventDef",)),
    Foreign(
        "a profile of Linux perf",
        ("perf.data", "perf.data.old"),
        f"its samples tell no messages: {_AGAIN}",
        (b"PERFILE2", b"2ELIFREP"),
    ),
    Foreign(
        "a trace for Perfetto or Chrome",
        ("*.perfetto-trace", "*.pftrace", "*.perfetto.json", "*.perfetto.json.gz"),
        f"popmodel writes such files and reads none: give the trace it was made of, or {_AGAIN}",
        words=(b'"traceEvents"', b'"ph":'),
    ),
    Foreign(
        "a recording of popmodel that is not merged",
        ("*.[0-9]*.meta",),
        "popmodel trace merge RAW -o run.prv.gz merges it",
    ),
    Foreign(
        "a trace of Extrae that is not merged",
        ("*.mpits", "*.mpit", "set-[0-9]*"),
        "mpi2prv -f TRACE.mpits -o run.prv merges it",
    ),
    Foreign(
        "a configuration of Paraver",
        (),
        "give the .prv trace that it is for",
        (b"#ParaverCFG",),
    ),
    Foreign(
        "what belongs to a Paraver trace, not the trace",
        ("*.pcf", "*.row"),
        "give the .prv or .prv.gz file of the same name",
    ),
    Foreign("a file compressed by bzip2", (), "unpack it: bunzip2 FILE", (b"BZh",)),
    Foreign("a file compressed by xz", (), "unpack it: unxz FILE", (b"\xfd7zXZ\0",)),
    Foreign("a file compressed by zstd", (), "unpack it: unzstd FILE", (b"\x28\xb5\x2f\xfd",)),
    Foreign("a file compressed by lz4", (), "unpack it: unlz4 FILE", (b"\x04\x22\x4d\x18",)),
    Foreign("a file compressed twice", (), "unpack it once: gunzip FILE", (b"\x1f\x8b",)),
    Foreign(
        "an archive of files",
        ("*.zip", "*.tar", "*.tar.*", "*.tgz"),
        "unpack it: unzip FILE, or tar xf FILE",
        words=(b"\0ustar",),
    ),
)
"""All that are known by name."""
_TABLES = (
    Foreign(
        "a table, not a trace",
        ("*.csv", "*.tsv", "*.md"),
        "popmodel predict FILE --cores 64 goes from a table of runtimes to a split",
    ),
    Foreign(
        "a spreadsheet",
        ("*.xlsx", "*.xls", "*.ods"),
        "save it as CSV: popmodel predict FILE.csv --cores 64 goes from runtimes to a split",
    ),
)
"""Which a folder may hold beside anything."""


def foreign_file(path: Path, head: bytes) -> Foreign | None:
    """Return the format of a file that begins so; None for one that nobody knows."""
    by_content = (
        each
        for each in FOREIGN
        if head.startswith(each.magic) or any(word in head for word in each.words)
    )
    return next(by_content, None) or _by_name([path.name], (*FOREIGN, *_TABLES))


def foreign_folder(path: Path) -> Foreign | None:
    """Return the format of a folder of another tool; None for any other."""
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_ENTRIES), strict=False)]
    except OSError:
        return None  # that it is a folder is said in any case
    if any(name.endswith((".prv", ".prv.gz")) for name in names):
        return None
    return _by_name([*names, path.resolve().name])


def _by_name(names: list[str], among: Iterable[Foreign] = FOREIGN) -> Foreign | None:
    found = (
        each for each in among if any(fnmatch.filter(names, pattern) for pattern in each.names)
    )
    return next(found, None)


# The text of a trace as a stream of bytes, plain or compressed, with errors a user can act on.


GZIP_MAGIC = b"\x1f\x8b"
NO_PIPE = "give the name of a file; a trace cannot be read from a pipe"
CHUNK = 1 << 18
"""Bytes read at a time: little enough to stay in the processor's cache until they are scanned."""


LARGEST_RATIO = 1032
"""To how many bytes one byte of a compressed file can expand."""


class TraceSource:
    def __init__(
        self,
        text: io.RawIOBase | io.BufferedIOBase,
        path: Path,
        most: int,
        damaged: tuple[type[Exception], ...] | None = None,
    ) -> None:
        # Whether damage of the file shows only in its text, because a checksum comes last.
        self.compressed = damaged is not None
        self.most = most  # Bytes that the text cannot exceed
        self._text = text
        self._path = path
        self._damaged = damaged or ()

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with the next bytes and return their number; 0 at the end."""
        try:
            return self._text.readinto(buffer) or 0
        except EOFError:
            problem = "the compressed file is truncated or followed by other data"
        except self._damaged as error:
            problem = f"the compressed data are damaged: {error}"
        except gzip.BadGzipFile as error:
            # The first two bytes were right, so that this is what follows a compressed part.
            what = "other data follow the compressed data"
            followed = str(error).startswith("Not a gzipped file")
            problem = what if followed else f"the compressed data are damaged: {error}"
        except OSError as error:
            if not self.compressed or error.errno not in (None, 0, errno.EINVAL):
                raise TraceError(self._path, f"cannot be read: {reason(error)}") from None
            problem = f"the compressed data are damaged: {error}"
        raise TraceError(self._path, problem, hint="copy or compress the trace again")


@contextmanager
def open_source(path: Path, part: tuple[int, int] | None = None) -> Iterator[TraceSource]:
    """Open a trace, or a range of `text_ranges`, decompressing it if its first bytes are gzip's."""
    try:
        if stat.S_ISFIFO(mode := path.stat().st_mode) or stat.S_ISSOCK(mode):  # opening may wait
            raise TraceError(path, "is a pipe, not a file", hint=NO_PIPE)
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise TraceError(path, "no such file", hint=_near(path)) from None
    except IsADirectoryError:
        foreign = foreign_folder(path)
        raise TraceError(
            path,
            f"is a directory with {foreign.name}" if foreign else "is a directory, not a trace",
            hint=foreign.advice if foreign else "name one .prv or .prv.gz file in it",
        ) from None
    except PermissionError:
        raise TraceError(path, "permission denied", hint="ask its owner for read access") from None
    except OSError as error:
        raise TraceError(path, f"cannot be opened: {reason(error)}") from None
    with file:
        magic, size = _peek(file, path), os.fstat(file.fileno()).st_size
        bytes_of: io.RawIOBase = file if part is None else _FilePart(file, *part)
        if magic != GZIP_MAGIC:
            yield TraceSource(bytes_of, path, size)
            return
        unpacker, damaged = _unpacker()
        with unpacker(fileobj=bytes_of) as text:
            yield TraceSource(text, path, LARGEST_RATIO * size, damaged)


class _FilePart(io.RawIOBase):
    """Bytes of a file from one on, up to another."""

    def __init__(self, file: io.FileIO, begin: int, end: int) -> None:
        self._file = file
        self._left = end - begin
        file.seek(begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        size = self._file.readinto(memoryview(buffer)[: self._left]) or 0
        self._left -= size
        return size


def text_ranges(path: Path, most: int, least: int) -> list[tuple[int, int]]:
    """Cut a trace into ranges of bytes that hold whole lines, of at least some bytes about each.

    There are at most as many as given, in order; none where the file cannot be cut.
    """
    with open_source(path) as source:
        size = path.stat().st_size
        if most > 1 and source.compressed:
            return block_ranges(path, most, least)
        count = min(most, size // least)
        if count < 2:
            return []
    edges = [0]
    with path.open("rb", buffering=0) as file:
        for number in range(1, count):
            file.seek(size * number // count)
            line = file.read(CHUNK) or b""
            while line and b"\n" not in line:
                line = file.read(CHUNK)
            # The position is behind what was read last.
            at = file.tell() - len(line) + line.find(b"\n") + 1
            if line and edges[-1] < at < size:
                edges.append(at)
    return list(pairwise([*edges, size]))


def _unpacker() -> tuple[Callable[..., io.BufferedIOBase], tuple[type[Exception], ...]]:
    """What opens compressed files, and the errors (besides OSError) that damage raises there."""
    try:
        from isal import igzip, isal_zlib
    except ImportError:  # no wheel for this platform: the standard library does, more slowly
        return gzip.GzipFile, (zlib.error,)
    damaged = cast("type[Exception]", isal_zlib.IsalError)  # its stub calls it an instance
    return igzip.IGzipFile, (zlib.error, damaged)


def _peek(file: io.FileIO, path: Path) -> bytes:
    try:
        magic = file.read(2) or b""
        file.seek(0)
    except OSError as error:
        raise TraceError(path, f"cannot be read: {reason(error)}", hint=NO_PIPE) from None
    return magic


def reason(error: OSError) -> str:
    """Why something failed, as it may stand inside a sentence."""
    return (error.strerror or str(error)).lower()


def _near(path: Path) -> str:
    """Suggest the traces beside a file that does not exist."""
    import difflib

    if path.name == "-":
        return NO_PIPE
    folder = path.parent
    if not folder.is_dir():
        return f"no such directory: {folder}"
    try:
        entries = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        return f"cannot list the directory {folder}: {reason(error)}"
    names = [name for name in entries if name.endswith((".prv", ".prv.gz")) and name != path.name]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(str(folder / name) for name in near) + "?"
    there = "is 1 trace" if len(names) == 1 else f"are {len(names) or 'no'} traces"
    return f"there {there} in {folder}"


# Lines of a text, plain or compressed, each with its number, and errors that name them.


MOST = 2**53
"""Bytes of a message, and ns that a process computes; beyond, numbers are not exact."""

LONGEST = 1 << 26
"""Bytes of a line; an Alltoallv of a million processes needs less."""

_DIGITS = 18  # more are no number of anything, and may exceed what Python converts


class LineError(ValueError):
    """A line cannot be used; the text says why, `hint` what to do about this one."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, numbered from 1; raises as `open_source`."""
    count, line = 0, bytearray()
    with open_source(path) as source:
        view = memoryview(bytearray(CHUNK))
        while size := source.readinto(view):
            *ends, begin = bytes(view[:size]).split(b"\n")
            for end in ends:
                count += 1
                yield count, (line + end).decode("ascii", "backslashreplace")
                line.clear()
            line += begin
            if len(line) > LONGEST:
                problem = f"a line is longer than {LONGEST >> 20} MiB"
                raise TraceError(path, problem, line=count + 1)
    if line:
        yield count + 1, line.decode("ascii", "backslashreplace")


def listed_file(path: Path, name: str) -> Path | None:
    """Return the file that a list names, if it is there.

    Its name is relative to the folder of the list, or to that of the command that wrote it: one
    above, or the working directory; or list and files were moved together.
    """
    folders = (path.parent, *path.absolute().parent.parents, Path())
    places = (*(folder / name for folder in folders), path.parent.joinpath(*Path(name).parts[-2:]))
    # isfile never raises, however long the name
    return next((place for place in places if os.path.isfile(place)), None)  # noqa: PTH113


def whole(digits: str) -> int:
    """Return the number that some digits write; raises `LineError` beyond `MOST`."""
    number = int(digits) if len(digits) <= _DIGITS else MOST + 1
    if number > MOST:
        raise LineError(f"{digits[:40]} is larger than can be represented")
    return number


class Words:
    """Arguments of what a line tells."""

    def __init__(self, what: str, words: Sequence[str]) -> None:
        self._what = what
        self._words = words

    def __len__(self) -> int:
        return len(self._words)

    def amount(self, place: int) -> float:
        """Return a number that is not negative."""
        try:
            amount = float(self._words[place])
        except (IndexError, ValueError):
            amount = math.nan
        if not 0 <= amount < math.inf:
            raise self._wrong(place, "a number")
        return amount

    def whole(self, place: int, missing: int | None = None, most: int = 2**31 - 1) -> int:
        """Return a whole number that is not negative."""
        if missing is not None and place >= len(self._words):
            return missing
        try:
            number = int(self._words[place])
        except (IndexError, ValueError):
            number = -1
        if not 0 <= number <= most:
            raise self._wrong(place, "a whole number")
        return number

    def _wrong(self, place: int, what: str) -> LineError:
        given = f"not {self._words[place][:40]!r}" if place < len(self._words) else "there is none"
        return LineError(f"argument {place + 1} of {self._what} must be {what}, {given}")
