"""What the library finds in its environment, and how a command gets it to the program alone.

A launcher and its helpers need no library, and some start slower or fail with one. So the variables
are handed to the launcher as options for the program, wherever such options are known. Where they
are not (a script that calls a launcher itself, a launcher of another kind), everything that the
command starts inherits them: there the library sleeps until a program calls MPI_Init.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from popmodel.errors import FileError
from popmodel.tracer.commands import TracedCommand
from popmodel.values import dataclass

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


@dataclass(frozen=True)
class EnvironmentCall:
    """A command with what it needs in its own environment."""

    words: list[str]
    environment: dict[str, str]


def variables(library: Path, raw: Path, settings: Settings) -> dict[str, str]:
    """The variables that the library and its loading need."""
    given = {
        PRELOAD: str(library),
        DIRECTORY: str(raw),
        "POPMODEL_TRACE_OPENMP": settings.openmp,
        "POPMODEL_TRACE_COUNTERS": "1" if settings.counters else "0",
        **({} if settings.call_sites else {"POPMODEL_TRACE_CALL_SITES": "0"}),
    }
    if settings.locks != "sum":
        given["POPMODEL_TRACE_LOCKS"] = settings.locks
    if settings.window is not None:
        given["POPMODEL_TRACE_WINDOW"] = settings.window
    if settings.max_size is not None:
        given["POPMODEL_TRACE_MAX_SIZE"] = str(settings.max_size)
    if settings.max_rate is not None:
        given["POPMODEL_TRACE_MAX_RATE"] = str(settings.max_rate)
    if settings.leave_out:
        given["POPMODEL_TRACE_LEAVE_OUT"] = ",".join(settings.leave_out)
    return given


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
        if family == "Open MPI":
            flags += ["-x", f"{name}={value}"]
        elif family == "Hydra":
            flags += ["-genv", name, value]
        else:
            flags += ["-e", f"{name}={value}"]
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
        elif word == {"Open MPI": "-x", "aprun": "-e"}.get(family) and _names_preload(behind):
            own = behind[0].partition("=")[2] or None
            number += 2
        else:
            left.append(word)
            number += 1
    return left, own


def _names_preload(behind: Sequence[str]) -> bool:
    return bool(behind) and behind[0].partition("=")[0] == PRELOAD


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
    kept = [part for part in parts if part.partition("=")[0] not in variables]
    added = dict(variables)
    if own:
        added[PRELOAD] = _behind(variables[PRELOAD].partition(":")[0], own[-1])
    return ",".join([*kept, *(f"{name}={value}" for name, value in added.items())])
