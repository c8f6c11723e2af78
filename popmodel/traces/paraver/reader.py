"""Reads Paraver traces: ``x.prv`` or ``x.prv.gz``, and ``x.pcf`` and ``x.row`` beside it."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from popmodel.base.errors import TraceError, UsageError
from popmodel.base.units import format_time
from popmodel.traces.codes import Event
from popmodel.traces.paraver import columns
from popmodel.traces.paraver.columns import ColumnFile, temporary_files
from popmodel.traces.paraver.device_streams import (
    device_rows,
    host_threads,
    streams_of,
    with_states,
    without_devices,
)
from popmodel.traces.paraver.event_tables import ParaverRecords
from popmodel.traces.paraver.events import select
from popmodel.traces.paraver.labels import (
    Labels,
    beside,
    parse_pcf,
    parse_row,
    read_beside,
    thread_names,
)
from popmodel.traces.paraver.numbers import NUMBERS, SAMPLES
from popmodel.traces.paraver.text_scan import (
    DAMAGED,
    DAMAGED_GZIP,
    INTERCOMMUNICATORS,
    NOTICES,
    Scan,
    TextLayout,
    new_file,
    read_header_line,
    scan_text,
)
from popmodel.traces.recorded_run import Trace
from popmodel.traces.resources import memory_error
from popmodel.traces.source import CHUNK, open_source
from popmodel.traces.tables import Int64, TraceWarning, offsets_of, part_of

MEMORY = 1 << 26
"""Bytes of columns that are kept in memory; longer ones go to a temporary file."""
FEW_THREADS = 1 << 16
"""Threads that cost little, whether there are records of them or not."""
LARGEST_TIME = 2**63 - 1
UNITS = {"_ns": 1, "_us": 1000, "_ms": 1_000_000, "": 1000}
"""Nanoseconds of the units that a header can state; without one they are microseconds."""
MOST_CPUS = 2**31 - 1
MOST_THREADS = 2**24
"""Of a whole trace: each takes memory, and a damaged header may state any number."""
END_TOLERANCE = 0.01
"""Part of the run that may lack records at its end: Extrae states the end of the last record."""
PROCESS_TOLERANCE = 0.1
"""Part of the run by which processes may end before others: they do not end at the same time."""
_ENDS = ("MPI_Finalize", "MPI_Session_finalize")
_NS = 1e9
_SAMPLED = TraceWarning("samples of functions (ignored: they have no begins and ends)")
_ORIGIN = "times count from the first record, which the file has at {}"


def read(path: str | os.PathLike[str], application: int = 1) -> Trace:
    """Read one application of a Paraver trace; parameters as those of `popmodel.traces.read`."""
    source_path = Path(path)
    try:
        header, scan, arrays = _scanned(source_path, application)
    except MemoryError:
        raise memory_error(path) from None
    task = header.applications[application - 1]
    process_offsets = offsets_of(np.array(task.threads, np.int64))
    # Where no nodes are stated, those of the tasks mean nothing: all are taken as on one.
    nodes = np.array(task.nodes if header.nodes else [1] * len(task.nodes), np.int32)
    node_of_location = np.repeat(nodes - 1, task.threads)
    labels, unlabelled = read_labels(source_path)
    names, unnamed = read_names(source_path, header, application)
    origin = scan.first_time
    end = max(header.duration, scan.last_time) - origin  # as Paraver does
    records = ParaverRecords(*columns.as_records(arrays), labels, end, os.fspath(path))
    sampled = any(type_ in SAMPLES for type_ in records.types)
    of_device = device_rows(names, records)
    if of_device.any():
        rows = names or thread_names(application, task.threads)
        # Those of devices are told even where no nodes are stated (nsys2prv).
        stated = np.repeat(np.array(task.nodes, np.int32), task.threads)
        devices = streams_of(records, of_device, rows, process_offsets, stated)
        threads = host_threads(process_offsets, of_device)
        process_offsets, arrays = without_devices(process_offsets, arrays, of_device)
        node_of_location = node_of_location[threads]
        records = ParaverRecords(*columns.as_records(arrays), labels, end, os.fspath(path), devices)
        if not len(records.states.state):
            records = with_states(records, process_offsets)
        names = names and tuple(np.array(names, object)[threads])
    return Trace(
        path=os.fspath(path),
        application=application,
        applications=len(header.applications),
        begin=0,
        end=end,
        nodes=header.nodes,
        process_offsets=process_offsets,
        node_of_location=node_of_location,
        communicators={number: ranks for number, (_, _, ranks) in scan.communicators.items()},
        records=records,
        names=names,
        warnings=(
            *([TraceWarning(_ORIGIN.format(format_time(origin / _NS)))] if origin else []),
            *_warnings(header, application, scan),
            *([_SAMPLED] if sampled else []),
            *_truncation(records, process_offsets[:-1], header, scan),
            *unlabelled,
            *unnamed,
        ),
        origin=origin,
    )


def _scanned(path: Path, application: int) -> tuple[Header, Scan, columns.Arrays]:
    """Scan a trace: its columns are in memory or, of a long trace, mapped from a file."""
    header = read_header(path, application)
    with ExitStack() as files:
        scan, spills, scanner = scan_text(path, layout_of(header, application), files)
        shapes = columns.shapes_of(scan.counts)
        if scanner is not None and not spills and columns.size_of(shapes) <= MEMORY:
            return header, scan, columns.in_memory(scanner, scan)
        with temporary_files(path):
            file = ColumnFile(new_file(path, files), shapes)
            columns.write(scan, scanner, spills, file)
            arrays = file.arrays()
        columns.sort_locations(arrays, scan)
    for array in arrays.values():
        array.flags.writeable = False
    return header, scan, arrays


def layout_of(header: Header, application: int) -> TextLayout:
    """What a scanner of an application has to know of the header."""
    threads = [list(each.threads) for each in header.applications]
    return TextLayout(threads, sum(header.nodes), header.unit, header.duration, application)


def read_header(path: Path, application: int) -> Header:
    """Read the header of a trace, which must have the application."""
    with open_source(path) as source:
        line, _ = read_header_line(source, path, memoryview(bytearray(CHUNK)))
        try:
            header = parse_header(line)
            if header.threads > max(FEW_THREADS, source.most):  # there cannot be a record of each
                raise HeaderError(
                    f"the header states {header.threads} threads, "
                    "more than the file can have records"
                )
        except HeaderError as error:
            hint = DAMAGED_GZIP if source.compressed else DAMAGED
            raise TraceError(path, str(error), line=1, hint=hint) from None
    count = len(header.applications)
    if not 1 <= application <= count:
        there = "1 only" if count == 1 else f"1 to {count}"
        raise UsageError(
            f"{path}: no application {application}", f"the trace has application {there}"
        )
    return header


# The header.


class HeaderError(ValueError):
    """The line is no header; the text says what was expected and what was found."""


class Application(NamedTuple):
    """One application of the header: threads and node (from 1) of each task."""

    threads: tuple[int, ...]
    nodes: tuple[int, ...]
    communicators: int


class Header(NamedTuple):
    """What a trace's first line says."""

    duration: int  # Nanoseconds
    unit: int  # Nanoseconds per unit of the times in the records (`UNITS`)
    nodes: tuple[int, ...]  # CPUs of each node; empty where the header states 0 nodes
    applications: tuple[Application, ...]

    @property
    def threads(self) -> int:
        return sum(sum(each.threads) for each in self.applications)


class _HeaderReader:
    """Takes a line apart from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, pattern: str, expected: str) -> re.Match[str]:
        found = re.compile(pattern, re.ASCII).match(self.text, self.at)
        if found is None:
            rest = self.text[self.at : self.at + 24]
            where = f"found {rest!r}" if rest else "the line ends"
            raise HeaderError(f"the header lacks {expected} at column {self.at + 1}: {where}")
        self.at = found.end()
        return found

    def number(self, expected: str, least: int = 0) -> int:
        column = self.at + 1
        digits = self.take(r"\s*0*(\d+)", expected)[1]
        where = f"for {expected} at column {column}"
        if len(digits) > 19 or int(digits) > LARGEST_TIME:
            raise HeaderError(f"the header states a number {where} that exceeds 64 bits")
        if int(digits) < least:
            raise HeaderError(f"the header states {digits} {where}, at least {least} is needed")
        return int(digits)


def parse_header(line: str) -> Header:
    """Parse the first line of a trace, in any form that Paraver itself accepts.

    Writers differ: ovni pads the duration with zeros, nsys2prv has a colon behind the number of
    tasks, others leave out the CPUs of nodes (then each has one), give fractions of the duration,
    or separate applications by a comma.
    """
    reader = _HeaderReader(line)
    reader.take(r"#(Paraver|PARAVER) \(", "'#Paraver ('")
    reader.take(r"[^)]*\):", "the date, closed by '):'")
    duration = reader.number("the duration")
    fraction = float(reader.take(r"(\.\d*)?", "")[0] + "0")
    unit = UNITS[reader.take(r"(_[num]s|):", "':' or '_ns:'")[1]]
    duration = duration * unit + round(fraction * unit)
    if duration > LARGEST_TIME:
        raise HeaderError("the header states a duration that exceeds 64 bits in nanoseconds")
    nodes = _nodes(reader)
    reader.take(":", "':'")
    count = reader.number("the number of applications", least=1)
    applications = []
    for number in range(1, count + 1):
        reader.take("[:,]", f"':' before application {number}")
        applications.append(_application(reader, len(nodes)))
    reader.take(r"\s*$", "its end")
    header = Header(duration, unit, nodes, tuple(applications))
    for what, number, most in (
        ("CPUs", sum(nodes), MOST_CPUS),
        ("threads", header.threads, MOST_THREADS),
    ):
        if number > most:
            raise HeaderError(f"the header states {number} {what}, at most {most} can be read")
    return header


def _nodes(reader: _HeaderReader) -> tuple[int, ...]:
    count = reader.number("the number of nodes")
    if count == 0:
        reader.take(r"(\([^)]*\))?", "")
        return ()
    if not reader.take(r"(\()?", "")[1]:
        return (1,) * count
    cpus = [reader.number("the CPUs of node 1")]
    for node in range(2, count + 1):
        reader.take(",", f"',' before node {node}")
        cpus.append(reader.number(f"the CPUs of node {node}"))
    reader.take(r"\)", f"')' after node {count}")
    return tuple(cpus)


def _application(reader: _HeaderReader, nodes: int) -> Application:
    count = reader.number("the number of tasks", least=1)
    reader.take(r":?\(", "'(' and the threads of each task")
    threads, node_of = [], []
    for task in range(1, count + 1):
        if task > 1:
            reader.take(",", f"',' before task {task}")
        threads.append(reader.number(f"the threads of task {task}", least=1))
        reader.take(":", f"':' and the node of task {task}")
        node = reader.number(f"the node of task {task}")
        if nodes and not 1 <= node <= nodes:
            raise HeaderError(f"the header puts task {task} on node {node}, it has {nodes}")
        node_of.append(node)
    reader.take(r"\)", f"')' after task {count}")
    listed = reader.take(r"(,(?!\s*\d+:?\())?", "")[1]
    communicators = reader.number("the number of communicators") if listed else 0
    return Application(tuple(threads), tuple(node_of), communicators)


# The files beside.


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
    path: Path, header: Header, application: int
) -> tuple[tuple[str, ...] | None, list[TraceWarning]]:
    """Names of an application's threads from the ``.row`` file beside a trace, which lists all."""
    text, problem = read_beside(path, ".row")
    name = beside(path, ".row").name
    if problem is not None:
        return None, [TraceWarning(f"{name} cannot be read ({problem}): threads are numbered")]
    if text is None:
        return None, []
    names = parse_row(text).get("THREAD")
    if names is None:
        return None, [TraceWarning(f"{name} names no threads: they are numbered")]
    if len(names) != header.threads:
        numbers = f"({len(names)}, not {header.threads})"
        problem = f"{name} names a different number of threads {numbers}"
        return None, [TraceWarning(f"{problem}: not used")]
    before = sum(sum(each.threads) for each in header.applications[: application - 1])
    return names[before : before + sum(header.applications[application - 1].threads)], []


# Warnings.


def _warnings(header: Header, application: int, scan: Scan) -> list[TraceWarning]:
    """What the scanner tallied and what the header lacks."""
    tallies = scan.tallies.tolist()
    found = [
        TraceWarning(text, count, line)
        for text, (count, line) in zip(NOTICES, tallies, strict=True)
        if count
    ]
    if not header.nodes:
        text = "the header lists no nodes: all processes are assumed to share one"
        found.append(TraceWarning(text, 1, 1))
    if (others := len(header.applications) - 1) > 0:
        found.append(TraceWarning("other applications in the trace, which are left out", others, 1))
    listed = len(scan.communicators) + tallies[NOTICES.index(INTERCOMMUNICATORS)][0]
    if (lacking := header.applications[application - 1].communicators - listed) > 0:
        text = "communicators counted in the header but not listed"
        found.append(TraceWarning(text, lacking))
    return found


def _truncation(
    records: ParaverRecords, masters: Int64, header: Header, scan: Scan
) -> list[TraceWarning]:
    """Say what speaks for records that are lacking at the end, as of a file that was cut there.

    The records of all applications together must reach to the end that the header states; one
    application may end before another. Processes are judged by their first threads, for the others
    have no records after their last parallel region; one without any record says nothing, and one
    that ends MPI, or itself, is whole however early that is.
    """
    origin, last = scan.first_time, max(scan.last_time, scan.end_elsewhere)
    if last - origin < (1 - END_TOLERANCE) * (header.duration - origin):
        found = f"the records end at {format_time(last / _NS)}" if last else "there are no records"
        stated = format_time(header.duration / _NS)
        text = f"{found}, the header states {stated}: the file may be truncated"
        return [TraceWarning(text)]
    ends = records.last_times()[masters]
    early = np.flatnonzero((ends > 0) & (ends < (1 - PROCESS_TOLERANCE) * ends.max(initial=0)))
    if len(early):
        marks = select(records.events, (NUMBERS[Event.APPLICATION],))
        over = part_of(marks.offsets, np.flatnonzero(marks.value == 0))
        location, _ = records.calls().named(_ENDS)
        early = early[~np.isin(early, part_of(masters, np.append(over, location)))]
    if not len(early):
        return []
    text = "processes whose records end long before those of others: the file may be truncated"
    return [TraceWarning(text, len(early))]
