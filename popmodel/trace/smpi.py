"""Reads time-independent traces of SimGrid SMPI: what processes compute and call, without times.

Each line is an action of a process: ``0 compute 7.3e+06``, ``0 isend 2 0 1024 0``. Computing takes
the time of its amount at a given rate, MPI calls take none: what they take is for a replay to say.
SimGrid writes a file for each process; here one file holds the lines of all, in any order that
keeps those of each process.

Source: SimGrid's documentation, "Replaying MPI traces" (``smpirun -trace-ti``).
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.errors import TraceError, UsageError
from popmodel.trace.calls import CallGroup, Calls, CollectiveArguments
from popmodel.trace.records import Columns
from popmodel.trace.source import CHUNK, open_source
from popmodel.trace.states import RUNNING
from popmodel.trace.tables import States, TraceWarning, offsets_of
from popmodel.trace.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.source import Source

__all__ = ["FLOPS", "read"]

FLOPS = 1e9
"""Flop per second that a process computes by default."""
_MOST = 2**53
"""ns that a process may compute, and bytes of a message; beyond, numbers are not exact."""
_SIZES = dict(
    enumerate(
        (
            *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8),
            *(1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16),
        )
    )
)
"""Bytes of the datatypes by SimGrid's numbers, from MPI_DOUBLE (0) to MPI_REAL16 (41)."""
_COLLECTIVES = (
    *("barrier", "bcast", "reduce", "allreduce", "scan"),
    *("gather", "scatter", "allgather", "alltoall"),
)
_LOCAL = ("location", "comm_size", "comm_split", "comm_dup")  # no part in the replay
_SAID = "no measured times: computation is taken from its amount at {} flop/s, MPI calls take none"
_TESTS = "tests (ignored: whether they found anything is not recorded)"
_ADVICE = "give one file with the actions of all processes, as smpirun -trace-ti writes them"


class _ActionError(ValueError):
    """An action cannot be used; the text says why."""


def read(
    path: str | os.PathLike[str], application: int = 1, cache: bool = True, rate: float = FLOPS
) -> Trace:
    """Read a time-independent trace of SimGrid SMPI.

    Parameters
    ----------
    path : path
        A file with the actions of all processes, plain or compressed with gzip.
    application : int
        1: such a trace has one.
    cache : bool
        Without effect: such traces are small.
    rate : float
        Flop per second of each process.

    Raises
    ------
    TraceError
        If the file cannot be read or is not such a trace; it names the line.
    UsageError
        If another application is asked for.
    """
    del cache
    if application != 1:
        raise UsageError(
            f"{path}: no application {application}", "the trace has application 1 only"
        )
    processes: dict[int, _Process] = {}
    number = 0
    with open_source(Path(path)) as source:
        for number, line in enumerate(_lines(source), start=1):
            try:
                _add(processes, line, rate)
            except _ActionError as error:
                raise TraceError(path, str(error), line=number, hint=_ADVICE) from None
    lacking = [rank for rank in range(len(processes)) if rank not in processes]
    if lacking or not processes:
        problem = f"no actions of process {lacking[0]}" if lacking else "the file has no actions"
        raise TraceError(path, problem, hint=_ADVICE)
    return _trace(os.fspath(path), [processes[rank] for rank in range(len(processes))], rate)


def _lines(source: Source) -> Iterator[str]:
    view = memoryview(bytearray(CHUNK))
    rest = b""
    while size := source.readinto(view):
        *whole, rest = (rest + bytes(view[:size])).split(b"\n")
        yield from (line.decode("ascii", "backslashreplace") for line in whole)
    if rest:
        yield rest.decode("ascii", "backslashreplace")


def _add(processes: dict[int, _Process], line: str, rate: float) -> None:
    words = line.split()
    if not words or words[0].startswith("#"):
        return
    who = words[0].removeprefix("p").removeprefix("rank-")
    if not who.isdecimal() or len(words) < 2:
        raise _ActionError(f"not an action of a process: {line[:40]!r}")
    rank = int(who)
    if rank not in processes:
        processes[rank] = _Process(rank, rate)
    processes[rank].do(words[1].lower(), words[2:])


class _Process:
    """What a process does, as columns of its calls and bursts."""

    def __init__(self, rank: int, rate: float) -> None:
        self.rank = rank
        self.rate = rate
        self.time = 0.0  # ns
        self.unit = _SIZES[6]  # of a message without a datatype
        self.bursts: list[tuple[int, int]] = []
        self.names: list[str] = []
        self.times: list[int] = []
        self.messages: list[tuple[int, int, int, int]] = []  # partner, tag, bytes, request
        self.collectives: list[_Collective] = []
        self.tests = 0
        self._open: dict[tuple[int, int, int], deque[int]] = {}
        self._requests = 0

    def do(self, action: str, words: list[str]) -> None:
        """Take an action and its arguments."""
        told = _Words(action, words)
        if action in ("compute", "sleep"):
            amount = told.amount(0)
            self._compute(amount * (1e9 if action == "sleep" else 1e9 / self.rate))
        elif action in ("send", "isend", "recv", "irecv"):
            self._message(action, told)
        elif action == "wait":
            key = told.whole(0), told.whole(1), told.whole(2)
            waiting = self._open.get(key)
            if not waiting:
                raise _ActionError(f"no open request from {key[0]} to {key[1]} with tag {key[2]}")
            self._call("Wait", request=waiting.popleft())
        elif action == "waitall":
            self._open.clear()
            self._call("Waitall")
        elif action == "test":
            self.tests += 1
        elif action in ("init", "finalize"):
            if words and action == "init":
                self.unit = _SIZES[0]
            self._call(action.capitalize())
        elif action in _COLLECTIVES:
            self._collective(action, told)
        elif action not in _LOCAL:
            raise _ActionError(f"unknown action '{action[:40]}'")

    def _compute(self, length: float) -> None:
        begin = round(self.time)
        self.time += length
        if not self.time <= _MOST:
            raise _ActionError(f"process {self.rank} computes longer than can be represented")
        if round(self.time) > begin:
            self.bursts.append((begin, round(self.time)))

    def _call(
        self, name: str, partner: int = -1, tag: int = 0, size: int = 0, request: int = -1
    ) -> None:
        self.names.append(f"MPI_{name}")
        self.times.append(round(self.time))
        self.messages.append((partner, tag, size, request))

    def _message(self, action: str, told: _Words) -> None:
        partner, tag = told.whole(0), told.whole(1)
        size = told.size(2, 3, self.unit)
        request = -1
        if action[0] == "i":
            request = self._requests = self._requests + 1
            ends = (self.rank, partner) if action == "isend" else (partner, self.rank)
            self._open.setdefault((*ends, tag), deque()).append(request)
        self._call(action.capitalize(), partner, tag, size, request)

    def _collective(self, action: str, told: _Words) -> None:
        is_root, work = False, 0.0
        if action == "barrier":
            sent = received = 0
        elif action in ("bcast", "reduce"):
            reduces = action == "reduce"
            work = told.amount(1) if reduces else 0.0
            is_root = self.rank == told.whole(1 + reduces, 0)
            size = told.size(0, 2 + reduces, self.unit)
            sent, received = (size, 0) if is_root != reduces else (0, size)
        elif action in ("allreduce", "scan"):
            work = told.amount(1)
            sent = received = told.size(0, 2, self.unit)
        else:
            rooted = action in ("gather", "scatter")
            is_root = rooted and self.rank == told.whole(2, 0)
            sent, received = (told.size(i, 2 + rooted + i, self.unit) for i in (0, 1))
        self.collectives.append(_Collective(len(self.names), action, sent, received, is_root))
        self._call(action.capitalize())
        self._compute(work * 1e9 / self.rate)


class _Collective(NamedTuple):
    """A call of a collective: its number, its action, and bytes as the action tells them."""

    call: int
    action: str
    sent: int
    received: int
    is_root: bool

    def amounts(self, processes: int) -> tuple[int, int]:
        """Bytes that the caller sends and receives: some have the parts of all."""
        sent, received = self.sent, self.received
        if self.action == "scatter":
            sent *= processes * self.is_root
        elif self.action == "gather":
            received *= processes * self.is_root
        elif self.action in ("allgather", "alltoall"):
            received *= processes
        return sent, received


class _Words:
    """Arguments of an action."""

    def __init__(self, action: str, words: list[str]) -> None:
        self._action = action
        self._words = words

    def amount(self, place: int) -> float:
        """A number that is not negative."""
        try:
            amount = float(self._words[place])
        except (IndexError, ValueError):
            amount = math.nan
        if not 0 <= amount < math.inf:
            raise self._wrong(place, "a number")
        return amount

    def whole(self, place: int, missing: int | None = None) -> int:
        """A whole number."""
        if missing is not None and place >= len(self._words):
            return missing
        try:
            number = int(self._words[place])
        except (IndexError, ValueError):
            number = -1
        if not 0 <= number < 2**31:
            raise self._wrong(place, "a whole number")
        return number

    def size(self, count: int, type_: int, unit: int) -> int:
        """Bytes of a number of elements of a datatype."""
        if type_ < len(self._words):
            number = self.whole(type_)
            if number not in _SIZES:
                raise _ActionError(f"unknown datatype {number}")
            unit = _SIZES[number]
        size = self.amount(count) * unit
        if size > _MOST:
            raise _ActionError(f"{self._action} of {size:.3g} bytes")
        return int(size)

    def _wrong(self, place: int, what: str) -> _ActionError:
        given = f"not {self._words[place][:40]!r}" if place < len(self._words) else "there is none"
        return _ActionError(f"argument {place + 1} of {self._action} must be {what}, {given}")


def _trace(path: str, processes: list[_Process], rate: float) -> Trace:
    count = len(processes)
    most = max((message[0] for each in processes for message in each.messages), default=0)
    if most >= count:
        problem = f"a message to or from process {most}, of which there are no actions"
        raise TraceError(path, problem, hint=_ADVICE)
    names = tuple(sorted({name for each in processes for name in each.names}))
    number = {name: index for index, name in enumerate(names)}
    offsets = offsets_of(np.array([len(each.names) for each in processes], np.int64))
    entry = np.array([time for each in processes for time in each.times], np.int64)
    messages = np.array([row for each in processes for row in each.messages], np.int64)
    partner, tag, size, request = messages.reshape(-1, 4).T
    bursts = np.array([burst for each in processes for burst in each.bursts], np.int64)
    begin, end = np.ascontiguousarray(bursts.reshape(-1, 2).T)
    calls = Calls(
        offsets=offsets,
        entry=entry,
        exit=entry,
        name=np.array([number[name] for each in processes for name in each.names], np.int16),
        names=names,
        group=tuple(map(_group, names)),
        collectives=_arguments(processes, offsets),
        partner=partner.astype(np.int32),
        tag=np.ascontiguousarray(tag),
        bytes=np.ascontiguousarray(size),
        request=request.astype(np.int32),
    )
    states = States(
        offsets_of(np.array([len(each.bursts) for each in processes], np.int64)),
        begin,
        end,
        np.full(len(begin), RUNNING, np.int32),
    )
    tests = sum(each.tests for each in processes)
    return Trace(
        path=path.encode(errors="backslashreplace").decode(),
        application=1,
        begin=0,
        end=max(round(each.time) for each in processes),
        nodes=(),
        process_offsets=np.arange(count + 1),
        node_of_location=np.zeros(count, np.int32),
        communicators={},
        records=Columns(states, calls),
        timed=False,
        warnings=(
            TraceWarning(_SAID.format(f"{rate:.3g}")),
            *([TraceWarning(_TESTS, tests)] if tests else []),
        ),
    )


def _group(name: str) -> CallGroup:
    if name.removeprefix("MPI_").lower() in _COLLECTIVES:
        return CallGroup.COLLECTIVE
    return CallGroup.OTHER if name in ("MPI_Init", "MPI_Finalize") else CallGroup.POINT_TO_POINT


def _arguments(processes: list[_Process], offsets: NDArray[np.int64]) -> CollectiveArguments:
    rows = [
        (first + each.call, *each.amounts(len(processes)), each.is_root)
        for process, first in zip(processes, offsets.tolist(), strict=False)
        for each in process.collectives
    ]
    call, sent, received, is_root = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T)
    return CollectiveArguments(call, sent, received, np.zeros(len(call), np.int64), is_root != 0)
