"""What messages cost on a placement: tiers of the network, crowding, threads that send together.

The cost of a single message is that of `popmodel.network.point_to_point`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Value, maximum
from popmodel.base.values import dataclass
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Placement
from popmodel.model.terms import message
from popmodel.network import point_to_point as p2p

NOWHERE, ON_NODE, ELSEWHERE = 0, 1, 2
"""Where a partner is: there is none, on the same node, on another one."""
TIERS = {ON_NODE: "intra", ELSEWHERE: "inter"}
"""Tiers of the network by where a partner is."""


@dataclass(frozen=True)
class RunMessages:
    """Processes on nodes that exchange messages."""

    parameters: Parameters  # The machine
    placement: Placement  # Processes, threads, nodes

    @property
    def nodes(self) -> NDArray[np.int64]:
        """The node of every process."""
        return np.arange(self.placement.processes) // self.placement.per_node

    def places(self, towards: Sequence[NDArray[np.int64]]) -> NDArray[np.int8]:
        """Tell where the partner of every process is, by direction."""
        return places_of(towards, self.nodes)

    def exchange(self, size: Value, where: message.Traffic, threads: int = 1) -> Value:
        """Return the time of one message of every process that has a partner, the slowest one."""
        classes = self.classes(where.staying, where.leaving, threads)
        for place in classes:
            self.use(place, size)
        times = [p2p.by_size(size, one) for one in classes.values()]
        return maximum(*times) if times else 0.0

    def use(self, place: int, size: Value) -> None:
        """Note that a message of some size goes to a place."""
        if place != NOWHERE:
            self.parameters.use(f"net.{TIERS[place]}", "bytes", size)

    def classes(
        self, staying: int, leaving: int, threads: int = 1
    ) -> dict[int, list[p2p.SizeClass]]:
        """Return the size classes by place: of messages inside a node, and of those leaving it.

        A place to which none goes is left out; parameters as in `within`.
        """
        flows = {ON_NODE: (staying, self.within), ELSEWHERE: (leaving, self.between)}
        return {place: of(count, threads) for place, (count, of) in flows.items() if count}

    def within(self, flows: int, threads: int = 1) -> list[p2p.SizeClass]:
        """Return the size classes of messages inside a node, ``flows`` of them at once."""
        classes = self._by_threads(self.parameters.size_classes("intra"), threads)
        flows *= threads
        self.parameters.use("net.intra", "pairs", flows)
        capacity = self.parameters.optional("net.shm_k") if flows > 1 else None
        if capacity is None:
            return classes
        crowding = maximum(1.0, flows / capacity)
        return [p2p.SizeClass(c.upto, c.alpha, c.beta * crowding) for c in classes]

    def between(self, flows: int, threads: int = 1) -> list[p2p.SizeClass]:
        """Return the size classes of messages between nodes, ``flows`` leaving one at once.

        Parameters as in `within`.
        """
        classes = self._by_threads(self.parameters.size_classes("inter"), threads)
        flows *= threads
        self.parameters.use("net.inter", "pairs", flows)
        gap = self.parameters.optional("net.nic_G") if flows > 1 else None
        return classes if gap is None else p2p.contended(classes, flows, gap)

    def _by_threads(self, classes: list[p2p.SizeClass], threads: int) -> list[p2p.SizeClass]:
        """Return the size classes of messages that several threads of a process send at once."""
        if threads == 1:
            return classes
        # a library that is told to expect several threads takes longer even for one of them
        more = self.parameters.optional("net.multiple_overhead")
        slower = self.slowdown(threads)
        return [
            p2p.SizeClass(c.upto, (c.alpha + (0.0 if more is None else more)) * slower, c.beta)
            for c in classes
        ]

    def slowdown(self, threads: int) -> Value:
        """How much longer the processor takes for a message while other threads send, too."""
        factor = self.parameters.optional("net.thread_factor") if threads > 1 else None
        return 1.0 if factor is None else message.thread_slowdown(threads, factor)


def places_of(towards: Sequence[NDArray[np.int64]], nodes: NDArray[np.int64]) -> NDArray[np.int8]:
    """Tell where the partner of every process is, by direction, given the node of each process."""
    ranks = np.arange(nodes.size)
    rows = []
    for targets in towards:
        there = (targets >= 0) & (targets < ranks.size) & (targets != ranks)
        same = nodes[np.where(there, targets, 0)] == nodes
        rows.append(np.where(there, np.where(same, ON_NODE, ELSEWHERE), NOWHERE))
    return np.array(rows, dtype=np.int8)
