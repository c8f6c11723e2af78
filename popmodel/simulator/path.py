"""The critical path of a replay: what the runtime is made of, step by step."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
