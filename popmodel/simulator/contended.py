"""Replaying a program on a network whose links messages share, in order of time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import distinct
from popmodel.kernel import _kernel
from popmodel.network.point_to_point import NO_ROUTES, Routes, over_links, within_nodes
from popmodel.simulator.costs import BETWEEN, SELF, CostQuantity, Price, Rule, costs
from popmodel.simulator.execution import stopped
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.costs import Charges, MessageClasses
    from popmodel.simulator.program import Program

_NS = 1e9


class Times(NamedTuple):
    """When things happen, ns."""

    last: NDArray[np.float64]  # float64[P]: When each process ends
    # float64[N]: When each operation begins, after the computing before it, and ends; empty if
    # nobody asked.
    begin: NDArray[np.float64]
    end: NDArray[np.float64]


@dataclass(frozen=True)
class TransferPlan:
    """What is carried out, and which charges it has."""

    program: Program  # What every process does
    # The same as the compiled engine has it, with the rows of the charges of its messages and
    # collectives.
    core: _kernel.Replay
    # How its collectives are carried out as messages, if they are.
    carried: _kernel.Carried | None = None


@dataclass(frozen=True)
class LinkLoad:
    """What messages put on links; rows as those of the charges of messages."""

    # float64[M]: How long a message holds links if nothing is in its way, ns.
    busy: NDArray[np.float64]
    bytes: NDArray[np.float64]  # float64[M]: What it sends


def carry_on(
    plan: TransferPlan,
    network: Network,
    charges: Charges,
    messages: MessageClasses,
    cpu: NDArray[np.float64],
    *,
    moments: bool = False,
) -> Times:
    """Carry a program out on a network, with messages that wait for each other.

    Notes
    -----
    Messages that are ready at the same time start in the order of their senders' numbers. Memory
    beyond the program: 48 B for each message, and 32 B for each one that is under way at a time.
    """
    nodes = plan.program.nodes
    node = np.searchsorted(distinct(nodes), nodes).astype(np.int32, copy=False)
    routes = None
    if network.flow_level:
        everywhere = bool((charges.collective_rule == Rule.MESSAGES).any())
        pairs = _pairs(plan.program, node, everywhere=everywhere)
        routes = (
            over_links(network, *pairs)
            if network.topology is None
            else replace(network.topology.routes(*pairs), within=within_nodes(network))
        )
    by_bytes = Price(network, CostQuantity.BYTES_TIME).of(
        messages.size, messages.distance == BETWEEN
    )
    busy = np.where(messages.distance == SELF, 0.0, by_bytes)
    load = LinkLoad(busy, messages.size.astype(np.float64))
    return carry(plan, charges, load, node, routes or network, cpu, moments=moments)


def carry(
    plan: TransferPlan,
    charges: Charges,
    load: LinkLoad,
    node: NDArray[np.int32],
    shared: Routes | Network,
    cpu: NDArray[np.float64],
    *,
    moments: bool = False,
) -> Times:
    """Carry a program out whose messages have their load on links already."""
    program = plan.program
    fair = isinstance(shared, Routes)
    routes = shared if isinstance(shared, Routes) else NO_ROUTES
    names = ("output_links", "input_links", "links_within", "buses")
    output, into, within, buses = (0 if fair else getattr(shared, name) for name in names)
    nodes = int(node.max(initial=-1)) + 1
    last, stuck_at, begin, end = _kernel.replay_contended(
        plan.core,
        costs([charges], [cpu]),
        plan.carried,
        sender=program.messages.sender,
        receiver=program.messages.receiver,
        **vars(load),
        place=node,
        fair=fair,
        output=output,
        input=into,
        within=within,
        buses=buses,
        pair=routes.sender.astype(np.int64) * nodes + routes.receiver,
        route_offsets=routes.offsets,
        route_link=routes.link,
        route_latency=routes.latency * _NS,
        capacity=routes.capacity / _NS,
        capacity_within=routes.within / _NS,
        moments=moments,
    )
    if (error := stopped(program, stuck_at, last)) is not None:
        raise error
    return Times(last, begin, end)


def spent_in_calls(
    program: Program,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    places: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Sum up the time in the calls of each place and name, s.

    `places` has the place of each call; it is empty where there is one for all.
    """
    names, rows = len(program.call_name), int(places.max(initial=0)) + 1
    place = places[program.call] if len(places) else np.int32(0)
    which = place * names + program.call_code[program.call]
    return np.bincount(which, end - begin, rows * names).reshape(rows, names) / _NS


def _pairs(
    program: Program, node: NDArray[np.int32], *, everywhere: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pairs of different nodes between which messages may go, ascending."""
    nodes = int(node.max(initial=-1)) + 1
    if everywhere:
        pair = np.arange(nodes * nodes)
    else:
        sender, receiver = node[program.messages.sender], node[program.messages.receiver]
        pair = distinct(sender.astype(np.int64) * nodes + receiver)
    first, second = pair // max(nodes, 1), pair % max(nodes, 1)
    apart = first != second
    return first[apart].astype(np.int32), second[apart].astype(np.int32)
