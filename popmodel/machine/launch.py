"""Starts the measuring programs, watches over them, and says what went wrong.

How ranks are started here is found out by starting some: flags for root, for binding and for more
ranks than the launcher has room for differ between makes and versions, and whether they are needed
depends on the machine. What worked is remembered beside the built program.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from popmodel.errors import FileError, PopmodelError
from popmodel.machine import hardware, processes
from popmodel.machine.build import build
from popmodel.machine.launchers import Call, Way, call, ways
from popmodel.machine.toolchain import Mpi

Progress = Callable[[int], None]

_INTERVAL = 0.2  # seconds between looks at the samples: rare enough to leave the cores alone
_SURVEYS = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds between looks at the tree of processes, then 5
_HELLO = 20.0  # seconds for ranks to say hello
_LOG_MOST = 4 << 20  # bytes of a launcher's words that are kept
_TAIL = 64 << 10  # bytes of them that are looked at
_SHOWN = 200  # characters of them that a message quotes
_BATCH_SYSTEMS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class LaunchError(PopmodelError):
    """A program could not be started, did not end, or failed.

    Attributes
    ----------
    words : tuple of str
        The last lines that it or its launcher wrote, without rules and empty ones.
    """

    def __init__(self, message: str, hint: str | None = None, words: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.words = tuple(words)


@dataclass(frozen=True)
class Outcome:
    """A launch that ended well.

    Attributes
    ----------
    command : tuple of str
        What was started.
    seconds : float
        How long it took.
    lines : int
        Lines of the samples file that it wrote.
    words : tuple of str
        The last lines that it or its launcher wrote.
    """

    command: tuple[str, ...]
    seconds: float
    lines: int
    words: tuple[str, ...]


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
) -> Outcome:
    """Run a program to its end; nothing of it is left afterwards, however it ended.

    Parameters
    ----------
    program : path
        What to run.
    arguments : sequence of str
        Its arguments.
    log : path
        File that takes what the program and its launcher write; appended to.
    samples : path, optional
        File whose lines show progress.
    mpi : Mpi, optional
        Whose launcher starts it; without one the program is started by itself.
    ranks, threads : int
        How many ranks, and threads of each.
    environment : mapping of str to str, optional
        Variables in addition to those of this process, in whose place they come.
    patience : float
        Seconds without a new line of the samples (or, without samples, of output) after which the
        launch counts as hung and is ended.
    limit : float, optional
        Seconds for the whole launch.
    on_progress : callable, optional
        Called a few times a second with the number of lines of the samples so far.

    Returns
    -------
    Outcome
        The program ended with status 0.

    Raises
    ------
    LaunchError
        It could not be started, hung, or failed; samples that it wrote before are where they were.
    FileError
        The log cannot be written.
    """
    own = {**os.environ, **(environment or {})}
    begun = Call([], {})
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
            way = Way(way.launcher, "free") if way.manner == "bound" else way
        begun = call(way, mpi, ranks, threads, own)
    command = [*begun.words, os.fspath(program), *arguments]
    watch = _Watch(patience, limit, on_progress)
    where = None if samples is None else Path(samples)
    try:
        return _run(command, {**own, **begun.environment}, ranks, Path(log), where, watch)
    except LaunchError:
        if mpi is not None:
            _forget(mpi, own)  # what worked once may have ceased to
        raise


def probe(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> Way:
    """Find out how ranks are started: by starting two, or one on a machine of one core.

    Parameters
    ----------
    mpi : Mpi
        Whose ranks.
    environment : mapping of str to str
        Environment of the launch.

    Raises
    ------
    LaunchError
        Ranks do not start in any way; the message has the launcher's own words.
    BuildError
        The program that says hello cannot be built.
    """
    if not mpi.launchers:
        raise LaunchError(
            f"{mpi.name} has no mpirun or mpiexec, and this is no job of a batch system",
            "run it in a job (popmodel bench --script slurm), or name its launcher: --launcher",
        )
    program = build("hello", mpi, environment)
    if (known := _recalled(mpi, environment)) is not None:
        return known
    ranks = min(2, hardware.here().usable_cores)
    failures: list[LaunchError] = []
    for way in ways(mpi):
        failure = hello(way, mpi, program, ranks, environment)
        if failure is None:
            _remember(mpi, environment, way)
            return way
        failures.append(failure)
    raise _told_apart(mpi, program, ranks, failures[0], environment)


def hello(
    way: Way, mpi: Mpi, program: Path, ranks: int, environment: Mapping[str, str]
) -> LaunchError | None:
    """Start ranks that say hello to each other; what went wrong, or None."""
    begun = call(way, mpi, ranks, 1, environment)
    command = [*begun.words, str(program)]
    done = processes.output_of(
        command, timeout=_HELLO, environment={**environment, **begun.environment}
    )
    sizes = [int(size) for size in re.findall(r'"hello":\d+,"ranks":(\d+)', done.text)]
    if done.status == 0 and sizes == [ranks] * ranks:
        return None
    if done.status == 124:
        return LaunchError(
            f"{way.name} did not start {_ranks(ranks)} within {_HELLO:.0f} s",
            _IN_TOUCH,
            meaningful(done.text),
        )
    if ranks > 1 and sizes and set(sizes) == {1}:
        return LaunchError(
            f"{way.name} started {len(sizes)} programs of one rank: it is of another MPI than "
            f"{mpi.name}",
            "name the launcher that belongs to it: --launcher 'srun --mpi=pmix', for example",
            meaningful(done.text),
        )
    return explain(done.status, done.text, command, ranks)


_IN_TOUCH = (
    "the ranks may not reach each other (network interface, firewall): try other flags of the "
    "launcher with --launcher"
)


def explain(
    status: int, text: str, command: Sequence[str], ranks: int, log: Path | None = None
) -> LaunchError:
    """Tell from a launcher's words why a launch failed.

    Parameters
    ----------
    status : int
        Exit status; negative for a signal.
    text : str
        What was written.
    command : sequence of str
        What was started.
    ranks : int
        How many ranks.
    log : Path, optional
        Where all the words are.
    """
    name = Path(command[0]).name
    words = meaningful(text)
    see = f"all it said is in {log}" if log else f"try it by hand: {shlex.join(command)}"
    if status == 127 and len(words) == 1:
        return LaunchError(f"{words[0]}", _not_started(words[0]), words)
    for pattern, problem, hint in _REASONS:
        if match := re.search(pattern, text, re.IGNORECASE):
            sentence = _sentence(text, match.start())
            where = {"name": name, "ranks": _ranks(ranks), **match.groupdict()}
            return LaunchError(f"{problem.format_map(where)}: {sentence}", hint or see, words)
    said = f": {_shortened(words[-1])}" if words else " without a word"
    return LaunchError(f"{name} failed with {processes.describe_status(status)}{said}", see, words)


# Words of Open MPI 4 and 5 (PRRTE), MPICH and kin (Hydra) and Slurm. The first that fits tells.
_REASONS = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free some space, or choose another place with -o; the same command goes on from here",
    ),
    (
        r"attempt to run as root|allow-run-as-root",
        "{name} refuses to run as root",
        "measure as another user, or say that it may: --launcher 'mpirun --allow-run-as-root'",
    ),
    (
        r"not enough slots|More processors requested than permitted|"
        r"Requested node configuration is not available|more processes than",
        "{name} has no room for {ranks}",
        "use fewer with --ranks, or ask the batch system for more",
    ),
    (
        r"rank (?P<rank>\d+)[^\n]*\n?[^\n]*exited on\s+signal (?P<signal>\d+)",
        "rank {rank} died of signal {signal}",
        None,
    ),
    (
        r"task (?P<rank>\d+): (?=Segmentation|Killed|Aborted|Bus error|Exited)",
        "rank {rank} died",
        None,
    ),
    (
        r"EXIT STRING: [^\n]*\(signal (?P<signal>\d+)\)",
        "a rank died of signal {signal}",
        None,
    ),
    (
        r"MPI_ABORT was invoked on rank (?P<rank>\d+)|rank (?P<other>\d+) in comm \d+\)",
        "a rank gave up",
        None,
    ),
    (
        r"exited with non-zero status|BAD TERMINATION",
        "a rank failed",
        None,
    ),
)


def meaningful(text: str, most: int = 12) -> tuple[str, ...]:
    """Give the last lines that say something: no rules, no empty ones."""
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if re.search(r"\w", line))[-most:]


def _sentence(text: str, position: int) -> str:
    """The paragraph around a place in a launcher's words, in one line, not too long."""
    lines: list[str] = []
    offset = 0
    found = False
    for line in text.splitlines(keepends=True):
        offset += len(line)
        if re.search(r"[A-Za-z]{2}", line):
            lines.append(line.strip().strip("= "))
        elif found:
            break
        else:
            lines.clear()
        found = found or offset > position
    return _shortened(" ".join(lines))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 3].rstrip() + "..."


def _not_started(said: str) -> str:
    if "permission denied" in said.lower():
        return "its folder may forbid programs (noexec): name another in POPMODEL_CACHE_DIR"
    return "check that it exists on this machine"


def _ranks(number: int) -> str:
    return f"{number} rank{'s' if number != 1 else ''}"


def _is_local(mpi: Mpi, environment: Mapping[str, str]) -> bool:
    """Whether all ranks will be on this machine: no batch system gave others, nor did the user."""
    return not mpi.is_launcher_given and not any(environment.get(name) for name in _BATCH_SYSTEMS)


def _too_many(ranks: int, cores: int) -> LaunchError:
    return LaunchError(
        f"{_ranks(ranks)} do not fit: this process may use {cores} core{'s' if cores != 1 else ''}",
        f"use --ranks {cores}: ranks that share a core measure how they take turns",
    )


def _told_apart(
    mpi: Mpi, program: Path, ranks: int, failure: LaunchError, environment: Mapping[str, str]
) -> LaunchError:
    """Say whether it is the number of ranks that is in the way."""
    if ranks > 1 and any(
        hello(way, mpi, program, 1, environment) is None
        for way in ways(mpi)
        if way.manner in ("free", "given")
    ):
        return LaunchError(
            f"one rank starts, {ranks} do not: {failure.message}", failure.hint, failure.words
        )
    return failure


def _memory(mpi: Mpi, environment: Mapping[str, str]) -> Path:
    """File beside the built hello that remembers the way, for this kind of environment."""
    depends = [
        *map(shlex.join, mpi.launchers),
        str(os.geteuid()),
        os.uname().nodename,
        hardware.cpu_list(os.sched_getaffinity(0)),
        # What steers launchers is set in variables: another value may want another way.
        *(f"{name}={environment[name]}" for name in sorted(environment) if _steers(name)),
    ]
    key = hashlib.sha256("\0".join(depends).encode(errors="surrogateescape")).hexdigest()[:16]
    return build("hello", mpi, environment).with_name(f"way-{key}.json")


def _steers(name: str) -> bool:
    beginnings = ("OMPI_", "PRTE_", "PMIX_", "HYDRA_", "I_MPI_", "MPIEXEC_", "MV2_", "SLURM_")
    return name.startswith(beginnings) or name in _BATCH_SYSTEMS


def _recalled(mpi: Mpi, environment: Mapping[str, str]) -> Way | None:
    try:
        known = json.loads(_memory(mpi, environment).read_text(encoding="utf-8"))
        way = Way(tuple(known["launcher"]), known["manner"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or damaged: found out again
    return way if way in ways(mpi) else None


def _remember(mpi: Mpi, environment: Mapping[str, str], way: Way) -> None:
    with suppress(OSError):  # only costs finding it out again
        _memory(mpi, environment).write_text(json.dumps(asdict(way)), encoding="utf-8")


def _forget(mpi: Mpi, environment: Mapping[str, str]) -> None:
    with suppress(OSError):
        _memory(mpi, environment).unlink()


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    ranks: int,
    log: Path,
    samples: Path | None,
    watch: _Watch,
) -> Outcome:
    begin = time.monotonic()
    lines = _Lines(samples)
    reading, writing = os.pipe()
    try:
        with _Words(log) as words, processes.ended_with_us():
            try:
                tree = processes.start(command, environment, output=writing)
            except OSError as error:
                said = f"{command[0]}: {error.strerror}"
                raise LaunchError(f"cannot start {said}", _not_started(said)) from error
            finally:
                os.close(writing)
            try:
                stuck = _follow(tree, reading, words, lines, watch)
            finally:
                left = processes.end(tree)
            for chunk in processes.chunks_of(tree, reading, 0):
                words.add(chunk)  # what a launcher says when it is ended
    finally:
        os.close(reading)
    last = meaningful(words.text)
    name = Path(command[0]).name
    if left:
        numbers = ", ".join(map(str, left))
        raise LaunchError(
            f"{name}: processes that cannot be ended are left: {numbers}",
            f"they wait for a device or are another user's; look at them: ps -fp {numbers}",
            last,
        )
    if stuck is not None:
        said = f": {_shortened(last[-1])}" if last else ""
        raise LaunchError(f"{name} {stuck}{said}", f"{_IN_TOUCH}; its words are in {log}", last)
    if tree.child.returncode != 0:
        raise explain(tree.child.returncode, words.text, command, ranks, log)
    return Outcome(tuple(command), time.monotonic() - begin, lines.count(), last)


def _follow(
    tree: processes.Tree, reading: int, words: _Words, lines: _Lines, watch: _Watch
) -> str | None:
    """Follow a launch to its end; what is wrong with it if it has to be ended, else None."""
    begin = progress = time.monotonic()
    surveys = iter(_SURVEYS)
    survey = begin + next(surveys)
    number = 0
    for chunk in processes.chunks_of(tree, reading, _INTERVAL):
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
            return f"was not done within {watch.limit:.3g} s and was ended"
        if now - progress > watch.patience:
            return f"made no progress for {watch.patience:.3g} s and was ended"
    return None


@dataclass(frozen=True)
class _Watch:
    """How long a launch may take, and whom to tell of its progress."""

    patience: float
    limit: float | None
    on_progress: Progress | None


class _Words:
    """What a launch writes: kept in a file, and the end of it in memory.

    A message needs the words even where the disk is too full for the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tail = b""
        self._written = 0
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> _Words:
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
        hint = "choose another place with -o"
        if error.errno in _FULL:
            hint = f"free some space there, or {hint}; the same command goes on from here"
        return FileError(self._path, f"cannot be written: {error.strerror}", hint=hint)


class _Lines:
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
