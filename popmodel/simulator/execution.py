"""What a replay finds, its critical path, or where it stops."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import ReplayError
from popmodel.base.units import count, format_time, plural
from popmodel.base.values import dataclass
from popmodel.simulator.program import COLLECTIVES, Op, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network


# What a replay found, or where it stopped.


_NS = 1e9


@dataclass(frozen=True)
class Execution:
    """What a replay found."""

    network: Network  # On what
    end: NDArray[np.float64]  # float64[P]: When each process ends, s
    compute: NDArray[np.float64]  # float64[P]: Sum of its compute bursts, s
    # MPI operations replayed, over all processes; the messages of a collective that is carried out
    # as such are part of one.
    operations: int
    # float64[places, names] or None: Time in the calls of each place and name, s; None if it was
    # not asked for.
    time_in_calls: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        size = (
            f"{plural(len(self.end), 'process', 'processes')}, {count(self.operations)} operations"
        )
        return f"<Execution on {self.network.name}: {size}, runtime {format_time(self.runtime)}>"

    @property
    def runtime(self) -> float:
        """When the last process ends, s."""
        return float(self.end.max(initial=0.0))


@dataclass(frozen=True)
class Moments:
    """When the operations of a program happen on a network."""

    # float64[N]: When each operation begins, after the computing before it, and ends, ns; empty if
    # nobody asked.
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    # float64[P]: When each process ends, after the computing that follows its last operation, ns.
    last: NDArray[np.float64]


_MISSING = "records of these operations are missing from the trace"


def stopped(
    program: Program, stuck_at: NDArray[np.int64], clock: NDArray[np.float64]
) -> ReplayError | None:
    """Name the first ranks that wait forever, for what, and since when; None if nobody does."""
    stuck = np.flatnonzero(stuck_at < program.offsets[1:])
    if not len(stuck):
        return None
    named = [_waiting(program, p, int(stuck_at[p]), float(clock[p])) for p in stuck[:4].tolist()]
    more = f"; and {len(stuck) - 4} more ranks" if len(stuck) > 4 else ""
    return ReplayError(
        f"deadlock in the replay: {len(stuck)} of {program.processes} ranks wait forever: "
        + "; ".join(named)
        + more
        + (f"; {program.lost}" if program.lost else ""),
        "analyse the part before the loss: leave out --from-start"
        if program.lost
        else f"{_MISSING if program.traced else 'calls do not match'}, or the program relies on "
        "buffering beyond the eager threshold",
    )


def _waiting(program: Program, process: int, operation: int, clock: float) -> str:
    call = int(program.call[operation])
    name = program.call_name[program.call_code[call]]
    target = int(program.target[operation])
    rank = f"rank {program.owner[process]}"
    if process >= program.processes:
        rank = f"a thread of {rank}"
    text = f"{rank} in {name} at {clock / _NS:.9f} s of the replay"
    if program.traced:
        text = (
            f"{rank} in {name} at {program.call_time[call] / _NS:.9f} s of the trace "
            f"(replayed {clock / _NS:.9f} s)"
        )
    kind = Op(program.kind[operation])
    if kind >= Op.COLLECTIVE:
        c = program.collectives
        where = f"communicator {c.communicator[target]}" if c.communicator[target] else "all ranks"
        return f"{text}, {COLLECTIVES[c.kind[target]]} of {c.members[target]} members on {where}"
    m = program.messages
    what = f"{m.size[target]} B, tag {m.tag[target]}"
    if kind in (Op.SEND, Op.ISEND, Op.WAIT_SEND):
        return f"{text}, for rank {m.receiver[target]} to receive {what}"
    return f"{text}, for {what} from rank {m.sender[target]}"


# The critical path of a replay: what the runtime is made of, step by step.


class PathPart(IntEnum):
    """What the time of a step is spent on; the compiled walk uses the same numbers."""

    COMPUTE = 0  #: burst before `operation`, or the tail of the process where that is -1
    SEND = 1  #: overhead of the sender of message `row`
    RECEIVE = 2  #: overhead of the receiver of message `row`
    TRANSFER = 3  #: transfer of message `row`
    COLLECTIVE = 4  #: cost of collective `row`
    REQUEST = 5  #: cost of the nonblocking call, or of the wait, of collective `row`
    MESSAGE = 6  #: transfer of a message of collective `row`, which is carried out as messages
    MESSAGE_SEND = 7  #: overhead of the sender of such a message
    MESSAGE_RECEIVE = 8  #: overhead of the receiver of such a message


@dataclass(frozen=True)
class CriticalPath:
    """Steps that lead without a gap from the start of a process to the end of the run.

    Those that take no time on any network are left out.

    The runtime of a replay is the largest of many sums of durations; this is the largest, or of
    equal ones the one that stays the largest a little further on the asked side. Every duration is
    affine in latency, time per byte and overhead, so that sums over the columns are the one-sided
    derivatives of the runtime, by any grouping of steps.
    """

    # int32[K]: Process whose time it is: that of the burst or overhead, or the one that waits for a
    # transfer or a collective (of a transfer the receiver, or a sender that waits for it).
    process: NDArray[np.int32]
    # int32[K]: Process that decided when the step begins: of a transfer the sender, or the receiver
    # where it posted later; of a collective who arrived last, or the root. Else `process`.
    source: NDArray[np.int32]
    # int64[K]: Operation of `process`; -1 for what it computes after its last one.
    operation: NDArray[np.int64]
    part: NDArray[np.uint8]  # uint8[K]: `PathPart`
    row: NDArray[np.int32]  # int32[K]: Message or collective; -1 for computing
    time: NDArray[np.float64]  # float64[K]: Duration, ns
    # float64[K]: Derivative by the latency of its tier: how often it is paid.
    latency: NDArray[np.float64]
    bytes: NDArray[np.float64]  # float64[K]: Derivative by the time per byte of its tier, B
    # float64[K]: Parts of `time`: what those cost, and the rest that is no computing either, ns.
    latency_time: NDArray[np.float64]
    bytes_time: NDArray[np.float64]
    overhead: NDArray[np.float64]
    # int8[K]: 0 inside a node, 1 between nodes (all messages, where the network makes no
    # difference), -1 neither.
    tier: NDArray[np.int8]
    runtime: float  # When the last process ends, s

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        steps, ranks = plural(len(self), "step"), plural(self.changes + 1, "stretch", "stretches")
        return f"<CriticalPath: {steps}, {ranks} on one process>"

    @property
    def changes(self) -> int:
        """How often it goes over to another process."""
        return int(np.count_nonzero(np.diff(self.process)))
