"""The directory that the records of a run go to: made for one run, and removed after the merge."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from popmodel.base import shell
from popmodel.base.errors import FileError, UsageError
from popmodel.base.files import refuse_planted

SUFFIX = ".raw"
SUFFIXES = (".prv.gz", ".prv")

_OURS = re.compile(r".+\.\d+(_\d+)?\.(meta|t\d+\.(raw|sums))")


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
    """Make an empty raw directory."""
    hint = "choose another trace with -o: the raw files go to a directory beside it"
    refuse_planted(folder, hint)
    merge = shell.join(["popmodel", "trace", "merge", str(folder)])
    try:
        if folder.exists():
            there, ours = list(folder.iterdir()), files(folder)
            if others := sorted(path.name for path in there if path not in ours):
                problem = f"contains files that popmodel trace did not write, such as {others[0]}"
                raise FileError(folder, problem, hint=hint)
            if not there and reuse:
                return
            if not force:
                raise UsageError(
                    f"{folder}: contains raw files of an earlier or unfinished run",
                    f"merge them: {merge}; or remove them with --force",
                )
            _refuse_held(folder)
            clear(folder)
        folder.mkdir()
    except OSError as error:
        problem = f"cannot be created: {(error.strerror or str(error)).lower()}"
        raise FileError(folder, problem, hint=hint) from error


def clear(folder: Path) -> None:
    """Remove the tracer's files in a directory, and the directory where nothing else is in it."""
    for path in files(folder):
        path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Have a raw directory for oneself, so that no other run on this host removes what is in it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # file systems without locks: it is as safe as it was
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _refuse_held(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{folder}: is in use by another popmodel trace",
            "wait until it ends, or choose another trace with -o",
        ) from None
    except OSError:
        pass  # a file system without locks
    finally:
        os.close(handle)
