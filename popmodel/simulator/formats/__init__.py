"""Programs written in formats that other simulators read."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from popmodel import files
from popmodel.errors import FileError, UsageError
from popmodel.simulator.from_trace import from_trace
from popmodel.trace.formats import read
from popmodel.units import plural

if TYPE_CHECKING:
    import os

    from popmodel.simulator.program import Program

__all__ = ["FORMATS", "ProgramFormat", "format_of", "write"]


class ProgramFormat(NamedTuple):
    """A format that programs are written in."""

    name: str  # For people
    suffixes: tuple[str, ...]  # Of its files; each may be followed by ``.gz``
    # Module whose functions take a program: ``text`` gives its lines, ``unsaid`` what they do not
    # hold, a sentence each.
    writer: str


FORMATS = (
    ProgramFormat("SimGrid SMPI", (".ti", ".ti.txt"), f"{__name__}.smpi"),
    ProgramFormat("GOAL", (".goal",), f"{__name__}.goal"),
)
"""All formats; a further one is an entry here and a module."""


def format_of(path: str | os.PathLike[str]) -> ProgramFormat:
    """Return the format that the name of a file asks for."""
    plain = Path(path).name.removesuffix(".gz")
    for each in FORMATS:
        if plain.endswith(each.suffixes):
            return each
    known = ", ".join(f"{' or '.join(each.suffixes)} for {each.name}" for each in FORMATS)
    raise UsageError(f"{path}: cannot tell the format from the suffix", f"use {known}, or with .gz")


def _read(path: Path) -> None:
    """Read a written program as a replay of it would."""
    from_trace(read(path))


def write(program: Program, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a program to a file, in the format that its name asks for."""
    form = format_of(path)
    if len(program.threads):
        raise UsageError(
            f"{form.name}: a process is one sequence of operations, and here "
            f"{plural(len(program.threads), 'further thread')} of processes would be lost",
            "replay the trace itself",
        )
    writer = import_module(form.writer)
    text: Callable[[Program], Iterator[str]] = writer.text
    try:
        with files.written(path, read=_read) as file:
            if Path(path).name.endswith(".gz"):
                # without the time, equal programs are equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0, compresslevel=6) as packed:
                    packed.writelines(line.encode() for line in text(program))
            else:
                file.writelines(line.encode() for line in text(program))
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint="choose another path with -o") from error
    unsaid: list[str] = writer.unsaid(program)
    return tuple(unsaid)
