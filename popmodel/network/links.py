"""Resources that messages share: links of nodes, links inside nodes, buses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.network.routes import NO_ROUTES, Routes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network


def over_links(network: Network, sender: NDArray[np.int32], receiver: NDArray[np.int32]) -> Routes:
    """Lead messages between nodes over their output links, input links and buses.

    n links of a node are one that carries n times the bandwidth of a message; so are n buses.
    """
    tiers = network.tiers
    far = network.bandwidth if tiers is None or tiers.between is None else tiers.between.bandwidth
    nodes = int(max(sender.max(initial=-1), receiver.max(initial=-1))) + 1
    output, into = network.output_links, network.input_links
    columns: list[NDArray[np.int32]] = []
    capacity: list[NDArray[np.float64]] = []
    if np.isfinite(far):
        if output or into:
            # A half-duplex link that goes in is one of those that go out.
            both = bool(output) and bool(into)
            columns = [sender, receiver + np.int32(nodes if both else 0)]
            capacity = [np.full(nodes, (output or into) * far)]
            if both:
                capacity.append(np.full(nodes, into * far))
        if network.buses:
            first = sum(map(len, capacity))
            columns.append(np.full(len(sender), first, np.int32))
            capacity.append(np.array([network.buses * far]))
    if not columns:
        return replace(NO_ROUTES, within=within_nodes(network))
    return Routes(
        sender,
        receiver,
        np.arange(len(sender) + 1, dtype=np.int64) * len(columns),
        np.stack(columns, axis=1).reshape(-1),
        np.zeros(len(sender)),
        np.concatenate(capacity),
        within_nodes(network),
    )


def within_nodes(network: Network) -> float:
    """What the links of a process inside its node carry, each way, B/s; 0: as much as needed."""
    tiers = network.tiers
    near = network.bandwidth if tiers is None or tiers.within is None else tiers.within.bandwidth
    return network.links_within * near if network.links_within and np.isfinite(near) else 0.0
