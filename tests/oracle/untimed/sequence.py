"""What one process computes and calls, as the reader of GOAL adds it, and the trace of all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.errors import TraceError, UsageError
from popmodel.base.units import plural
from popmodel.traces.calls import CallGroup, CallTable, CollectiveArguments
from popmodel.traces.codes import RUNNING
from popmodel.traces.recorded_run import Trace
from popmodel.traces.records import Exact, RecordColumns
from popmodel.traces.source import MOST, LineError, lines
from popmodel.traces.tables import States, offsets_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.tables import TraceWarning

_SENDS = ("MPI_Send", "MPI_Isend")
_RECEIVES = ("MPI_Recv", "MPI_Irecv")


def do_lines(
    path: str | os.PathLike[str],
    do: Callable[[str], None],
    advice: str,
    application: int = 1,
    what: str = "",
) -> None:
    """Have each line of a file done; `LineError` becomes an error with the place.

    A file of these formats, which are called `what`, has one application.
    """
    if application != 1:
        raise UsageError(
            f"{os.fspath(path)}: no application {application}", f"the {what} has application 1 only"
        )
    for number, line in lines(Path(path)):
        try:
            do(line)
        except LineError as error:
            raise TraceError(path, str(error), line=number, hint=error.hint or advice) from None


class _UntimedCall(NamedTuple):
    """Name, time (ns), partner (-1: none), tag, bytes, and request that it opens or completes."""

    name: str
    time: float
    partner: int = -1
    tag: int = 0
    size: int = 0
    request: int = -1


class Actions:
    """What a process does.

    Attributes
    ----------
    time : float
        Time that it has computed so far, ns.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.time = 0.0
        self.calls: list[_UntimedCall] = []
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
        self.calls.append(_UntimedCall(f"MPI_{name}", self.time, partner, tag, size, request))

    def wait(self, key: Hashable, what: str) -> None:
        """Complete the oldest open request of a key."""
        waiting = self._open.get(key)
        if not waiting:
            raise LineError(f"no open request {what}")
        self.calls.append(_UntimedCall("MPI_Wait", self.time, request=waiting.popleft()))

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
    ranks: Sequence[int] | None = None,
) -> Trace:
    """Return the trace of some processes."""
    count = len(processes)
    rank_of = np.arange(count) if ranks is None else np.array(ranks, np.int64)
    names = tuple(sorted({call.name for each in processes for call in each.calls}))
    number = {name: index for index, name in enumerate(names)}
    offsets = offsets_of(np.array([len(each.calls) for each in processes], np.int64))
    name = np.array([number[call.name] for each in processes for call in each.calls], np.int16)
    rows = [call[2:] for each in processes for call in each.calls]
    partner, tag, size, request = np.array(rows, np.int64).reshape(-1, 4).T
    time = np.array([call.time for each in processes for call in each.calls], np.float64)
    entry = np.rint(time).astype(np.int64)
    calls = CallTable(
        offsets=offsets,
        entry=entry,
        exit=entry,
        name=name,
        names=names,
        group=(CallGroup.POINT_TO_POINT,) * len(names),
        collectives=CollectiveArguments.none(),
        partner=partner.astype(np.int32),
        tag=np.ascontiguousarray(tag),
        bytes=np.ascontiguousarray(size),
        request=request.astype(np.int32),
    )
    _refuse_without_other_end(path, calls, hint, rank_of)
    bursts = np.rint([burst for each in processes for burst in each.bursts]).astype(np.int64)
    begin, end = np.ascontiguousarray(bursts.reshape(-1, 2).T)
    states = States(
        offsets_of(np.array([len(each.bursts) for each in processes], np.int64)),
        begin,
        end,
        np.full(len(begin), RUNNING, np.int32),
    )
    return Trace(
        path=os.fspath(path),
        application=1,
        begin=0,
        end=max(round(each.time) for each in processes),
        nodes=(),
        process_offsets=offsets_of(np.bincount(rank_of)),
        node_of_location=np.zeros(count, np.int32),
        communicators={key: np.array(ranks, np.int32) for key, ranks in communicators.items()},
        records=RecordColumns(
            states, calls, exact=Exact(time, np.array([each.time for each in processes]))
        ),
        timed=False,
        warnings=tuple(warnings),
    )


def _refuse_without_other_end(
    path: str | os.PathLike[str], calls: CallTable, hint: str, rank_of: NDArray[np.int64]
) -> None:
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
    me, other, side = rank_of[process[some]], rank_of[calls.partner[some]], side[some]
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
