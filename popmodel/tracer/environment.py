"""What the library finds in its environment, and how a command gets it to the program alone.

A launcher and its helpers need no library, and some start slower or fail with one. So the variables
are handed to the launcher as options for the program, wherever such options are known. Where they
are not (a script that calls a launcher itself, a launcher of another kind), everything that the
command starts inherits them: there the library sleeps until a program calls MPI_Init.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from popmodel.tracer.commands import Command

OpenMP = Literal["auto", "ompt", "gomp", "off"]
OPENMP: Mapping[str, OpenMP] = {"auto": "auto", "ompt": "ompt", "gomp": "gomp", "off": "off"}
"""By what is typed."""

PRELOAD = "LD_PRELOAD"
DIRECTORY = "POPMODEL_TRACE_DIR"


@dataclass(frozen=True)
class Settings:
    """What is recorded.

    Attributes
    ----------
    counters : bool
        Whether hardware counters are read.
    openmp : str
        How OpenMP is observed.
    """

    counters: bool = False
    openmp: OpenMP = "auto"


@dataclass(frozen=True)
class Call:
    """A command with what it needs in its own environment."""

    words: list[str]
    environment: dict[str, str]


def variables(library: Path, raw: Path, settings: Settings) -> dict[str, str]:
    """The variables that the library and its loading need.

    Parameters
    ----------
    library : Path
        The library; absolute, as is the raw directory: programs change their directory.
    raw : Path
        Where records go.
    settings : Settings
        What is recorded.
    """
    return {
        PRELOAD: str(library),
        DIRECTORY: str(raw),
        "POPMODEL_TRACE_OPENMP": settings.openmp,
        "POPMODEL_TRACE_COUNTERS": "1" if settings.counters else "0",
    }


def place(command: Command, variables: Mapping[str, str], environment: Mapping[str, str]) -> Call:
    """Hand variables to the program of a command.

    What the user preloads stays, behind the library: in the environment, or as an option of the
    launcher.

    Parameters
    ----------
    command : Command
        As the user gave it.
    variables : mapping of str to str
        Of the program.
    environment : mapping of str to str
        In which the command will run.
    """
    words = list(command.words)
    given = dict(variables)
    given[PRELOAD] = _behind(given[PRELOAD], environment.get(PRELOAD))
    if command.family == "srun":
        if not any("," in value or "'" in value for value in variables.values()):
            return Call(_srun(words, given, environment), {})
    elif command.family is not None:
        words, own = _without_own(words, command.family)
        given[PRELOAD] = _behind(variables[PRELOAD], own or environment.get(PRELOAD))
        return Call(_with_flags(words, _flags(command.family, given)), {})
    return Call(words, given)


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
    """A command without the user's own LD_PRELOAD for the program, and the value of that.

    Launchers take the first or the last of two values, or refuse them.
    """
    left = list(words)
    own = None
    if family == "Hydra":
        for number, word in enumerate(words[:-2]):
            if word in ("-genv", "-env", "--genv", "--env") and words[number + 1] == PRELOAD:
                own = words[number + 2]
                left[number : number + 3] = ["", "", ""]
    else:
        flag = "-x" if family == "Open MPI" else "-e"
        for number, word in enumerate(words[:-1]):
            name, sign, value = words[number + 1].partition("=")
            if word == flag and name == PRELOAD:
                own = value if sign else None
                left[number : number + 2] = ["", ""]
    return [word for word, before in zip(left, words, strict=True) if word or not before], own


def _srun(
    words: list[str], variables: Mapping[str, str], environment: Mapping[str, str]
) -> list[str]:
    """srun's words: the list of variables that its ranks get is added to the user's own."""
    made = list(words)
    for number, word in enumerate(words[1:], start=1):
        if word.startswith("--export="):
            made[number] = f"--export={_exported(word.partition('=')[2], variables)}"
            return made
        if word == "--export" and number + 1 < len(words):
            made[number + 1] = _exported(words[number + 1], variables)
            return made
    listed = _exported(environment.get("SLURM_EXPORT_ENV") or "ALL", variables)
    return _with_flags(made, [f"--export={listed}"])


def _exported(listed: str, variables: Mapping[str, str]) -> str:
    parts = [part for part in listed.split(",") if part not in ("", "NONE", "NIL")]
    own = [part.partition("=")[2] for part in parts if part.startswith(f"{PRELOAD}=")]
    kept = [part for part in parts if part.partition("=")[0] not in variables]
    added = dict(variables)
    if own:
        added[PRELOAD] = _behind(variables[PRELOAD].partition(":")[0], own[-1])
    return ",".join([*kept, *(f"{name}={value}" for name, value in added.items())])
