"""The formats of traces that popmodel reads: which one a file has, and who reads it."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from popmodel.base.errors import TraceError, UsageError
from popmodel.traces.resources import current
from popmodel.traces.source import HEAD, foreign_file, listed_file, open_source

if TYPE_CHECKING:
    from popmodel.traces.recorded_run import Trace


class TraceFormat(NamedTuple):
    """A format of traces."""

    name: str  # For people
    suffixes: tuple[str, ...]  # Of its files; each may be followed by ``.gz``
    magic: tuple[bytes, ...]  # How the text of such a file can begin
    # Module whose function ``read`` takes the path and the number of the application, and returns
    # a `Trace`.
    reader: str
    # Whether computing is given in flop, so that ``read`` takes ``flop_rate`` as well.
    flops: bool = False
    anchor: str = ""  # The file in a directory that may be given in its place

    def is_named(self, path: Path) -> bool:
        """Whether the name of a file, or what is in a directory, says that it has this format."""
        if self.anchor and os.path.isfile(path / self.anchor):  # noqa: PTH113 (never raises)
            return True
        return path.name.removesuffix(".gz").endswith(self.suffixes)


_UNTIMED = "popmodel.traces.untimed"
FORMATS = (
    TraceFormat(
        "Paraver", (".prv",), (b"#Paraver (", b"#PARAVER ("), "popmodel.traces.paraver.reader"
    ),
    TraceFormat(
        "SimGrid SMPI", (".ti.txt", ".ti"), (b"0 init", b"p0 init"), f"{_UNTIMED}.smpi", True
    ),
    TraceFormat("Dimemas", (".dim",), (b"#DIMEMAS:",), f"{_UNTIMED}.dimemas"),
    TraceFormat("GOAL", (".goal",), (b"num_ranks",), f"{_UNTIMED}.goal"),
    TraceFormat(
        "OTF2",
        (".otf2",),
        (b"\x03BOTF2",),
        "popmodel.traces.otf2.archive_reader",
        anchor="traces.otf2",
    ),
)
"""All formats; a further one is an entry here and a module."""


def read(
    path: str | os.PathLike[str],
    application: int = 1,
    flop_rate: float | None = None,
) -> Trace:
    """Read one application of a trace.

    Parameters
    ----------
    path : path
        A Paraver trace (``.prv``; ``.pcf`` and ``.row`` files of the same name are used where they
        exist), an archive of OTF2 (``traces.otf2``, or its directory), or a format without
        measured times: a time-independent trace of SimGrid SMPI
        (``.ti``, ``.ti.txt``; one file, or the file that lists one for each process), a program of
        Dimemas (``.dim``), a schedule in GOAL (``.goal``); plain or compressed with gzip. A file
        with another name is known by how it begins.
    application : int
        Number of the application in the trace, from 1.
    flop_rate : float, optional
        Flop per second of a process, for traces of SimGrid SMPI, which give computing in flop;
        1e9 by default, which a warning of the trace says.

    Raises
    ------
    TraceError
        If the file cannot be read, is damaged, truncated or not a trace.
    UsageError
        If the trace has no such application, or gives computing in seconds and a rate is given.

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
    form = format_of(Path(path))
    if flop_rate is not None and not form.flops:
        raise UsageError(
            f"{os.fspath(path)}: a flop rate is not valid for {form.name}",
            "leave it out: computing is given as time",
        )
    rate = {"flop_rate": flop_rate} if form.flops else {}
    if (given := current()) is not None:
        given.expect(Path(path))
    found: Trace = import_module(form.reader).read(path, application, **rate)
    return found


def format_of(path: Path) -> TraceFormat:
    """Return the format of a file by its name, else by how it begins."""
    for each in FORMATS:
        if each.is_named(path):
            return each
    head = _head(path)
    first = head.split(b"\n", 1)[0].strip()
    if first and len(first.split()) == 1 and first.isascii() and b"\0" not in first:
        listed = listed_file(path, first.decode())  # SimGrid's list of the files of processes
        if listed is not None and listed != path:
            head = _head(listed)
        elif listed is None and first.endswith(b".txt"):
            return next(each for each in FORMATS if ".ti" in each.suffixes)  # which misses the file
    for each in FORMATS:
        if head.startswith(each.magic):
            return each
    if foreign := foreign_file(path, head):
        raise TraceError(path, f"is {foreign.name}", hint=foreign.advice)
    texts, others = (
        ", ".join(
            f"{each.name} ({' '.join(each.suffixes)})"
            for each in FORMATS
            if bool(each.anchor) == anchored
        )
        for anchored in (False, True)
    )
    what = "the file is empty" if not head else "the file is binary" if b"\0" in head else ""
    raise TraceError(
        path, what or "not a trace", hint=f"popmodel reads {texts}, also with .gz; {others}"
    )


def _head(path: Path) -> bytes:
    with open_source(path) as source:
        view = memoryview(bytearray(HEAD))
        return bytes(view[: source.readinto(view)])
