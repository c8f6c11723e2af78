"""What one process computes and calls, as a reader of a format adds it, and the trace of all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.errors import TraceError
from popmodel.trace.calls import CallGroup, Calls, CollectiveArguments
from popmodel.trace.records import Columns, Exact
from popmodel.trace.states import RUNNING
from popmodel.trace.tables import States, offsets_of
from popmodel.trace.trace import Trace
from popmodel.trace.untimed.lines import MOST, LineError
from popmodel.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.trace.tables import TraceWarning

__all__ = ["Actions", "trace_of"]

_SENDS = ("MPI_Send", "MPI_Ssend", "MPI_Isend", "MPI_Issend")
_RECEIVES = ("MPI_Recv", "MPI_Irecv")


class _Call(NamedTuple):
    """Name, time (ns), partner (-1: none), tag, bytes, and request that it opens or completes."""

    name: str
    time: float
    partner: int = -1
    tag: int = 0
    size: int = 0
    request: int = -1


class _Collective(NamedTuple):
    """A call of a collective: its number, bytes sent and received, communicator, root or not.

    And the bytes for each peer, where they are told.
    """

    call: int
    sent: int
    received: int
    communicator: int
    is_root: bool
    parts: Sequence[int] = ()


class Actions:
    """What a process does.

    Parameters
    ----------
    rank : int
        Its number.

    Attributes
    ----------
    time : float
        Time that it has computed so far, ns.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.time = 0.0
        self.calls: list[_Call] = []
        self.collectives: list[_Collective] = []
        self.bursts: list[tuple[float, float]] = []
        self._open: dict[Hashable, deque[int]] = {}
        self._requests = 0

    def compute(self, length: float) -> None:
        """Compute for some ns."""
        begin = self.time
        self.time += length
        if not self.time <= MOST:
            raise LineError(f"process {self.rank} computes longer than can be represented")
        if round(self.time) > round(begin):
            self.bursts.append((begin, self.time))

    def message(self, name: str, partner: int, tag: int, size: int, key: Hashable = None) -> None:
        """Send or receive a message; with a key the call opens a request of that key."""
        request = -1 if key is None else self._opened(key)
        self.calls.append(_Call(f"MPI_{name}", self.time, partner, tag, size, request))

    def collective(
        self,
        name: str,
        sent: int,
        received: int,
        is_root: bool = False,
        communicator: int = 0,
        key: Hashable = None,
        parts: Sequence[int] = (),
    ) -> None:
        """Take part in a collective; with a key the call opens a request of that key."""
        request = -1 if key is None else self._opened(key)
        told = _Collective(len(self.calls), sent, received, communicator, is_root, parts)
        self.collectives.append(told)
        self.calls.append(_Call(f"MPI_{name}", self.time, request=request))

    def call(self, name: str) -> None:
        """Call something that concerns nobody else, or all open requests."""
        if name == "Waitall":
            self._open.clear()
        self.calls.append(_Call(f"MPI_{name}", self.time))

    def wait(self, key: Hashable, what: str) -> None:
        """Complete the oldest open request of a key."""
        waiting = self._open.get(key)
        if not waiting:
            raise LineError(f"no open request {what}")
        self.calls.append(_Call("MPI_Wait", self.time, request=waiting.popleft()))

    @property
    def open(self) -> int:
        """How many requests are open."""
        return sum(map(len, self._open.values()))

    def _opened(self, key: Hashable) -> int:
        self._requests += 1
        self._open.setdefault(key, deque()).append(self._requests)
        return self._requests


def trace_of(
    path: str | os.PathLike[str],
    processes: Sequence[Actions],
    communicators: Mapping[int, Sequence[int]],
    warnings: Sequence[TraceWarning],
    hint: str,
) -> Trace:
    """Return the trace of some processes.

    Parameters
    ----------
    path : path
        Where they were read from.
    processes : sequence of Actions
        By rank.
    communicators : mapping of int to sequence of int
        Ranks of each; 0, which has all processes, is not listed.
    warnings : sequence of TraceWarning
        What was found wanting.
    hint : str
        What to do if the processes do not fit together.

    Raises
    ------
    TraceError
        If a message has no other end.
    """
    count = len(processes)
    names = tuple(sorted({call.name for each in processes for call in each.calls}))
    collective = {each.calls[one.call].name for each in processes for one in each.collectives}
    number = {name: index for index, name in enumerate(names)}
    offsets = offsets_of(np.array([len(each.calls) for each in processes], np.int64))
    name = np.array([number[call.name] for each in processes for call in each.calls], np.int16)
    rows = [call[2:] for each in processes for call in each.calls]
    partner, tag, size, request = np.array(rows, np.int64).reshape(-1, 4).T
    time = np.array([call.time for each in processes for call in each.calls], np.float64)
    entry = np.rint(time).astype(np.int64)
    calls = Calls(
        offsets=offsets,
        entry=entry,
        exit=entry,
        name=name,
        names=names,
        group=tuple(_group(each, each in collective) for each in names),
        collectives=_arguments(processes, offsets),
        partner=partner.astype(np.int32),
        tag=np.ascontiguousarray(tag),
        bytes=np.ascontiguousarray(size),
        request=request.astype(np.int32),
    )
    _refuse_without_other_end(path, calls, hint)
    bursts = np.rint([burst for each in processes for burst in each.bursts]).astype(np.int64)
    begin, end = np.ascontiguousarray(bursts.reshape(-1, 2).T)
    states = States(
        offsets_of(np.array([len(each.bursts) for each in processes], np.int64)),
        begin,
        end,
        np.full(len(begin), RUNNING, np.int32),
    )
    return Trace(
        path=os.fspath(path).encode(errors="backslashreplace").decode(),
        application=1,
        begin=0,
        end=max(round(each.time) for each in processes),
        nodes=(),
        process_offsets=np.arange(count + 1),
        node_of_location=np.zeros(count, np.int32),
        communicators={key: np.array(ranks, np.int32) for key, ranks in communicators.items()},
        records=Columns(
            states, calls, exact=Exact(time, np.array([each.time for each in processes]))
        ),
        timed=False,
        warnings=tuple(warnings),
    )


def _group(name: str, collective: bool) -> CallGroup:
    if collective:
        return CallGroup.COLLECTIVE
    return CallGroup.OTHER if name in ("MPI_Init", "MPI_Finalize") else CallGroup.POINT_TO_POINT


def _arguments(processes: Sequence[Actions], offsets: NDArray[np.int64]) -> CollectiveArguments:
    rows = [
        (first + one.call, *one[1:5])
        for process, first in zip(processes, offsets.tolist(), strict=False)
        for one in process.collectives
    ]
    call, sent, received, communicator, is_root = np.ascontiguousarray(
        np.array(rows, np.int64).reshape(-1, 5).T
    )
    every = (one for process in processes for one in process.collectives)
    parts = {
        number: np.array(one.parts, np.int64)
        for number, one in zip(call.tolist(), every, strict=True)
        if one.parts
    }
    return CollectiveArguments(call, sent, received, communicator, is_root != 0, parts)


def _refuse_without_other_end(path: str | os.PathLike[str], calls: Calls, hint: str) -> None:
    """Every send needs its receive: of the same processes and tag there are as many."""
    assert calls.partner is not None  # both were given
    assert calls.tag is not None
    process = np.repeat(np.arange(len(calls.offsets) - 1), np.diff(calls.offsets))
    told = np.array([(name in _SENDS) - (name in _RECEIVES) for name in calls.names], np.int64)
    side = told[calls.name] if len(calls.name) else np.empty(0, np.int64)
    some = np.flatnonzero(side)
    most = int(calls.partner.max(initial=0))
    if most >= len(calls.offsets) - 1:
        problem = f"a message to or from process {most}, of which there are no actions"
        raise TraceError(path, problem, hint=hint)
    me, other, side = process[some], calls.partner[some], side[some]
    keys = np.stack(
        [np.where(side > 0, me, other), np.where(side > 0, other, me), calls.tag[some]], axis=1
    )
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    surplus = np.zeros(len(kinds), np.int64)
    np.add.at(surplus, which.reshape(-1), side)
    wrong = np.flatnonzero(surplus)
    if len(wrong):
        first = int(wrong[0])
        sender, receiver, tag = kinds[first].tolist()
        ends = np.bincount(which.reshape(-1)[side > 0], minlength=len(kinds))[first]
        sends = plural(int(ends), "send")
        receives = plural(int(ends - surplus[first]), "receive")
        more = f" (and {len(wrong) - 1} more such cases)" if len(wrong) > 1 else ""
        raise TraceError(
            path,
            f"{sends} of process {sender} to process {receiver} with tag {tag}, "
            f"but {receives}{more}",
            hint=hint,
        )
