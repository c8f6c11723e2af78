"""Replaying a program on a network whose links messages share, in order of time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.kernel import _kernel
from popmodel.network.point_to_point import NO_ROUTES, Routes, over_links, within_nodes
from popmodel.simulator.costs import Charges, Rule, costs
from popmodel.simulator.execution import Moments, stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.program import Program

_NS = 1e9


def shared_by(
    network: Network, program: Program, node: NDArray[np.int32], charges: Charges
) -> Routes | Network:
    """What messages share: links that several have at once, or those that one holds at a time."""
    if not network.flow_level:
        return network
    # Pairs of different nodes between which messages may go, ascending.
    nodes = int(node.max(initial=-1)) + 1
    if (charges.collective_rule == Rule.MESSAGES).any():
        pair = np.arange(nodes * nodes)
    else:
        sender, receiver = node[program.messages.sender], node[program.messages.receiver]
        pair = distinct(sender.astype(np.int64) * nodes + receiver)
    first, second = pair // max(nodes, 1), pair % max(nodes, 1)
    ends = first[first != second].astype(np.int32), second[first != second].astype(np.int32)
    if network.topology is None:
        return over_links(network, *ends)
    return replace(network.topology.routes(*ends), within=within_nodes(network))


def carry(
    program: Program,
    core: _kernel.Replay,
    carried: _kernel.Carried | None,
    charges: Charges,
    shared: Routes | Network,
    cpu: NDArray[np.float64],
    *,
    busy: NDArray[np.float64],
    size: NDArray[np.float64],
    node: NDArray[np.int32],
    moments: bool = False,
) -> Moments:
    """Carry a program out with messages that wait for each other.

    `busy` is how long a message of each row of the charges holds links if nothing is in its way,
    ns; `size` its bytes. Messages that are ready at the same time start in the order of their
    senders' numbers. Memory beyond the program: 48 B for each message, and 32 B for each one that
    is under way at a time.
    """
    fair = isinstance(shared, Routes)
    routes = shared if isinstance(shared, Routes) else NO_ROUTES
    names = ("output_links", "input_links", "links_within", "buses")
    output, into, within, buses = (0 if fair else getattr(shared, name) for name in names)
    nodes = int(node.max(initial=-1)) + 1
    last, stuck_at, begin, end = _kernel.replay_contended(
        core,
        costs([charges], [cpu]),
        carried,
        sender=program.messages.sender,
        receiver=program.messages.receiver,
        busy=busy,
        bytes=size,
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
    return Moments(begin, end, last)
