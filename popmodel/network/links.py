"""Resources that messages share: links of nodes, links inside nodes, buses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import UsageError, did_you_mean
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network

__all__ = ["SHARING", "Routes", "check_count", "check_sharing", "no_routes", "over_links"]

#: How messages share a link.
#:
#: ``fifo``
#:     A message holds an output link of its sender's node, an input link of its receiver's and a
#:     bus for as long as its bytes take; others wait for them in order (Dimemas).
#: ``fair``
#:     Messages that use a link at the same time share its bandwidth, max-min fairly: each gets as
#:     much as it can without taking from one that has less (flow level, as in SimGrid).
SHARING = ("fifo", "fair")


def check_count(value: int, what: str) -> None:
    """Refuse a number of resources that is not a whole number from 0 (as many as needed)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(
            f"{what} must be a whole number of at least 0, not {value!r}",
            "0 means as many as are needed",
        )


def check_sharing(value: str) -> None:
    """Refuse a way to share links that is not known."""
    if value not in SHARING:
        raise UsageError(
            f"unknown sharing of links {value!r}",
            did_you_mean(value, SHARING, f"choose one of {', '.join(SHARING)}"),
        )


@dataclass(frozen=True)
class Routes:
    """Over which links messages go between nodes, and what those carry.

    Attributes
    ----------
    sender, receiver : int32[R]
        Nodes of each route, by number from 0, ascending by sender, then receiver.
    offsets : int64[R + 1]
        Rows of each route in `link` and `weight`.
    link : int32[K]
        Links of a route.
    weight : float64[K]
        What it takes of them for each byte that it carries.
    latency : float64[R]
        Time on the way beside that of any message, s.
    capacity : float64[L]
        What each link carries, B/s.
    within : float
        What the links of each process inside its node carry, each way, B/s; 0: as much as needed.
    """

    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    offsets: NDArray[np.int64]
    link: NDArray[np.int32]
    weight: NDArray[np.float64]
    latency: NDArray[np.float64]
    capacity: NDArray[np.float64]
    within: float = 0.0


def no_routes() -> Routes:
    """Say that no message shares a link with another."""
    none = np.empty(0, np.int32)
    nothing = np.empty(0)
    return Routes(none, none, np.zeros(1, np.int64), none, nothing, nothing, nothing)


def over_links(network: Network, sender: NDArray[np.int32], receiver: NDArray[np.int32]) -> Routes:
    """Lead messages between nodes over their output links, input links and buses.

    n links of a node are one that carries n times the bandwidth of a message; so are n buses.

    Parameters
    ----------
    network : Network
        With limits on links or buses.
    sender, receiver : int32[R]
        Pairs of different nodes, ascending.
    """
    tiers = network.tiers
    far = network.bandwidth if tiers is None or tiers.between is None else tiers.between.bandwidth
    near = network.bandwidth if tiers is None or tiers.within is None else tiers.within.bandwidth
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
    link = np.stack(columns, axis=1).reshape(-1) if columns else np.empty(0, np.int32)
    return Routes(
        sender,
        receiver,
        np.arange(len(sender) + 1, dtype=np.int64) * len(columns),
        link,
        np.ones(len(link)),
        np.zeros(len(sender)),
        np.concatenate([np.empty(0), *capacity]),
        network.links_within * near if np.isfinite(near) and network.links_within else 0.0,
    )
