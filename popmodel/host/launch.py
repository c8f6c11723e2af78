"""Starts the measuring programs and watches over them until nothing of them is left."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from popmodel.errors import FileError
from popmodel.files import append_to
from popmodel.host import hardware, processes
from popmodel.host.probe import (
    OUT_OF_TOUCH,
    LaunchError,
    LaunchWay,
    ProbeCall,
    call,
    explain,
    forget,
    meaningful,
    not_started,
    probe,
    quote,
)
from popmodel.host.toolchain import Mpi
from popmodel.units import plural
from popmodel.values import dataclass

__all__ = ["LaunchError", "LaunchOutcome", "Progress", "start"]

Progress = Callable[[int], None]

_INTERVAL = 0.2  # seconds between looks at the samples: rare enough to leave the cores alone
_SURVEYS = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds between looks at the tree of processes, then 5
_LOG_MOST = 4 << 20  # bytes of a launcher's words that are kept
_TAIL = 64 << 10  # bytes of them that are looked at
_BATCH_SYSTEMS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class LaunchOutcome:
    """A launch that ended well."""

    command: tuple[str, ...]  # What was started
    seconds: float  # How long it took
    lines: int  # Lines of the samples file that it wrote
    words: tuple[str, ...]  # The last lines that it or its launcher wrote


def start(
    program: str | os.PathLike[str],
    arguments: Sequence[str],
    *,
    log: str | os.PathLike[str],
    samples: str | os.PathLike[str] | None = None,
    mpi: Mpi | None = None,
    ranks: int = 1,
    threads: int = 1,
    environment: Mapping[str, str] | None = None,
    patience: float = 60.0,
    limit: float | None = None,
    on_progress: Progress | None = None,
) -> LaunchOutcome:
    """Run a program to its end; nothing of it is left afterwards, however it ended."""
    own = {**os.environ, **(environment or {})}
    begun = ProbeCall([], {})
    if mpi is not None:
        way = probe(mpi, own)
        cores = hardware.here().usable_cores
        local = _is_local(mpi, own)
        if local and ranks > cores:
            raise _too_many(ranks, cores)
        own.setdefault("OMP_NUM_THREADS", str(threads))
        if local and ranks * threads > cores:
            # Threads that wait by spinning would keep the others from running.
            own.setdefault("OMP_WAIT_POLICY", "passive")
            way = LaunchWay(way.launcher, "free") if way.manner == "bound" else way
        begun = call(way, mpi, ranks, threads, own)
    command = [*begun.words, os.fspath(program), *arguments]
    watch = _Watch(patience, limit, on_progress)
    where = None if samples is None else Path(samples)
    try:
        return _run(command, {**own, **begun.environment}, ranks, Path(log), where, watch)
    except LaunchError:
        if mpi is not None:
            forget(mpi, own)
        raise


def _is_local(mpi: Mpi, environment: Mapping[str, str]) -> bool:
    """Whether all ranks will be on this machine: no batch system gave others, nor did the user."""
    return not mpi.is_launcher_given and not any(environment.get(name) for name in _BATCH_SYSTEMS)


def _too_many(ranks: int, cores: int) -> LaunchError:
    return LaunchError(
        f"too few cores for {plural(ranks, 'rank')}: this process may use {plural(cores, 'core')}",
        f"use --ranks {cores}: ranks that share a core would measure time slicing",
    )


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    ranks: int,
    log: Path,
    samples: Path | None,
    watch: _Watch,
) -> LaunchOutcome:
    begin = time.monotonic()
    lines = _OutputLines(samples)
    reading, writing = os.pipe()
    try:
        with _LaunchWords(log) as words, processes.ended_with_us() as interrupts:
            try:
                tree = processes.start(command, environment, output=writing)
            except OSError as error:
                raise not_started(f"{command[0]}: {error.strerror}") from error
            finally:
                os.close(writing)
            try:
                with processes.ended_after_us(tree):
                    stuck = _follow(tree, reading, words, lines, watch, interrupts)
                said = quote(meaningful(words.text))
            finally:
                left = processes.end(tree)
            for chunk in processes.chunks_there(reading):
                words.add(chunk)  # what a launcher says when it is ended
    finally:
        os.close(reading)
    last = meaningful(words.text)
    name = Path(command[0]).name
    if left:
        numbers = ",".join(map(str, left))
        raise LaunchError(
            f"{name}: some processes could not be killed: {numbers}",
            f"they wait for a device or belong to another user: ps -fp {numbers}",
            last,
        )
    if stuck is not None:
        hint = f"full output: {log}" if ranks == 1 else f"{OUT_OF_TOUCH} (output: {log})"
        message = f"{name} {stuck}" + (f": {said}" if said else "")
        raise LaunchError(message, hint, last, is_hang=True)
    if tree.child.returncode != 0:
        raise explain(tree.child.returncode, words.text, command, ranks, log)
    return LaunchOutcome(tuple(command), time.monotonic() - begin, lines.count(), last)


def _follow(
    tree: processes.ProcessTree,
    reading: int,
    words: _LaunchWords,
    lines: _OutputLines,
    watch: _Watch,
    interrupts: processes.Interrupts,
) -> str | None:
    """Follow a launch to its end; what is wrong with it if it has to be ended, else None."""
    begin = progress = time.monotonic()
    surveys = iter(_SURVEYS)
    survey = begin + next(surveys)
    number = 0
    for chunk in processes.chunks_of(tree, reading, _INTERVAL):
        interrupts.check()
        now = time.monotonic()
        words.add(chunk)
        counted = lines.count()
        if counted > number or (chunk and lines.path is None):
            number, progress = counted, now
        if watch.on_progress is not None:
            watch.on_progress(number)
        if now > survey:
            processes.members(tree)
            survey = now + next(surveys, _SURVEYS[-1])
        if watch.limit is not None and now - begin > watch.limit:
            return f"did not finish within {watch.limit:.3g} s and was killed"
        if now - progress > watch.patience:
            return f"made no progress for {watch.patience:.3g} s and was killed"
    return None


@dataclass(frozen=True)
class _Watch:
    """How long a launch may take, and whom to tell of its progress."""

    patience: float
    limit: float | None
    on_progress: Progress | None


class _LaunchWords:
    """What a launch writes: kept in a file, and the end of it in memory.

    A message needs the words even where the disk is too full for the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tail = b""
        self._written = 0
        try:
            self._file = append_to(path)
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> _LaunchWords:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def text(self) -> str:
        """The end of what was written."""
        return self._tail.decode("utf-8", "replace")

    def add(self, chunk: bytes) -> None:
        """Take more words; raises FileError if the file cannot take them."""
        self._tail = (self._tail + chunk)[-_TAIL:]
        room = max(0, _LOG_MOST - self._written)
        if not chunk or not room:
            return
        self._written += len(chunk)
        try:
            self._file.write(chunk[:room])
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> FileError:
        hint = "choose another path with -o"
        if error.errno in _FULL:
            hint = f"free some space there, or {hint}; the same command resumes from here"
        return FileError(self._path, f"cannot be written: {error.strerror}", hint=hint)


class _OutputLines:
    """Counts the lines of a file that grows."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._begin = self._size() if path is not None else 0
        self._read = self._begin
        self._lines = 0

    def count(self) -> int:
        """Lines that came since the beginning; 0 without a file."""
        if self.path is None or self._size() <= self._read:
            return self._lines
        with self.path.open("rb") as file:
            file.seek(self._read)
            fresh = file.read()
        self._read += len(fresh)
        self._lines += fresh.count(b"\n")
        return self._lines

    def _size(self) -> int:
        try:
            return self.path.stat().st_size if self.path is not None else 0
        except FileNotFoundError:
            return 0
