"""Paraver traces for tests, record by record, written as Extrae does."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from popmodel.traces.codes import Event
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.numbers import NUMBERS
from popmodel.traces.paraver.writer import header_lines, write_beside


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
        communicators: Mapping[int, Sequence[int]] | None = None,
        duration: int | None = None,
        labels: Labels | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._threads = list(threads)
        self._nodes = [sum(threads)] if nodes is None else list(nodes)
        self._node_of = [0] * len(threads) if node_of_process is None else list(node_of_process)
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
        self._add(begin, f"1:{where}:{begin}:{end}:{state}", end)

    def event(self, process: int, thread: int, time: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Add events of one time, on one line: pairs of an `Event` or a type, and a value."""
        values = "".join(f":{_number(type_)}:{value}" for type_, value in pairs)
        where = self._where(process, thread)
        self._add(time, f"2:{where}:{time}{values}", time)

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
            f"{self._where(*who)}:{logical}:{physical}"
            for who, (logical, physical) in ((sender, send), (receiver, receive))
        ]
        self._add(send[1], f"3:{ends[0]}:{ends[1]}:{size}:{tag}", max(*send, *receive))

    def _where(self, process: int, thread: int) -> str:
        return f"{self._first[process] + thread + 1}:1:{process + 1}:{thread + 1}"

    def _add(self, time: int, line: str, end: int) -> None:
        self._records.append((time, line))
        self._end = max(self._end, end)

    def lines(self) -> Iterable[str]:
        """Yield the lines of the trace, records in order of time; those of equal time as added."""
        duration = self._end if self._duration is None else self._duration
        yield from header_lines(
            "01/01/2000 at 00:00",
            f"{duration}_ns",
            self._nodes,
            self._threads,
            self._node_of,
            self._communicators,
        )
        for _, line in sorted(self._records, key=itemgetter(0)):
            yield line

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace, and its ``.pcf`` and ``.row`` files; a ``.gz`` suffix compresses it."""
        target = Path(path)
        text = "".join(f"{line}\n" for line in self.lines()).encode()
        if target.suffix == ".gz":
            text = gzip.compress(text, mtime=0)
        target.write_bytes(text)
        write_beside(target, self._labels, self._names)


def _number(type_: int) -> int:
    return NUMBERS[type_] if isinstance(type_, Event) else type_
