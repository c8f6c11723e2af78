"""Replaying a program on a network whose links messages share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.kernel import _kernel
from popmodel.network.links import over_links, within_nodes
from popmodel.network.routes import NO_ROUTES, Routes
from popmodel.simulator.algorithms import carry_out, not_carried_out
from popmodel.simulator.charges import Rule, charge
from popmodel.simulator.engine import Execution, deadlock
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.algorithms import Carried
    from popmodel.simulator.charges import Charges
    from popmodel.simulator.program import Messages, Program

__all__ = ["Load", "Moments", "carry", "replay_contended", "spent_in_calls"]

_NS = 1e9


@dataclass(frozen=True)
class Moments:
    """When the operations of a program happen.

    Attributes
    ----------
    begin, end : float64[N]
        When each operation begins, after the computing before it, and when it ends, ns.
    """

    begin: NDArray[np.float64]
    end: NDArray[np.float64]


def replay_contended(
    program: Program, network: Network, *, moments: bool = False
) -> tuple[Execution, Moments | None]:
    """Replay a program in order of time, with messages that wait for each other.

    Parameters
    ----------
    program : Program
        What every process does.
    network : Network
        What communication costs, and what it shares. Without limits this is the same replay as on
        a network without shared resources.
    moments : bool
        Whether to tell when every operation happens.

    Returns
    -------
    Execution, Moments or None
        The end of every process; when its operations happen.

    Raises
    ------
    ReplayError
        On a deadlock or an unmatched message; names ranks, operations and times.

    Notes
    -----
    Messages that are ready at the same time start in the order of their senders' numbers.
    """
    carried, messages = None, program.messages
    if network.collectives == "algorithm":
        tiers = network.tiers is not None
        carried, messages = carry_out(program, network.algorithms, tiers=tiers)
    charges = charge(program, network, messages)
    node = np.searchsorted(distinct(program.nodes), program.nodes).astype(np.int32, copy=False)
    routes = None
    if network.flow_level:
        everywhere = bool((charges.collective_rule == Rule.MESSAGES).any())
        pairs = _pairs(program, node, everywhere=everywhere)
        routes = (
            over_links(network, *pairs)
            if network.topology is None
            else replace(network.topology.routes(*pairs), within=within_nodes(network))
        )
    cpu = 1 / network.cpu(program.processes)
    load = Load(_busy(program, messages, network), messages.size.astype(np.float64))
    clock, found = carry(
        program, charges, load, node, routes or network, cpu=cpu, carried=carried, moments=moments
    )
    compute = program.compute() * cpu / _NS
    return Execution(network, clock / _NS, compute, program.operations), found


@dataclass(frozen=True)
class Load:
    """What messages put on links; rows as those of the charges of messages.

    Attributes
    ----------
    busy : float64[M]
        How long a message holds links if nothing is in its way, ns.
    bytes : float64[M]
        What it sends.
    """

    busy: NDArray[np.float64]
    bytes: NDArray[np.float64]


def carry(
    program: Program,
    charges: Charges,
    load: Load,
    node: NDArray[np.int32],
    shared: Routes | Network,
    *,
    cpu: NDArray[np.float64],
    carried: Carried | None = None,
    moments: bool = False,
) -> tuple[NDArray[np.float64], Moments | None]:
    """Replay a program whose messages and collectives have their costs already.

    Parameters
    ----------
    program : Program
        What every process does.
    charges : Charges
        What each of its messages and collectives costs.
    load : Load
        What its messages put on links.
    node : int32[P]
        Node of each process, by number from 0.
    shared : Routes or Network
        Links that messages share fairly, or, of a network, links and buses that they take in turn.
    cpu : float64[P]
        Multiplies the compute bursts of each process.
    carried : Carried, optional
        How the collectives of `Rule.MESSAGES` are carried out.
    moments : bool
        Whether to tell when every operation happens.

    Returns
    -------
    float64[P], Moments or None
        When each process ends, ns; when its operations happen.

    Raises
    ------
    ReplayError
        On a deadlock or an unmatched message; names ranks, operations and times.
    """
    fair = isinstance(shared, Routes)
    routes = shared if isinstance(shared, Routes) else NO_ROUTES
    names = ("output_links", "input_links", "links_within", "buses")
    output, into, within, buses = (0 if fair else getattr(shared, name) for name in names)
    nodes = int(node.max(initial=-1)) + 1
    clock, stuck_at, begin, end = _kernel.replay_contended(
        offsets=program.offsets,
        kind=program.kind,
        target=program.target,
        burst=program.burst,
        tail=program.tail,
        sender=program.messages.sender,
        receiver=program.messages.receiver,
        message_class=np.arange(len(program.messages), dtype=np.int32),
        members=program.collectives.members,
        root=program.collectives.root,
        collective_class=np.arange(len(program.collectives), dtype=np.int32),
        cpu=cpu,
        **vars(load),
        **vars(charges),
        **vars(carried or not_carried_out(program)),
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
    stuck = np.flatnonzero(stuck_at < program.offsets[1:])
    if len(stuck):
        raise deadlock(program, stuck, stuck_at, clock)
    return clock, Moments(begin, end) if moments else None


def spent_in_calls(
    program: Program, moments: Moments, places: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Sum up the time in the calls of each place and name, s.

    `places` has the place of each call; it is empty where there is one for all.
    """
    names = len(program.call_name)
    place = places[program.call] if len(places) else np.int32(0)
    which = place * names + program.call_code[program.call]
    rows = int(places.max(initial=0)) + 1
    found = np.bincount(which, moments.end - moments.begin, rows * names)
    return found.reshape(rows, names) / _NS


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


def _busy(program: Program, messages: Messages, network: Network) -> NDArray[np.float64]:
    """How long each message holds links if nothing is in its way: the time of its bytes, ns."""
    found = np.zeros(len(messages))
    remote = messages.sender != messages.receiver
    size = messages.size[remote]
    if network.tiers is None:
        found[remote] = size / network.bandwidth * _NS
    else:
        nodes = program.nodes
        apart = nodes[messages.sender[remote]] != nodes[messages.receiver[remote]]
        empty = network.tiers.message_times(np.zeros_like(size), apart)
        found[remote] = (network.tiers.message_times(size, apart) - empty) * _NS
    return found
