"""What a command starts, and how the program behind its launcher gets the library's variables.

Of launchers only so much is known as is needed to hand variables to the program alone. Their
options are not: which of them take a value differs from version to version.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.values import dataclass
from popmodel.machines.host.processes import output_of

Family = Literal["Open MPI", "Hydra", "srun"]
Words = Sequence[str]

EXAMPLE = "popmodel trace -- mpirun -n 4 ./app"

_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""Variables by which launchers tell a rank how many there are."""
_HEAD = 1 << 16  # bytes of a program that are looked at
_INTERPRETER = 3  # PT_INTERP: the loader of libraries
_PATIENCE = 60.0  # seconds for a launcher to say who it is
_BY_NAME: Mapping[str, Family] = {
    "srun": "srun",
    "orterun": "Open MPI",
    "prterun": "Open MPI",
    "mpirun.openmpi": "Open MPI",
    "mpiexec.openmpi": "Open MPI",
    "mpirun.mpich": "Hydra",
    "mpiexec.mpich": "Hydra",
    "mpiexec.hydra": "Hydra",
}
_ASKED = re.compile(r"(mpirun|mpiexec)([-._].*)?")
"""Names that launchers of several makes have."""
_OF_OTHERS = {"aprun", "flux", "ibrun", "jsrun", "mpirun_rsh", "poe"}
"""Launchers that hand on their own environment, as far as is known."""
_BEFORE = {
    *("env", "time", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf"),
    *("numactl", "taskset", "chrt", "setarch", "catchsegv"),
}
"""Programs that start what their arguments name, and are none to be traced."""


class CommandError(PopmodelError):
    """A command cannot be traced."""


@dataclass(frozen=True)
class TracedCommand:
    """What is to be traced."""

    words: tuple[str, ...]  # As the user gave them
    path: str  # The file of the first word
    # The word that is the launcher, or the program; before it may be ``env``, ``time`` or such.
    start: int
    is_launcher: bool  # Whether it starts ranks of MPI
    family: Family | None  # Which launcher it is, where its options are known
    program: Path | None  # The program that it starts, where it can be found among the words


def understand(
    words: Words, environment: Mapping[str, str] = os.environ, verb: str = "trace"
) -> TracedCommand:
    """Find out what a command starts; `verb` is what messages say was asked for."""
    example = _example(verb)
    if not words:
        raise UsageError(f"{verb}: no command given", example)
    first = words[0]
    path = shutil.which(first, path=_path_of(environment))
    if path is None:
        raise UsageError(*_missing(first, verb))
    start = _start(words, environment)
    launcher = shutil.which(words[start], path=_path_of(environment))
    name = Path(words[start]).name
    is_known = name in _BY_NAME or name in _OF_OTHERS or _ASKED.fullmatch(name) is not None
    if launcher is None or not is_known:
        program = None if launcher is None or name in _BEFORE else Path(launcher)
        return TracedCommand(tuple(words), path, start, False, None, program)
    behind = words[start:]
    if not any(_may_be_program(behind)):
        raise UsageError(f"{' '.join(words)}: the launcher has no program to start", example)
    family = _family(launcher, name, environment)
    return TracedCommand(tuple(words), path, start, True, family, _program(behind, environment))


def refuse_as_rank(environment: Mapping[str, str] = os.environ, verb: str = "trace") -> None:
    """Make sure that popmodel is not one of the ranks itself (``mpirun -n 4 popmodel trace
    ...``).
    """
    for variable in _RANKS:
        number = environment.get(variable, "")
        if number.isdigit() and int(number) > 1:
            raise UsageError(
                f"popmodel {verb} was started as one of {number} ranks ({variable})",
                f"put popmodel {verb} before the launcher: {_example(verb)}",
            )


def refuse_untraceable(program: Path) -> None:
    """Make sure that a library can be loaded into a program."""
    try:
        status = program.stat()
    except OSError:
        return  # it was there a moment ago: to start it fails with the system's own words
    kind = _kind(program)
    for bit, owner, own, what in (
        (0o4000, status.st_uid, os.geteuid(), "user"),
        (0o2000, status.st_gid, os.getegid(), "group"),
    ):
        if status.st_mode & bit and owner != own:
            raise CommandError(
                f"{program}: cannot be traced: it runs with the rights of another {what} "
                f"(set-{what}-ID)",
                "trace a copy without that bit",
            )
    if kind == "static":
        raise CommandError(
            f"{program}: cannot be traced: it is statically linked",
            "link it dynamically: without -static, with an MPI that has shared libraries",
        )
    if kind == "foreign":
        raise CommandError(
            f"{program}: cannot be traced here: it is built for another architecture",
            "trace it on a machine that runs it: popmodel trace --script slurm, or --print-env "
            "there",
        )


def is_dynamic(program: Path) -> bool:
    """Whether a program is one that loads libraries, and not a script."""
    return _kind(program) == "dynamic"


def _example(verb: str) -> str:
    return EXAMPLE.replace("trace", verb)


def _missing(word: str, verb: str) -> tuple[str, str]:
    if word.startswith("-"):
        return f"{verb}: no such option: {word}", _example(verb)
    path = Path(word)
    if path.is_dir():
        return f"{word}: is a directory, not a program", _example(verb)
    if path.is_file():
        if "/" not in word and os.access(path, os.X_OK):
            return f"program {word} not found in PATH", f"write ./{word}"
        if "/" in word:
            return (
                f"{word}: is not executable",
                f"chmod +x {word}, or give the interpreter that runs it",
            )
    return f"program {word} not found", f"try {_example(verb)}"


def _path_of(environment: Mapping[str, str]) -> str:
    return environment.get("PATH", os.defpath)


def _start(words: Words, environment: Mapping[str, str]) -> int:
    """The word behind ``env``, ``time`` and such that is started; 0 where it cannot be told."""
    start = 0
    while Path(words[start]).name in _BEFORE:
        for number in range(start + 1, len(words)):
            word = words[number]
            if not word.startswith("-") and shutil.which(word, path=_path_of(environment)):
                start = number
                break
        else:
            return 0
    return start


def _family(path: str, name: str, environment: Mapping[str, str]) -> Family | None:
    if name in _BY_NAME or name in _OF_OTHERS:
        return _BY_NAME.get(name)
    said = output_of([path, "--version"], timeout=_PATIENCE, environment=environment).text
    if re.search(r"Open ?MPI|OpenRTE|PRTE|PRRTE", said):
        return "Open MPI"
    if re.search(r"HYDRA|Intel\(R\) MPI", said, re.IGNORECASE):
        return "Hydra"
    return None


def _may_be_program(words: Words) -> Iterator[bool]:
    """Of each word behind a launcher, whether it may name a program: no option, nor its number."""
    for before, word in pairwise(words):
        value = before.startswith("-") and "/" not in word and before != "--"
        yield not word.startswith("-") and not (value and re.fullmatch(r"[\d,.:-]+", word))


def _program(words: Words, environment: Mapping[str, str]) -> Path | None:
    """The first word behind a launcher that is a program.

    A bare name behind an option may be the option's value (``--map-by node``), although there is a
    program of that name as well: it counts only if there is nothing better.
    """
    second_best = None
    for before, word in pairwise(words):
        if word.startswith("-"):
            continue
        found = shutil.which(word, path=_path_of(environment))
        if found is None:
            continue
        if "/" in word or not before.startswith("-"):
            return Path(found)
        second_best = second_best or Path(found)
    return second_best


Kind = Literal["dynamic", "static", "foreign", "script", "unknown"]


def _kind(program: Path) -> Kind:
    """Kind of an executable file: of programs for this processor, whether they load libraries."""
    try:
        head = _first_bytes(program, _HEAD)
    except OSError:
        return "unknown"  # what may be executed and not read is started and not looked into
    if not head.startswith(b"\x7fELF") or len(head) < 64:
        return "script"
    own = _first_bytes(Path(sys.executable), 20)
    if head[4:6] + head[18:20] != own[4:6] + own[18:20]:  # word length, byte order, processor
        return "foreign"
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    table = struct.unpack_from(f"{order}Q" if wide else f"{order}I", head, 32 if wide else 28)[0]
    size, number = struct.unpack_from(f"{order}HH", head, 54 if wide else 42)
    places = range(table, table + size * number, size or 1)
    if not number or places[-1] + 4 > len(head):
        return "unknown"  # tools that change programs move the table to the end
    kinds = {struct.unpack_from(f"{order}I", head, place)[0] for place in places}
    return "dynamic" if _INTERPRETER in kinds else "static"


def _first_bytes(path: Path, number: int) -> bytes:
    with path.open("rb") as file:
        return file.read(number)


# What the library finds in its environment, and how a command gets it to the program alone.
#
# A launcher and its helpers need no library, and some start slower or fail with one. So the
# variables are handed to the launcher as options for the program, wherever such options are known.
# Where they are not (a script that calls a launcher itself, a launcher of another kind), everything
# that the command starts inherits them: there the library sleeps until a program calls MPI_Init.


OpenMP = Literal["auto", "ompt", "gomp", "off"]
OPENMP: Mapping[str, OpenMP] = {"auto": "auto", "ompt": "ompt", "gomp": "gomp", "off": "off"}
"""By what is typed."""
Locks = Literal["sum", "each"]
LOCKS: Mapping[str, Locks] = {"sum": "sum", "each": "each"}
"""By what is typed."""

LEAVE_OUT = ("tests", "chunks", "singles", "rma", "io")
"""Kinds of calls that need not be recorded."""

PRELOAD = "LD_PRELOAD"
DIRECTORY = "POPMODEL_TRACE_DIR"


@dataclass(frozen=True)
class Settings:
    """What is recorded."""

    counters: bool = False  # Whether hardware counters are read
    openmp: OpenMP = "auto"  # How OpenMP is observed
    call_sites: bool = True  # Whether it is recorded where in the program MPI is called
    locks: Locks = "sum"  # Whether locks are summed up by region or recorded one by one
    # ``FROM:TO`` in seconds since the end of MPI_Init: what is outside is not recorded.
    window: str | None = None
    max_size: int | None = None  # Bytes of records
    max_rate: int | None = None  # Records per second and thread
    leave_out: tuple[str, ...] = ()  # Of `LEAVE_OUT`: kinds of calls that are not recorded
    files: bool = False  # Whether calls of POSIX and C for files are recorded
    summary: bool = False  # Sums of each thread in place of records


class EnvironmentCall(NamedTuple):
    """A command with what it needs in its own environment."""

    words: list[str]
    environment: dict[str, str]


def variables(library: Path, raw: Path, settings: Settings) -> dict[str, str]:
    """The variables that the library and its loading need."""
    usual = {
        "OPENMP": settings.openmp,
        "COUNTERS": "1" if settings.counters else "0",
        "CALL_SITES": None if settings.call_sites else "0",
        "LOCKS": None if settings.locks == "sum" else settings.locks,
        "WINDOW": settings.window,
        "MAX_SIZE": settings.max_size,
        "MAX_RATE": settings.max_rate,
        "LEAVE_OUT": ",".join(settings.leave_out) or None,
        "FILES": "1" if settings.files else None,
        "SUMMARY": "1" if settings.summary else None,
    }
    given = {PRELOAD: str(library), DIRECTORY: str(raw)}
    return given | {
        f"POPMODEL_TRACE_{name}": str(value) for name, value in usual.items() if value is not None
    }


def refuse_unloadable(library: Path, hint: str) -> None:
    """Make sure that ``LD_PRELOAD`` can name a library."""
    if re.search(r"[\s:]", str(library)):
        raise FileError(
            library,
            "cannot be preloaded: a path in LD_PRELOAD must not contain blanks or colons",
            hint=hint,
        )


def place(
    command: TracedCommand, variables: Mapping[str, str], environment: Mapping[str, str]
) -> EnvironmentCall:
    """Hand variables to the program of a command.

    What the user preloads stays, behind the library: in the environment, or as an option of the
    launcher.
    """
    words = list(command.words)
    given = dict(variables)
    given[PRELOAD] = _behind(given[PRELOAD], environment.get(PRELOAD))
    if command.family == "srun":
        if not any("," in value or "'" in value for value in variables.values()):
            return EnvironmentCall(_srun(words, command.start, given, environment), {})
    elif command.family is not None:
        before, behind = words[: command.start], words[command.start :]
        behind, own = _without_own(behind, command.family)
        given[PRELOAD] = _behind(variables[PRELOAD], own or environment.get(PRELOAD))
        return EnvironmentCall([*before, *_with_flags(behind, _flags(command.family, given))], {})
    return EnvironmentCall(words, given)


def _behind(library: str, others: str | None) -> str:
    return f"{library}:{others}" if others else library


def _flags(family: str, variables: Mapping[str, str]) -> list[str]:
    flags: list[str] = []
    for name, value in variables.items():
        flags += ["-x", f"{name}={value}"] if family == "Open MPI" else ["-genv", name, value]
    return flags


def _with_flags(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The flags behind the launcher, and behind every ``:`` that begins another program."""
    made: list[str] = []
    for number, word in enumerate(words):
        made.append(word)
        if number == 0 or word == ":":
            made += flags
    return made


def _without_own(words: Sequence[str], family: str) -> tuple[list[str], str | None]:
    """A launcher's words without the user's own LD_PRELOAD for the program, and its value.

    Launchers take the first or the last of two values, or refuse them.
    """
    left: list[str] = []
    own = None
    number = 0
    while number < len(words):
        word, *behind = words[number : number + 3]
        if family == "Hydra" and word.lstrip("-") in ("genv", "env") and behind[:1] == [PRELOAD]:
            own = behind[1] if len(behind) == 2 else None
            number += 3
        elif family == "Open MPI" and word == "-x" and _name("".join(behind[:1])) == PRELOAD:
            own = behind[0].partition("=")[2] or None
            number += 2
        else:
            left.append(word)
            number += 1
    return left, own


def _name(setting: str) -> str:
    """Name of a variable in ``NAME=value``, or in ``NAME`` alone."""
    return setting.partition("=")[0]


def _srun(
    words: list[str], start: int, variables: Mapping[str, str], environment: Mapping[str, str]
) -> list[str]:
    """Words of a command with srun: what its ranks get is added to the user's own list."""
    made = list(words)
    for number, word in enumerate(words[start + 1 :], start=start + 1):
        if word.startswith("--export="):
            made[number] = f"--export={_exported(word.partition('=')[2], variables)}"
            return made
        if word == "--export" and number + 1 < len(words):
            made[number + 1] = _exported(words[number + 1], variables)
            return made
    listed = _exported(environment.get("SLURM_EXPORT_ENV") or "ALL", variables)
    return [*made[:start], *_with_flags(made[start:], [f"--export={listed}"])]


def _exported(listed: str, variables: Mapping[str, str]) -> str:
    parts = [part for part in listed.split(",") if part not in ("", "NONE", "NIL")]
    own = [part.partition("=")[2] for part in parts if part.startswith(f"{PRELOAD}=")]
    kept = [part for part in parts if _name(part) not in variables]
    added = dict(variables)
    if own:
        added[PRELOAD] = _behind(variables[PRELOAD].partition(":")[0], own[-1])
    return ",".join([*kept, *(f"{name}={value}" for name, value in added.items())])
