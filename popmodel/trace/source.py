"""The text of a trace as a stream of bytes, plain or compressed, with errors a user can act on."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast

from popmodel.errors import TraceError
from popmodel.trace.foreign import foreign_folder
from popmodel.values import dataclass

GZIP_MAGIC = b"\x1f\x8b"
NO_PIPE = "give the name of a file; a trace cannot be read from a pipe"
CHUNK = 1 << 18
"""Bytes read at a time: little enough to stay in the processor's cache until they are scanned."""


LARGEST_RATIO = 1032
"""To how many bytes one byte of a compressed file can expand."""


class TraceSource(Protocol):
    """Anything that fills a buffer with the next bytes; 0 at the end."""

    # Whether damage of the file shows only in its text, because a checksum comes last.
    compressed: bool
    most: int  # Bytes that the text cannot exceed

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer and return the number of bytes."""


@contextmanager
def open_source(path: Path) -> Iterator[TraceSource]:
    """Open a trace, decompressing it if its first bytes say that it is gzip."""
    try:
        if stat.S_ISFIFO(mode := path.stat().st_mode) or stat.S_ISSOCK(mode):  # opening may wait
            raise TraceError(path, "is a pipe, not a file", hint=NO_PIPE)
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise TraceError(path, "no such file", hint=_near(path)) from None
    except IsADirectoryError:
        foreign = foreign_folder(path)
        raise TraceError(
            path,
            f"is a directory with {foreign.name}" if foreign else "is a directory, not a trace",
            hint=foreign.advice if foreign else "name one .prv or .prv.gz file in it",
        ) from None
    except PermissionError:
        raise TraceError(path, "permission denied", hint="ask its owner for read access") from None
    except OSError as error:
        raise TraceError(path, f"cannot be opened: {reason(error)}") from None
    with file:
        magic, size = _peek(file, path), os.fstat(file.fileno()).st_size
        if magic != GZIP_MAGIC:
            yield _Plain(file, path, size)
            return
        unpacker = _unpacker()
        with unpacker.open(fileobj=file) as text:
            yield _Gzip(text, path, unpacker.damaged, LARGEST_RATIO * size)


@dataclass(frozen=True)
class _Unpacker:
    """What opens compressed files, and the errors (besides OSError) that damage raises there."""

    open: Callable[..., io.BufferedIOBase]
    damaged: tuple[type[Exception], ...]


def _unpacker() -> _Unpacker:
    try:
        from isal import igzip, isal_zlib
    except ImportError:  # no wheel for this platform: the standard library does, more slowly
        return _Unpacker(gzip.GzipFile, (zlib.error,))
    damaged = cast("type[Exception]", isal_zlib.IsalError)  # its stub calls it an instance
    return _Unpacker(igzip.IGzipFile, (zlib.error, damaged))


def _peek(file: io.FileIO, path: Path) -> bytes:
    try:
        magic = file.read(2) or b""
        file.seek(0)
    except OSError as error:
        raise TraceError(path, f"cannot be read: {reason(error)}", hint=NO_PIPE) from None
    return magic


def reason(error: OSError) -> str:
    """Why something failed, as it may stand inside a sentence."""
    return (error.strerror or str(error)).lower()


def _near(path: Path) -> str:
    """Suggest the traces beside a file that does not exist."""
    import difflib

    if path.name == "-":
        return NO_PIPE
    folder = path.parent
    if not folder.is_dir():
        return f"no such directory: {folder}"
    try:
        entries = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        return f"cannot list the directory {folder}: {reason(error)}"
    names = [name for name in entries if name.endswith((".prv", ".prv.gz"))]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(str(folder / name) for name in near) + "?"
    there = "is 1 trace" if len(names) == 1 else f"are {len(names) or 'no'} traces"
    return f"there {there} in {folder}"


class _Plain:
    compressed = False

    def __init__(self, file: io.FileIO, path: Path, most: int) -> None:
        self.most = most
        self._file = file
        self._path = path

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            return self._file.readinto(buffer) or 0
        except OSError as error:
            raise TraceError(self._path, f"cannot be read: {reason(error)}") from None


class _Gzip:
    compressed = True

    def __init__(
        self,
        text: io.BufferedIOBase,
        path: Path,
        damaged: tuple[type[Exception], ...],
        most: int,
    ) -> None:
        self.most = most
        self._text = text
        self._path = path
        self._damaged = damaged

    def readinto(self, buffer: memoryview, /) -> int:
        again = "copy or compress the trace again"
        try:
            return self._text.readinto(buffer)
        except EOFError:
            raise TraceError(
                self._path, "the compressed file is truncated or followed by other data", hint=again
            ) from None
        except self._damaged as error:
            raise TraceError(
                self._path, f"the compressed data are damaged: {error}", hint=again
            ) from None
        except gzip.BadGzipFile as error:
            # The first two bytes were right, so that this is what follows a compressed part.
            what = "other data follow the compressed data"
            followed = str(error).startswith("Not a gzipped file")
            problem = what if followed else f"the compressed data are damaged: {error}"
            raise TraceError(self._path, problem, hint=again) from None
        except OSError as error:
            if error.errno in (None, 0, errno.EINVAL):
                raise TraceError(
                    self._path, f"the compressed data are damaged: {error}", hint=again
                ) from None
            raise TraceError(self._path, f"cannot be read: {reason(error)}") from None
