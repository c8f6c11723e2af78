"""Writes Paraver traces from plain numbers: for tests, for examples, and for other tools' data."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from popmodel import files
from popmodel.errors import UsageError
from popmodel.trace.event import Event
from popmodel.trace.paraver.labels import Labels, beside
from popmodel.trace.paraver.numbers import NUMBERS

UNITS = {"ns": 1, "us": 1000}


class TraceWriter:
    """Collects the records of one application and writes them as Extrae does.

    Processes, threads, nodes and ranks are counted from 0, times are integers in nanoseconds.
    """

    def __init__(
        self,
        threads: Sequence[int],
        *,
        nodes: Sequence[int] | None = None,
        node_of_process: Sequence[int] | None = None,
        unit: str = "ns",
        communicators: Mapping[int, Sequence[int]] | None = None,
        duration: int | None = None,
        labels: Labels | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if unit not in UNITS:
            raise UsageError(f"a trace cannot be written in {unit!r}", "use 'ns' or 'us'")
        self._threads = list(threads)
        self._nodes = [sum(threads)] if nodes is None else list(nodes)
        self._node_of = [0] * len(threads) if node_of_process is None else list(node_of_process)
        self._unit = unit
        self._communicators = dict(communicators or {})
        self._duration = duration
        self._labels = labels
        self._names = names
        self._first = list(accumulate(self._threads, initial=0))
        self._records: list[tuple[int, str]] = []
        self._end = 0

    def state(self, process: int, thread: int, begin: int, end: int, state: int) -> None:
        """Add a state."""
        where = self._where(process, thread)
        self._add(begin, f"1:{where}:{self._time(begin)}:{self._time(end)}:{state}", end)

    def event(self, process: int, thread: int, time: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Add events of one time, on one line: pairs of an `Event` or a type, and a value."""
        values = "".join(f":{_number(type_)}:{value}" for type_, value in pairs)
        if not values:
            raise UsageError("an event needs at least one pair of type and value")
        where = self._where(process, thread)
        self._add(time, f"2:{where}:{self._time(time)}{values}", time)

    def message(
        self,
        sender: tuple[int, int],
        receiver: tuple[int, int],
        send: tuple[int, int],
        receive: tuple[int, int],
        size: int,
        tag: int = 0,
    ) -> None:
        """Add a message."""
        ends = [
            f"{self._where(*who)}:{self._time(logical)}:{self._time(physical)}"
            for who, (logical, physical) in ((sender, send), (receiver, receive))
        ]
        self._add(send[1], f"3:{ends[0]}:{ends[1]}:{size}:{tag}", max(*send, *receive))

    def _where(self, process: int, thread: int) -> str:
        return f"{self._first[process] + thread + 1}:1:{process + 1}:{thread + 1}"

    def _time(self, nanoseconds: int) -> int:
        units, rest = divmod(nanoseconds, UNITS[self._unit])
        if rest:
            raise UsageError(
                f"{nanoseconds} ns is not a whole number of microseconds",
                "write the trace in 'ns', or round its times",
            )
        return units

    def _add(self, time: int, line: str, end: int) -> None:
        self._records.append((time, line))
        self._end = max(self._end, end)

    def lines(self) -> Iterable[str]:
        """Yield the lines of the trace, records in order of time; those of equal time as added."""
        duration = self._time(self._end if self._duration is None else self._duration)
        stated = f"{duration}_ns" if self._unit == "ns" else f"{duration}"
        yield from header_lines(
            "01/01/2000 at 00:00",
            stated,
            self._nodes,
            self._threads,
            self._node_of,
            self._communicators,
        )
        for _, line in sorted(self._records, key=itemgetter(0)):
            yield line

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace, and its ``.pcf`` and ``.row`` files; a ``.gz`` suffix compresses it.

        A file gets its name when it is complete.
        """
        target = Path(path)
        text = "".join(f"{line}\n" for line in self.lines()).encode()
        if target.suffix == ".gz":
            text = gzip.compress(text, mtime=0)
        files.write_bytes(target, text)
        write_beside(target, self._labels, self._names)


def _number(type_: int) -> int:
    return NUMBERS[type_] if isinstance(type_, Event) else type_


def header_lines(
    date: str,
    duration: str,
    nodes: Sequence[int],
    threads: Sequence[int],
    node_of_process: Sequence[int],
    communicators: Mapping[int, Sequence[int]],
) -> Iterable[str]:
    """Yield the first lines of a trace of one application, without their line ends."""
    cpus = ",".join(map(str, nodes))
    listed = f"{len(nodes)}({cpus})" if nodes else "0"
    tasks = ",".join(
        f"{count}:{node + 1}" for count, node in zip(threads, node_of_process, strict=True)
    )
    yield f"#Paraver ({date}):{duration}:{listed}:1:{len(threads)}({tasks}),{len(communicators)}"
    for number, ranks in communicators.items():
        members = "".join(f":{rank + 1}" for rank in ranks)
        yield f"c:1:{number}:{len(ranks)}{members}"


def write_beside(path: Path, labels: Labels | None, names: Sequence[str] | None) -> None:
    """Write the ``.pcf`` and the ``.row`` file of a trace."""
    if labels is not None:
        files.write_bytes(beside(path, ".pcf"), "".join(_pcf(labels)).encode())
    if names is not None:
        rows = "".join(f"{name}\n" for name in names)
        text = f"LEVEL THREAD SIZE {len(names)}\n{rows}"
        files.write_bytes(beside(path, ".row"), text.encode())


def _pcf(labels: Labels) -> Iterable[str]:
    yield "STATES\n"
    for state, name in labels.states.items():
        yield f"{state}    {name}\n"
    for type_, name in labels.event_types.items():
        yield f"\n\nEVENT_TYPE\n0    {type_}    {name}\n"
        values = labels.event_values.get(type_)
        if values:
            yield "VALUES\n"
            for value, value_name in values.items():
                yield f"{value}    {value_name}\n"
    yield "\n"
