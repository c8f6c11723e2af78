"""Reads programs of Dimemas (``.dim``): bursts, messages and collectives of every task, in order.

A file begins with ``#DIMEMAS:``; a line ``d:1:`` lists the tasks of a communicator, and records
follow: ``1`` a burst in seconds, ``2`` a send, ``3`` a receive, its post or its wait, ``10`` a
collective, ``20`` an event, which takes no time.

Source: Dimemas (https://github.com/bsc-performance-tools/dimemas), ``common_utilities`` and
``Simulator/input/file_data_access.c``.
"""

from __future__ import annotations

import os
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base.errors import TraceError
from popmodel.base.units import plural
from popmodel.kernel import _kernel
from popmodel.traces.source import MOST, LineError, Words, lines, whole
from popmodel.traces.tables import TraceWarning
from popmodel.traces.untimed.untimed_trace import one_application, trace_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from popmodel.traces.recorded_run import Trace

_HEADER = re.compile(r'#DIMEMAS:"[^"]*":[^:]*:(\d+)\(([\d,]+)\)')
_OPERATIONS = (
    *("Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv"),
    *("Alltoall", "Alltoallv", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block"),
    *("Scan", "Alltoallw"),
)
"""Collectives by number; 16 more is the nonblocking one."""
_SENDS = ("Send", "Ssend", "Isend", "Issend")  # by bits: 1 rendezvous, 2 immediate
_START, _WAIT = 0, 2  # of a collective; else it blocks
_SAID = "no measured times: bursts are as the program says, MPI calls take none"
_EVENTS = "events (not used)"
_ADVICE = "give a .dim file as prv2dim writes it, with one thread in each task"
_UNCOUNTED = 1 << 62


def read(path: str | os.PathLike[str], application: int = 1) -> Trace:
    one_application(path, application, "program")
    program = _Program()
    for number, line in lines(Path(path)):
        try:
            program.do(line)
        except LineError as error:
            raise TraceError(path, str(error), line=number, hint=_ADVICE) from None
    if not program.count:
        raise TraceError(path, "the file has no program", hint=_ADVICE)
    events = [TraceWarning(_EVENTS, program.events)] if program.events else []
    said = (TraceWarning(_SAID), *events)
    return trace_of(path, program.tasks.columns(), program.communicators, said, _ADVICE)


class _Program:
    """What the tasks do, as lines tell it."""

    def __init__(self) -> None:
        self.count = 0
        self.tasks = _kernel.Actions(0)
        self._open: dict[Hashable, deque[int]] = {}  # requests that nobody has waited for
        self.communicators: dict[int, list[int]] = {}
        self.events = 0

    def do(self, line: str) -> None:
        line = line.strip()
        if not line or line.startswith("s:"):  # where the records of a task begin in the file
            return
        if not self.count:
            self._begin(line)
            return
        kind, *rest = line.split(":")
        if kind == "d":
            self._define(rest)
            return
        told = Words(f"record {kind[:10]}", rest)
        task, thread = told.whole(0), told.whole(1)
        if task >= self.count:
            raise LineError(f"task {task} of {self.count}")
        if thread:
            raise LineError(f"thread {thread} of task {task}: tasks must have one thread")
        told = Words(f"record {kind[:10]}", rest[2:])
        if kind == "1":
            if not self.tasks.compute(task, told.amount(0) * 1e9):
                raise LineError(f"process {task} computes longer than can be represented")
        elif kind == "2":
            self._send(task, told)
        elif kind == "3":
            self._receive(task, told)
        elif kind == "10":
            self._collective(task, told)
        elif kind == "20":
            self.events += 1
        elif kind != "0":
            raise LineError(f"unknown record {kind[:20]!r}")

    def _begin(self, line: str) -> None:
        found = _HEADER.match(line)
        if found is None:
            raise LineError(f"must begin with #DIMEMAS, not {line[:40]!r}")
        tasks, threads = whole(found[1]), found[2].split(",")
        if len(threads) != tasks:
            raise LineError(
                f"{plural(tasks, 'task')}, but threads of {plural(len(threads), 'task')}"
            )
        if set(threads) != {"1"}:
            raise LineError("tasks must have one thread each")
        self.count, self.tasks = tasks, _kernel.Actions(tasks)

    def _define(self, rest: list[str]) -> None:
        if rest[:1] != ["1"]:  # files and windows
            return
        told = Words("a communicator", rest[1:])
        members = [told.whole(2 + i) for i in range(told.whole(1))]
        if members and max(members) >= self.count:
            raise LineError(f"a communicator with task {max(members)} of {self.count}")
        self.communicators[told.whole(0)] = members

    def _send(self, task: int, told: Words) -> None:
        partner, size, tag, mode = self._message(told)
        if mode > 3:
            raise LineError(f"unknown kind of send: {mode}")
        self.tasks.message(task, f"MPI_{_SENDS[mode]}", partner, tag, size, False)

    def _receive(self, task: int, told: Words) -> None:
        partner, size, tag, mode = self._message(told)
        key = task, partner, tag
        if mode == 0:
            self.tasks.message(task, "MPI_Recv", partner, tag, size, False)
        elif mode == 1:
            request = self.tasks.message(task, "MPI_Irecv", partner, tag, size, True)
            self._open.setdefault(key, deque()).append(request)
        elif mode == 2:
            self._wait(task, key, f"from task {partner} with tag {tag}")
        else:
            raise LineError(f"unknown kind of receive: {mode}")

    def _message(self, told: Words) -> tuple[int, int, int, int]:
        """Partner, bytes, tag and mode; the partner's thread may be left out."""
        skip = 1 if len(told) > 5 else 0
        size = told.whole(1 + skip, most=MOST)
        return told.whole(0), size, told.whole(2 + skip, most=_UNCOUNTED), told.whole(4 + skip)

    def _wait(self, task: int, key: Hashable, what: str) -> None:
        if not (waiting := self._open.get(key)):
            raise LineError(f"no open request {what}")
        self.tasks.wait(task, waiting.popleft())

    def _collective(self, task: int, told: Words) -> None:
        operation, communicator = told.whole(0), told.whole(1)
        if operation >= 2 * len(_OPERATIONS):
            raise LineError(f"unknown collective {operation}")
        if communicator not in self.communicators:
            raise LineError(f"communicator {communicator} is not defined")
        name = _OPERATIONS[operation % len(_OPERATIONS)]
        synchronises = told.whole(6, 1)
        key = task, name, communicator
        if synchronises == _WAIT:
            self._wait(task, key, f"of MPI_I{name.lower()} on communicator {communicator}")
            return
        root = told.whole(2)  # of a Reduce the task, else whether this one is it
        is_root = task == root if name == "Reduce" else root > 0
        sent, received = told.whole(4, most=MOST), told.whole(5, most=MOST)
        if name == "Alltoall":  # as Extrae records it: sent to one
            sent *= len(self.communicators[communicator])
        starts = synchronises == _START or operation >= len(_OPERATIONS)
        name = f"MPI_I{name.lower()}" if starts else f"MPI_{name}"
        request = self.tasks.collective(task, name, sent, received, is_root, communicator, starts)
        if starts:
            self._open.setdefault(key, deque()).append(request)
