"""Where the columns of a trace live: in memory, in the user's cache, or in a temporary file.

A cached trace is a file of its own, found by the trace's path and application and used only if it
was made from the same file (its inode, size, beginning, and times of change, of which one cannot be
set back) by the same scanner, and if its checksums hold; else it is made anew. It gets its name
when it is complete, so that readers never see a part of one. It is not forced to the disk before:
what a crash leaves of it fails the checksums.

All files together stay below a limit (`popmodel.trace.housekeeping`).
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from popmodel._version import __version__
from popmodel.cache import doubt, folder, make
from popmodel.errors import TraceError
from popmodel.files import NewFile
from popmodel.kernel import _kernel
from popmodel.trace import container
from popmodel.trace.housekeeping import PARTIAL, SUFFIX, limit, make_room, mark_used
from popmodel.values import dataclass

HEAD = 1 << 16
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Key:
    """What a cached trace was made from, and by what."""

    path: str
    application: int
    inode: int
    size: int
    changed: int
    status_changed: int
    head: str
    scanner: str

    def facts(self) -> dict[str, Any]:
        """Return the key as it stands in a cached file."""
        return dict(vars(self))

    @property
    def name(self) -> str:
        """Name of the file in the cache."""
        origin = f"{self.path}\0{self.application}".encode(errors="surrogateescape")
        return _digest(origin) + SUFFIX


def key_of(path: Path, application: int) -> Key | None:
    """Return the key of a trace, or None where the file cannot be read: others report why."""
    try:
        if not path.is_file():  # opening a pipe would wait
            return None
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            head = _digest(file.read(HEAD))
    except OSError:
        return None
    return Key(
        path=str(path.absolute()),
        application=application,
        inode=status.st_ino,
        size=status.st_size,
        changed=status.st_mtime_ns,
        status_changed=status.st_ctime_ns,
        head=head,
        scanner=scanner(),
    )


@cache
def scanner() -> str:
    """Return what tells this scanner from others: the version, and the state of its files.

    Their sizes and times tell as much as their contents would, and to read them takes longer than
    to map a trace.
    """
    parts = [Path(str(_kernel.__file__)), *sorted(Path(__file__).parent.rglob("*.py"))]
    states = [f"{each.st_size} {each.st_mtime_ns}" for each in (part.stat() for part in parts)]
    return _digest("\n".join([__version__, *states]).encode())


def _digest(content: bytes) -> str:
    import hashlib  # brings OpenSSL along, 4 MB that a trace takes only to be cached

    return hashlib.blake2b(content, digest_size=16).hexdigest()


def load(key: Key) -> tuple[dict[str, Any], Arrays] | None:
    """Return the cached trace of that key, or None where there is none that can be believed."""
    if doubt():
        return None
    try:
        with (folder() / key.name).open("rb", buffering=0) as file:
            facts, arrays = container.load(file)
            mark_used(file.fileno())
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, or not what was written: it is made anew
    return (facts, arrays) if facts.get("key") == key.facts() else None


def usable_folder() -> Path | None:
    """Return the folder of cached traces if files can be made in it by us alone, else None."""
    if doubt():
        return None
    try:
        where = make()
        nameless(where).close()
    except OSError as error:
        if error.errno in _FULL:
            raise
        return None
    return where


def nameless(where: Path) -> io.FileIO:
    """Open a new file that vanishes when it is closed and no longer mapped."""
    new = _new(where)
    new.drop_name()
    return new.file


def _new(where: Path) -> NewFile:
    """Begin a file; `make_room` removes what is left over where it needs a name before its own."""
    return NewFile(where, 0o600, prefix=PARTIAL)


Fill = Callable[[container.Writer], None]
Finish = Callable[[Arrays], Iterable[str]]


def keep(
    where: Path,
    key: Key | None,
    facts: Mapping[str, Any],
    shapes: Mapping[str, container.Shape],
    fill: Fill,
    finish: Finish,
) -> Arrays:
    """Write a trace to a file and map it: into the cache, or, without a key, to a nameless one."""
    most = limit()
    new = _new(where)
    with new.file as file:
        try:
            described = {**facts, "key": key and key.facts()}
            writer = container.Writer(file, described, shapes, checked=key is not None)
            fill(writer)
            arrays = writer.arrays()
            changed = finish(arrays)
            if key is not None and writer.size <= most:
                writer.seal(changed)
                make_room(where, writer.size, most, _origin)
                new.publish(where / key.name)
        finally:
            new.drop_name()
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _origin(path: Path) -> Path | None:
    """Trace that a cached file was made from; None if the file is damaged or of another version."""
    try:
        with path.open("rb", buffering=0) as file:
            return Path(container.facts_of(file)["key"]["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def explained(path: Path, where: Path) -> Iterator[None]:
    """Turn a failure to write to the folder of temporary files into an error with a way out."""
    try:
        yield
    except OSError as error:
        hint = "set TMPDIR to another directory"
        if error.errno in _FULL:
            why = os.strerror(error.errno).lower()
            problem = f"not enough space for its records in {where}: {why}"
            raise TraceError(path, problem, hint=f"free some space there, {hint}") from None
        problem = f"its records cannot be written to {where}: {error.strerror or error}"
        raise TraceError(path, problem, hint=hint) from None
