"""What each message and each collective of a program costs."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.arrays import distinct
from popmodel.network.collectives import ROOTED
from popmodel.network.fan import collective_time
from popmodel.network.point_to_point import transfer_time, waits_for_receiver
from popmodel.simulator.program import COLLECTIVES, NONE_UNEVEN
from popmodel.trace.blocks import walk
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.program import Collectives, Messages, Program

__all__ = ["Charges", "Rule", "charge", "rules"]

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
    """Costs of the messages and collectives of a program; times in ns.

    Rows of messages beyond those of the program are for those of its collectives.

    Attributes
    ----------
    transfer : float64[M]
        From the departure of a message to its arrival.
    rendezvous : uint8[M]
        Whether a blocking send waits for its receive to be posted.
    send_overhead : float64[M]
        Busy time of the sender before the message leaves.
    receive_before : float64[M]
        Busy time of the receiver before it waits for a message.
    receive_after : float64[M]
        Busy time of the receiver of a message that has arrived.
    sender_waits_for_transfer : bool
        Whether a rendezvous sender ends with the transfer or goes on once the receive is posted.
    collective_cost, member_cost : float64[C]
        Cost of those who wait in a collective, and of members that do not (`Rule.TO_ROOT_PAID`).
    collective_rule : uint8[C]
        `Rule` of each collective.
    request_cost : float64[C]
        Busy time of a member in a nonblocking call, and again in the wait for it.
    uneven_operation, uneven_cost : int64[U], float64[U]
        Operations that arrive at a collective of `Rule.LAST_DECIDES`, ascending, and the cost of
        the collective if this one is the last.
    """

    transfer: NDArray[np.float64]
    rendezvous: NDArray[np.uint8]
    send_overhead: NDArray[np.float64]
    receive_before: NDArray[np.float64]
    receive_after: NDArray[np.float64]
    sender_waits_for_transfer: bool
    collective_cost: NDArray[np.float64]
    member_cost: NDArray[np.float64]
    collective_rule: NDArray[np.uint8]
    request_cost: NDArray[np.float64]
    uneven_operation: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    uneven_cost: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def charge(program: Program, network: Network, messages: Messages | None = None) -> Charges:
    """Return the costs of messages and collectives on a network without shared resources.

    Parameters
    ----------
    program : Program
        With its collectives, and where its processes are.
    network : Network
        What communication costs.
    messages : Messages, optional
        Those to be charged, where there are more than the program's own: those of its collectives.
    """
    return Charges(
        **_of_messages(program, program.messages if messages is None else messages, network),
        **_of_collectives(program, network),
    )


def _of_messages(program: Program, messages: Messages, network: Network) -> dict[str, Any]:
    dimemas = network.rules == "dimemas"
    transfer, rendezvous = np.empty(len(messages)), np.empty(len(messages), np.uint8)
    send, before, after = (_nothing(len(messages)) for _ in range(3))
    for block in walk(messages.sender, messages.receiver, messages.size):
        sender, receiver = messages.sender[block], messages.receiver[block]
        size = messages.size[block]
        remote = sender != receiver
        apart = program.nodes[sender] != program.nodes[receiver]
        if network.tiers is not None:
            time = network.tiers.message_times(size, apart)
            waits = network.tiers.waits(size, apart)
        else:
            latency = 0.0 if dimemas else network.latency
            time = _flat_time(size, latency, network.bandwidth)
            waits = np.asarray(waits_for_receiver(size, network.eager_threshold))
        transfer[block] = np.where(remote, time * _NS, 0.0)
        rendezvous[block] = waits & (messages.mode[block] == 0)
        if dimemas:
            before[block] = np.where(remote, network.latency * _NS, 0.0)
            send[block] = before[block]
        for column, overhead in zip((send, after), network.overheads(apart), strict=True):
            if np.any(overhead):
                column[block] += np.where(remote, overhead * _NS, 0.0)
    return {
        "transfer": transfer,
        "rendezvous": rendezvous,
        "send_overhead": send,
        "receive_before": before,
        "receive_after": after,
        "sender_waits_for_transfer": not dimemas,
    }


def _nothing(count: int) -> NDArray[np.float64]:
    """Zeros that take no memory until they are written: pages of the system that nobody owns.

    NumPy's do so only where they do not reuse what was freed.
    """
    private = mmap.mmap(-1, max(8 * count, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(private, np.float64, count)


def _of_collectives(program: Program, network: Network) -> dict[str, Any]:
    collectives, uneven = program.collectives, program.uneven
    nothing = np.zeros(len(collectives))
    if network.collectives == "algorithm":
        return {
            "collective_cost": nothing,
            "member_cost": nothing,
            "collective_rule": np.full(len(collectives), Rule.MESSAGES, dtype=np.uint8),
            "request_cost": nothing,
        }
    kind, members, sent = collectives.kind, collectives.members, collectives.sent
    reduced = (kind == COLLECTIVES.index("reduce")) & (collectives.root >= 0)
    at_root = np.where(reduced, collectives.root_sent, sent)
    rule = rules(collectives, network.collectives)
    if network.collectives == "dimemas":
        rule[uneven.collective] = Rule.LAST_DECIDES
    else:
        uneven = NONE_UNEVEN
    busy = network.latency * _NS if network.rules == "dimemas" else 0.0
    apart = np.zeros(len(kind), dtype=bool) if network.tiers is None else _over_nodes(program)
    of_uneven = kind[uneven.collective], members[uneven.collective], apart[uneven.collective]
    return {
        "collective_cost": _times(
            kind, members, apart, at_root, collectives.received, network=network
        ),
        "member_cost": _times(kind, members, apart, sent, sent, network=network),
        "collective_rule": rule,
        "request_cost": np.where(members > 1, busy, 0.0),
        "uneven_operation": uneven.operation,
        "uneven_cost": _times(*of_uneven, uneven.sent, uneven.received, network=network),
    }


def _over_nodes(program: Program) -> NDArray[np.bool_]:
    """Whether each collective has members on several nodes."""
    several = bool(len(distinct(program.nodes)) > 1)
    found = np.full(len(program.collectives), several)
    if several:
        communicator = program.collectives.communicator
        for number in distinct(communicator).tolist():
            if number:
                nodes = program.nodes[program.communicators[number]]
                found[communicator == number] = len(distinct(nodes)) > 1
    return found


def _times(
    kind: NDArray[np.int8],
    members: NDArray[np.int32],
    apart: NDArray[np.bool_],
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
    *,
    network: Network,
) -> NDArray[np.float64]:
    """Costs of collectives, ns; `apart` tells which ones leave a node."""
    found = np.zeros(len(kind))
    for code in distinct(kind).tolist():
        for far in (False, True):
            mine = (kind == code) & (apart == far)
            if mine.any():
                found[mine] = _NS * collective_time(
                    COLLECTIVES[code],
                    members[mine],
                    sent[mine],
                    received[mine],
                    _message(network, far=far),
                    network.collective_cost,
                )
    return found


def _flat_time(size: NDArray[Any], latency: float, bandwidth: float) -> NDArray[np.float64]:
    """From sizes to the times of messages where all cost alike, s."""
    return np.asarray(transfer_time(size, latency, bandwidth), np.float64)


def _message(
    network: Network, *, far: bool
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """From sizes to the times of messages inside a node or between nodes, s."""
    if network.tiers is None:
        busy = network.send_overhead + network.receive_overhead
        return partial(_flat_time, latency=network.latency + busy, bandwidth=network.bandwidth)
    tier = network.tiers.between if far else network.tiers.within
    # members that are all on nodes of their own have no tier within
    return (tier or network.tiers.slowest).whole_time


def rules(collectives: Collectives, reading: str) -> NDArray[np.uint8]:
    """Return the `Rule` of each collective.

    Parameters
    ----------
    collectives : Collectives
        With their roots; where nobody is known to be the root, nobody can go on early or be
        waited for.
    reading : str
        One of `popmodel.network.network.READINGS` but ``algorithm``.
    """
    found = np.zeros(len(collectives), dtype=np.uint8)
    for kind, rule in _READINGS[reading].items():
        found[(collectives.kind == COLLECTIVES.index(kind)) & (collectives.root >= 0)] = rule
    return found
