"""The price of one message, to which every charge is proportional.

With the time of a message as its price, charges are times. They are affine in the parameters of the
network: with a price of 1 they are how often latency is paid, which is their derivative by the
latency; with a price of its bytes, the derivative by the time per byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum, IntEnum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from popmodel.base.arrays import alike, distinct
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.network.collectives import ROOTED
from popmodel.network.fan_costs import collective_time
from popmodel.network.point_to_point import HEADER, TO_ITSELF, transfer_time, waits_for_receiver
from popmodel.simulator.program import COLLECTIVES, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.network.point_to_point import Tier, Tiers


_NS = 1e9


class CostQuantity(Enum):
    """What is counted of messages."""

    TIME = "time"  #: ns
    LATENCY = "latency"  #: how often latency is paid
    BYTES = "bytes"  #: bytes that cost time
    LATENCY_TIME = "latency_time"  #: what those latencies take, ns
    BYTES_TIME = "bytes_time"  #: what those bytes take, ns


@dataclass(frozen=True)
class Price:
    """One quantity of the messages of a network."""

    network: Network  # What communication costs
    quantity: CostQuantity = CostQuantity.TIME  # What is counted

    def of(
        self, size: NDArray[Any], far: NDArray[np.bool_], *, bare: bool = False
    ) -> NDArray[np.float64]:
        """Price of messages of some sizes (bytes), where `far` tells which ones leave their node.

        Where sender and receiver pay the latency, the `bare` rest is without it.
        """
        network, quantity = self.network, self.quantity
        if network.rules == "smpi":
            size = size + HEADER
        if quantity is CostQuantity.TIME:
            if bare and network.tiers is not None:
                return _time(network, size, far, 0.0) * _NS - self.latency(far)
            return _time(network, size, far, 0.0 if bare else network.latency) * _NS
        if quantity is CostQuantity.LATENCY:
            return np.full(np.shape(size), 0.0 if bare else 1.0)
        pieces = _pieces(network, size, far)
        value: NDArray[np.float64] = pieces[2]
        if quantity is CostQuantity.LATENCY_TIME:
            value = pieces[0] * (0.0 if bare else _NS)
        if quantity is CostQuantity.BYTES_TIME:
            value = pieces[1] * pieces[2] * _NS
        return value

    def overheads(self, far: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What sender and receiver of each message pay beside: time, and no latency or bytes."""
        factor = _NS if self.quantity is CostQuantity.TIME else 0.0
        send, receive = self.network.overheads(far)
        return send * factor, receive * factor

    def to_itself(self, size: NDArray[Any]) -> NDArray[np.float64]:
        """Price of messages of a process to itself, which depend on no parameter of a network."""
        if self.network.rules != "smpi" or self.quantity is not CostQuantity.TIME:
            return np.zeros(np.shape(size))
        return (size + HEADER) / TO_ITSELF * _NS

    def latency(self, far: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Price of the latency alone."""
        if self.quantity not in (CostQuantity.TIME, CostQuantity.LATENCY_TIME):
            return np.full(far.shape, float(self.quantity is CostQuantity.LATENCY))
        return _time(self.network, np.zeros(far.shape), far, self.network.latency) * _NS


def _time(
    network: Network, size: NDArray[Any], far: NDArray[np.bool_], latency: float
) -> NDArray[np.float64]:
    if network.tiers is None:
        return np.asarray(transfer_time(size, latency, network.bandwidth), np.float64)
    time = np.empty(np.shape(size))
    for apart in (False, True):
        if (mine := far == apart).any():
            time[mine] = _tier(network.tiers, far=apart).time(size[mine])
    return time


def _pieces(network: Network, size: NDArray[Any], far: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Latency (s), time per byte (s/B) and bytes of messages: float64[3, ...]."""
    pieces = np.empty((3, *np.shape(size)))
    if network.tiers is None:
        pieces[0], pieces[1], pieces[2] = network.latency, 1 / network.bandwidth, size
        return pieces
    for apart in (False, True):
        if (mine := far == apart).any():
            tier = _tier(network.tiers, far=apart)
            pieces[:, mine] = _of_tier(tier, np.asarray(size[mine], np.float64))
    return pieces


def _of_tier(tier: Tier, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `popmodel.network.point_to_point.by_size`, which gives their sum.

    Where the class below takes longer with its largest message, its latency and bytes count.
    """
    floor = np.zeros(3)
    pieces = np.zeros((3, len(size)))
    left = np.ones(len(size), np.bool_)
    for entry in tier.classes:
        line = np.array([float(entry.alpha), float(entry.beta)])
        below = line[0] + line[1] * size < floor[0] + floor[1] * floor[2]
        mine = left if entry.upto is None else left & (size <= entry.upto)
        of_class = np.where(below, floor[:, None], np.stack([*np.broadcast_arrays(*line, size)]))
        pieces[:, mine] = of_class[:, mine]
        left = left & ~mine
        if entry.upto is not None:
            top = np.array([*line, float(entry.upto)])
            if top[0] + top[1] * top[2] > floor[0] + floor[1] * floor[2]:
                floor = top
    return pieces


def _tier(tiers: Tiers, *, far: bool) -> Tier:
    """The tier of a distance; members that are all on nodes of their own have none within."""
    return (tiers.between if far else tiers.within) or tiers.slowest


# Messages and collectives of a program that cost the same on every network.
#
# A program has millions of messages of a few sizes: what they cost is found once for each class.


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

    def joined(self, more: MessageClasses) -> MessageClasses:
        """Return these and more."""
        columns = zip(vars(self).values(), vars(more).values(), strict=True)
        return MessageClasses(*map(np.concatenate, columns))


CostGroup: TypeAlias = tuple[int, bool, "NDArray[np.int64]"]
"""Collectives of one kind that all leave a node, or none: the kind, which, and their rows."""


def _groups(kind: NDArray[np.int8], apart: NDArray[np.bool_]) -> tuple[CostGroup, ...]:
    """Return the groups of some collectives."""
    return tuple(
        (code, far, rows)
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
    def groups(self) -> tuple[CostGroup, ...]:
        """Those of one kind and distance."""
        return _groups(self.kind, self.apart)


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
    apart = np.full(len(program.collectives), several)
    if several:
        communicator = program.collectives.communicator
        for number in distinct(communicator).tolist():
            listed = program.communicators.get(number)
            if number and listed is not None:
                apart[communicator == number] = len(distinct(program.nodes[listed])) > 1
    return apart


# What each message and each collective of a program costs.


class Rule(IntEnum):
    """Who waits for whom in a collective; the compiled engine uses the same numbers."""

    SYNCHRONISING = 0  #: all leave when the last has arrived, plus the cost
    FROM_ROOT = 1  #: members leave when the root has arrived, plus the cost; the root goes on
    TO_ROOT = 2  #: the root leaves when all have arrived, plus the cost; members go on
    TO_ROOT_PAID = 3  #: everyone pays a cost; the root leaves when all have, members go on
    MESSAGES = 4  #: carried out as messages
    LAST_DECIDES = 5  #: all leave when the last has arrived, plus the cost that it brings


_READINGS: Mapping[str, Mapping[str, Rule]] = {
    "dimemas": {"reduce": Rule.TO_ROOT_PAID},
    "synchronising": {},
    "rooted": {
        kind: Rule.FROM_ROOT if kind in ("bcast", "scatter") else Rule.TO_ROOT for kind in ROOTED
    },
}
"""By reading: the collectives that do not synchronise all members."""


@dataclass(frozen=True)
class Charges:
    """Costs of messages and collectives, by class; times in ns.

    Rows of messages beyond the program's own are for those of its collectives.
    """

    transfer: NDArray[np.float64]  # float64[K]: From the departure of a message to its arrival
    # uint8[K]: 0: eager, 1: the transfer and a blocking send wait for the receive to be posted, 2:
    # the transfer does, the sender goes on (detached).
    rendezvous: NDArray[np.uint8]
    # float64[K]: Busy time of the sender before the message leaves.
    send_overhead: NDArray[np.float64]
    # float64[K]: Busy time of the receiver before it waits for a message.
    receive_before: NDArray[np.float64]
    # float64[K]: Busy time of the receiver of a message that has arrived.
    receive_after: NDArray[np.float64]
    # Whether a rendezvous sender ends with the transfer or goes on once the receive is posted.
    sender_waits_for_transfer: bool
    # float64[L]: Cost of those who wait in a collective, and of members that do not
    # (`Rule.TO_ROOT_PAID`).
    collective_cost: NDArray[np.float64]
    member_cost: NDArray[np.float64]
    collective_rule: NDArray[np.uint8]  # uint8[L]: `Rule` of each class of collectives
    # float64[L]: Busy time of a member in a nonblocking call, and again in the wait for it.
    request_cost: NDArray[np.float64]
    # float64[U]: Of every arrival of `Program.uneven`: the cost of the collective if it is the last
    # there.
    uneven_cost: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def charge(
    program: Program,
    classes: Classes,
    network: Network,
    messages: MessageClasses | None = None,
    quantity: CostQuantity = CostQuantity.TIME,
) -> Charges:
    """Return the costs of messages and collectives on a network without shared resources.

    `messages` are the classes of the program's messages and those that its collectives send.
    """
    by = Price(network, quantity)
    return Charges(
        **_of_messages(classes.messages if messages is None else messages, network, by),
        **_of_collectives(program, classes, network, by),
    )


def rendezvous(messages: MessageClasses, network: Network) -> NDArray[np.uint8]:
    """Tell of each class of messages whether it waits for its receive: `Charges.rendezvous`."""
    if network.tiers is None:
        waits = np.asarray(waits_for_receiver(messages.size, network.eager_threshold))
    else:
        waits = network.tiers.waits(messages.size, messages.distance == BETWEEN)
    buffered = messages.mode != 0
    if network.rules == "smpi":
        detached = waits & (buffered | (messages.size < network.send_is_detached_thresh))
        waiting: NDArray[np.uint8] = waits.astype(np.uint8) + detached
        return waiting
    return np.asarray(waits & ~buffered, np.uint8)


def _of_messages(messages: MessageClasses, network: Network, by: Price) -> dict[str, Any]:
    dimemas = network.rules == "dimemas"
    size, remote = messages.size, messages.distance != SELF
    far = messages.distance == BETWEEN
    time = by.of(size, far, bare=dimemas)
    before = np.where(remote, by.latency(far), 0.0) if dimemas else np.zeros(len(size))
    send, after = (np.where(remote, busy, 0.0) for busy in by.overheads(far))
    return {
        "transfer": np.where(remote, time, by.to_itself(size)),
        "rendezvous": rendezvous(messages, network),
        "send_overhead": before + send,
        "receive_before": before,
        "receive_after": after,
        "sender_waits_for_transfer": not dimemas,
    }


def _of_collectives(
    program: Program, classes: Classes, network: Network, by: Price
) -> dict[str, Any]:
    many = classes.collectives
    nothing = np.zeros(len(many))
    if network.collectives not in _READINGS:  # carried out as messages
        return {
            "collective_cost": nothing,
            "member_cost": nothing,
            "collective_rule": np.full(len(many), Rule.MESSAGES, dtype=np.uint8),
            "request_cost": nothing,
            "uneven_cost": np.zeros(len(program.uneven.operation)),
        }
    reduced = (many.kind == COLLECTIVES.index("reduce")) & many.rooted
    at_root = _recorded(np.where(reduced, many.root_sent, many.sent), many)
    rule = rules(many.kind, many.rooted, network.collectives)
    uneven, brought = program.uneven, np.zeros(len(program.uneven.operation))
    times = partial(_times, network=network, by=by)
    if network.collectives == "dimemas":
        rule[many.uneven] = Rule.LAST_DECIDES
        row = classes.collective[uneven.collective]
        groups = _groups(many.kind[row], many.apart[row])
        sent = _recorded(uneven.sent, many, row)
        brought = times(groups, many.members[row], sent, uneven.received)
    # of those who wait, and of members that do not
    sent = np.stack([at_root, many.sent])
    cost, member_cost = times(many.groups, many.members, sent, np.stack([many.received, many.sent]))
    busy = by.latency(many.apart) if network.rules == "dimemas" else nothing
    return {
        "collective_cost": cost,
        "member_cost": member_cost,
        "collective_rule": rule,
        "request_cost": np.where(many.members > 1, busy, 0.0),
        "uneven_cost": brought,
    }


def _recorded(
    sent: NDArray[np.int64],
    many: CollectiveClasses,
    row: NDArray[np.int32] | slice = slice(None),
) -> NDArray[np.float64]:
    """Bytes that Extrae records as sent, which Dimemas charges: of Alltoall those to one peer."""
    one_of = (many.kind[row] == COLLECTIVES.index("alltoall")) & ~many.by_peer[row]
    return np.asarray(sent / np.where(one_of, np.maximum(many.members[row], 1), 1))


def _times(
    groups: Sequence[CostGroup],
    members: NDArray[np.int32],
    sent: NDArray[np.float64],
    received: NDArray[np.int64],
    *,
    network: Network,
    by: Price,
) -> NDArray[np.float64]:
    """Costs of collectives, along the last axis, of groups that have all of them."""
    cost = np.zeros(sent.shape)
    for kind, apart, rows in groups:
        cost[..., rows] = collective_time(
            COLLECTIVES[kind],
            members[rows],
            sent[..., rows],
            received[..., rows],
            partial(_of_all, by, apart),
            network.collective_cost,
        )
    return cost


def _of_all(by: Price, far: bool, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Prices of messages that all leave their node, or none, with what both sides pay."""
    apart = np.full(np.shape(size), far)
    send, receive = by.overheads(apart)
    return send + by.of(size, apart) + receive


def rules(kind: NDArray[np.int8], rooted: NDArray[np.bool_], reading: str) -> NDArray[np.uint8]:
    """Return the `Rule` of each collective."""
    rule_of = np.zeros(len(kind), dtype=np.uint8)
    for name, rule in _READINGS[reading].items():
        rule_of[(kind == COLLECTIVES.index(name)) & rooted] = rule
    return rule_of


# Programs and what they cost, as the compiled engine takes them.


_T = TypeVar("_T")

# Columns of charges that are times, in the order of the compiled walk's tables, from 1.
TABLES = (
    "send_overhead",
    "receive_before",
    "receive_after",
    "transfer",
    "collective_cost",
    "member_cost",
    "request_cost",
    "uneven_cost",
)


def filled(lanes: Sequence[_T]) -> list[_T]:
    """As many of what lanes have as the engine has lanes; the last one fills them."""
    return [*lanes, *[lanes[-1]] * (_kernel.LANES - len(lanes))]


def core(
    program: Program, message_class: NDArray[np.int32], collective_class: NDArray[np.int32]
) -> _kernel.Replay:
    """Hand a program to the compiled engine, which checks it once."""
    return _kernel.Replay(
        offsets=program.offsets,
        kind=program.kind,
        target=program.target,
        burst=program.burst,
        tail=program.tail,
        message_class=message_class,
        collective_class=collective_class,
        members=program.collectives.members,
        root=program.collectives.root,
        uneven_operation=program.uneven.operation,
    )


def costs(
    charges: Sequence[Charges],
    cpu: Sequence[NDArray[np.float64]],
    signs: Sequence[float] | None = None,
) -> _kernel.Costs:
    """Hand the charges of one or several networks to the compiled engine."""
    sign = np.ones((len(charges), 1)) if signs is None else np.array(signs)[:, None]
    rows: dict[str, Any] = {
        name: np.stack([getattr(one, name) for one in charges]) * sign for name in TABLES
    }
    first = charges[0]
    return _kernel.Costs(
        cpu=np.stack(cpu),
        rendezvous=first.rendezvous,
        collective_rule=first.collective_rule,
        sender_waits_for_transfer=first.sender_waits_for_transfer,
        **rows,
    )
