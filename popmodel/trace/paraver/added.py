"""A Paraver trace with further events: its lines as they are, in between those that are added.

The trace is streamed: however long it is, only the added events are in memory.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from popmodel import files
from popmodel.errors import FileError, TraceError, UsageError
from popmodel.trace.event import Event
from popmodel.trace.paraver.header import HeaderError, parse_header
from popmodel.trace.paraver.labels import beside, read_beside
from popmodel.trace.paraver.numbers import NUMBERS
from popmodel.trace.paraver.reader import read
from popmodel.trace.source import CHUNK, open_source, reason
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.source import TraceSource

_RECORDS = (b"1", b"2", b"3")


@dataclass(frozen=True, eq=False)
class Added:
    """Events of one kind on threads of one application."""

    kind: Event
    label: str  # What Paraver calls the kind
    values: Mapping[int, str]  # What it calls the values
    application: int  # Number of the application, from 1
    # int64[n]: From 0.
    process: NDArray[np.int64]
    thread: NDArray[np.int64]
    time: NDArray[np.int64]  # int64[n]: By the clock of the file, ns
    value: NDArray[np.int64]  # int64[n]: Of each event


def add_events(source: Path, target: Path, added: Added) -> None:
    """Write a trace with further events, and its ``.pcf`` and ``.row`` files."""
    if target.exists() and target.samefile(source):
        raise UsageError(f"-o {target}: is the trace itself", "choose another path with -o")
    try:
        with files.written(target, read=partial(read)) as file:
            if target.suffix == ".gz":
                with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
                    packed.writelines(_lines(source, added))
            else:
                file.writelines(_lines(source, added))
        legend, problem = read_beside(source, ".pcf")
        files.write_text(beside(target, ".pcf"), f"{(legend or '').rstrip()}\n\n{_legend(added)}")
        rows, _ = read_beside(source, ".row")
        if rows is not None:
            files.write_text(beside(target, ".row"), rows)
    except OSError as error:
        raise FileError(
            target, f"cannot be written: {reason(error)}", hint="choose another path with -o"
        ) from error
    if problem:
        raise TraceError(beside(source, ".pcf"), f"cannot be read: {problem}")


def _lines(source: Path, added: Added) -> Iterator[bytes]:
    """Lines of the trace and of the events, in order of time."""
    with open_source(source) as text:
        lines = _text_lines(text)
        first = next(lines, b"")
        try:
            header = parse_header(first.decode("utf-8", "replace").rstrip("\r\n"))
        except HeaderError as error:
            raise TraceError(source, str(error), hint="choose a Paraver trace") from None
        yield first if first.endswith(b"\n") else first + b"\n"
        threads = [sum(one.threads) for one in header.applications[: added.application - 1]]
        team = header.applications[added.application - 1].threads
        before = np.array([sum(threads), *team], np.int64).cumsum()[:-1]
        rest = _events(added, header.unit, before)
        time, event = next(rest, (None, b""))
        for line in lines:
            if time is not None and line[:1] in _RECORDS:
                at = int(line.split(b":", 6)[5])
                while time is not None and time < at:
                    yield event
                    time, event = next(rest, (None, b""))
            yield line if line.endswith(b"\n") else line + b"\n"
        if time is not None:
            yield event
            yield from (event for _, event in rest)


def _events(added: Added, unit: int, first: NDArray[np.int64]) -> Iterator[tuple[int, bytes]]:
    """Time, in units of the trace, and line of each event, in order of time."""
    number = NUMBERS[added.kind]
    time = added.time // unit
    order = np.argsort(time, kind="stable")
    cpu = first[added.process] + added.thread + 1
    columns = (time, cpu, added.process + 1, added.thread + 1, added.value)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    for at, where, task, thread, value in rows:
        place = f"{where}:{added.application}:{task}:{thread}"
        yield at, f"2:{place}:{at}:{number}:{value}\n".encode()


def _text_lines(source: TraceSource) -> Iterator[bytes]:
    """Lines of a text with their ends; the last one may have none."""
    buffer = memoryview(bytearray(CHUNK))
    left = b""
    while size := source.readinto(buffer):
        *whole, left = (left + bytes(buffer[:size])).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if left:
        yield left


def _legend(added: Added) -> str:
    """Section of a ``.pcf`` file that names the events."""
    values = "".join(f"{value}      {name}\n" for value, name in added.values.items())
    return f"EVENT_TYPE\n0    {NUMBERS[added.kind]}    {added.label}\nVALUES\n{values}\n"
