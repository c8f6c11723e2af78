"""The directory that the records of a run go to: made for one run, and removed after the merge."""

from __future__ import annotations

import re
from pathlib import Path

from popmodel import shell
from popmodel.errors import FileError, UsageError
from popmodel.files import refuse_planted

SUFFIX = ".raw"
SUFFIXES = (".prv.gz", ".prv")

_OURS = re.compile(r".+\.\d+(_\d+)?\.(meta|t\d+\.raw)")


def of_output(output: Path) -> Path:
    """The raw directory of a trace: ``app.raw`` beside ``app.prv.gz``; absolute."""
    return (output.parent / f"{stem(output)}{SUFFIX}").absolute()


def stem(output: Path) -> str:
    """Name of a trace without its suffix."""
    name = output.name
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def files(folder: Path) -> list[Path]:
    """The tracer's files in a directory."""
    return sorted(path for path in folder.iterdir() if _OURS.fullmatch(path.name))


def create(folder: Path, *, force: bool, reuse: bool = False) -> None:
    """Make an empty raw directory.

    Parameters
    ----------
    folder : Path
        What to make.
    force : bool
        Whether the records of an earlier run in it may be removed.
    reuse : bool
        Whether it may be there already, empty.

    Raises
    ------
    UsageError
        It is there already: there are records in it, or another run has just made it.
    FileError
        It holds files of something else, or cannot be made.
    """
    hint = "name another trace with -o: records go to a directory beside it"
    refuse_planted(folder, hint)
    merge = shell.join(["popmodel", "trace", "merge", str(folder)])
    try:
        if folder.exists():
            there, ours = list(folder.iterdir()), files(folder)
            if others := sorted(path.name for path in there if path not in ours):
                problem = f"holds files that the tracer did not write, such as {others[0]}"
                raise FileError(folder, problem, hint=hint)
            if not there and reuse:
                return
            if not force:
                raise UsageError(
                    f"{folder}: there are records of an earlier run or of one that goes on",
                    f"make a trace of them: {merge}; --force removes them",
                )
            clear(folder)
        folder.mkdir()
    except OSError as error:
        problem = f"cannot be made: {(error.strerror or str(error)).lower()}"
        raise FileError(folder, problem, hint=hint) from error


def clear(folder: Path) -> None:
    """Remove the tracer's files in a directory, and the directory where nothing else is in it.

    Raises
    ------
    OSError
        They cannot be removed.
    """
    for path in files(folder):
        path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
