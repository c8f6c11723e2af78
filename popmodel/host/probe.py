"""How ranks are started here, found by starting some, and why a launch failed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from popmodel import files, shell
from popmodel.documents import Items, Text, parse_json, read_shape, read_text, record
from popmodel.errors import FileError, PopmodelError
from popmodel.host import hardware
from popmodel.host.build import build
from popmodel.host.hardware import cpu_list
from popmodel.host.processes import NOT_STARTED, TOOK_TOO_LONG, describe_status, output_of
from popmodel.host.toolchain import Mpi, Words
from popmodel.units import plural
from popmodel.values import dataclass

# How ranks are started: what each launcher needs to be told.
#
# Every launcher takes the number of ranks as ``-n``; all else differs. The *manner* says where
# ranks
# go: ``bound`` to cores of their own, ``free`` on any core, ``crowded`` with more ranks than the
# launcher believes there is room for.


Manner = Literal["given", "bound", "free", "crowded"]


@dataclass(frozen=True)
class LaunchWay:
    """A way to start ranks."""

    launcher: Words  # Words that call the launcher
    manner: Manner  # Where the ranks go; ``given`` if the user's words say it

    @property
    def name(self) -> str:
        """The launcher's name for messages."""
        return Path(self.launcher[0]).name


@dataclass(frozen=True)
class ProbeCall:
    """A command with what it needs in its environment."""

    words: list[str]
    environment: dict[str, str]


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
) -> ProbeCall:
    """Compose the beginning of a command that starts ranks; the program follows."""
    extra: dict[str, str] = {}
    flags: list[str] = []
    if mpi.library == "Open MPI" and os.geteuid() == 0:
        # Also for srun and the user's own words: they may call mpirun in a script.
        extra |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if way.manner == "given":
        pass
    elif way.name == "srun":
        flags = _srun(way.manner, threads)
    elif mpi.library == "Open MPI":
        flags = _open_mpi(way.manner, threads, mpi.version) + _exported(environment)
    elif mpi.library == "Intel MPI":
        extra |= {"I_MPI_PIN": "1" if way.manner == "bound" else "0"}
        if way.manner == "bound":
            extra["I_MPI_PIN_DOMAIN"] = "omp" if threads > 1 else "core"
    elif mpi.library in ("MPICH", "MVAPICH") and way.manner == "bound":
        flags = ["-bind-to", f"core:{threads}"]
    return ProbeCall([*way.launcher, *flags, "-n", str(ranks)], extra)


def _srun(manner: Manner, threads: int) -> list[str]:
    flags = {
        "bound": ["--cpu-bind=cores"],
        "free": ["--cpu-bind=none"],
        "crowded": ["--cpu-bind=none", "--overcommit"],
    }
    return [*flags[manner], "-c", str(threads)]


def _open_mpi(manner: Manner, threads: int, version: str) -> list[str]:
    if manner == "bound":
        return ["--map-by", f"slot:PE={threads}", "--bind-to", "core"]
    if manner == "free":
        return ["--bind-to", "none"]
    crowded = ["--map-by", ":OVERSUBSCRIBE"] if _major(version) >= 5 else ["--oversubscribe"]
    return [*crowded, "--bind-to", "none"]


def _exported(environment: Mapping[str, str]) -> list[str]:
    """Flags that take the variables of OpenMP to other nodes: Open MPI takes only its own."""
    names = sorted(name for name in environment if name.startswith("OMP_"))
    return [word for name in names for word in ("-x", name)]


def _major(version: str) -> int:
    first = version.partition(".")[0]
    return int(first) if first.isdigit() else 0


# Why a launch failed, told from its exit status and from what the launcher wrote.


_SHOWN = 200  # characters of a launcher's words that a message quotes

OUT_OF_TOUCH = (
    "the ranks may not reach each other (network interface, firewall): "
    "try other launcher options with --launcher"
)
"""What to do about ranks that do not come on."""


class LaunchError(PopmodelError):
    """A program could not be started, did not end, or failed.

    Attributes
    ----------
    words : tuple of str
        The last lines that it or its launcher wrote, without rules and empty ones.
    is_hang : bool
        Whether it was ended because it did not come on.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        words: Sequence[str] = (),
        *,
        is_hang: bool = False,
    ) -> None:
        super().__init__(message, hint)
        self.words = tuple(words)
        self.is_hang = is_hang


@dataclass(frozen=True)
class _Reason:
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
# and versions, and whether they are needed depends on the machine. What worked is remembered beside
# the built program.


_WAY = record({"launcher": Items(Text(), 1), "manner": Text()})
_HELLO = 60.0  # seconds for ranks to say hello, on a machine that is busy


def probe(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> LaunchWay:
    """Find out how ranks are started: by starting two, or one on a machine of one core."""
    if not mpi.launchers:
        raise LaunchError(
            f"{mpi.name}: found neither mpirun nor mpiexec, and this is not a batch job",
            "run it in a job (popmodel bench --script slurm), or give the launcher: --launcher",
        )
    program = build("hello", mpi, environment)
    if (known := _recalled(program, mpi, environment)) is not None:
        return known
    ranks = min(2, hardware.here().usable_cores)
    failures: list[LaunchError] = []
    for way in ways(mpi):
        failure = hello(way, mpi, program, ranks, environment)
        if failure is None:
            _remember(program, mpi, environment, way)
            return way
        failures.append(failure)
        if failure.is_hang:
            break  # other flags do not make a launcher faster, and each would cost as long
    raise _told_apart(mpi, program, ranks, failures[0], environment)


def hello(
    way: LaunchWay, mpi: Mpi, program: Path, ranks: int, environment: Mapping[str, str]
) -> LaunchError | None:
    """Start ranks that say hello to each other; give what went wrong, or None."""
    begun = call(way, mpi, ranks, 1, environment)
    command = [*begun.words, str(program)]
    done = output_of(command, timeout=_HELLO, environment={**environment, **begun.environment})
    sizes = [int(size) for size in re.findall(r'"hello":\d+,"ranks":(\d+)', done.text)]
    if done.status == 0 and sizes == [ranks] * ranks:
        return None
    if done.status == TOOK_TOO_LONG:
        said = meaningful(done.text)[:-1]  # the last line is not its own: that time is over
        words = tuple(line for line in said if not line.startswith('{"hello"'))
        message = f"{way.name} did not start {plural(ranks, 'rank')} within {_HELLO:g} s"
        message += f": {quote(words)}" if words else "; it printed nothing"
        return LaunchError(message, OUT_OF_TOUCH, words, is_hang=True)
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
    with suppress(OSError):
        _memory(build("hello", mpi, environment), mpi, environment).unlink()


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


def _memory(program: Path, mpi: Mpi, environment: Mapping[str, str]) -> Path:
    """File beside the built program that remembers the way, for this kind of environment."""
    depends = [
        *map(shlex.join, mpi.launchers),
        str(os.geteuid()),
        os.uname().nodename,
        cpu_list(os.sched_getaffinity(0)),
        # What steers launchers is set in variables: another value may want another way.
        *(f"{name}={environment[name]}" for name in sorted(environment) if _steers(name)),
    ]
    key = hashlib.sha256("\0".join(depends).encode(errors="surrogateescape")).hexdigest()[:16]
    return program.with_name(f"way-{key}.json")


def _steers(name: str) -> bool:
    return name.startswith(("OMPI_", "PRTE_", "PMIX_", "HYDRA_", "I_MPI_", "MPIEXEC_", "SLURM_"))


def _recalled(program: Path, mpi: Mpi, environment: Mapping[str, str]) -> LaunchWay | None:
    path = _memory(program, mpi, environment)
    try:
        known = read_shape(parse_json(read_text(path), path), _WAY, path)
    except FileError:
        return None  # not there, or damaged: found out again
    way = LaunchWay(tuple(known["launcher"]), known["manner"])
    return way if way in ways(mpi) else None


def _remember(program: Path, mpi: Mpi, environment: Mapping[str, str], way: LaunchWay) -> None:
    with suppress(OSError):  # only costs finding it out again
        files.write_text(
            _memory(program, mpi, environment), json.dumps(asdict(way), allow_nan=False)
        )
