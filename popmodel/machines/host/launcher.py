"""Starts the measuring programs and watches over them until nothing of them is left.

How ranks are started here is found by starting some; why a launch failed, from its words.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from popmodel.base import shell
from popmodel.base.errors import FileError, PopmodelError
from popmodel.base.files import append_to
from popmodel.base.units import plural
from popmodel.base.values import NamedTuple
from popmodel.machines.host import hardware, processes
from popmodel.machines.host.build import build
from popmodel.machines.host.processes import (
    NOT_STARTED,
    TOOK_TOO_LONG,
    Interrupts,
    ProcessTree,
    describe_status,
    output_of,
)
from popmodel.machines.host.toolchain import Mpi, Words

# How ranks are started: what each launcher needs to be told.
#
# Every launcher takes the number of ranks as ``-n``; all else differs. The *manner* says where
# ranks go: ``bound`` to cores of their own, ``free`` on any core, ``crowded`` with more ranks than
# the launcher believes there is room for.


Manner = Literal["given", "bound", "free", "crowded"]


class LaunchWay(NamedTuple):
    """A way to start ranks."""

    launcher: Words  # Words that call the launcher
    manner: Manner  # Where the ranks go; ``given`` if the user's words say it

    @property
    def name(self) -> str:
        """The launcher's name for messages."""
        return Path(self.launcher[0]).name


def ways(mpi: Mpi) -> list[LaunchWay]:
    """List the ways to start ranks that are worth a try, the best first."""
    if mpi.is_launcher_given:
        return [LaunchWay(words, "given") for words in mpi.launchers]
    manners: tuple[Manner, ...] = ("bound", "free", "crowded")
    found = []
    for words in mpi.launchers:
        variants = [words]
        if Path(words[0]).name == "srun":
            # Which of its interfaces an MPI was built for cannot be seen from outside.
            variants += [(*words, "--mpi=pmix"), (*words, "--mpi=pmi2")]
        found += [LaunchWay(variant, manner) for variant in variants for manner in manners]
    return found


def call(
    way: LaunchWay, mpi: Mpi, ranks: int, threads: int, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Compose the beginning of a command that starts ranks, and the variables that it needs."""
    extra: dict[str, str] = {}
    flags: list[str] = []
    if mpi.library == "Open MPI" and os.geteuid() == 0:
        # Also for srun and the user's own words: they may call mpirun in a script.
        extra |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if way.manner == "given":
        pass
    elif way.name == "srun":
        binding = "cores" if way.manner == "bound" else "none"
        crowded = ["--overcommit"] if way.manner == "crowded" else []
        flags = [f"--cpu-bind={binding}", *crowded, "-c", str(threads)]
    elif mpi.library == "Open MPI":
        # It takes only its own variables to other nodes.
        names = sorted(name for name in environment if name.startswith("OMP_"))
        flags = _open_mpi(way.manner, threads, mpi.version)
        flags += [word for name in names for word in ("-x", name)]
    elif mpi.library == "Intel MPI":
        extra |= {"I_MPI_PIN": "1" if way.manner == "bound" else "0"}
        if way.manner == "bound":
            extra["I_MPI_PIN_DOMAIN"] = "omp" if threads > 1 else "core"
    elif mpi.library in ("MPICH", "MVAPICH") and way.manner == "bound":
        flags = ["-bind-to", f"core:{threads}"]
    return [*way.launcher, *flags, "-n", str(ranks)], extra


def _open_mpi(manner: Manner, threads: int, version: str) -> list[str]:
    if manner == "bound":
        return ["--map-by", f"slot:PE={threads}", "--bind-to", "core"]
    if manner == "free":
        return ["--bind-to", "none"]
    is_old = version.partition(".")[0] in ("1", "2", "3", "4")
    crowded = ["--oversubscribe"] if is_old else ["--map-by", ":OVERSUBSCRIBE"]
    return [*crowded, "--bind-to", "none"]


# Why a launch failed, told from its exit status and from what the launcher wrote.


_SHOWN = 200  # characters of a launcher's words that a message quotes

OUT_OF_TOUCH = (
    "the ranks may not reach each other (network interface, firewall): "
    "try other launcher options with --launcher"
)
"""What to do about ranks that do not come on."""


class LaunchError(PopmodelError):
    """A program could not be started, did not end, or failed."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        words: Sequence[str] = (),
        *,
        is_hang: bool = False,
    ) -> None:
        super().__init__(message, hint)
        # The last lines that it or its launcher wrote, without rules and empty ones.
        self.words = tuple(words)
        # Whether it was ended because it did not come on.
        self.is_hang = is_hang


class _Reason(NamedTuple):
    """What a launcher's words mean."""

    pattern: str  # Regular expression that finds them; its groups are named in `problem`
    problem: str  # What to say before the words themselves; empty if they say it all
    hint: str | None = None  # What to do; None where only all the words can tell


# Words of this project's programs, Open MPI 4 and 5 (PRRTE), MPICH and its kin (Hydra), and Slurm.
# The first that is found tells: causes stand before what follows from them.
_REASONS = (
    _Reason(
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free some space, or choose another path with -o; the same command resumes from here",
    ),
    _Reason(
        r"attempt to run as root|allow-run-as-root",
        "{name} refuses to run as root",
        "use another account, or add the launcher's option for root: --launcher '{name} OPTION'",
    ),
    _Reason(
        r"not enough slots|More processors requested than permitted|"
        r"Requested node configuration is not available",
        "{name} does not have enough slots for {ranks}",
        "use fewer with --ranks, or request more from the batch system",
    ),
    _Reason(r"^popmodel(-\w+)?: ", ""),
    _Reason(
        r"rank (?P<rank>\d{1,9})\b[^.]{0,200}?exited\s+on\s+signal\s+(?P<signal>\d{1,3})",
        "rank {rank} was killed by {signal}",
    ),
    _Reason(
        r"EXIT STRING: .{0,200}\(signal (?P<signal>\d{1,3})\)", "a rank was killed by {signal}"
    ),
    _Reason(
        r"task (?P<rank>\d{1,9}): (Segmentation|Killed|Aborted|Bus error)", "rank {rank} crashed"
    ),
    _Reason(r"MPI_ABORT was invoked on rank (?P<rank>\d{1,9})", "rank {rank} called MPI_Abort"),
    _Reason(
        r"\(rank (?P<rank>\d{1,9}) in comm \d{1,9}\): .{0,200}MPI_Abort",
        "rank {rank} called MPI_Abort",
    ),
    # Open MPI 4 says this first, and on a busy machine nothing else.
    _Reason(r"process(es)? returned\s+a non-zero exit code", "a rank {ended}"),
    _Reason(r"exited with non-zero status|BAD TERMINATION|task \d+: Exited", "a rank failed"),
)

_OF_A_SIGNAL = 128  # added by launchers and shells to the number of a signal that ended a process

# What Hydra says at the end of everything.
_ADVICE = re.compile(r"This typically refers to a problem|Please see the FAQ page").match


def explain(
    status: int, text: str, command: Sequence[str], ranks: int, log: Path | None = None
) -> LaunchError:
    """Tell from a launcher's words why a launch failed."""
    name = Path(command[0]).name
    words = meaningful(text)
    see = f"full output: {log}" if log else f"run it by hand: {shell.join(command)}"
    if status == NOT_STARTED and len(words) == 1:
        return not_started(words[0])
    for reason in _REASONS:
        match = re.search(reason.pattern, text, re.IGNORECASE | re.MULTILINE)
        if match is None:
            continue
        values = {"name": name, "ranks": plural(ranks, "rank"), "ended": "failed"}
        if 0 < status - _OF_A_SIGNAL <= signal.SIGRTMAX:
            values["ended"] = f"was killed by {describe_status(_OF_A_SIGNAL - status)}"
        values |= match.groupdict()
        if "signal" in values:
            values["signal"] = describe_status(-int(values["signal"]))
        quoted = _paragraph(text, match.start())
        problem = reason.problem.format_map(values)
        hint = see if reason.hint is None else reason.hint.format_map(values)
        return LaunchError(f"{problem}: {quoted}" if problem else quoted, hint, words)
    said = f": {quote(words)}" if words else " and no output"
    return LaunchError(f"{name} failed with {describe_status(status)}{said}", see, words)


def not_started(said: str) -> LaunchError:
    """Make the error for a program that the system did not start; `said` is why."""
    hint = "check that it exists on this machine"
    if "permission denied" in said.lower():
        hint = "its directory may be mounted noexec: set POPMODEL_CACHE_DIR to another one"
    return LaunchError(f"cannot start {said}", hint, (said,))


def meaningful(text: str, most: int = 12) -> tuple[str, ...]:
    """Return the last lines that say something: no rules, no empty ones, no general advice."""
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if re.search(r"\w", line) and not _ADVICE(line))[-most:]


def quote(words: Sequence[str]) -> str:
    """Return the last line of a launcher's words, not too long."""
    return _shortened(words[-1]) if words else ""


def _paragraph(text: str, position: int) -> str:
    """The lines around a place, up to rules and empty lines, as one line that is not too long.

    What this project's own programs say is one line, whatever others wrote around it.
    """
    start = text.rfind("\n", 0, position) + 1
    if text.startswith("popmodel", start):
        return _shortened(text[start:].splitlines()[0])
    lines: list[str] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        offset += len(line)
        if re.search(r"[A-Za-z]{2}", line) and not _ADVICE(line):
            lines.append(line.strip().strip("= "))
        elif offset > position:
            break
        else:
            lines.clear()
    return _shortened(" ".join(lines))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 3].rsplit(" ", 1)[0] + "..."


# Finds out how ranks are started here, by starting some.
#
# Flags for root, for binding and for more ranks than the launcher has room for differ between makes
# and versions, and whether they are needed depends on the machine. What worked is remembered.


_HELLO = 60.0  # seconds for ranks to say hello, on a machine that is busy


def probe(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> LaunchWay:
    """Find out how ranks are started: by starting two, or one on a machine of one core."""
    if not mpi.launchers:
        raise LaunchError(
            f"{mpi.name}: found neither mpirun nor mpiexec, and this is not a batch job",
            "run it in a job (popmodel machine measure --script slurm), or give the launcher: "
            "--launcher",
        )
    if (way := _WORKED.get(_steering(mpi, environment))) is not None:
        return way
    program = build("hello", mpi, environment)
    ranks = min(2, hardware.here().usable_cores)
    failures: list[LaunchError] = []
    for way in ways(mpi):
        failure = hello(way, mpi, program, ranks, environment)
        if failure is None:
            _WORKED[_steering(mpi, environment)] = way
            return way
        failures.append(failure)
        if failure.is_hang:
            break  # other flags do not make a launcher faster, and each would cost as long
    raise _told_apart(mpi, program, ranks, failures[0], environment)


def hello(
    way: LaunchWay, mpi: Mpi, program: Path, ranks: int, environment: Mapping[str, str]
) -> LaunchError | None:
    """Start ranks that say hello to each other; give what went wrong, or None."""
    words, extra = call(way, mpi, ranks, 1, environment)
    command = [*words, str(program)]
    done = output_of(command, timeout=_HELLO, environment={**environment, **extra})
    sizes = [int(size) for size in re.findall(r'"hello":\d+,"ranks":(\d+)', done.text)]
    if done.status == 0 and sizes == [ranks] * ranks:
        return None
    if done.status == TOOK_TOO_LONG:
        said = meaningful(done.text)[:-1]  # the last line is not its own: that time is over
        said = tuple(line for line in said if not line.startswith('{"hello"'))
        message = f"{way.name} did not start {plural(ranks, 'rank')} within {_HELLO:g} s"
        message += f": {quote(said)}" if said else "; it printed nothing"
        return LaunchError(message, OUT_OF_TOUCH, said, is_hang=True)
    if ranks > 1 and sizes and set(sizes) == {1}:
        return LaunchError(
            f"{way.name} started {len(sizes)} separate one-rank programs instead of "
            f"{plural(ranks, 'rank')}: it does not belong to {mpi.name}",
            "give the launcher of this MPI, for example --launcher 'srun --mpi=pmix'",
            meaningful(done.text),
        )
    return explain(done.status, done.text, command, ranks)


def forget(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> None:
    """Forget how ranks are started: what worked once may have ceased to."""
    _WORKED.pop(_steering(mpi, environment), None)


_WORKED: dict[tuple[Mpi, tuple[str, ...]], LaunchWay] = {}
_STEERING = ("OMPI_", "PRTE_", "PMIX_", "HYDRA_", "I_MPI_", "MPIEXEC_", "SLURM_")


def _steering(mpi: Mpi, environment: Mapping[str, str]) -> tuple[Mpi, tuple[str, ...]]:
    """An MPI with what steers its launchers: another value may want another way."""
    variables = sorted(item for item in environment.items() if item[0].startswith(_STEERING))
    return mpi, tuple(map("=".join, variables))


def _told_apart(
    mpi: Mpi, program: Path, ranks: int, failure: LaunchError, environment: Mapping[str, str]
) -> LaunchError:
    """Say whether it is the number of ranks that is in the way."""
    if ranks == 1 or failure.is_hang:
        return failure
    for way in ways(mpi):
        plain = way.manner in ("free", "given")
        if plain and hello(way, mpi, program, 1, environment) is None:
            message = f"1 rank starts, {ranks} do not: {failure.message}"
            return LaunchError(message, failure.hint, failure.words)
    return failure


# A launch, from its start to its end.


Progress = Callable[[int], None]

_INTERVAL = 0.2  # seconds between looks at the samples: rare enough to leave the cores alone
_SURVEYS = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds between looks at the tree of processes, then 5
_LOG_MOST = 4 << 20  # bytes of a launcher's words that are kept
_TAIL = 64 << 10  # bytes of them that are looked at
BATCH_SYSTEMS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID")
"""Variables that batch systems set in their jobs."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class LaunchOutcome(NamedTuple):
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
    words: list[str] = []
    extra: dict[str, str] = {}
    if mpi is not None:
        way = probe(mpi, own)
        cores = hardware.here().usable_cores
        # Whether all ranks are on this machine: no batch system gave others, nor did the user.
        is_local = not mpi.is_launcher_given and not any(own.get(name) for name in BATCH_SYSTEMS)
        if is_local and ranks > cores:
            raise LaunchError(
                f"too few cores for {plural(ranks, 'rank')}: this process may use "
                f"{plural(cores, 'core')}",
                f"use --ranks {cores}: ranks that share a core would measure time slicing",
            )
        own.setdefault("OMP_NUM_THREADS", str(threads))
        if is_local and ranks * threads > cores:
            # Threads that wait by spinning would keep the others from running.
            own.setdefault("OMP_WAIT_POLICY", "passive")
            way = LaunchWay(way.launcher, "free") if way.manner == "bound" else way
        words, extra = call(way, mpi, ranks, threads, own)
    command = [*words, os.fspath(program), *arguments]
    lines = _OutputLines(None if samples is None else Path(samples))
    follow = partial(_follow, lines, patience, limit, on_progress)
    try:
        return _run(command, {**own, **extra}, ranks, Path(log), lines, follow)
    except LaunchError:
        if mpi is not None:
            forget(mpi, own)
        raise


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    ranks: int,
    log: Path,
    lines: _OutputLines,
    follow: Callable[[ProcessTree, int, _LaunchWords, Interrupts], str | None],
) -> LaunchOutcome:
    begin = time.monotonic()
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
                    stuck = follow(tree, reading, words, interrupts)
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
    lines: _OutputLines,
    patience: float,
    limit: float | None,
    on_progress: Progress | None,
    tree: ProcessTree,
    reading: int,
    words: _LaunchWords,
    interrupts: Interrupts,
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
        if on_progress is not None:
            on_progress(number)
        if now > survey:
            processes.members(tree)
            survey = now + next(surveys, _SURVEYS[-1])
        if limit is not None and now - begin > limit:
            return f"did not finish within {round(limit, 2):.9g} s and was killed"
        if now - progress > patience:
            return f"made no progress for {round(patience, 2):.9g} s and was killed"
    return None


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
