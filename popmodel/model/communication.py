"""What the communication of a program costs on a placement: tiers, crowding, patterns, collectives.

The costs of single messages and of collective algorithms are those of `popmodel.network`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions.elementary import Value, maximum
from popmodel.model.parameters import Parameters
from popmodel.model.placement import Placement
from popmodel.model.terms import message
from popmodel.network import collectives
from popmodel.network import point_to_point as p2p

_REDUCING = ("reduce", "allreduce", "reduce_scatter", "scan")
# algorithms in which a node exchanges with the next one over a single message at a time
_ONE_FLOW = ("ring", "chain")
NOWHERE, ON_NODE, ELSEWHERE = 0, 1, 2
"""Where a partner is: there is none, on the same node, on another one."""


@dataclass(frozen=True)
class Communication:
    """Processes on nodes that exchange messages.

    Attributes
    ----------
    parameters : Parameters
        The machine.
    placement : Placement
        Processes, threads, nodes.
    extent, periodic : tuple
        Processes along each grid dimension, and whether neighbours wrap around.
    """

    parameters: Parameters
    placement: Placement
    extent: tuple[int, ...]
    periodic: tuple[bool, ...]

    def shift(self, dim: int, by: int, size: Value) -> Value:
        """Give the time of an exchange of all with the process ``by`` steps along ``dim``."""
        targets = message.grid_neighbours(self.extent, dim, by, periodic=self.periodic[dim])
        one = self._exchange(size, message.traffic(targets, self.placement.per_node))
        return p2p.exchange(one, one)

    def point_to_point(self, targets: NDArray[np.int64], size: Value, mode: str) -> Value:
        """Give the time in which rank r sends to ``targets[r]``, blocking or exchanging."""
        where = message.traffic(targets, self.placement.per_node)
        one = self._exchange(size, where)
        if mode == "sendrecv":
            return p2p.exchange(one, one)
        tier = "inter" if where.flows else "intra"
        threshold = self.parameters.get(f"net.{tier}.eager_threshold")
        return p2p.ring_of_blocking_sends(one, where.chain, size <= threshold)

    def to_neighbours(self, dims: Sequence[int], size: Value) -> Value:
        """Give the time of messages to the next process along each dimension, the slowest one."""
        times = [
            self._exchange(size, message.traffic(targets, self.placement.per_node))
            for dim in dims
            if self.extent[dim] > 1
            for targets in [message.grid_neighbours(self.extent, dim, 1, periodic=False)]
        ]
        return maximum(*times) if len(times) > 1 else times[0] if times else 0.0

    def halo(self, sizes: Sequence[Value], mode: str) -> Value:
        """Give the time to exchange with all neighbours of the grid.

        Nonblocking: the messages of a process follow each other through its port, those inside the
        node and those that leave it at the same time; a latency is paid once, an overhead for
        every further message. Blocking: dimension by dimension and side by side.

        Parameters
        ----------
        sizes : sequence of value
            Bytes of the message to a neighbour along each dimension.
        mode : {'nonblocking', 'blocking'}
            How messages are sent.
        """
        towards, places, classes = self.around()
        dims = [dim for dim, _ in towards]
        times = [
            self._to_all(pattern, [sizes[dim] for dim in dims], classes, mode)
            for pattern in np.unique(places, axis=1).T
        ]
        return maximum(*times) if len(times) > 1 else times[0]

    def around(
        self,
    ) -> tuple[
        list[tuple[int, NDArray[np.int64]]], NDArray[np.int8], dict[int, list[p2p.SizeClass]]
    ]:
        """Give the neighbours of all processes in the grid.

        Returns
        -------
        towards : list of (int, ndarray of int64, shape (P,))
            Dimension and partners of every direction.
        places : ndarray of int8, shape (directions, P)
            Where the partners are, see `places`.
        classes : dict of int to list of SizeClass
            Costs of messages by place, with those that are on their way at the same time.
        """
        towards = [
            (dim, message.grid_neighbours(self.extent, dim, by, periodic=self.periodic[dim]))
            for dim in range(len(self.extent))
            for by in (-1, 1)
        ]
        places = self.places([targets for _, targets in towards])
        # a process sends one message after the other: as many at once as processes of a node send
        staying, leaving = (
            int(np.bincount(self._nodes()[(places == where).any(axis=0)]).max(initial=0))
            for where in (ON_NODE, ELSEWHERE)
        )
        classes = {
            ON_NODE: self.within(staying) if staying else [],
            ELSEWHERE: self.between(leaving) if leaving else [],
        }
        return towards, places, classes

    def _to_all(
        self,
        pattern: NDArray[np.int8],
        sizes: Sequence[Value],
        classes: dict[int, list[p2p.SizeClass]],
        mode: str,
    ) -> Value:
        """Time of a process whose partners are where ``pattern`` says."""
        costs: dict[int, list[Value]] = {
            tier: [
                p2p.by_size(size, classes[tier])
                for size, place in zip(sizes, pattern, strict=True)
                if place == tier
            ]
            for tier in (ON_NODE, ELSEWHERE)
        }
        if mode == "blocking":
            return sum(cost for tier in costs.values() for cost in tier)
        count = sum(len(tier) for tier in costs.values())
        if not count:
            return 0.0
        ports = []
        for tier, found in costs.items():
            if found:
                latency = p2p.by_size(0, classes[tier])
                ports.append(latency + sum(cost - latency for cost in found))
        busiest = maximum(*ports) if len(ports) > 1 else ports[0]
        name = "net.inter.os" if costs[ELSEWHERE] else "net.intra.os"
        overhead = self.parameters.optional(name) if count > 1 else None
        return busiest if overhead is None else busiest + (count - 1) * overhead

    def places(self, towards: Sequence[NDArray[np.int64]]) -> NDArray[np.int8]:
        """Tell where the partner of every process is, by direction.

        Parameters
        ----------
        towards : sequence of ndarray of int64, shape (P,)
            The partner of every rank in each direction; one outside 0..P-1 is none, and so is the
            rank itself.

        Returns
        -------
        ndarray of int8, shape (directions, P)
            `NOWHERE`, `ON_NODE` or `ELSEWHERE`.
        """
        nodes, ranks = self._nodes(), np.arange(self.placement.processes)
        rows = []
        for targets in towards:
            there = (targets >= 0) & (targets < ranks.size) & (targets != ranks)
            same = nodes[np.where(there, targets, 0)] == nodes
            rows.append(np.where(there, np.where(same, ON_NODE, ELSEWHERE), NOWHERE))
        return np.array(rows, dtype=np.int8)

    def _nodes(self) -> NDArray[np.int64]:
        return np.arange(self.placement.processes) // self.placement.per_node

    def collective(self, op: str, size: Value) -> Value:
        """Give the time of a collective of all processes.

        Partners of trees and doublings are 1, 2, 4 ... ranks apart, so the first rounds stay inside
        a node. The other algorithms are as slow as their messages between nodes.
        """
        processes, per_node = self.placement.processes, self.placement.per_node
        if processes == 1:
            return 0.0
        algorithm = self._algorithm(op, size)
        reduction: Value = 0.0
        if op in _REDUCING:
            reduction = self.parameters.get("net.reduce_gamma")
        if (op, algorithm) in collectives.BY_DISTANCE:
            within = p2p.by_size(size, self.within(per_node)) if per_node > 1 else 0.0
            between = within
            if self.placement.nodes > 1:
                between = p2p.by_size(size, self.between(per_node))
            return collectives.over_nodes(
                op, algorithm, processes, per_node, within, between, size * reduction
            )
        if self.placement.nodes > 1:
            classes = self.between(1 if algorithm in _ONE_FLOW else per_node)
        else:
            classes = self.within(per_node)
        latency = p2p.by_size(0, classes)
        # a vector that is sent in parts costs per byte what messages of that size cost
        per_byte = (p2p.by_size(size, classes) - latency) / maximum(size, 1)
        cost = collectives.ALGORITHMS[op][algorithm]
        return cost(processes, size, latency, per_byte, reduction)

    def _algorithm(self, op: str, size: Value) -> str:
        """Name the algorithm: that of the nearest measurement, else the usual one."""
        rows = [
            row
            for row in self.parameters.profile.document.get("coll", {}).get(op, ())
            if "algorithm" in row
        ]
        if not rows:
            return collectives.DEFAULT_ALGORITHM[op]
        typical = float(np.ravel(np.asarray(size, dtype=np.float64))[0])

        def distance(row: dict[str, float]) -> float:
            return math.hypot(
                math.log2(row["P"] / self.placement.processes),
                math.log2((row["bytes"] + 1) / (typical + 1)),
            )

        return str(min(rows, key=distance)["algorithm"])

    # -- what one message costs

    def _exchange(self, size: Value, where: message.Traffic) -> Value:
        within = self.within(where.messages) if where.within else None
        between = self.between(where.flows) if where.flows else None
        return message.exchange_time(size, where, within, between)

    def within(self, flows: int) -> list[p2p.SizeClass]:
        """Give the size classes of messages inside a node, of which ``flows`` are on the way at once."""
        classes = self.parameters.size_classes("intra")
        capacity = self.parameters.optional("net.shm_k") if flows > 1 else None
        if capacity is None:
            return classes
        crowding = maximum(1.0, flows / capacity)
        return [p2p.SizeClass(c.upto, c.alpha, c.beta * crowding) for c in classes]

    def between(self, flows: int) -> list[p2p.SizeClass]:
        """Give the size classes of messages between nodes, of which ``flows`` leave a node at once."""
        classes = self.parameters.size_classes("inter")
        gap = self.parameters.optional("net.nic_G") if flows > 1 else None
        return classes if gap is None else p2p.contended(classes, flows, gap)
