"""What each message and each collective of a program costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.network.collectives import ROOTED
from popmodel.network.fan import collective_time
from popmodel.network.point_to_point import waits_for_receiver
from popmodel.simulator.classes import (
    BETWEEN,
    SELF,
    WITHIN,
    Classes,
    CollectiveClasses,
    Group,
    MessageClasses,
    groups_of,
)
from popmodel.simulator.prices import Price, Quantity
from popmodel.simulator.program import COLLECTIVES, Program
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.algorithms import Sizes

_NS = 1e9


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
    """Costs of messages and collectives, by class (`popmodel.simulator.classes`); times in ns.

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
    sizes: Sizes | None = None,
    quantity: Quantity = Quantity.TIME,
) -> Charges:
    """Return the costs of messages and collectives on a network without shared resources."""
    by = Price(network, quantity)
    messages = classes.messages
    if sizes is not None:
        messages = with_sizes(messages, sizes)
    return Charges(
        **_of_messages(messages, network, by),
        **_of_collectives(program, classes, network, by),
    )


def with_sizes(messages: MessageClasses, sizes: Sizes) -> MessageClasses:
    """Add a class for each size of the messages that collectives send."""
    return MessageClasses(
        np.concatenate([messages.size, sizes.size]),
        np.concatenate([messages.mode, np.zeros(len(sizes.size), np.int8)]),
        np.concatenate([messages.distance, np.where(sizes.far, BETWEEN, WITHIN).astype(np.int8)]),
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
        found: NDArray[np.uint8] = waits.astype(np.uint8) + detached
        return found
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
        groups = groups_of(many.kind[row], many.apart[row])
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
    groups: Sequence[Group],
    members: NDArray[np.int32],
    sent: NDArray[np.float64],
    received: NDArray[np.int64],
    *,
    network: Network,
    by: Price,
) -> NDArray[np.float64]:
    """Costs of collectives, along the last axis, of groups that have all of them."""
    found = np.zeros(sent.shape)
    for group in groups:
        found[..., group.rows] = collective_time(
            COLLECTIVES[group.kind],
            members[group.rows],
            sent[..., group.rows],
            received[..., group.rows],
            partial(_of_all, by, group.apart),
            network.collective_cost,
        )
    return found


def _of_all(by: Price, far: bool, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Prices of messages that all leave their node, or none, with what both sides pay."""
    apart = np.full(np.shape(size), far)
    send, receive = by.overheads(apart)
    return send + by.of(size, apart) + receive


def rules(kind: NDArray[np.int8], rooted: NDArray[np.bool_], reading: str) -> NDArray[np.uint8]:
    """Return the `Rule` of each collective."""
    found = np.zeros(len(kind), dtype=np.uint8)
    for name, rule in _READINGS[reading].items():
        found[(kind == COLLECTIVES.index(name)) & rooted] = rule
    return found
