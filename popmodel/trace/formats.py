"""The formats of traces that popmodel reads: which one a file has, and who reads it."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from popmodel.errors import TraceError, UsageError
from popmodel.trace.source import open_source

if TYPE_CHECKING:
    from popmodel.trace.trace import Trace

__all__ = ["FORMATS", "Format", "read"]

_HEAD = 1 << 12


class Format(NamedTuple):
    """A format of traces.

    Attributes
    ----------
    name : str
        For people.
    suffixes : tuple of str
        Of its files; each may be followed by ``.gz``.
    magic : tuple of bytes
        How the text of such a file can begin.
    reader : str
        Module whose function ``read`` takes the path, the number of the application, and whether
        to use the cache, and returns a `Trace`.
    """

    name: str
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]
    reader: str

    def is_named(self, path: Path) -> bool:
        """Whether the name of a file says that it has this format."""
        return path.name.removesuffix(".gz").endswith(self.suffixes)


FORMATS = (
    Format("Paraver", (".prv",), (b"#Paraver",), "popmodel.trace.paraver.reader"),
    Format("SimGrid SMPI", (".ti.txt",), (b"0 init", b"p0 init"), "popmodel.trace.smpi"),
)
"""All formats; a further one is an entry here and a module."""


def read(path: str | os.PathLike[str], application: int = 1, cache: bool = True) -> Trace:
    """Read one application of a trace.

    Parameters
    ----------
    path : path
        A Paraver trace (``.prv``; ``.pcf`` and ``.row`` files of the same name are used where they
        exist) or a time-independent trace of SimGrid SMPI (``.ti.txt``), plain or compressed with
        gzip. A file with another name is known by how it begins.
    application : int
        Number of the application in the trace, from 1.
    cache : bool
        Keep the parsed trace in the user's cache directory and use it from there next time. The
        records stay on disk and are memory-mapped, so that memory does not grow with the trace.
        A directory that others can write to is not used (a warning of the trace says so).
        Without the cache, records are held in memory, those of a long trace in a temporary file.

    Raises
    ------
    TraceError
        If the file cannot be read, is damaged, truncated or not a trace.
    UsageError
        If the trace has no such application.

    Examples
    --------
    >>> import popmodel
    >>> trace = popmodel.read("tests/data/cg.S.2.prv.gz")
    >>> trace.processes, trace.duration / 1e9  # s
    (2, 0.52241422)
    >>> table = trace.to_dataframe("calls")
    """
    if not os.fspath(path):
        raise UsageError("the name of the trace must not be empty", "give a .prv or .prv.gz file")
    found: Trace = import_module(_format_of(Path(path)).reader).read(path, application, cache)
    return found


def _format_of(path: Path) -> Format:
    """Format of a file by its name, else by how it begins.

    Raises
    ------
    TraceError
        If the file cannot be read, or has none of the formats.
    """
    for each in FORMATS:
        if each.is_named(path):
            return each
    with open_source(path) as source:
        view = memoryview(bytearray(_HEAD))
        head = bytes(view[: source.readinto(view)])
    for each in FORMATS:
        if head.startswith(each.magic):
            return each
    known = ", ".join(f"{each.name} ({' '.join(each.suffixes)})" for each in FORMATS)
    what = "the file is empty" if not head else "the file is binary" if b"\0" in head else ""
    raise TraceError(path, what or "not a trace", hint=f"popmodel reads {known}, also with .gz")
