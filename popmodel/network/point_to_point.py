"""What a message between two processes costs.

All times are in seconds and sizes in bytes. Every function takes numbers, NumPy arrays that
broadcast together, or traced numbers.

Source: R. Hockney, Parallel Computing 20 (1994) 389 (``alpha + beta m``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from popmodel.base.expressions.elementary import Condition, Value, choose, floor, maximum
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from popmodel.network.network import Network


Size: TypeAlias = "Value | NDArray[np.int64]"
"""Bytes of a message: a quantity, or what was measured of many."""


@dataclass(frozen=True)
class SizeClass:
    """Hockney parameters of the messages of at most ``upto`` bytes (None: of any size)."""

    upto: Value | None  # Largest message of the class, bytes
    alpha: Value  # Time of an empty message, s
    beta: Value  # Time per byte, s/B


def waits_for_receiver(size: Size, threshold: Value) -> Condition:
    """Return whether a blocking send waits until its receive is posted (rendezvous).

    A message of at least the threshold waits: so say Dimemas and ``--eager-threshold``. A machine
    profile tells the largest size that does not wait instead; `eager_threshold` converts.
    """
    return size >= threshold


def eager_threshold(largest: Value) -> Value:
    """Return the smallest message that waits for its receive: the next whole byte."""
    return floor(largest) + 1


def transfer_time(size: Size, latency: Value, bandwidth: Value) -> Value:
    """Return ``latency + size / bandwidth``; an infinite bandwidth costs nothing per byte."""
    return latency + size / bandwidth


HEADER = 16
"""Bytes that SimGrid SMPI adds to a message."""
TO_ITSELF = 10e9
"""Bandwidth, B/s, of SimGrid SMPI's messages of a process to itself, which have no latency."""


def hockney(size: Value, alpha: Value, beta: Value) -> Value:
    """Return ``alpha + beta size`` (Hockney 1994)."""
    return alpha + beta * size


def by_size(size: Value, classes: Sequence[SizeClass]) -> Value:
    """Return the Hockney time of a message in its size class.

    A message never takes less time than the largest one of the class below: where measured
    classes do not quite meet, the curve is flat up to the point where the upper one is reached.
    """
    if not classes or classes[-1].upto is not None:
        raise ValueError("the last size class must have no upper bound")
    floor: Value = 0.0
    result: Value = 0.0
    bounded: list[tuple[Value, Value]] = []
    for entry in classes:
        result = maximum(hockney(size, entry.alpha, entry.beta), floor)
        if entry.upto is not None:
            bounded.append((entry.upto, result))
            floor = maximum(hockney(entry.upto, entry.alpha, entry.beta), floor)
    for upto, time in reversed(bounded):
        result = choose(size <= upto, time, result)
    return result


def contended(classes: Sequence[SizeClass], flows: Value, shared_gap: Value) -> list[SizeClass]:
    """Return the classes of a message that shares a resource with others.

    ``G_eff = max(G, flows * G_shared)``: alone, a message is limited by its own path; with enough
    flows, by the shared adapter or memory.
    """
    return [
        SizeClass(entry.upto, entry.alpha, maximum(entry.beta, flows * shared_gap))
        for entry in classes
    ]


def exchange(forward: Value, backward: Value) -> Value:
    """Return the time of a send and a receive at once on a full-duplex network (MPI_Sendrecv)."""
    return maximum(forward, backward)


def ring_of_blocking_sends(one: Value, processes: Value, waits: Condition) -> Value:
    """Return the time of a periodic shift by a blocking send followed by a receive.

    While messages are eager all processes send at once. From the eager threshold on every send
    waits for its receive; the ring is broken at one process only and the messages follow each
    other around it.
    """
    return choose(waits, processes * one, one)


# Over which links messages go from node to node.


@dataclass(frozen=True)
class Routes:
    """Over which links messages go, and what those carry."""

    # int32[R]: Nodes of each route, by number from 0, ascending by sender, then receiver.
    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    offsets: NDArray[np.int64]  # int64[R + 1]: Rows of each route in `link`
    link: NDArray[np.int32]  # int32[K]: Links of a route
    latency: NDArray[np.float64]  # float64[R]: Time on the way beside that of any message, s
    capacity: NDArray[np.float64]  # float64[L]: What each link carries, B/s
    # What the links of each process inside its node carry, each way, B/s; 0: as much as needed.
    within: float = 0.0

    def __len__(self) -> int:
        return len(self.sender)


_NONE = np.empty(0, np.int32)

NO_ROUTES = Routes(_NONE, _NONE, np.zeros(1, np.int64), _NONE, np.empty(0), np.empty(0))
"""Where no message shares a link with another."""


def of_hops(
    routes: int, hops: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Put hops together that were found side by side."""
    empty = np.empty(0, np.int64)
    route = np.concatenate([empty, *(which for which, _ in hops)])
    link = np.concatenate([empty, *(over for _, over in hops)])
    order = np.argsort(route, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(route, minlength=routes))])
    return offsets.astype(np.int64), link[order].astype(np.int32)


# Resources that messages share: links of nodes, links inside nodes, buses.


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


# Networks on which a message costs less inside a node than between nodes.


@dataclass(frozen=True)
class Tier:
    """What messages over one distance cost."""

    # Latency and time per byte by size, by rising ``upto``; the last one has none. Without the
    # overheads.
    classes: tuple[SizeClass, ...]
    eager_threshold: float  # Bytes from which a blocking send waits for its receive to be posted
    # CPU time to send a message, before it leaves, and to receive it, after it has arrived, s.
    send_overhead: float = 0.0
    receive_overhead: float = 0.0

    def time(self, size: ArrayLike) -> NDArray[np.float64]:
        """Time of messages of some sizes (bytes) from their departure to their arrival, s."""
        return np.asarray(by_size(np.asarray(size, dtype=np.float64), self.classes), np.float64)

    @property
    def latency(self) -> float:
        """Time of an empty message, s."""
        return float(self.classes[0].alpha)

    @property
    def bandwidth(self) -> float:
        """What the longest messages approach, B/s; infinite if size costs nothing."""
        beta = float(self.classes[-1].beta)
        return 1 / beta if beta else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: times in seconds, per byte in s/B."""
        overheads = {
            name: value
            for name in ("send_overhead", "receive_overhead")
            if (value := getattr(self, name))
        }
        return {
            "eager_threshold": None if np.isinf(self.eager_threshold) else self.eager_threshold,
            **overheads,
            "classes": [
                {"upto": one.upto, "alpha": float(one.alpha), "beta": float(one.beta)}
                for one in self.classes
            ],
        }


@dataclass(frozen=True)
class Tiers:
    """What messages inside a node and between nodes cost; None of a distance that is not there."""

    within: Tier | None
    between: Tier | None

    @property
    def slowest(self) -> Tier:
        """The tier of the longest distance that is there."""
        tier = self.between or self.within
        if tier is None:
            raise ValueError("a network needs at least one tier")
        return tier

    def waits(self, size: NDArray[np.int64], apart: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether a blocking send of each message waits for its receive to be posted."""
        waits = np.zeros(size.shape, dtype=bool)
        for tier, messages in ((self.within, ~apart), (self.between, apart)):
            if messages.any():
                if tier is None:
                    raise ValueError("a message goes where the network has no tier")
                waits[messages] = waits_for_receiver(size[messages], tier.eager_threshold)
        return waits

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the tiers that are there."""
        return {
            name: tier.to_dict()
            for name, tier in (("within", self.within), ("between", self.between))
            if tier is not None
        }
