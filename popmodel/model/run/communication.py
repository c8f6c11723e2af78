"""What the communication of a program costs on a placement: tiers, crowding, patterns, collectives.

The costs of single messages and of collective algorithms are those of `popmodel.network`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import distinct
from popmodel.expressions.elementary import Value, maximum
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.placement import Placement
from popmodel.model.signature.program import Communicator
from popmodel.model.terms import message
from popmodel.network import collectives
from popmodel.network import point_to_point as p2p
from popmodel.values import dataclass

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

    def shift(self, dim: int, by: int, size: Value, threads: int = 1) -> Value:
        """Return the time of an exchange of all with the process ``by`` steps along ``dim``.

        Parameters
        ----------
        dim, by : int
            Grid dimension and distance.
        size : value
            Bytes that a process sends.
        threads : int
            Threads of a process, each of which sends a part.
        """
        targets = message.grid_neighbours(self.extent, dim, by, periodic=self.periodic[dim])
        where = message.traffic(targets, self.placement.per_node)
        one = self._exchange(size / threads, where, threads)
        return p2p.exchange(one, one)

    def point_to_point(
        self, targets: NDArray[np.int64], size: Value, mode: str, threads: int = 1
    ) -> Value:
        """Return the time in which rank r sends to ``targets[r]``, blocking or exchanging.

        Parameters
        ----------
        targets : ndarray of int64, shape (P,)
            Receivers; one outside 0..P-1, or the rank itself, is no message.
        size : value
            Bytes that a process sends.
        mode : {'send', 'sendrecv'}
            A blocking send before the receive, or both at once.
        threads : int
            Threads of a process, each of which sends a part.
        """
        where = message.traffic(targets, self.placement.per_node)
        part = size / threads
        one = self._exchange(part, where, threads)
        if mode == "sendrecv":
            return p2p.exchange(one, one)
        tier = "inter" if where.leaving else "intra"
        largest = self.parameters.get(f"net.{tier}.eager_threshold")
        waits = p2p.waits_for_receiver(part, p2p.eager_threshold(largest))
        return p2p.ring_of_blocking_sends(one, where.chain, waits)

    def to_neighbours(self, dims: Sequence[int], size: Value) -> Value:
        """Return the time of messages to the next process along each dimension, the slowest one."""
        times = [
            self._exchange(size, message.traffic(targets, self.placement.per_node))
            for dim in dims
            if self.extent[dim] > 1
            for targets in [message.grid_neighbours(self.extent, dim, 1, periodic=False)]
        ]
        return maximum(*times) if len(times) > 1 else times[0] if times else 0.0

    def halo(self, sizes: Sequence[Value], mode: str, threads: int = 1) -> Value:
        """Return the time to exchange with all neighbours of the grid.

        Nonblocking: the messages of a process follow each other through its port, those inside the
        node and those that leave it at the same time; a latency is paid once, an overhead for
        every further message. Blocking: dimension by dimension and side by side. Several threads
        share the messages that may be sent at once, and cut those that may not into parts.

        Parameters
        ----------
        sizes : sequence of value
            Bytes of the message to a neighbour along each dimension.
        mode : {'nonblocking', 'blocking'}
            How messages are sent.
        threads : int
            Threads of a process that send.
        """
        towards, places, classes = self.around(threads)
        dims = [dim for dim, _ in towards]
        times = [
            self._to_all(pattern, [sizes[dim] for dim in dims], classes, mode, threads)
            for pattern in different(places)
        ]
        return maximum(*times) if len(times) > 1 else times[0]

    def around(
        self, threads: int = 1
    ) -> tuple[
        list[tuple[int, NDArray[np.int64]]], NDArray[np.int8], dict[int, list[p2p.SizeClass]]
    ]:
        """Return the neighbours of all processes in the grid.

        Parameters
        ----------
        threads : int
            Threads of a process that send.

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
            ON_NODE: self.within(staying, threads) if staying else [],
            ELSEWHERE: self.between(leaving, threads) if leaving else [],
        }
        return towards, places, classes

    def _to_all(
        self,
        pattern: NDArray[np.int8],
        sizes: Sequence[Value],
        classes: dict[int, list[p2p.SizeClass]],
        mode: str,
        threads: int,
    ) -> Value:
        """Time of a process whose partners are where ``pattern`` says."""
        if not pattern.any():
            return 0.0
        for size, place in zip(sizes, pattern, strict=True):
            self._use(int(place), size)
        if mode == "blocking":
            return sum(
                p2p.by_size(size / threads, classes[int(place)])
                for size, place in zip(sizes, pattern, strict=True)
                if place
            )
        times = self.through_port(pattern, sizes, classes, threads)
        # messages to the same kind of place follow each other: the last one is the latest
        last = {int(pattern[direction]): time for direction, time in times.items()}
        return maximum(*last.values()) if len(last) > 1 else next(iter(last.values()))

    def through_port(
        self,
        pattern: NDArray[np.int8],
        sizes: Sequence[Value],
        classes: Mapping[int, Sequence[p2p.SizeClass]],
        threads: int,
    ) -> dict[int, Value]:
        """Return the time until each message of a nonblocking exchange has arrived.

        Nothing moves before the last message is posted. Then messages follow each other through
        the port of the process, those inside the node and those that leave it at the same time.

        Parameters
        ----------
        pattern : ndarray of int8, shape (directions,)
            Where the partner in each direction is, see `places`.
        sizes : sequence of value
            Bytes of the message in each direction.
        classes : mapping of int to sequence of SizeClass
            By place.
        threads : int
            Threads of the process that send.

        Returns
        -------
        dict of int to value
            By direction, those without a partner left out.
        """
        count = int(np.count_nonzero(pattern))
        part = message.part_of_thread(count, threads)
        rounds = message.rounds_of_thread(count, threads)
        name = "net.inter.os" if (pattern == ELSEWHERE).any() else "net.intra.os"
        overhead = self.parameters.optional(name) if rounds > 1 else None
        posting = 0.0 if overhead is None else (rounds - 1) * overhead * self._slowdown(threads)
        queued: dict[int, Value] = {}
        times: dict[int, Value] = {}
        for direction in np.flatnonzero(pattern).tolist():
            place = int(pattern[direction])
            latency = p2p.by_size(0, classes[place])
            gap = p2p.by_size(sizes[direction] * part, classes[place]) - latency
            queued[place] = queued.get(place, 0.0) + gap / min(threads, count)
            times[direction] = latency + queued[place] + posting
        return times

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

    # -- collectives

    def members(self, comm: Communicator) -> list[NDArray[np.int64]]:
        """Return the ranks of every communicator of a kind, in the order of their ranks in it.

        Parameters
        ----------
        comm : {'world', 'node', 'leaders'} or tuple of int
            All processes, those of a node, the first ones of all nodes; or grid dimensions: the
            processes that differ in these only, a line or a plane of the grid.
        """
        ranks = np.arange(self.placement.processes)
        if comm == "world":
            return [ranks]
        if comm == "leaders":
            return [ranks[:: self.placement.per_node]]
        if comm == "node":
            return np.split(ranks, ranks[:: self.placement.per_node][1:])
        dims = [dim for dim in range(len(self.extent)) if dim in comm]
        others = [dim for dim in range(len(self.extent)) if dim not in comm]
        lines = ranks.reshape(self.extent).transpose(*others, *dims)
        return list(lines.reshape(-1, math.prod(self.extent[dim] for dim in dims)))

    def collective(self, op: str, size: Value, comm: Communicator = "world") -> Value:
        """Return the time of a collective in all communicators of a kind at once, the slowest one.

        Partners of trees and doublings are 1, 2, 4 ... ranks apart, so the first rounds stay inside
        a node. The other algorithms are as slow as their messages between nodes.

        Parameters
        ----------
        op : str
            Operation, see `popmodel.network.collectives`.
        size : value
            Bytes per process.
        comm : str or tuple of int
            Who takes part together, see `members`.
        """
        times = list(dict(self._by_shape(op, size, comm)).values())
        return maximum(*times) if len(times) > 1 else times[0] if times else 0.0

    def in_teams(
        self, op: str, size: Value, comm: Communicator = "world"
    ) -> list[tuple[NDArray[np.int64], Value]]:
        """Return the ranks of every communicator of a kind, and the time of a collective in it."""
        times = dict(self._by_shape(op, size, comm))
        return [(ranks, times.get(self._team(ranks).shape, 0.0)) for ranks in self.members(comm)]

    def _by_shape(
        self, op: str, size: Value, comm: Communicator
    ) -> Iterator[tuple[tuple[int, int, int], Value]]:
        """Time of a collective in the communicators of each shape."""
        teams = [self._team(ranks) for ranks in self.members(comm)]
        crowd = _Crowd.of(teams)
        for shape, team in {team.shape: team for team in teams if team.size > 1}.items():
            yield shape, self._in_team(op, size, team, crowd)

    def _team(self, ranks: NDArray[np.int64]) -> _Team:
        return _Team(ranks.size, self._nodes()[ranks])

    def _in_team(self, op: str, size: Value, team: _Team, crowd: _Crowd) -> Value:
        self.parameters.use(f"coll.{op}", "processes", team.size)
        self.parameters.use(f"coll.{op}", "bytes", size)
        algorithm = self._algorithm(op, size, team.size)
        reduction: Value = 0.0
        if op in collectives.REDUCING:
            reduction = self.parameters.get("net.reduce_gamma")
        if (op, algorithm) in collectives.BY_DISTANCE:
            within = between = 0.0
            if team.per_node > 1:
                within = p2p.by_size(size, self.within(crowd.staying))
            if team.nodes > 1:
                between = p2p.by_size(size, self.between(crowd.leaving))
            return collectives.over_nodes(
                op, algorithm, team.size, team.per_node, within, between, size * reduction
            )
        if team.nodes > 1:
            flows = crowd.teams_leaving if algorithm in collectives.SINGLE_FLOW else crowd.leaving
            classes = self.between(flows)
        else:
            classes = self.within(crowd.staying)
        latency = p2p.by_size(0, classes)
        # a vector that is sent in parts costs per byte what messages of that size cost
        per_byte = (p2p.by_size(size, classes) - latency) / maximum(size, 1)
        cost = collectives.ALGORITHMS[op][algorithm]
        return cost(team.size, collectives.Message(size, latency, per_byte, reduction))

    def _algorithm(self, op: str, size: Value, processes: int) -> str:
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
                math.log2(row["P"] / processes),
                math.log2((row["bytes"] + 1) / (typical + 1)),
            )

        return str(min(rows, key=distance)["algorithm"])

    # -- what one message costs

    def _exchange(self, size: Value, where: message.Traffic, threads: int = 1) -> Value:
        for place, is_used in ((ON_NODE, where.staying), (ELSEWHERE, where.leaving)):
            if is_used:
                self._use(place, size)
        within = self.within(where.staying, threads) if where.staying else None
        between = self.between(where.leaving, threads) if where.leaving else None
        return message.exchange_time(size, where, within, between)

    def _use(self, place: int, size: Value) -> None:
        """Note that a message of some size goes to a place."""
        if place != NOWHERE:
            self.parameters.use("net.intra" if place == ON_NODE else "net.inter", "bytes", size)

    def within(self, flows: int, threads: int = 1) -> list[p2p.SizeClass]:
        """Return the size classes of messages inside a node, ``flows`` of them at once.

        Parameters
        ----------
        flows : int
            Messages on their way at the same time if one thread of a process sends.
        threads : int
            Threads of a process that send, each of them a message of its own.
        """
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
        slower = self._slowdown(threads)
        return [
            p2p.SizeClass(c.upto, (c.alpha + (0.0 if more is None else more)) * slower, c.beta)
            for c in classes
        ]

    def _slowdown(self, threads: int) -> Value:
        """How much longer the processor takes for a message while other threads send, too."""
        factor = self.parameters.optional("net.thread_factor") if threads > 1 else None
        return 1.0 if factor is None else message.thread_slowdown(threads, factor)


def different(places: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the different columns, shape (columns, directions), without sorting them all."""
    weights = 3 ** np.arange(len(places))
    counts = np.bincount(weights @ places.astype(np.int64), minlength=1)
    return (np.flatnonzero(counts)[:, None] // weights % 3).astype(np.int8)


@dataclass(frozen=True)
class _Team:
    """The processes of a communicator: how many, and the node of each in the order of ranks."""

    size: int
    at: NDArray[np.int64]

    @property
    def nodes(self) -> int:
        return int(distinct(self.at).size)

    @property
    def per_node(self) -> int:
        """Most of them on one node."""
        return int(np.bincount(self.at).max())

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.size, self.nodes, self.per_node


@dataclass(frozen=True)
class _Crowd:
    """What the communicators of a kind, all at work at once, do to the busiest node.

    Attributes
    ----------
    staying : int
        Processes that have another one of their communicator on the node.
    leaving : int
        Processes that have another one of their communicator on another node.
    teams_leaving : int
        Communicators that reach beyond the node.
    """

    staying: int
    leaving: int
    teams_leaving: int

    @staticmethod
    def of(teams: Sequence[_Team]) -> _Crowd:
        count = max(int(team.at.max()) for team in teams) + 1
        staying, leaving, teams_leaving = (np.zeros(count, dtype=np.int64) for _ in range(3))
        for team in teams:
            here = np.bincount(team.at, minlength=count)
            staying += np.where(here > 1, here, 0)
            if team.nodes > 1:
                leaving += here
                teams_leaving += here > 0
        return _Crowd(int(staying.max()), int(leaving.max()), int(teams_leaving.max()))
