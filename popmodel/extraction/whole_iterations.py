"""Iterations that complete what they begin, where the loops that were found begin in between.

What repeats can be cut anywhere: a loop may begin with waits for requests of the iteration before,
whose first ones stand in front of it and whose last ones wait behind it. Lists of calls complete
what they begin, so such loops are turned until they begin behind these waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.patterns.table import iterations
from popmodel.simulator.program import Op
from popmodel.structure.nest import Leaf, Loop, leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.nest import Nest, Place
    from popmodel.structure.structure import Structure

_WAITS = Op.WAIT_RECEIVE, Op.WAIT_SEND


def whole_iterations(structure: Structure) -> Structure:
    """Return a structure whose loops begin behind waits for what was begun before them.

    A loop is turned where the same waits follow it once more: they are those of its last iteration.
    What else is known of its iterations, such as when they begin, stays that of the loop as found.
    """
    turning = _Turning(structure)
    nest = turning.settled(structure.nest, 1)
    return turning.renumbered(nest) if turning.changed else structure


class _Turning:
    """Places and executions of events, while loops are turned; new places get further numbers."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.changed = False
        self.places = list(structure.places)
        self.place = structure.place.astype(np.int64)
        self.execution = structure.execution.astype(np.int64)
        self.waits = _waiting(structure)

    def settled(self, nodes: Sequence[Loop | Leaf], executions: int) -> tuple[Loop | Leaf, ...]:
        """Turn the loops among some nodes, the last one first, and those inside."""
        behind: list[Loop | Leaf] = []
        for index in range(len(nodes) - 1, -1, -1):
            node = nodes[index]
            if isinstance(node, Loop):
                bounds = iterations(node, executions)
                node = replace(node, body=self.settled(node.body, int(bounds[-1])))
                behind = self.turned(node, bounds, behind)
            elif behind and isinstance(behind[0], Leaf):
                behind[0] = Leaf(node.places + behind[0].places)
            else:
                behind.insert(0, node)
        return tuple(behind)

    def turned(
        self, loop: Loop, bounds: NDArray[np.int64], behind: list[Loop | Leaf]
    ) -> list[Loop | Leaf]:
        """Return a loop and what stands behind it, with the waits that it began with before it."""
        waits = self.leading(loop)
        count = len(waits)
        following = behind[0].places if behind and isinstance(behind[0], Leaf) else ()
        alike = len(following) >= count and all(
            self.alike(one, other) for one, other in zip(waits, following, strict=False)
        )
        if not count or not alike or (np.diff(bounds) < 1).any():
            return [loop, *behind]
        self.changed = True
        before = tuple(self.copied(one) for one in waits)
        for one, first, last in zip(waits, before, following, strict=False):
            here = np.flatnonzero(self.place == one)
            is_first = np.isin(self.execution[here], bounds[:-1])
            opening, rest = here[is_first], here[~is_first]
            closing = np.flatnonzero(self.place == last)
            self.place[opening] = first
            self.execution[opening] = np.searchsorted(bounds, self.execution[opening])
            self.execution[rest] -= 1
            self.place[closing] = one
            self.execution[closing] = bounds[self.execution[closing] + 1] - 1
        head = loop.body[0]
        assert isinstance(head, Leaf)
        body = _joined(Leaf(head.places[count:]), *loop.body[1:], Leaf(waits))
        rest_of = Leaf(following[count:])
        return _joined(Leaf(before), replace(loop, body=tuple(body)), rest_of, *behind[1:])

    def leading(self, loop: Loop) -> tuple[int, ...]:
        """Places at the begin of a loop where nothing is done but waiting."""
        head = loop.body[0]
        if not isinstance(head, Leaf):
            return ()
        count = next((i for i, one in enumerate(head.places) if not self.waits[one]), None)
        return head.places[:count]

    def alike(self, one: int, other: int) -> bool:
        """Whether two places are of the same call."""
        first, second = self.places[one], self.places[other]
        return (first.name, first.inside) == (second.name, second.inside) and self.waits[other]

    def copied(self, place: int) -> int:
        """A new place of the same call."""
        self.places.append(self.places[place])
        self.waits.append(self.waits[place])
        return len(self.places) - 1

    def renumbered(self, nest: Nest) -> Structure:
        """The structure with places in the order of the program."""
        order = [place for leaf in leaves(nest) for place in leaf.places]
        number = np.full(len(self.places), -1, dtype=np.int64)
        number[order] = np.arange(len(order))
        leaf = [index for index, one in enumerate(leaves(nest)) for _ in one.places]

        def named(node: Loop | Leaf) -> Loop | Leaf:
            if isinstance(node, Leaf):
                return Leaf(tuple(number[list(node.places)].tolist()))
            return replace(node, body=tuple(map(named, node.body)))

        places: list[Place] = [
            replace(self.places[old], number=new, leaf=leaf[new]) for new, old in enumerate(order)
        ]
        return replace(
            self.structure,
            nest=tuple(map(named, nest)),
            places=tuple(places),
            place=number[self.place].astype(np.int32),
            execution=self.execution.astype(np.int32),
        )


def _waiting(structure: Structure) -> list[bool]:
    """Whether nothing is done at a place but waiting for messages: of each place."""
    program, events = structure.program, structure.events
    operation = np.arange(program.operations)
    event = np.searchsorted(events.first, operation, side="right") - 1
    other = ~np.isin(program.kind, _WAITS)
    found = np.ones(len(structure.places), dtype=bool)
    found[structure.place[event[other]]] = False
    found[structure.place[events.is_region]] = False
    waits: list[bool] = found.tolist()
    return waits


def _joined(*nodes: Loop | Leaf) -> list[Loop | Leaf]:
    """Nodes without empty leaves, and with one leaf for those that follow one another."""
    found: list[Loop | Leaf] = []
    for node in nodes:
        if isinstance(node, Leaf) and found and isinstance(found[-1], Leaf):
            found[-1] = Leaf(found[-1].places + node.places)
        elif not isinstance(node, Leaf) or node.places:
            found.append(node)
    return found
