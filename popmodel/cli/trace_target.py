"""Where a trace goes, and the tracer that makes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base.errors import FileError, UsageError

if TYPE_CHECKING:
    from popmodel.tracer.commands import TracedCommand
    from popmodel.tracer.library import Library

DEFAULT = "trace.prv.gz"


def target_of(output: str | None, command: TracedCommand, *, force: bool) -> Path:
    """Where the trace of a command goes: what the user names, else after its program."""
    named = DEFAULT if command.program is None else f"{command.program.name}.prv.gz"
    return checked(output or named, force=force)


def checked(name: str, *, force: bool, option: str = "-o") -> Path:
    """Where a trace goes; refused before the run what would be refused after it."""
    from popmodel.base.files import expect_writable
    from popmodel.base.shell import plain
    from popmodel.tracer.raw_directory import SUFFIXES, stem

    path = Path(plain(name, option))
    if not name.endswith(SUFFIXES) or path.name in SUFFIXES:
        raise UsageError(
            f"{option} {name}: must end in .prv or .prv.gz", f"try {option} app.prv.gz"
        )
    try:
        for suffix in (path.name.removeprefix(stem(path)), ".pcf", ".row"):
            there = path.with_name(f"{stem(path)}{suffix}")
            if there.is_dir():
                raise UsageError(f"{option} {name}: {there} is a directory", "choose another file")
            if there.exists() and not force:
                raise UsageError(f"{option} {name}: {there} exists", "use --force to overwrite it")
        expect_writable(path)
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint=f"choose another path with {option}") from error
    return path


def merging(raw: Path, target: Path) -> str:
    """The command that makes a trace of records."""
    from popmodel.base.shell import join

    return join(["popmodel", "trace", "merge", shown(raw), "-o", str(target)])


def shown(path: Path) -> str:
    """A path as short as it can be pasted here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def tracer(command: TracedCommand | None) -> Library:
    """The library for a command; refuses a program that it cannot be loaded into."""
    from popmodel.cli.progress import ProgressLine
    from popmodel.tracer.commands import refuse_untraceable
    from popmodel.tracer.library import find_or_build

    if command is not None and command.program is not None:
        refuse_untraceable(command.program)
    line = ProgressLine()

    def draw(name: str) -> None:
        line.draw(lambda width: f"building the tracer for {name} (once)"[:width])

    try:
        return find_or_build(command, on_build=draw)
    finally:
        line.clear()
