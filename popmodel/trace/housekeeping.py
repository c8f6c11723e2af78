"""Keeps the folder of cached traces small: its limit, and what goes when it is reached."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from popmodel.errors import UsageError
from popmodel.units import parse_size
from popmodel.values import dataclass

SUFFIX = ".trace"
PARTIAL = "partial-"
"""How the names of files begin that are still being written."""
LIMIT = 10 * 10**9
"""Bytes of all cached traces together, unless $POPMODEL_CACHE_LIMIT states another size."""
OLD = 24 * 3600
"""Seconds after which a partial file is of no running process, and a trace may be missed."""


@dataclass(frozen=True)
class _File:
    path: Path
    size: int
    used: float


def limit() -> float:
    """Return how many bytes cached traces may take together."""
    text = os.environ.get("POPMODEL_CACHE_LIMIT")
    if not text:
        return LIMIT
    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"POPMODEL_CACHE_LIMIT: {error.message}", error.hint) from None


def mark_used(descriptor: int) -> None:
    """Note that a cached trace was used: its time of change tells the order of use."""
    with suppress(OSError):  # a cache that is only lent for reading serves as well
        os.utime(descriptor)


def make_room(folder: Path, size: int, most: float, origin: Callable[[Path], Path | None]) -> None:
    """Remove from a folder what is in the way of a further file.

    Partial files that were left over go first, as do files whose trace is gone; both only if
    nobody touched them for a day. Then those go that were not used for the longest time.
    """
    now = time.time()
    kept = []
    for file in sorted(_files(folder), key=lambda file: file.used):
        old = now - file.used > OLD
        if file.path.name.startswith(PARTIAL):
            if old:
                _remove(file)
        elif old and ((trace := origin(file.path)) is None or not os.path.lexists(trace)):
            _remove(file)
        else:
            kept.append(file)
    held = sum(file.size for file in kept)
    for file in kept:
        if held + size <= most:
            break
        _remove(file)
        held -= file.size


def _files(folder: Path) -> Iterator[_File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PARTIAL) or entry.name.endswith(SUFFIX):
                with suppress(FileNotFoundError):  # another process has removed it
                    status = entry.stat(follow_symlinks=False)
                    yield _File(Path(entry.path), status.st_size, status.st_mtime)


def _remove(file: _File) -> None:
    """Remove a file; processes that have it mapped keep what they see."""
    with suppress(OSError):  # gone already, or not ours: then the next one goes
        file.path.unlink()
