"""Which processes in a raw directory are of one run.

A script can start a program several times, and a program can start others (MPI_Comm_spawn): each
has a MPI_COMM_WORLD of its own. Launchers name their runs to the processes; where they do not, a
run is as many processes of different ranks as were there at a time.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import among
from popmodel.base.errors import TraceError
from popmodel.base.values import dataclass
from popmodel.tracer.meta import AGAIN, Meta, read_meta
from popmodel.tracer.raw_records import (
    HEADER,
    IS_KIND,
    LATEST,
    MAGIC,
    MARK,
    RECORD,
    VERSION,
    Construct,
    Guard,
    Left,
    RecordKind,
    known_calls,
)
from popmodel.traces.caveats import ABORTED, CUT, FULL, KILLED, LIMITED
from popmodel.traces.codes import FILE_CALLS
from popmodel.traces.tables import TraceWarning

_APART = 10**9  # ns by which clocks of hosts may differ
_ONE_EACH = "trace each run into a separate directory"


class RankFiles(NamedTuple):
    """A process with records."""

    meta: Meta
    files: dict[int, Path]  # Of its threads
    last: int  # Its last sign of life, on the clock of its host

    @property
    def end(self) -> int:
        """When it was last there, ns since 1970."""
        return self.meta.realtime + max(self.last - self.meta.begin, 0)

    def is_with(self, other: RankFiles) -> bool:
        """Whether two processes may have been there at a time."""
        return self.meta.realtime <= other.end + _APART and other.meta.realtime <= self.end + _APART


def split(folder: Path, found: Sequence[RankFiles]) -> list[list[RankFiles]]:
    """Processes of each run by rank, the runs in the order of their start."""
    worlds: dict[tuple[str, int | None, bool], list[dict[int, RankFiles]]] = {}
    for one in sorted(found, key=_start):
        meta = one.meta
        rank = meta.rank
        assert rank is not None
        runs = worlds.setdefault((meta.job, meta.size, meta.spawned), [])
        for run in runs:
            if rank not in run and (meta.job or all(map(one.is_with, run.values()))):
                run[rank] = one
                break
        else:
            for run in runs:
                if rank in run and meta.realtime < run[rank].end:
                    raise _at_a_time(folder, run[rank].meta, meta)
            runs.append({rank: one})
    made = [run for runs in worlds.values() for run in runs]
    made.sort(key=lambda run: min(each.meta.realtime for each in run.values()))
    return [[run[rank] for rank in sorted(run)] for run in made]


def _start(one: RankFiles) -> tuple[int, str, int]:
    """When a process began, ns since 1970; host and number of those at once."""
    return one.meta.realtime, one.meta.host, one.meta.pid


def _at_a_time(folder: Path, one: Meta, other: Meta) -> TraceError:
    who = f"process {one.pid} on {one.host} and process {other.pid} on {other.host}"
    if one.size == 1:
        # What an MPI says of itself can be pages long.
        library = " ".join(other.library.replace("\n", " ").partition(",")[0].split()[:4])
        return TraceError(
            folder,
            f"{who} were each alone in MPI_COMM_WORLD",
            hint=f"if one launcher started them, use the mpirun of the program's MPI "
            f"({library or 'unknown'}); otherwise {_ONE_EACH}",
        )
    return TraceError(
        folder,
        f"{who} were both rank {one.rank} at the same time",
        hint=f"they belong to two runs: {_ONE_EACH}",
    )


# The raw directory of a traced run: which processes and threads there are, and their records.
#
# Records are read by `os.pread`, not mapped: a file that another process cuts short meanwhile, or a
# file server that fails, then is an error that can be told and no SIGBUS.


_META = re.compile(r"(?P<process>.+\.\d+)\.meta")
_RAW = re.compile(r"(?P<process>.+\.\d+)\.t(?P<thread>\d+)\.raw")
_BLOCK = 1 << 17
_CONSTRUCTS = (RecordKind.OMP_ENTER, RecordKind.OMP_LEAVE)
_FULL = "threads whose last records are lost: the disk was full"
_LIMITED = "threads whose last records are missing: --max-size was reached"
_SWAPPED = int.from_bytes(MARK.to_bytes(4, "little"), "big")


class RawThread:
    """Records of one thread."""

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.number = number  # of the thread in its process; 0 is the one that recorded first
        self.surplus: str | None = None  # what is wrong with the end of the file
        with self._opened() as file:
            size = os.fstat(file).st_size
            self._check_header(file, size)
            self.count = self._whole(file, (size - HEADER.size) // RECORD.itemsize)
        if (size - HEADER.size) % RECORD.itemsize:
            self.surplus = "threads with an incomplete last record (record dropped)"

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Descriptor of the file, which is open only while it is read: there can be thousands."""
        try:
            file = self.path.open("rb", buffering=0)
        except OSError as error:
            raise _unreadable(self.path, error) from None
        with file:
            yield file.fileno()

    def read(self, begin: int, end: int) -> NDArray[np.void]:
        """Return some records."""
        with self._opened() as file:
            return self._read(file, begin, end)

    def _read(self, file: int, begin: int, end: int) -> NDArray[np.void]:
        records = np.empty(end - begin, RECORD)
        view = memoryview(records.view(np.uint8).data).cast("B") if begin < end else memoryview(b"")
        at = HEADER.size + begin * RECORD.itemsize
        while view:
            try:
                size = os.preadv(file, [view], at)
            except OSError as error:
                raise _unreadable(self.path, error) from None
            if not size:
                raise TraceError(self.path, "the file shrank while it was read", hint=AGAIN)
            view, at = view[size:], at + size
        return records

    def first(self, count: int = 1 << 12) -> NDArray[np.void]:
        """Return the first records, not more than `count`."""
        return self.read(0, min(count, self.count))

    @property
    def last_time(self) -> int:
        """Time of the last record, on the clock of its host; 0 where there is none."""
        if not self.count:
            return 0
        last = self.read(self.count - 1, self.count)
        # The order of the others shows one that is wrong; this one has none behind it.
        if last["time"][0] > LATEST:
            self._check(last, self.count - 1, 0)
        return int(last["time"][0])

    def _check_header(self, file: int, size: int) -> None:
        again = "the file is damaged or not a raw file: " + AGAIN
        if size < HEADER.size:
            raise TraceError(
                self.path, f"the file is shorter than its header: {size} B", hint=AGAIN
            )
        text = os.pread(file, HEADER.size, 0)
        magic, mark, version, header_size, record_size, _, thread, _, _ = HEADER.unpack(text)
        if magic != MAGIC:
            raise TraceError(self.path, "is not a raw file of popmodel trace", hint=again)
        if mark == _SWAPPED:
            raise TraceError(
                self.path,
                "written on a machine with a different byte order",
                hint="merge the run on a machine like the one where it was traced",
            )
        if mark != MARK or (header_size, record_size) != (HEADER.size, RECORD.itemsize):
            raise TraceError(self.path, "the header is damaged", hint=again)
        if version != VERSION:
            raise TraceError(
                self.path,
                f"has format version {version}, but this popmodel reads version {VERSION}",
                hint="merge the run with the version of popmodel that traced it",
            )
        if thread != self.number:
            raise TraceError(self.path, f"its header names thread {thread}", hint=again)

    def _whole(self, file: int, count: int) -> int:
        """How many records come before the part of the last window that was never filled."""

        class Kinds:
            def __len__(_) -> int:
                return count

            def __getitem__(_, i: int) -> bool:
                return not self._read(file, i, i + 1)["kind"][0]

        used = bisect_left(Kinds(), True)
        for begin in range(used + 1, count, _BLOCK):  # a record that was being written may be torn
            rest = self._read(file, begin, min(begin + _BLOCK, count))
            if rest.view(np.uint64).any():
                raise TraceError(
                    self.path,
                    f"there are records after a gap at record {used}",
                    hint="the file is damaged: " + AGAIN,
                )
        return used

    def chunks(self, size: int) -> Iterator[NDArray[np.void]]:
        """Yield the records, in chunks, checked: known kinds, in order of time.

        A chunk never ends inside an MPI call, nor between a record and its counters, unless the
        file does.
        """
        begin, want, last, stop = 0, size, 0, self.count
        with self._opened() as file:
            while begin < stop:
                end = min(begin + want, stop)
                records = self._read(file, begin, end)
                if end < stop:
                    records = records[: _cut(records)]
                    if not len(records):  # one call with very many messages
                        want *= 2
                        continue
                self._check(records, begin, last)
                last = int(records["time"][-1])
                begin, want = begin + len(records), size
                yield records

    def _check(self, records: NDArray[np.void], begin: int, last: int) -> None:
        """Refuse what no tracer writes; of a record that is wrong in several ways, the first."""
        time = np.where(records["time"] > LATEST, 0, records["time"]).astype(np.int64)
        before = np.concatenate([[last], time[:-1]])
        kind, call = records["kind"], records["call"]

        def of(*kinds: RecordKind) -> NDArray[np.bool_]:
            return among(kind, kinds)

        def unknown(known: type[IntEnum]) -> NDArray[np.bool_]:
            return ~among(call, list(known))

        calls, constructs = of(RecordKind.ENTER, RecordKind.LEAVE), of(*_CONSTRUCTS)
        sums, left = of(RecordKind.GUARDED, RecordKind.HELD), of(RecordKind.LEFT_OUT)
        files = of(RecordKind.FILE_ENTER, RecordKind.FILE_LEAVE)
        sized = of(RecordKind.SEND, RecordKind.RECEIVE)
        negative = (records["b"] < 0) | (records["c"] < 0)
        wrong = {
            "has an impossible time: {time} ns": records["time"] > LATEST,
            "has unknown kind {kind}": ~IS_KIND[kind],
            "has unknown MPI call {call}": calls & ~_is_call()[call],
            "has unknown OpenMP construct {call}": constructs & unknown(Construct),
            "has calls of unknown kind {call}": left & unknown(Left),
            "has locks of unknown kind {call}": sums & unknown(Guard),
            "has unknown call {call} for files": files & ~among(call, list(FILE_CALLS)),
            "has a negative number of bytes or time of files": files & negative,
            "has a negative time or count of locks": sums & negative,
            "has a message of {c} bytes": sized & (records["c"] < 0),
            "is {early} ns earlier than the previous one": time < before,
        }
        rows = np.flatnonzero(np.logical_or.reduce(list(wrong.values())))
        if len(rows):
            row = int(rows[0])
            words = next(words for words, mask in wrong.items() if mask[row])
            values = {name: records[name][row] for name in ("time", "kind", "call", "c")}
            what = words.format(**values, early=before[row] - time[row])
            problem = f"record {begin + row} {what}"
            raise TraceError(self.path, problem, hint="the file is damaged: " + AGAIN)


@cache
def _is_call() -> NDArray[np.bool_]:
    """Whether a number is an MPI call."""
    known = np.zeros(1 << 16, bool)
    known[list(known_calls())] = True
    return known


def _cut(records: NDArray[np.void]) -> int:
    """Where to end a chunk that is not the last one.

    Before an MPI call that is open at its end. Else before the last record and what belongs to it,
    because the chunk does not show whether its counters follow.
    """
    kind = records["kind"]
    enters = np.flatnonzero(kind == RecordKind.ENTER)
    leaves = np.flatnonzero(kind == RecordKind.LEAVE)
    if len(enters) and (not len(leaves) or leaves[-1] < enters[-1]):
        return int(enters[-1])
    others = np.flatnonzero(kind != RecordKind.COUNTERS)
    end = int(others[-1]) if len(others) else 0
    if kind[end] == RecordKind.LEAVE:
        return int(enters[-1]) if len(enters) else end
    return end - 1 if kind[end] == RecordKind.RECEIVED and end else end


@dataclass(frozen=True)
class Process:
    """A traced process."""

    rank: int  # In MPI_COMM_WORLD, or its place in the order of start where there is no MPI
    meta: Meta
    threads: tuple[RawThread, ...]  # In order of their numbers
    # Threads whose last records are lost: since when, on the clock of the host, and why, a key of
    # `popmodel.traces.caveats.REASONS`.
    lost: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def broken(self) -> int | None:
        """Why it ended before its end, a key of `popmodel.traces.caveats.REASONS`; None else."""
        if self.meta.reason == "abort":
            return ABORTED
        return KILLED if self.meta.end is None or self.meta.reason == "signal" else None

    @property
    def end(self) -> int:
        """When the process ended, on the clock of its host: what it said, or its last record."""
        last = max((thread.last_time for thread in self.threads), default=self.meta.begin)
        return max(last, self.meta.end or 0, self.meta.begin)


class Raw(NamedTuple):
    """A traced run."""

    directory: Path
    size: int  # Processes of the run, whether there are records of them or not
    processes: tuple[Process, ...]  # Those with records, by rank
    missing: tuple[int, ...]  # Ranks of the others
    warnings: tuple[TraceWarning, ...]
    spawned: bool = False  # Whether another run started it by MPI_Comm_spawn


def read(directory: str | os.PathLike[str]) -> tuple[Raw, ...]:
    """Find the runs in a raw directory, with their processes and threads."""
    folder = Path(directory)
    metas, files, aliens = _listing(folder)
    if not metas and not files:
        raise TraceError(
            folder,
            "contains no raw files of popmodel trace",
            hint="give the directory that POPMODEL_TRACE_DIR named; files appear there when the "
            "program calls MPI_Init or enters a parallel region",
        )
    warnings: Counter[str] = Counter()
    warnings["files not written by the tracer (ignored)"] += aliens
    warnings["processes without a .meta file (dropped)"] += len(files.keys() - metas.keys())
    found: list[RankFiles] = []
    for name, path in sorted(metas.items()):
        meta, said = read_meta(path)
        for each in said:
            warnings[each.text] += each.count
        if meta is None:
            continue
        # A file is made before its first record is, and disks are full, processes killed.
        written = {n: path for n, path in files.get(name, {}).items() if not _is_blank(path)}
        if blank := len(files.get(name, {})) - len(written):
            warnings["threads without records (dropped; killed, or disk full?)"] += blank
        if written:
            last = meta.end  # or the last record
            if last is None:
                last = max(RawThread(path, n).last_time for n, path in written.items())
            found.append(RankFiles(meta, written, last))
        else:
            warnings["processes without records (dropped)"] += 1
    if not found:
        raise TraceError(folder, "contains no records of any process", hint="trace the run again")
    with_mpi = [each for each in found if each.meta.rank is not None]
    if not with_mpi:
        # Programs without MPI, one after the other or side by side: processes of one trace.
        found.sort(key=_start)
        if len(found) > 1:
            text = "programs without MPI, treated as processes in the order of their start"
            warnings[text] += len(found)
        return (_run(folder, found, len(found), warnings),)
    warnings["processes without MPI in a run with MPI (dropped)"] += len(found) - len(with_mpi)
    runs = split(folder, with_mpi)
    made = []
    for number, members in enumerate(runs):
        size = max(each.meta.size or 0 for each in members)
        mine = Counter(warnings) if number == 0 else Counter[str]()
        if any(SPAWNED in each.meta.notes for each in members) and not any(
            each[0].meta.spawned for each in runs
        ):
            mine[NOT_TRACED] += 1
        made.append(_run(folder, members, size, mine))
    return tuple(made)


NOT_TRACED = "processes started by MPI_Comm_spawn: not recorded"
SPAWNED = "processes were spawned: messages to and from them are not matched"
"""A note of the tracer (comms.c)."""


def _run(folder: Path, members: Sequence[RankFiles], size: int, warnings: Counter[str]) -> Raw:
    ranked = [
        (number if each.meta.rank is None else each.meta.rank, each)
        for number, each in enumerate(members)
    ]
    processes = tuple(_open(rank, each.meta, each.files, warnings) for rank, each in ranked)
    present = {process.rank for process in processes}
    missing = tuple(rank for rank in range(size) if rank not in present)
    if missing:
        text = (
            "processes without files: did they end before MPI_Init, or run on a host that "
            "cannot write "
            f"to the directory? (the first is rank {missing[0]})"
        )
        warnings[text] += len(missing)
    return Raw(
        folder,
        size,
        processes,
        missing,
        tuple(TraceWarning(text, count) for text, count in warnings.items() if count),
        any(each.meta.spawned for each in members),
    )


def _listing(folder: Path) -> tuple[dict[str, Path], dict[str, dict[int, Path]], int]:
    """Files of the tracer by process, and how many others there are."""
    metas: dict[str, Path] = {}
    files: dict[str, dict[int, Path]] = defaultdict(dict)
    aliens = 0
    try:
        entries = sorted(folder.iterdir())
    except NotADirectoryError:
        raise TraceError(
            folder, "is a file, not a directory", hint="give the directory of the raw files"
        ) from None
    except FileNotFoundError:
        raise TraceError(
            folder, "directory not found", hint="give the directory that POPMODEL_TRACE_DIR named"
        ) from None
    except OSError as error:
        raise _unreadable(folder, error) from None
    for path in entries:
        if raw := _RAW.fullmatch(path.name):
            files[raw["process"]][int(raw["thread"])] = path
        elif meta := _META.fullmatch(path.name):
            metas[meta["process"]] = path
        else:
            aliens += 1
    return metas, dict(files), aliens


def _open(rank: int, meta: Meta, files: dict[int, Path], warnings: Counter[str]) -> Process:
    threads = []
    ends: dict[int, tuple[int, int]] = {}
    for number, path in sorted(files.items()):
        thread = RawThread(path, number)
        if thread.surplus:
            warnings[thread.surplus] += 1
        lost = meta.records.get(number, 0) - thread.count
        if lost > 0:
            warnings["records that were written but are missing from the files"] += lost
            ends[number] = thread.last_time, CUT
        if number in meta.lost_from:
            limited = number in meta.limited
            warnings[_LIMITED if limited else _FULL] += 1
            reason = LIMITED if limited else FULL
            ends[number] = max(meta.lost_from[number], thread.last_time), reason
        threads.append(thread)
    if meta.end is None or meta.reason == "signal":
        warnings["processes that were killed or crashed: their trace ends there"] += 1
    for text, count in meta.notes.items():
        warnings[text] += count
    return Process(rank, meta, tuple(threads), ends)


def _is_blank(path: Path) -> bool:
    """Whether nothing was written into a file, of which the tracer first makes room in zeros.

    Nor all of its header, whose magic number is written last.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb", buffering=0) as file:
            start = file.read(HEADER.size + RECORD.itemsize)
    except OSError as error:
        raise _unreadable(path, error) from None
    return not any(start[: len(MAGIC)]) and not any(start[HEADER.size :])


def _unreadable(path: Path, error: OSError) -> TraceError:
    reason = (error.strerror or str(error)).lower()
    return TraceError(path, f"cannot be read: {reason}", hint="check its permissions")
