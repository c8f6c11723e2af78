"""What messages and collectives cost on a network without tiers, as counts, in plain Python.

Every cost is some latencies and some bytes. Read off the rules of `popmodel.network.network` and of
`popmodel.network.collectives`; shares no code with the product.
"""

import math
from typing import NamedTuple

from popmodel.network.network import Network
from popmodel.simulator.program import COLLECTIVES, Program

SYNCHRONISING, FROM_ROOT, TO_ROOT, TO_ROOT_PAID = range(4)


class Cost(NamedTuple):
    """How many latencies, and how many bytes."""

    latency: float = 0.0
    bytes: float = 0.0


class Costs(NamedTuple):
    """Of every message and every collective of a program; names are those of `Charges`."""

    transfer: list[Cost]
    rendezvous: list[bool]
    send_overhead: list[Cost]
    receive_before: list[Cost]
    receive_after: list[Cost]
    collective_cost: list[Cost]
    member_cost: list[Cost]
    collective_rule: list[int]
    request_cost: list[Cost]
    sender_waits_for_transfer: bool


FREE = Cost()


def costs(program: Program, network: Network) -> Costs:
    """Costs on a network without overheads; collectives are not carried out as messages."""
    dimemas = network.rules == "dimemas"
    transfer, rendezvous, overhead = [], [], []
    m = program.messages
    for sender, receiver, size, mode in zip(
        *(column.tolist() for column in (m.sender, m.receiver, m.size, m.mode)), strict=True
    ):
        itself = sender == receiver
        transfer.append(FREE if itself else Cost(0.0 if dimemas else 1.0, size))
        rendezvous.append(size >= network.eager_threshold and mode == 0)
        overhead.append(Cost(1.0) if dimemas and not itself else FREE)
    of_all, of_member, rule, request = [], [], [], []
    c = program.collectives
    for kind, members, root, sent, received, root_sent, by_peer in zip(
        *(
            column.tolist()
            for column in (c.kind, c.members, c.root, c.sent, c.received, c.root_sent, c.by_peer)
        ),
        strict=True,
    ):
        name = COLLECTIVES[kind]
        at_root = root_sent if name == "reduce" and root >= 0 else sent
        to_one = name == "alltoall" and not by_peer  # what is recorded as sent
        at_root = sent / max(members, 1) if to_one else at_root
        of_all.append(_fan(name, members, at_root, received, network.collective_cost))
        of_member.append(_fan(name, members, sent, sent, network.collective_cost))
        rule.append(_rule(name, root, network.collectives))
        request.append(Cost(1.0) if dimemas and members > 1 else FREE)
    return Costs(
        transfer=transfer,
        rendezvous=rendezvous,
        send_overhead=overhead,
        receive_before=overhead,
        receive_after=[FREE] * len(transfer),
        collective_cost=of_all,
        member_cost=of_member,
        collective_rule=rule,
        request_cost=request,
        sender_waits_for_transfer=not dimemas,
    )


def _fan(kind: str, members: int, sent: float, received: float, model: str) -> Cost:
    """A stage in and a stage out, each a number of times."""
    if members <= 1:
        return FREE
    often = {"constant": 1, "linear": members - 1, "logarithmic": math.ceil(math.log2(members))}
    times = often[model]
    if kind in ("init", "barrier"):
        return Cost(2 * times)
    if kind == "bcast":
        return Cost(2 * times, max(sent, received) * times)
    if kind == "reduce":
        return Cost(1, sent)
    return Cost(2 * times, (sent + received) * times)


def _rule(kind: str, root: int, reading: str) -> int:
    if root < 0:
        return SYNCHRONISING
    if reading == "dimemas" and kind == "reduce":
        return TO_ROOT_PAID
    if reading == "rooted" and kind in ("bcast", "scatter"):
        return FROM_ROOT
    if reading == "rooted" and kind in ("reduce", "gather"):
        return TO_ROOT
    return SYNCHRONISING
