"""The program of a run: what every process does, in order, without the waiting.

A process does one thing after the other: it is a *sequence* of operations. Where threads call MPI
on their own, each of them is a further sequence, behind those of the processes; everything that
names a process (of a message, a node) has the same number for its own sequence.

A program holds, per process, compute bursts and MPI operations; the replay decides when each of
them happens on a given network. Times are nanoseconds in float64, exact for integers up to 2**53
(104 days).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.arrays import ArrayRows
from popmodel.base.errors import UsageError
from popmodel.base.units import count, plural
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from popmodel.network.placement import RankMapping


class Op(IntEnum):
    """Operations of a program; the compiled engine uses the same numbers."""

    SEND = 0  #: blocking send of a message
    ISEND = 1  #: nonblocking send
    RECEIVE = 2  #: blocking receive: posts and waits
    POST = 3  #: nonblocking receive: posts
    WAIT_RECEIVE = 4  #: waits for a message whose receive was posted
    WAIT_SEND = 5  #: waits for a message sent without blocking
    COLLECTIVE = 6  #: blocking collective: arrives and waits
    ARRIVE = 7  #: nonblocking collective: arrives
    WAIT_COLLECTIVE = 8  #: waits for a collective that this process has arrived at


#: Kinds of collectives; a collective's ``kind`` is an index into this tuple. Variants with counts
#: per process (Gatherv, ...) are of the kind of their plain form.
COLLECTIVES = (
    "init",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "gather",
    "scatter",
    "allgather",
    "scan",
    "reduce_scatter",
)


@dataclass(frozen=True)
class ProgramMessages:
    """Point-to-point messages of a program, one row each."""

    # int32[M]: Process indices.
    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    # int64[M]: Bytes, and the MPI tag.
    size: NDArray[np.int64]
    tag: NDArray[np.int64]
    # int8[M]: 0 standard (the network's eager threshold decides), 1 buffered (never waits for its
    # receive).
    mode: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True)
class Collectives:
    """Collective operations of a program, one row each."""

    kind: NDArray[np.int8]  # int8[C]: Index into `COLLECTIVES`
    # int64[C]: Communicator id of the trace; 0 stands for all processes.
    communicator: NDArray[np.int64]
    members: NDArray[np.int32]  # int32[C]: Number of processes that have to take part
    root: NDArray[np.int32]  # int32[C]: Process index of the root, or -1
    # int64[C]: Largest number of bytes that one member sends and receives, as in
    # `popmodel.traces.calls.CollectiveArguments`.
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    root_sent: NDArray[np.int64]  # int64[C]: Bytes that the root sends; 0 where there is no root
    # bool[C]: Whether its call takes amounts for each peer, as Alltoallv does.
    by_peer: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)

    def part(self, rows: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
        """Bytes m that one process contributes, as algorithms and signatures count, of some rows.

        The whole vector of Bcast, Reduce, Allreduce, Scan and Reduce_scatter, the part of one
        member of Gather, Scatter and Allgather, the part for one peer of Alltoall.
        """
        sent, received = self.sent[rows], self.received[rows]
        part = np.maximum(sent, received)
        for kind, size in (
            ("gather", sent),
            ("scatter", received),
            ("allgather", sent),
            ("alltoall", -(-part // np.maximum(self.members[rows], 1))),
        ):
            mine = self.kind[rows] == COLLECTIVES.index(kind)
            part[mine] = size[mine]
        return part


def amounts(kind: str, members: int, part: int) -> tuple[int, int, int]:
    """Largest number of bytes sent and received, and those of a root: `Collectives.part` undone."""
    every = members * part
    return {
        "bcast": (part, part, part),
        "reduce": (part, part, 0),
        "gather": (part, every, part),
        "scatter": (every, part, every),
        "allgather": (part, every, 0),
        "alltoall": (every, every, 0),
        "reduce_scatter": (part, part // members, 0),
    }.get(kind, (part, part, 0))


@dataclass(frozen=True)
class UnevenBytes:
    """Arrivals at collectives whose members have different amounts (Alltoallv)."""

    operation: NDArray[np.int64]  # int64[U]: Operations of the program that arrive there, ascending
    collective: NDArray[np.int32]  # int32[U]: Row of `Program.collectives`
    # int64[U]: Bytes that this member sends and receives.
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    # By row, where it is told: the bytes for each member, in the order of ranks.
    parts: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)


NONE_UNEVEN = UnevenBytes(
    np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
)
"""Of a program whose collectives have equal members."""


def unmodelled_calls(calls: str) -> list[str]:
    """Say what a program does not contain (`Program.unmodelled`), before anything else is said."""
    return [f"not modelled, assumed to take no time: {calls}"] if calls else []


@dataclass(frozen=True)
class Program:
    """What every process does, in order."""

    # int64[P + 1]: Operations of process p are ``offsets[p] .. offsets[p + 1]``.
    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]  # uint8[N]: `Op` of each operation
    # int32[N]: Row of `messages` or `collectives` that the operation is about.
    target: NDArray[np.int32]
    # uint32[N] or float64[N]: Compute time before the operation, ns; of 32 bits where a trace has
    # none above 4.29 s.
    burst: NDArray[np.uint32] | NDArray[np.float64]
    # float64[P]: Compute time after the last operation of each process, ns.
    tail: NDArray[np.float64]
    messages: ProgramMessages
    collectives: Collectives
    # int32[N]: Row of `call_name` and `call_time` that the operation stems from, for messages to
    # people.
    call: NDArray[np.int32]
    call_name: tuple[str, ...]  # Distinct names of MPI calls; `call_code` indexes it
    # int[K], int64[K]: Name and time of entry (ns) of each call; times of a program that was not
    # traced are 0.
    call_code: NDArray[np.signedinteger[Any]]
    call_time: NDArray[np.int64]
    # Members of each communicator, as process indices in the order of their ranks.
    communicators: dict[int, NDArray[np.int32]]
    nodes: NDArray[np.int32]  # int32[P]: Node of each process
    # What was left out of the program or assumed not to take time, one line each.
    notes: tuple[str, ...] = field(default=())
    # MPI calls of the run that it does not contain, with their share of the time; empty without.
    unmodelled: str = ""
    lost: str = ""  # Which records the run lost, where it did: why operations may be missing
    # Arrivals at collectives with members of different amounts.
    uneven: UnevenBytes = field(default=NONE_UNEVEN)
    # int32[T]: Process of each further sequence; `offsets`, `tail` and `nodes` hold these behind
    # the processes, and members of communicators and roots can be such.
    threads: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    def __repr__(self) -> str:
        size = plural(self.processes, "process", "processes")
        return f"<Program: {size}, {count(self.operations)} operations>"

    @property
    def traced(self) -> bool:
        """Whether calls have times of a trace."""
        return bool(np.any(self.call_time))

    @property
    def processes(self) -> int:
        """Number of processes."""
        return self.sequences - len(self.threads)

    @property
    def sequences(self) -> int:
        """Number of sequences: the processes, and the threads that call MPI on their own."""
        return len(self.offsets) - 1

    @property
    def owner(self) -> NDArray[np.int32]:
        """Process of each sequence: int32[S]."""
        processes = np.arange(self.processes, dtype=np.int32)
        return np.concatenate([processes, self.threads])

    @property
    def operations(self) -> int:
        """Number of MPI operations over all processes."""
        return len(self.kind)

    def on(self, mapping: RankMapping | None) -> Program:
        """The same program with its processes on other nodes; None: where they are."""
        if mapping is None:
            return self
        nodes = mapping.nodes_of(self.processes)
        return replace(self, nodes=nodes[self.owner] if len(self.threads) else nodes)

    def latest(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        """From times of sequences to those of processes: the latest of each."""
        latest: NDArray[np.float64] = time[: self.processes].copy()
        np.maximum.at(latest, self.threads, time[self.processes :])
        return latest

    def compute(self) -> NDArray[np.float64]:
        """Sum of the compute bursts of each sequence, ns."""
        # By process: a running sum over all of them would leave the range of exact integers.
        return _kernel.sums(self.offsets, self.burst) + self.tail


_CLOSE = 10_000  # ns: what is computed between operations that could as well be one


def at_once(program: Program) -> Program | None:
    """Return the program with blocking sends that do not hold up receives, as in MPI_Sendrecv.

    A blocking send becomes a nonblocking one, waited for behind the receives that it stands beside
    with hardly any computing in between. One behind these receives begins before them if its own
    receiver sends first, too: then both take it for an exchange, and not for something passed on.
    """
    kind, target = program.kind, program.target
    size = len(kind)
    talks = kind < Op.COLLECTIVE
    begins = np.ones(size, bool)
    begins[1:] = ~talks[1:] | ~talks[:-1] | (program.burst[1:] > _CLOSE)
    begins[program.offsets[:-1][np.diff(program.offsets) > 0]] = True
    # Sends, then receives, or the other way round, are one; what follows is another one.
    sends = (kind == Op.SEND) | (kind == Op.ISEND) | (kind == Op.WAIT_SEND)
    turns = begins | np.append(True, sends[1:] != sends[:-1])[:size]
    turn = np.cumsum(turns)
    in_stretch = turn - np.maximum.accumulate(np.where(begins, turn, 0))
    begins |= turns & (in_stretch % 2 == 0)
    exchange = np.cumsum(begins) - 1
    send = np.flatnonzero(kind == Op.SEND)
    receive = np.flatnonzero((kind == Op.RECEIVE) | (kind == Op.WAIT_RECEIVE))
    first_send, first, last = (np.full(np.count_nonzero(begins), end) for end in (size, size, -1))
    np.minimum.at(first_send, exchange[send], send)
    np.minimum.at(first, exchange[receive], receive)
    np.maximum.at(last, exchange[receive], receive)
    received = np.full(len(program.messages), -1)
    received[target[receive]] = receive
    meets = received[target[send]]
    expected = (meets >= 0) & (first_send[exchange[meets]] < meets)
    before, behind = last[exchange[send]] > send, first[exchange[send]] < send
    behind &= expected
    in_one_call = program.call[send] == program.call[np.minimum(send + 1, size - 1)]
    free = (before | behind) & ~(in_one_call & (send + 1 < size))
    early, send = send[free & behind], send[free]
    if not len(send):
        return None
    made = kind.copy()
    made[send] = Op.ISEND
    place = np.arange(size, dtype=np.float64)
    place[early] = first[exchange[early]] - 0.5
    order = np.argsort(place, kind="stable")
    moved = np.empty(size, np.int64)
    moved[order] = np.arange(size)
    burst: NDArray[Any] = program.burst[order]
    head = np.unique(first[exchange[early]])  # what is computed before stays in front
    front = moved[head] - np.bincount(exchange[early], minlength=len(first))[exchange[head]]
    burst[moved[head]], burst[front] = burst[front], burst[moved[head]]
    send = send[np.argsort(last[exchange[send]], kind="stable")]
    at = moved[last[exchange[send]]] + 1
    uneven = program.uneven
    return replace(
        program,
        offsets=program.offsets + np.searchsorted(at, program.offsets, side="right"),
        kind=np.insert(made[order], at, Op.WAIT_SEND),
        target=np.insert(target[order], at, target[send]),
        burst=np.insert(burst, at, 0),
        call=np.insert(program.call[order], at, program.call[send]),
        uneven=replace(
            uneven,
            operation=uneven.operation + np.searchsorted(at, uneven.operation, side="right"),
        ),
    )


# Building a program operation by operation, for programs that do not come from a trace.


_NS = 1e9
LARGEST_COUNT = 2**62
"""Bytes of a message, and whatever else the replay counts in 64 bits."""
TOO_LARGE = "look for a formula in the wrong unit: replays count up to 4.6e18"


class ProgramBuilder:
    """Collects what every process does; `build` gives the program."""

    def __init__(self, processes: int, nodes: Sequence[int] | None = None) -> None:
        self._ops = [ArrayRows(3) for _ in range(processes)]  # what, on what, seconds before
        self._pending = [0.0] * processes
        self._messages = ArrayRows(5)
        self._collectives: list[tuple[int, ...]] = []
        self._communicators: dict[int, np.ndarray] = {0: np.arange(processes, dtype=np.int32)}
        self._nodes = np.zeros(processes, np.int32) if nodes is None else np.array(nodes, np.int32)

    def compute(self, process: int, seconds: float) -> None:
        """Let a process compute."""
        self._pending[process] += seconds * _NS

    def message(
        self, sender: int, receiver: int, size: int, tag: int = 0, buffered: bool = False
    ) -> int:
        """Describe a message; returns its number for `do`."""
        return self._messages.append((sender, receiver, size, tag, int(buffered)))

    def messages_again(self, count: int, times: int) -> None:
        """Describe the last messages so many more times, numbered on."""
        self._messages.again(count, times)

    def communicator(self, members: Sequence[int]) -> int:
        """Describe a communicator; returns its id. Id 0 has all processes."""
        number = len(self._communicators)
        self._communicators[number] = np.array(members, dtype=np.int32)
        return number

    def collective(
        self,
        kind: str,
        sent: int = 0,
        received: int = 0,
        root: int = -1,
        communicator: int = 0,
        root_sent: int = 0,
        by_peer: bool = False,
    ) -> int:
        """Describe a collective; returns its number for `do`. `root` is a process index."""
        _refuse_large(max(sent, received, root_sent))
        members = len(self._communicators[communicator])
        self._collectives.append(
            (
                *(COLLECTIVES.index(kind), communicator, members, root),
                *(sent, received, root_sent, by_peer),
            )
        )
        return len(self._collectives) - 1

    def do(self, process: int, op: Op, target: int) -> None:
        """Let a process carry out an operation on a message or a collective."""
        self._ops[process].append((op, target, self._pending[process]))
        self._pending[process] = 0.0

    @contextmanager
    def repeated(self, process: int, times: int, step: int) -> Iterator[None]:
        """Let a process do what it does inside so often, each time on targets a step further."""
        mine, before = self._ops[process], self._pending[process]
        begin = len(mine)
        yield
        done, after = len(mine) - begin, self._pending[process]
        if done and (before or after):
            raise ValueError("what is repeated begins and ends with operations")
        self._pending[process] = before + times * (after - before)
        mine.again(done, times - 1, (0, step, 0))

    def build(self) -> Program:
        """The program so far."""
        every = [mine.array() for mine in self._ops]
        ops = np.concatenate(every, axis=1)
        names = tuple(op.name.lower() for op in Op)
        kind = ops[0].astype(np.uint8)
        columns = self._messages.array()
        _refuse_large(columns[2].max(initial=0))
        messages = columns.astype(np.int64)
        collectives = np.array(self._collectives, dtype=np.int64).reshape(-1, 8).T
        return Program(
            offsets=np.cumsum([0, *(mine.shape[1] for mine in every)]),
            kind=kind,
            target=ops[1].astype(np.int32),
            burst=ops[2],
            tail=np.array(self._pending, dtype=np.float64),
            messages=ProgramMessages(
                messages[0].astype(np.int32),
                messages[1].astype(np.int32),
                messages[2],
                messages[3],
                messages[4].astype(np.int8),
            ),
            collectives=Collectives(
                collectives[0].astype(np.int8),
                collectives[1],
                collectives[2].astype(np.int32),
                collectives[3].astype(np.int32),
                collectives[4],
                collectives[5],
                collectives[6],
                collectives[7].astype(bool),
            ),
            call=np.arange(len(kind), dtype=np.int32),
            call_name=names,
            call_code=kind.astype(np.int32),
            call_time=np.zeros(len(kind), dtype=np.int64),
            communicators=self._communicators,
            nodes=self._nodes,
        )


def _refuse_large(size: float) -> None:
    if size > LARGEST_COUNT:
        raise UsageError(f"a message of {size:.3g} bytes is too large to be sent", TOO_LARGE)
