"""What one process computes and calls, as a reader of a format adds it, and the trace of all."""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.errors import TraceError, UsageError
from popmodel.base.units import plural
from popmodel.traces.calls import CallGroup, CallTable, CollectiveArguments
from popmodel.traces.codes import RUNNING
from popmodel.traces.records import Exact, RecordColumns
from popmodel.traces.source import MOST, LineError, lines
from popmodel.traces.tables import States, offsets_of
from popmodel.traces.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.tables import TraceWarning

ANY_SOURCE, ANY_TAG = -2, -1
"""Partner and tag of receives that take any, until `match_receives` names them."""

_TEST = "test"
_SENDS = tuple(f"MPI_{each}" for each in ("Send", "Ssend", "Bsend", "Isend", "Issend", "Ibsend"))
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

    Attributes
    ----------
    time : float
        Time that it has computed so far, ns.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.time = 0.0
        self.calls: list[_UntimedCall] = []
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
        self.calls.append(_UntimedCall(f"MPI_{name}", self.time, partner, tag, size, request))

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
        self.calls.append(_UntimedCall(f"MPI_{name}", self.time, request=request))

    def call(self, name: str) -> None:
        """Call something that concerns nobody else, or all open requests."""
        if name == "Waitall":
            self._open.clear()
        self.calls.append(_UntimedCall(f"MPI_{name}", self.time))

    def wait(self, key: Hashable, what: str) -> None:
        """Complete the oldest open request of a key."""
        waiting = self._open.get(key)
        if not waiting:
            raise LineError(f"no open request {what}")
        self.calls.append(_UntimedCall("MPI_Wait", self.time, request=waiting.popleft()))

    def test(self, key: Hashable) -> None:
        """Test the oldest open request of a key, if there is one; `match_receives` takes it out."""
        if waiting := self._open.get(key):
            self.calls.append(_UntimedCall(_TEST, self.time, request=waiting[0]))

    def spend(self, slept: Mapping[int, float]) -> None:
        """Let tests take some ns each, by their calls, and take these calls out."""
        calls, tests, place = list[_UntimedCall](), deque[tuple[float, float]](), dict[int, int]()
        late = 0.0
        for row, call in enumerate(self.calls):
            if call.name == _TEST:
                tests.append((call.time, slept[row]))
                late += slept[row]
            else:
                place[row] = len(calls)
                calls.append(call._replace(time=call.time + late))
        bursts, late = list[tuple[float, float]](), 0.0
        for begin, end in [*self.bursts, (math.inf, math.inf)]:
            while tests and tests[0][0] <= begin:
                time, length = tests.popleft()
                bursts.append((time + late, time + late + length))
                late += length
            bursts.append((begin + late, end + late))
        self.calls, self.bursts = calls, bursts[:-1]
        self.collectives = [one._replace(call=place[one.call]) for one in self.collectives]
        self.time += late

    @property
    def open(self) -> int:
        """How many requests are open."""
        return sum(map(len, self._open.values()))

    def _opened(self, key: Hashable) -> int:
        self._requests += 1
        self._open.setdefault(key, deque()).append(self._requests)
        return self._requests


def match_receives(processes: Sequence[Actions], sleep: float = 0.0) -> int:
    """Name what receives from any process or with any tag get; returns how many there are.

    As MPI does where messages and collectives take no time: of the messages that have come the
    first that matches, else the next that comes. Tests are taken out; they take what SMPI lets them
    take (``smpi/test`` and ``smpi/grow-injected-times``).
    """
    wild = [
        (process, row)
        for process in processes
        for row, call in enumerate(process.calls)
        if call.name in _RECEIVES and (call.partner == ANY_SOURCE or call.tag == ANY_TAG)
    ]
    if wild or any(call.name == _TEST for process in processes for call in process.calls):
        matching = _Matching(processes, sleep)
        found = matching.run()
        for process, row in wild:
            call = process.calls[row]
            if (process.rank, row) not in found:
                raise LineError(
                    f"a receive of process {process.rank} from any process, or with any tag, gets "
                    "no message",
                    "write into these lines who sent the message, and with which tag",
                )
            message = found[process.rank, row]
            process.calls[row] = call._replace(partner=message.sender, tag=message.tag)
        for process, slept in zip(processes, matching.slept, strict=True):
            process.spend(slept)
    return len(wild)


def _patterns(sender: int, tag: int) -> list[tuple[int, int]]:
    """The receives that a message, or a receive that names as much, fits; but for any at all."""
    every = {(sender, tag), (ANY_SOURCE, tag), (sender, ANY_TAG)}
    return [each for each in every if each != (ANY_SOURCE, ANY_TAG)]


class _UntimedMessage(NamedTuple):
    """Its sender, tag and time, and the call that sends it."""

    sender: int
    tag: int
    time: float
    row: int


class _Matching:
    """Which message each receive gets, in time order; the clocks are those of the computing."""

    def __init__(self, processes: Sequence[Actions], sleep: float) -> None:
        self._sleep, self._turns = sleep, 1
        self.slept = [  # ns of each test
            {row: sleep for row, call in enumerate(process.calls) if call.name == _TEST}
            for process in processes
        ]
        self._tested: set[tuple[int, int]] = set()  # tests that have slept
        self._done: set[tuple[int, int]] = set()  # requests that a test has found
        self._calls = [process.calls for process in processes]
        self._ready = [(0.0, rank) for rank in range(len(processes))]
        self._at = [0] * len(processes)
        self._late = [0.0] * len(processes)  # how far each is behind its computing
        self._arrived: list[list[_UntimedMessage]] = [[] for _ in processes]
        self._posted: list[dict[int, None]] = [{} for _ in processes]  # receives without a message
        self._open: list[dict[int, int]] = [{} for _ in processes]  # request: its receive
        self._waiting: list[set[int]] = [set() for _ in processes]
        self._gathered: list[int] = []  # in the collective that all are coming to
        self._collectives = [{one.call for one in process.collectives} for process in processes]
        self._got: dict[tuple[int, int], _UntimedMessage] = {}
        # messages to each process beyond the receives that name as much of them
        self._spare: list[Counter[tuple[int, int]]] = [Counter() for _ in processes]
        for rank, calls in enumerate(self._calls):
            for call in calls:
                if call.name in _SENDS and call.partner < len(processes):
                    self._spare[call.partner].update(_patterns(rank, call.tag))
                elif call.name in _RECEIVES:
                    self._spare[rank].subtract(_patterns(call.partner, call.tag))

    def run(self) -> dict[tuple[int, int], _UntimedMessage]:
        """The message of each receive, by process and call."""
        while self._ready:
            time, rank = heappop(self._ready)
            if self._at[rank] == len(self._calls[rank]):
                continue
            call = self._calls[rank][self._at[rank]]
            if (now := call.time + self._late[rank]) > time:
                heappush(self._ready, (now, rank))
            elif call.name == _TEST:
                self._test(rank, self._at[rank], call.request, time)
            else:
                self._do(rank, time)
        return self._got

    def _do(self, rank: int, now: float) -> None:
        row = self._at[rank]
        call = self._calls[rank][row]
        needed: set[int] = set()  # receives that it waits for
        if row in self._collectives[rank] and call.request < 0:
            self._gathered.append(rank)
            if len(self._gathered) == len(self._calls):
                together, self._gathered = self._gathered, []
                for each in together:
                    self._go_on(each, now)
            return
        if call.name in _SENDS:
            taken = self._deliver(call.partner, _UntimedMessage(rank, call.tag, now, row))
            if call.name == "MPI_Ssend" and not taken:
                return
        elif call.name in _RECEIVES:
            if (rank, row) not in self._got and row not in self._posted[rank]:
                self._post(rank, row, now)
            if call.request >= 0:
                self._open[rank][call.request] = row
            else:
                needed = {row}
        elif call.name == "MPI_Waitall":
            needed = set(self._open[rank].values())
        elif call.request in self._open[rank]:
            needed = {self._open[rank][call.request]}
        self._waiting[rank] = {one for one in needed if (rank, one) not in self._got}
        if not self._waiting[rank]:
            done = max((self._got[rank, one].time for one in needed), default=now)
            if call.name == "MPI_Waitall":
                self._open[rank].clear()
            elif call.name == "MPI_Wait":
                self._open[rank].pop(call.request, None)
            self._go_on(rank, max(now, done))

    def _test(self, rank: int, row: int, request: int, now: float) -> None:
        """A test sleeps, then looks whether its receive has a message, or is of a send."""
        if (rank, request) in self._done:
            self.slept[rank][row] = 0.0
        elif (rank, row) not in self._tested:
            self._tested.add((rank, row))
            self.slept[rank][row] = self._sleep * self._turns
            heappush(self._ready, (now + self.slept[rank][row], rank))
            return
        elif (rank, self._open[rank].get(request, -1)) in self._got or (
            request not in self._open[rank]
        ):
            self._turns = 1
            self._done.add((rank, request))
        else:
            self._turns += 1
        self._go_on(rank, now)

    def _go_on(self, rank: int, now: float) -> None:
        self._late[rank] = now - self._calls[rank][self._at[rank]].time
        self._at[rank] += 1
        heappush(self._ready, (now, rank))

    def _matches(self, rank: int, row: int, message: _UntimedMessage) -> bool:
        """Whether a receive takes a message, and leaves enough for those that name more of it."""
        call, spare = self._calls[rank][row], self._spare[rank]
        sender, tag = call.partner, call.tag
        if sender not in (ANY_SOURCE, message.sender) or tag not in (ANY_TAG, message.tag):
            return False
        mine = _patterns(sender, tag)
        theirs = _patterns(message.sender, message.tag)
        if any(spare[each] <= 0 for each in theirs if each not in mine):
            return False
        spare.update(mine)
        spare.subtract(theirs)
        return True

    def _post(self, rank: int, row: int, now: float) -> None:
        for message in self._arrived[rank]:
            if self._matches(rank, row, message):
                self._arrived[rank].remove(message)
                self._got[rank, row] = message
                sender = message.sender
                at = self._at[sender]
                if at == message.row and self._calls[sender][at].name == "MPI_Ssend":
                    self._go_on(sender, now)
                return
        self._posted[rank][row] = None

    def _deliver(self, rank: int, message: _UntimedMessage) -> bool:
        """Whether a receive takes it at once."""
        if rank >= len(self._calls):
            return True  # of a process that does nothing: `trace_of` refuses it
        for row in self._posted[rank]:
            if self._matches(rank, row, message):
                del self._posted[rank][row]
                self._got[rank, row] = message
                if row in self._waiting[rank]:
                    self._waiting[rank].remove(row)
                    if not self._waiting[rank]:  # it was the last that it waits for
                        heappush(self._ready, (message.time, rank))
                return True
        self._arrived[rank].append(message)
        return False


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
    collective = {each.calls[one.call].name for each in processes for one in each.collectives}
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
        group=tuple(_group(each, each in collective) for each in names),
        collectives=_arguments(processes, offsets),
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
        path=os.fspath(path).encode(errors="backslashreplace").decode(),
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
