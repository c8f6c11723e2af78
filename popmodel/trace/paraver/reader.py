"""Reads Paraver traces: ``x.prv`` or ``x.prv.gz``, and ``x.pcf`` and ``x.row`` beside it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from popmodel.errors import TraceError, UsageError
from popmodel.kernel import _kernel
from popmodel.trace.paraver import columns, completeness
from popmodel.trace.paraver.devices import device_rows, left_out
from popmodel.trace.paraver.header import Application, Header, HeaderError, parse_header
from popmodel.trace.paraver.labels import Labels, beside, parse_pcf, parse_row, read_beside
from popmodel.trace.paraver.spill import ColumnFile, Spill, size_of, temporary_files
from popmodel.trace.paraver.tables import ParaverRecords
from popmodel.trace.source import CHUNK, TraceSource, open_source
from popmodel.trace.tables import Int32, Int64, TraceWarning, offsets_of
from popmodel.trace.trace import Trace
from popmodel.units import format_time

LONGEST_HEADER = 1 << 26
HELD = 56 << 20
"""Bytes that the scanner may hold before its records go to disk."""
MEMORY = 1 << 26
"""Bytes of columns that are kept in memory; longer ones go to a temporary file."""
FEW_THREADS = 1 << 16
"""Threads that cost little, whether there are records of them or not."""
DAMAGED = "the line is damaged: copy the trace again, or merge it again (mpi2prv)"
DAMAGED_GZIP = (
    "check with gzip -t: copy the file again if it is damaged, else merge it again (mpi2prv)"
)
_NS = 1e9
_ORIGIN = "times count from the first record, which the file has at {}"
TRUNCATED = "the file ends in the middle of a record"

INTERCOMMUNICATORS = "intercommunicators (ignored)"
NOTICES = (
    "comment lines (ignored)",
    "states out of time order (sorted)",
    "events out of time order (sorted)",
    "messages out of time order (sorted)",
    "overlapping states: the overlap counts twice",
    "records after the end time in the header",
    "messages to or from another application (ignored)",
    "communicators defined again with other ranks (the last definition counts)",
    INTERCOMMUNICATORS,
    "records of global operations (ignored: collectives are known by their events)",
    "no newline at the end of the file: the last record may be truncated",
)
"""Texts of what the scanner tallies, in its order."""


def read(path: str | os.PathLike[str], application: int = 1) -> Trace:
    """Read one application of a Paraver trace; parameters as those of `popmodel.trace.read`."""
    source_path = Path(path)
    try:
        facts, arrays = _scanned(source_path, application)
    except MemoryError:
        raise TraceError(
            path, "not enough memory to read it", hint="use a machine with more memory"
        ) from None
    labels, unlabelled = read_labels(source_path)
    names, unnamed = read_names(source_path, *facts["threads"])
    shown = os.fspath(path).encode(errors="backslashreplace").decode()
    origin = facts["origin"]
    end = max(facts["duration"], facts["last"]) - origin  # as Paraver does
    records = ParaverRecords(*columns.as_records(arrays), labels, end, shown)
    device = device_rows(names, records)
    devices = _named(names, application, arrays["process_offsets"], device)
    if devices:
        arrays = left_out(shown, arrays, device)
        records = ParaverRecords(*columns.as_records(arrays), labels, end, shown)
        names = names and tuple(name for name, each in zip(names, device, strict=True) if not each)
    cut = completeness.lacking(
        records,
        masters=arrays["process_offsets"][:-1],
        origin=origin,
        last=facts["last_of_all"],
        stated=facts["duration"],
    )
    return Trace(
        path=shown,
        application=application,
        applications=facts["applications"],
        begin=0,
        end=end,
        nodes=tuple(facts["nodes"]),
        process_offsets=arrays["process_offsets"],
        node_of_location=arrays["node_of_location"],
        communicators=_communicators(arrays),
        records=records,
        names=names,
        warnings=(
            *([TraceWarning(_ORIGIN.format(format_time(origin / _NS)))] if origin else []),
            *(TraceWarning(*each) for each in facts["warnings"]),
            *cut,
            *unlabelled,
            *unnamed,
        ),
        origin=origin,
        devices=devices,
    )


def _named(
    names: tuple[str, ...] | None, application: int, process_offsets: Int64, rows: np.ndarray
) -> tuple[str, ...]:
    """Names of some locations; those without are numbered as Paraver does."""
    found = np.flatnonzero(rows).tolist()
    if names is not None:
        return tuple(names[row] for row in found)
    process = (np.searchsorted(process_offsets, found, side="right") - 1).tolist()
    return tuple(
        f"THREAD {application}.{each + 1}.{row - int(process_offsets[each]) + 1}"
        for each, row in zip(process, found, strict=True)
    )


def _scanned(path: Path, application: int) -> tuple[dict[str, Any], columns.Arrays]:
    """Scan a trace: facts, and columns in memory or, of a long trace, mapped from a file."""
    with ExitStack() as files:

        def drain(spill: Spill | None, scanner: _kernel.Scanner, view: memoryview) -> Spill:
            with temporary_files(path):
                spill = spill or Spill(files.enter_context(_nameless()), len(scanner.lengths()))
                spill.drain(scanner, view)
            return spill

        with open_source(path) as source:
            header, scanner, spill = scan(source, path, application, drain)
        facts, extra = _facts(header, application, scanner)
        shapes = columns.shapes_of(scanner.counts())
        if spill is None and size_of(shapes) <= MEMORY:
            return facts, columns.in_memory(scanner) | extra
        with temporary_files(path):
            file = ColumnFile(files.enter_context(_nameless()), shapes)
            columns.write(scanner, spill, file)
            arrays = file.arrays()
        columns.sort_locations(arrays, scanner)
    for array in arrays.values():
        array.flags.writeable = False
    return facts, arrays | extra


def _nameless() -> IO[bytes]:
    """A temporary file that nobody else sees."""
    return tempfile.TemporaryFile(buffering=0)


def scan(
    source: TraceSource,
    path: Path,
    application: int,
    drain: Callable[[Spill | None, _kernel.Scanner, memoryview], Spill] | None = None,
) -> tuple[Header, _kernel.Scanner, Spill | None]:
    """Scan all of a trace's text; many records are drained, others stay in the scanner."""
    view = memoryview(bytearray(CHUNK))
    line, rest = read_header_line(source, path, view)
    try:
        header = parse_header(line)
        _check_threads(header, source)
    except HeaderError as error:
        hint = DAMAGED_GZIP if source.compressed else DAMAGED
        raise TraceError(path, str(error), line=1, hint=hint) from None
    check_application(header, path, application)
    scanner = _kernel.Scanner(
        [list(each.threads) for each in header.applications],
        sum(header.nodes),
        header.unit,
        header.duration,
        application,
        1,
    )
    spill: Spill | None = None
    try:
        scanner.feed(rest)
        while size := source.readinto(view):
            scanner.feed(view[:size])
            if drain is not None and scanner.held > HELD:
                spill = drain(spill, scanner, view)
        scanner.finish()
    except _kernel.ScanError as error:
        number, reason = error.args
        hint = _advice(reason, source)
        raise TraceError(path, reason, line=number, hint=hint) from None
    if drain is not None and spill is not None:
        drain(spill, scanner, view)
        scanner.release()
    return header, scanner, spill


def _check_threads(header: Header, source: TraceSource) -> None:
    """Raise `HeaderError` if there cannot be a record of each thread, however short."""
    if header.threads > max(FEW_THREADS, source.most):
        raise HeaderError(
            f"the header states {header.threads} threads, more than the file can have records"
        )


def _advice(reason: str, source: TraceSource) -> str:
    """Return what to do about a record that cannot be used."""
    if source.compressed:
        return DAMAGED_GZIP
    if reason == TRUNCATED:
        return "copy the trace or run the program again"
    if "is outside" in reason:
        return "header and records do not match: merge the trace again (mpi2prv)"
    return DAMAGED


def _facts(
    header: Header, number: int, scanner: _kernel.Scanner
) -> tuple[dict[str, Any], columns.Arrays]:
    """All that a trace needs besides its records."""
    application = header.applications[number - 1]
    found = scanner.communicators()
    ranks = list(found.values())
    # Where no nodes are stated, those of the tasks mean nothing: all are taken as on one.
    nodes = np.array(application.nodes if header.nodes else [1] * len(application.nodes), np.int32)
    arrays: columns.Arrays = {
        "process_offsets": offsets_of(np.array(application.threads, np.int64)),
        "node_of_location": np.repeat(nodes - 1, application.threads),
        "communicators.id": np.array(list(found), np.int64),
        "communicators.offsets": offsets_of(np.array([len(each) for each in ranks])),
        "communicators.rank": np.concatenate([np.empty(0, np.int32), *ranks]),
    }
    facts: dict[str, Any] = {
        "applications": len(header.applications),
        "origin": scanner.first_time,
        "duration": header.duration,
        "last": scanner.last_time,
        "last_of_all": max(scanner.last_time, scanner.end_elsewhere),
        "nodes": list(header.nodes),
        "threads": [
            sum(sum(each.threads) for each in header.applications[: number - 1]),
            sum(application.threads),
            sum(sum(each.threads) for each in header.applications),
        ],
        "warnings": _warnings(header, application, scanner),
    }
    return facts, arrays


def _communicators(arrays: columns.Arrays) -> dict[int, Int32]:
    edges = arrays["communicators.offsets"].tolist()
    ranks = arrays["communicators.rank"]
    return {
        number: ranks[begin:end]
        for number, begin, end in zip(
            arrays["communicators.id"].tolist(), edges, edges[1:], strict=False
        )
    }


def read_header_line(source: TraceSource, path: Path, view: memoryview) -> tuple[str, bytes]:
    """Return the first line and the bytes read after it."""
    text = bytearray()
    found = -1
    while found < 0 and len(text) < LONGEST_HEADER:
        size = source.readinto(view)
        if not size:
            break
        begin = len(text)
        text += view[:size]
        if begin == 0 and not b"#paraver ".startswith(text[:9].lower()):
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
            f"{path}: no application {application}", f"the trace has application {there}"
        )


def read_labels(path: Path) -> tuple[Labels, list[TraceWarning]]:
    """Names from the ``.pcf`` file beside a trace, and a warning where it gives none."""
    text, problem = read_beside(path, ".pcf")
    labels = Labels() if text is None else parse_pcf(text)
    name = beside(path, ".pcf").name
    if problem is not None:
        lack = f"{name} cannot be read ({problem})"
    elif text is None:
        lack = "no .pcf file next to the trace"
    elif not labels.event_types:
        lack = f"{name} defines no event types"
    else:
        return labels, []
    return labels, [TraceWarning(f"{lack}: using built-in names")]


def read_names(
    path: Path, before: int, locations: int, all_locations: int
) -> tuple[tuple[str, ...] | None, list[TraceWarning]]:
    """Names of an application's threads from the ``.row`` file beside a trace.

    That file lists the threads of all applications; `before` of them come first.
    """
    text, problem = read_beside(path, ".row")
    name = beside(path, ".row").name
    if problem is not None:
        return None, [TraceWarning(f"{name} cannot be read ({problem}): threads are numbered")]
    if text is None:
        return None, []
    names = parse_row(text).get("THREAD")
    if names is None:
        return None, [TraceWarning(f"{name} names no threads: they are numbered")]
    if len(names) != all_locations:
        numbers = f"({len(names)}, not {all_locations})"
        problem = f"{name} names a different number of threads {numbers}"
        return None, [TraceWarning(f"{problem}: not used")]
    return names[before : before + locations], []


def _warnings(
    header: Header, application: Application, scanner: _kernel.Scanner
) -> list[tuple[str, int, int | None]]:
    """What the scanner tallied and what the header lacks: text, count, first line."""
    tallies = scanner.tallies()
    found: list[tuple[str, int, int | None]] = [
        (text, count, line) for text, (count, line) in zip(NOTICES, tallies, strict=True) if count
    ]
    if not header.nodes:
        found.append(("the header lists no nodes: all processes are assumed to share one", 1, 1))
    if (others := len(header.applications) - 1) > 0:
        found.append(("other applications in the trace, which are left out", others, 1))
    listed = len(scanner.communicators()) + tallies[NOTICES.index(INTERCOMMUNICATORS)][0]
    if lacking := max(0, application.communicators - listed):
        found.append(("communicators counted in the header but not listed", lacking, None))
    return found
