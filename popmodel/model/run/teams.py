"""What collective operations cost on a placement, in all communicators of a kind at once.

As measured where the machine profile has times of them (`popmodel.model.run.measured`), else as the
formula of an algorithm (`popmodel.network.collectives`) says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import distinct
from popmodel.expressions.elementary import Value, maximum, numbers, sqrt
from popmodel.model.run import measured
from popmodel.model.run.measured import MeasuredShape, MeasuredShare
from popmodel.model.run.messages import RunMessages
from popmodel.network import collectives
from popmodel.network import point_to_point as p2p
from popmodel.values import dataclass

Communicator: TypeAlias = str | tuple[int, ...] | tuple[str, tuple[int, ...]]
"""A name, dimensions of the grid, or ``colours`` with that of every process."""

_TINY = 1e-300  # s; keeps a ratio of times of nothing defined


@dataclass(frozen=True)
class RunTeams:
    """Processes on nodes that take part in collective operations."""

    messages: RunMessages  # What messages between them cost
    extent: tuple[int, ...] = ()  # Processes along each grid dimension

    def members(self, comm: Communicator) -> list[NDArray[np.int64]]:
        """Return the ranks of every communicator of a kind, in the order of their ranks in it."""
        ranks = np.arange(self.messages.placement.processes)
        if comm == "world":
            return [ranks]
        if comm == "leaders":
            return [ranks[:: self.messages.placement.per_node]]
        if comm == "node":
            return np.split(ranks, ranks[:: self.messages.placement.per_node][1:])
        if comm and comm[0] == "colours":
            colour = np.array(comm[1], dtype=np.int64)
            order = np.argsort(colour, kind="stable")
            order = order[colour[order] >= 0]
            found = np.split(order, np.flatnonzero(np.diff(colour[order])) + 1)
            return [team for team in found if team.size]
        dims = [dim for dim in range(len(self.extent)) if dim in comm]
        others = [dim for dim in range(len(self.extent)) if dim not in comm]
        lines = ranks.reshape(self.extent).transpose(*others, *dims)
        return list(lines.reshape(-1, math.prod(self.extent[dim] for dim in dims)))

    def collective(self, op: str, size: Value, comm: Communicator = "world") -> Value:
        """Return the time of a collective in all communicators of a kind at once, the slowest one.

        Partners of trees and doublings are 1, 2, 4 ... ranks apart, so the first rounds stay inside
        a node. The other algorithms are as slow as their messages between nodes.
        """
        times = list(dict(self._by_shape(op, size, comm)).values())
        return maximum(*times) if times else 0.0

    def is_measured(self, op: str, size: Value, comm: Communicator = "world") -> bool:
        """Whether the time of a collective follows from a measured one in all communicators."""
        profile = self.messages.parameters.profile
        shapes = {self._team(ranks).shape for ranks in self.members(comm)}
        return all(measured.shares(profile, op, one, size) for one in shapes if one.size > 1)

    def in_teams(
        self, op: str, size: Value, comm: Communicator = "world"
    ) -> list[tuple[NDArray[np.int64], Value]]:
        """Return the ranks of every communicator of a kind, and the time of a collective in it."""
        times = dict(self._by_shape(op, size, comm))
        return [(ranks, times.get(self._team(ranks).shape, 0.0)) for ranks in self.members(comm)]

    def _by_shape(
        self, op: str, size: Value, comm: Communicator
    ) -> Iterator[tuple[MeasuredShape, Value]]:
        """Time of a collective in the communicators of each shape."""
        teams = [self._team(ranks) for ranks in self.members(comm)]
        if not teams:
            return
        crowd = _Crowd.of(teams)
        for shape in dict.fromkeys(team.shape for team in teams if team.size > 1):
            yield shape, self._in_team(op, size, shape, crowd)

    def _team(self, ranks: NDArray[np.int64]) -> _Team:
        return _Team(ranks.size, self.messages.nodes[ranks])

    def _in_team(self, op: str, size: Value, shape: MeasuredShape, crowd: _Crowd) -> Value:
        """Time in one of several communicators: as measured, else the formula of the algorithm."""
        parameters = self.messages.parameters
        parameters.use(shape.subject(op), "processes", shape.size)
        parameters.use(shape.subject(op), "bytes", size)
        shares = measured.shares(parameters.profile, op, shape, size)
        if not shares:
            name = self._algorithm(op, size, shape.size)
            return self._formula(op, name, size, shape, crowd)
        total: Value = 1.0
        for share in shares:
            time = self._carried(op, size, shape, crowd, share)
            total = total * (
                time if bool(np.all(numbers(share.weight) == 1)) else time**share.weight
            )
        return total

    def _carried(
        self, op: str, size: Value, shape: MeasuredShape, crowd: _Crowd, share: MeasuredShare
    ) -> Value:
        """Time that follows from one measurement.

        It was taken of one communicator on the machine as it is; where something else is asked, it
        changes as the formula of its algorithm does.
        """
        parameters, alone = self.messages.parameters, _Crowd.alone(share.reach)
        time = parameters.get(share.path)
        is_beyond = bool(numbers(share.beyond).any())
        if not is_beyond and crowd == alone and parameters.unchanged is None:
            return time
        name = share.algorithm or self._algorithm(op, size, shape.size)
        as_measured = replace(
            self, messages=replace(self.messages, parameters=parameters.as_profiled())
        )
        now = self._formula(op, name, size, shape, crowd)
        then = as_measured._formula(op, name, share.bytes, share.reach, alone)
        if not numbers(then).all():  # a network that costs nothing
            now, then = now + _TINY, then + _TINY
        time = time * (now / then)
        return time * parameters.values(measured.LAW) ** sqrt(share.beyond) if is_beyond else time

    def _formula(
        self, op: str, name: str, size: Value, shape: MeasuredShape, crowd: _Crowd
    ) -> Value:
        """Time of an algorithm by what messages cost."""
        operation = collectives.OPERATIONS[op]
        algorithm = operation.algorithms[name]
        reduction: Value = 0.0
        if operation.reducing:
            reduction = self.messages.parameters.get("net.reduce_gamma")
        if algorithm.by_distance:
            within: Value = 0.0
            between: Value = 0.0
            if shape.per_node > 1:
                within = p2p.by_size(size, self.messages.within(crowd.staying))
            if shape.nodes > 1:
                between = p2p.by_size(size, self.messages.between(crowd.leaving))
            return collectives.over_nodes(
                op, name, shape.size, shape.per_node, within, between, size * reduction
            )
        if shape.nodes > 1:
            flows = crowd.teams_leaving if algorithm.single_flow else crowd.leaving
            classes = self.messages.between(flows)
        else:
            classes = self.messages.within(crowd.staying)
        latency = p2p.by_size(0, classes)
        # a vector that is sent in parts costs per byte what messages of that size cost
        per_byte = (p2p.by_size(size, classes) - latency) / maximum(size, 1)
        one = collectives.Message(size, latency, per_byte, reduction)
        return algorithm.cost(shape.size, one)

    def _algorithm(self, op: str, size: Value, processes: int) -> str:
        """Name the algorithm: that of the nearest measurement, else the usual one."""
        rows = [
            row
            for row in self.messages.parameters.profile.document.get("coll", {}).get(op, ())
            if "algorithm" in row
        ]
        if not rows:
            return collectives.OPERATIONS[op].default
        typical = float(np.ravel(np.asarray(size, dtype=np.float64))[0])

        def distance(row: dict[str, float]) -> float:
            return math.hypot(
                math.log2(row["P"] / processes), math.log2((row["bytes"] + 1) / (typical + 1))
            )

        return str(min(rows, key=distance)["algorithm"])


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
    def shape(self) -> MeasuredShape:
        return MeasuredShape(self.size, self.nodes, self.per_node)


@dataclass(frozen=True)
class _Crowd:
    """What the communicators of a kind, all at work at once, do to the busiest node."""

    staying: int  # Processes that have another one of their communicator on the node
    leaving: int  # Processes that have another one of their communicator on another node
    teams_leaving: int  # Communicators that reach beyond the node

    @staticmethod
    def alone(shape: MeasuredShape) -> _Crowd:
        """One communicator, as it is measured."""
        return _Crowd(
            shape.per_node if shape.per_node > 1 else 0,
            shape.per_node if shape.nodes > 1 else 0,
            1 if shape.nodes > 1 else 0,
        )

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
