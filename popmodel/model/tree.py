"""The work of a program as a tree of the works of its items.

Totals, causes, names in formulas and the replay all read this tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from popmodel.expressions.elementary import Value, maximum
from popmodel.model.kinds.item import Item
from popmodel.model.run.point import Point
from popmodel.model.run.work import Work
from popmodel.values import dataclass


@dataclass(frozen=True)
class Node:
    """An item of a program with its work.

    Attributes
    ----------
    item : Item
        With numbers for its formulas.
    work : Work
        Of one execution by an average process.
    inside : tuple of Node
        The items of its body, executed ``item.repeats`` times in one execution of it.
    """

    item: Item
    work: Work
    inside: tuple[Node, ...] = ()

    @staticmethod
    def around(item: Item, inside: tuple[Node, ...]) -> Node:
        """Return the node of an item with a body."""
        return Node(item, total(inside).times(item.repeats), inside)

    @cached_property
    def in_turn(self) -> Work:
        """The work in one execution of the body around it, on average."""
        return self._in_turn(self.work)

    def _in_turn(self, work: Work) -> Work:
        every = self.item.every
        return work if bool(np.all(every == 1)) else work.times(1 / every)

    @property
    def communicates(self) -> bool:
        """Whether processes exchange messages in it."""
        return self.item.communicates or any(node.communicates for node in self.inside)

    def mapped(self, work: Callable[[Node], Work]) -> Node:
        """Return the node with other works of the leaves in it."""
        if not self.inside:
            return replace(self, work=work(self))
        return Node.around(self.item, tuple(node.mapped(work) for node in self.inside))

    def leaves(self) -> Iterator[tuple[Item, Work]]:
        """Return the items without a body, each with its work in one execution of the body around.

        Together they are the work of the node, but for the steps in which processes meet.
        """
        if not self.inside:
            yield self.item, self.in_turn
        for node in self.inside:
            for item, work in node.leaves():
                yield item, self._in_turn(work.times(self.item.repeats))


@dataclass(frozen=True)
class Tree:
    """The work of a whole program.

    Attributes
    ----------
    point : Point
        Where it was evaluated.
    nodes : tuple of Node
        Its items, in order.
    """

    point: Point
    nodes: tuple[Node, ...]

    @cached_property
    def total(self) -> Work:
        """What an average process does in the whole program."""
        return total(self.nodes)

    def mapped(self, work: Callable[[Node], Work]) -> Tree:
        """Return the tree with other works of its leaves; the totals follow."""
        return Tree(self.point, tuple(node.mapped(work) for node in self.nodes))

    def leaves(self) -> Iterator[tuple[Item, Work]]:
        """Return the items without a body, each with its work in the whole program."""
        for node in self.nodes:
            yield from node.leaves()


def total(body: tuple[Node, ...]) -> Work:
    """Return one execution of a body.

    What communicates side by side meets in the same step; items with a body have steps of their
    own.
    """
    sum_ = Work()
    looped: Value = 0.0
    for node in body:
        sum_ = sum_.plus(node.in_turn)
        if node.inside:
            looped = looped + node.in_turn.steps
    return replace(sum_, steps=maximum(sum_.steps, looped))
