"""Messages and collectives of a program that cost the same on every network.

A program has millions of messages of a few sizes: what they cost is found once for each class.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import alike, distinct
from popmodel.kernel import _kernel
from popmodel.simulator.program import Program
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

SELF, WITHIN, BETWEEN = range(3)
"""How far a message goes: to its own process, inside its node, to another node."""


@dataclass(frozen=True)
class MessageClasses:
    """Classes of messages."""

    size: NDArray[np.int64]  # int64[K]: Bytes
    mode: NDArray[np.int8]  # int8[K]: As in `popmodel.simulator.program.Messages`
    distance: NDArray[np.int8]  # int8[K]: `SELF`, `WITHIN` or `BETWEEN`

    def __len__(self) -> int:
        return len(self.size)


class Group(NamedTuple):
    """Collectives of one kind that all leave a node, or none."""

    kind: int
    apart: bool
    rows: NDArray[np.int64]


def groups_of(kind: NDArray[np.int8], apart: NDArray[np.bool_]) -> tuple[Group, ...]:
    """Return the groups of some collectives."""
    return tuple(
        Group(code, far, rows)
        for code in distinct(kind).tolist()
        for far in (False, True)
        if len(rows := np.flatnonzero((kind == code) & (apart == far)))
    )


@dataclass(frozen=True)
class CollectiveClasses:
    """Classes of collectives."""

    # As in `popmodel.simulator.program.Collectives`, of each class.
    kind: NDArray[np.int8]
    members: NDArray[np.int32]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    root_sent: NDArray[np.int64]
    by_peer: NDArray[np.bool_]
    rooted: NDArray[np.bool_]  # bool[K]: Whether somebody is known to be the root
    apart: NDArray[np.bool_]  # bool[K]: Whether there are members on several nodes
    # bool[K]: Whether members have different amounts, and none is the root.
    uneven: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Those of one kind and distance."""
        return groups_of(self.kind, self.apart)


@dataclass(frozen=True)
class Classes:
    """Which messages and collectives of a program cost the same."""

    message: NDArray[np.int32]  # int32[M]: Row of `messages` of each message
    messages: MessageClasses  # What distinguishes them
    collective: NDArray[np.int32]  # int32[C]: Row of `collectives` of each collective
    collectives: CollectiveClasses  # What distinguishes them


def classes(program: Program) -> Classes:
    """Return the classes of a program's messages and collectives."""
    own = program.messages
    message, first = _kernel.message_classes(
        own.sender, own.receiver, own.size, own.mode, program.nodes
    )
    sender, receiver = own.sender[first], own.receiver[first]
    distance = np.where(program.nodes[sender] == program.nodes[receiver], WITHIN, BETWEEN)
    distance[sender == receiver] = SELF
    messages = MessageClasses(own.size[first], own.mode[first], distance.astype(np.int8))
    many = program.collectives
    flags = np.zeros(len(many), np.int64)
    uneven = program.uneven.collective
    flags[uneven[many.root[uneven] < 0]] = 1
    flags += 2 * _over_nodes(program) + 4 * (many.root >= 0) + 8 * many.by_peer
    columns = (many.kind, many.members, many.sent, many.received, many.root_sent, flags)
    rows, collective = alike(*(column.astype(np.int64) for column in columns))
    kind, members, sent, received, root_sent, flags = rows.T
    collectives = CollectiveClasses(
        kind.astype(np.int8),
        members.astype(np.int32),
        sent,
        received,
        root_sent,
        by_peer=(flags & 8) > 0,
        rooted=(flags & 4) > 0,
        apart=(flags & 2) > 0,
        uneven=(flags & 1) > 0,
    )
    return Classes(message, messages, collective.astype(np.int32), collectives)


def _over_nodes(program: Program) -> NDArray[np.bool_]:
    """Whether each collective has members on several nodes; of unlisted ones, where a run has."""
    several = bool(len(distinct(program.nodes)) > 1)
    found = np.full(len(program.collectives), several)
    if several:
        communicator = program.collectives.communicator
        for number in distinct(communicator).tolist():
            listed = program.communicators.get(number)
            if number and listed is not None:
                found[communicator == number] = len(distinct(program.nodes[listed])) > 1
    return found
