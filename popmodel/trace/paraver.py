"""Reads Paraver traces: ``x.prv`` or ``x.prv.gz``, and ``x.pcf`` and ``x.row`` beside it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from popmodel.errors import TraceError, UsageError
from popmodel.kernel import _kernel
from popmodel.trace import columns
from popmodel.trace.header import Application, Header, HeaderError, parse_header
from popmodel.trace.labels import Labels, parse_pcf, parse_row, read_beside
from popmodel.trace.source import CHUNK, Source, open_source
from popmodel.trace.trace import Int32, Int64, Trace, TraceWarning

LONGEST_HEADER = 1 << 26
TRUNCATED = "the file ends in the middle of a record"

NOTICES = (
    "comment lines, passed over",
    "states out of time order, sorted",
    "events out of time order, sorted",
    "communications out of time order, sorted",
    "states that begin before the state before them ends",
    "records after the end that the header states",
    "communications with another application, left out",
    "communicators listed again with other ranks, the last list counts",
    "intercommunicators, passed over",
)
"""Texts of what the scanner tallies, in its order."""


def read(path: str | os.PathLike[str], application: int = 1, cache: bool = True) -> Trace:
    """Read one application of a Paraver trace.

    Parameters
    ----------
    path : path
        A ``.prv`` file, plain or compressed with gzip; ``.pcf`` and ``.row`` files of the same
        name are used where they exist.
    application : int
        Which application of the trace, from 1.
    cache : bool
        Keep the parsed trace in the user's cache directory and take it from there next time.

    Raises
    ------
    TraceError
        The file cannot be read, is damaged, truncated or no trace.
    UsageError
        There is no such application in the trace.
    """
    del cache
    source_path = Path(path)
    with open_source(source_path) as source:
        header, scanner = scan(source, source_path, application)
    tables, offsets = columns.in_memory(scanner)
    labels, names, missing = read_labels(source_path)
    states, events, messages = columns.as_records(tables, offsets)
    chosen = header.applications[application - 1]
    return Trace(
        path=os.fspath(path),
        application=application,
        applications=len(header.applications),
        begin=0,
        end=header.duration,
        nodes=header.nodes,
        process_offsets=process_offsets(chosen),
        node_of_location=node_of_location(chosen),
        communicators=scanner.communicators(),
        states=states,
        events=events,
        messages=messages,
        labels=labels,
        names=names,
        warnings=(*warnings_of(header, chosen, scanner), *missing),
    )


def scan(source: Source, path: Path, application: int) -> tuple[Header, _kernel.Scanner]:
    """Scan all of a trace's text; the scanner then holds its records."""
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    line, rest = read_header_line(source, path, view)
    try:
        header = parse_header(line)
    except HeaderError as error:
        raise TraceError(path, str(error), line=1) from None
    check_application(header, path, application)
    scanner = _kernel.Scanner(
        [list(each.threads) for each in header.applications],
        sum(header.nodes),
        header.unit,
        header.duration,
        application,
        1,
    )
    try:
        scanner.feed(rest)
        while size := source.readinto(view):
            scanner.feed(view[:size])
        scanner.finish()
    except _kernel.ScanError as error:
        number, reason = error.args
        hint = "copy or trace the run again" if reason == TRUNCATED else None
        raise TraceError(path, reason, line=number, hint=hint) from None
    return header, scanner


def read_header_line(source: Source, path: Path, view: memoryview) -> tuple[str, bytes]:
    """Return the first line and the bytes read after it."""
    text = bytearray()
    found = -1
    while found < 0 and len(text) < LONGEST_HEADER:
        size = source.readinto(view)
        if not size:
            break
        begin = len(text)
        text += view[:size]
        if begin == 0 and not text.startswith(b"#Paraver "[: len(text)]):
            what = "the file is binary" if b"\0" in text[:4096] else "not a Paraver trace"
            raise TraceError(
                path,
                f"{what}: it does not begin with '#Paraver'",
                hint="give the .prv or .prv.gz file that Extrae wrote",
            )
        found = text.find(b"\n", begin)
    if not text:
        raise TraceError(path, "the file is empty", hint="trace the run again")
    line = text if found < 0 else text[:found]
    return line.decode("ascii", "backslashreplace").rstrip("\r"), bytes(text[len(line) + 1 :])


def check_application(header: Header, path: Path, application: int) -> None:
    """Raise `UsageError` unless the trace has such an application."""
    count = len(header.applications)
    if not 1 <= application <= count:
        there = "1 only" if count == 1 else f"1 to {count}"
        raise UsageError(
            f"{path}: there is no application {application}", f"the trace has application {there}"
        )


def process_offsets(application: Application) -> Int64:
    """First location of each process, and the number of locations."""
    return columns.offsets_of(np.array(application.threads, np.int64))


def node_of_location(application: Application) -> Int32:
    """Node, from 0, of each location."""
    nodes = np.maximum(np.array(application.nodes, np.int32) - 1, 0).astype(np.int32)
    return np.repeat(nodes, application.threads)


def read_labels(path: Path) -> tuple[Labels, tuple[str, ...] | None, list[TraceWarning]]:
    """Names from the files beside a trace, and a warning where there are none."""
    pcf = read_beside(path, ".pcf")
    row = read_beside(path, ".row")
    warnings = []
    if pcf is None:
        warnings.append(TraceWarning("no .pcf file beside the trace, built-in names are used"))
    labels = Labels() if pcf is None else parse_pcf(pcf)
    names = None if row is None else parse_row(row).get("THREAD")
    return labels, names, warnings


def warnings_of(
    header: Header, application: Application, scanner: _kernel.Scanner
) -> list[TraceWarning]:
    """What the scanner tallied and what the header lacks."""
    tallies = scanner.tallies()
    found = [
        TraceWarning(text, count, line)
        for text, (count, line) in zip(NOTICES, tallies, strict=True)
        if count
    ]
    if not header.nodes:
        found.append(TraceWarning("the header states no nodes, all processes count as on one"))
    return found
