"""The text of a trace as a stream of bytes, plain or compressed, with errors a user can act on."""

from __future__ import annotations

import errno
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from popmodel.errors import TraceError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 18
"""Bytes read at a time: little enough to stay in the processor's cache until they are scanned."""


class Source(Protocol):
    """Anything that fills a buffer with the next bytes; 0 at the end."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer and return the number of bytes."""


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a trace, decompressing it if its first bytes say that it is gzip.

    Raises
    ------
    TraceError
        A missing file (with files of similar names), a folder, no permission.
    """
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise TraceError(path, "no such file", hint=_near(path)) from None
    except IsADirectoryError:
        raise TraceError(
            path, "is a folder, not a trace", hint="name one .prv or .prv.gz file in it"
        ) from None
    except PermissionError:
        raise TraceError(path, "may not be read", hint="ask its owner for read access") from None
    except OSError as error:
        raise TraceError(path, f"cannot be opened: {_reason(error)}") from None
    with file:
        magic = _peek(file, path)
        if magic != GZIP_MAGIC:
            yield _Plain(file, path)
            return
        unpacker = _unpacker()
        with unpacker.open(fileobj=file) as text:
            yield _Gzip(text, path, unpacker.damaged)


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
        raise TraceError(
            path,
            f"cannot be read: {_reason(error)}",
            hint="give a file; a trace cannot be read from a pipe",
        ) from None
    return magic


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _near(path: Path) -> str:
    """Suggest the traces beside a file that does not exist."""
    import difflib

    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    try:
        entries = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        return f"the folder {folder} cannot be listed: {_reason(error)}"
    names = [name for name in entries if name.endswith((".prv", ".prv.gz"))]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(str(folder / name) for name in near) + "?"
    return f"there are {len(names) or 'no'} traces in {folder}"


class _Plain:
    def __init__(self, file: io.FileIO, path: Path) -> None:
        self._file = file
        self._path = path

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            return self._file.readinto(buffer) or 0
        except OSError as error:
            raise TraceError(self._path, f"cannot be read: {_reason(error)}") from None


class _Gzip:
    def __init__(
        self, text: io.BufferedIOBase, path: Path, damaged: tuple[type[Exception], ...]
    ) -> None:
        self._text = text
        self._path = path
        self._damaged = damaged

    def readinto(self, buffer: memoryview, /) -> int:
        again = "copy or compress the trace again"
        try:
            return self._text.readinto(buffer)
        except EOFError:
            raise TraceError(
                self._path, "the compressed file is truncated: it ends too early", hint=again
            ) from None
        except self._damaged as error:
            raise TraceError(
                self._path, f"the compressed data are damaged: {error}", hint=again
            ) from None
        except OSError as error:  # BadGzipFile is one without a number
            if error.errno in (None, 0, errno.EINVAL):
                raise TraceError(
                    self._path, f"the compressed data are damaged: {error}", hint=again
                ) from None
            raise TraceError(self._path, f"cannot be read: {_reason(error)}") from None
