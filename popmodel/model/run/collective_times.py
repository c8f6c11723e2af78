"""What collective operations cost on a placement, in all communicators of a kind at once.

As measured where the machine profile has times of them, else as the
formula of an algorithm (`popmodel.network.collectives`) says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.base.expressions.elementary import Value, log, maximum, minimum, numbers, some, sqrt
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import TIERS
from popmodel.model.run.operations import RunMessages
from popmodel.network import collectives
from popmodel.network import point_to_point as p2p

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
        shapes = map(_shape_of, self._nodes(comm))
        return all(measured_shares(profile, op, one, size) for one in shapes if one.size > 1)

    def in_teams(
        self, op: str, size: Value, comm: Communicator = "world"
    ) -> list[tuple[NDArray[np.int64], Value]]:
        """Return the ranks of every communicator of a kind, and the time of a collective in it."""
        times = dict(self._by_shape(op, size, comm))
        pairs = zip(self.members(comm), self._nodes(comm), strict=True)
        return [(ranks, times.get(_shape_of(nodes), 0.0)) for ranks, nodes in pairs]

    def _by_shape(
        self, op: str, size: Value, comm: Communicator
    ) -> Iterator[tuple[MeasuredShape, Value]]:
        """Time of a collective in the communicators of each shape."""
        teams = self._nodes(comm)
        if not teams:
            return
        crowd = _Crowd.of(teams)
        for shape in dict.fromkeys(_shape_of(nodes) for nodes in teams if nodes.size > 1):
            yield shape, self._in_team(op, size, shape, crowd)

    def _nodes(self, comm: Communicator) -> list[NDArray[np.int64]]:
        """Return the node of every process of each communicator."""
        nodes = self.messages.nodes
        return [nodes[ranks] for ranks in self.members(comm)]

    def _in_team(self, op: str, size: Value, shape: MeasuredShape, crowd: _Crowd) -> Value:
        """Time in one of several communicators: as measured, else the formula of the algorithm."""
        parameters = self.messages.parameters
        parameters.use(shape.subject(op), "processes", shape.size)
        parameters.use(shape.subject(op), "bytes", size)
        shares = measured_shares(parameters.profile, op, shape, size)
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
        is_beyond = some(share.beyond)
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
        return time * parameters.values(CARRIED_LAW) ** sqrt(share.beyond) if is_beyond else time

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


def _shape_of(nodes: NDArray[np.int64]) -> MeasuredShape:
    """Return the shape of a communicator whose processes are on some nodes."""
    return MeasuredShape(nodes.size, distinct(nodes).size, int(np.bincount(nodes).max()))


class _Crowd(NamedTuple):
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
    def of(teams: Sequence[NDArray[np.int64]]) -> _Crowd:
        count = max(int(nodes.max()) for nodes in teams) + 1
        staying, leaving, teams_leaving = (np.zeros(count, dtype=np.int64) for _ in range(3))
        for nodes in teams:
            here = np.bincount(nodes, minlength=count)
            staying += np.where(here > 1, here, 0)
            if np.ptp(nodes):
                leaving += here
                teams_leaving += here > 0
        return _Crowd(int(staying.max()), int(leaving.max()), int(teams_leaving.max()))


# Measured times of collectives: which of them tell about a collective, and by what part.
#
# What was measured within a node says nothing about the network between nodes, and the other way
# round; other processes per node, nodes and sizes on the same side do. Between measured ones the
# logarithm of the time is linear in the logarithms of processes per node, of nodes and of bytes.
# Beyond them the nearest measurement goes on as the formula of its algorithm does.


CARRIED_LAW = "law.collectives"
"""Path of the factor by which a time may differ that is carried over one doubling."""
CARRIED = Quantity(
    1.0, 1 / 1.35, 1.35, "assumed", source="formula carried over one doubling beyond measurements"
)
"""That factor; over d doublings its power sqrt(d), as errors of doublings do not add up alike.

Of the 20 pairs of neighbouring sizes that were measured of 9 collectives on a node with two cores
(``examples/profiles/two-core-vm.json``), formulas carried from one to the other are off by more in
three.
"""


class MeasuredShape(NamedTuple):
    """Processes that take part in a collective: how many, on how many nodes, most on one of
    them.
    """

    # Processes, nodes, and processes on the fullest node.
    size: int
    nodes: int
    per_node: int

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> MeasuredShape:
        """Return the shape in which a row of a profile was measured."""
        per_node = min(int(row["ppn"]), int(row["P"]))
        return MeasuredShape(int(row["P"]), math.ceil(row["P"] / per_node), per_node)

    @property
    def side(self) -> str:
        """Whether messages stay within a node, in words: only the same side tells anything."""
        return TIERS["inter" if self.nodes > 1 else "intra"]

    @property
    def filled(self) -> float:
        """Nodes, if all were as full as the fullest one."""
        return self.size / self.per_node

    def subject(self, op: str) -> str:
        """Name what is measured of an operation, for the range in which it was."""
        return f"coll.{op} {self.side}"


class MeasuredShare(NamedTuple):
    """The part of a measurement in the time of a collective."""

    path: str  # Of the measured time
    algorithm: str | None  # The algorithm that comes nearest to it; None if nobody knows
    weight: Value  # Power of this measurement in the product of all; they add up to 1
    reach: MeasuredShape  # As far as measurements go towards what is asked
    bytes: Value  # The same of the message size
    beyond: Value  # Doublings from there to what is asked


def measured_shares(
    profile: Profile, op: str, asked: MeasuredShape, size: Value
) -> list[MeasuredShare]:
    """Return the measurements that tell about a collective; empty if none does."""
    table: dict[int, dict[float, dict[float, int]]] = {}
    rows = profile.document.get("coll", {}).get(op, ())
    for index, row in enumerate(rows):
        shape = MeasuredShape.of_row(row)
        # of a call that costs next to nothing nothing is left when the clock's cost is taken off
        nothing_left = not profile.quantities[f"coll.{op}[{index}].seconds"].value
        if shape.size > 1 and shape.side == asked.side and not nothing_left:
            sizes = table.setdefault(shape.per_node, {}).setdefault(shape.filled, {})
            sizes[_bytes(row["bytes"])] = index
    wanted = maximum(size, 1.0)
    found = []
    for per_node, by_nodes, part in _nearest(table, asked.per_node):
        for nodes, by_size, of_nodes in _nearest(by_nodes, asked.filled):
            reach = _shape(asked, float(per_node), float(nodes))
            outside = _doublings(per_node, asked.per_node) + _doublings(nodes, asked.filled)
            for bytes_, index, of_size in _nearest(by_size, wanted):
                longer = _doublings(bytes_, wanted)
                same = not some(longer)
                found.append(
                    MeasuredShare(
                        f"coll.{op}[{index}].seconds",
                        rows[index].get("algorithm"),
                        part * of_nodes * of_size,
                        reach,
                        size if same else bytes_,
                        outside + longer,
                    )
                )
    return found


def _bytes(size: float) -> float:
    return max(float(size), 1.0)  # no logarithm of 0; such a message takes as long as one byte


def _nearest(table: Mapping[Any, Any], asked: Value) -> Iterator[tuple[Value, Any, Value]]:
    """Entries of a table that are around what is asked: how far they reach, entry, weight."""
    known = sorted(table)
    if not known:
        return
    reached = minimum(maximum(asked, known[0]), known[-1])
    for key, weight in zip(known, _weights(known, reached), strict=True):
        if bool((numbers(weight) > 0).any()):
            yield reached, table[key], weight


def _weights(known: Sequence[float], asked: Value) -> Iterator[Value]:
    """Weights of known points, linear in the logarithm; within their range they add up to 1."""
    at, logs = log(asked), [math.log(one) for one in known]
    for index, here in enumerate(logs):
        rising: Value = 1.0
        falling: Value = 1.0
        if index > 0:
            rising = (at - logs[index - 1]) / (here - logs[index - 1])
        if index < len(logs) - 1:
            falling = (logs[index + 1] - at) / (logs[index + 1] - here)
        yield maximum(minimum(rising, falling), 0.0)


def _shape(asked: MeasuredShape, per_node: float, nodes: float) -> MeasuredShape:
    """Return the shape to which measurements go towards the one that is asked."""
    if per_node == asked.per_node and nodes == asked.filled:
        return asked
    if asked.nodes == 1:
        return MeasuredShape(round(per_node), 1, round(per_node))
    on_one = round(per_node)
    size = max(round(per_node * nodes), on_one + 1)
    return MeasuredShape(size, math.ceil(size / on_one), on_one)


def _doublings(reached: Value, asked: Value) -> Value:
    if bool((numbers(reached) == numbers(asked)).all()):  # formulas have nothing of it then
        return 0.0
    distance: Value = abs(log(asked) - log(reached)) / math.log(2)
    return distance
