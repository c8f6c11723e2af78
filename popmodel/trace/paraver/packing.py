"""Compresses a trace while it is written, on another core where the library for that is there."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from typing import IO, Any


def packed(file: IO[bytes]) -> AbstractContextManager[Any]:
    """Return a file whose content goes compressed into another one, which stays open."""
    try:
        from isal import igzip_threaded
    except ImportError:  # no wheel for this platform: the standard library does, more slowly
        return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="")
    opened: AbstractContextManager[Any] = igzip_threaded.open(  # type: ignore[no-untyped-call]
        file, "wb", compresslevel=1, threads=1
    )
    return opened
