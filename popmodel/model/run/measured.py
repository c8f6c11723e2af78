"""Measured times of collectives: which of them tell about a collective, and by what part.

What was measured within a node says nothing about the network between nodes, and the other way
round; other processes per node, nodes and sizes on the same side do. Between measured ones the
logarithm of the time is linear in the logarithms of processes per node, of nodes and of bytes.
Beyond them the nearest measurement goes on as the formula of its algorithm does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.expressions.elementary import Value, log, maximum, minimum, numbers
from popmodel.machine.parameter import TIERS
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.values import dataclass

LAW = "law.collectives"
"""Path of the factor by which a time may differ that is carried over one doubling."""
CARRIED = Quantity(
    1.0, 1 / 1.35, 1.35, "assumed", source="formula carried over one doubling beyond measurements"
)
"""That factor; over d doublings its power sqrt(d), as errors of doublings do not add up alike.

Of the 20 pairs of neighbouring sizes that were measured of 9 collectives on a node with two cores
(``examples/profiles/two-core-vm.json``), formulas carried from one to the other are off by more in
three.
"""


@dataclass(frozen=True)
class MeasuredShape:
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


@dataclass(frozen=True)
class MeasuredShare:
    """The part of a measurement in the time of a collective."""

    path: str  # Of the measured time
    algorithm: str | None  # The algorithm that comes nearest to it; None if nobody knows
    weight: Value  # Power of this measurement in the product of all; they add up to 1
    reach: MeasuredShape  # As far as measurements go towards what is asked
    bytes: Value  # The same of the message size
    beyond: Value  # Doublings from there to what is asked


def shares(profile: Profile, op: str, asked: MeasuredShape, size: Value) -> list[MeasuredShare]:
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
                same = not bool(numbers(longer).any())
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
