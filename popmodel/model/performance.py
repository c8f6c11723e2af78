"""The performance model: a program at a point, and the tree of the works of its items.

The same functions work on numbers, arrays of draws and traced numbers, so one pass over
`Model.work` gives a prediction with its intervals, or the formulas behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from popmodel.errors import UsageError
from popmodel.expressions.elementary import Value
from popmodel.machine.profile import MissingQuantity
from popmodel.model.kinds.item import Item
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.placement import Placement
from popmodel.model.run.point import ModelPoint
from popmodel.model.signature.names import names
from popmodel.model.signature.program import Signature
from popmodel.model.signature.tables import key_of
from popmodel.model.tree import ItemTree, TreeNode
from popmodel.model.waves import following
from popmodel.values import dataclass

Known: TypeAlias = dict[int, tuple[Item, TreeNode]]
"""Items and their works, by the `id` of the item."""


@dataclass(frozen=True)
class Model:
    """A program on a machine in a placement, ready to be evaluated."""

    signature: Signature  # The program
    point: ModelPoint  # Its names, where it runs, and the machine

    def work(self, known: Known | None = None) -> ItemTree:
        """Return the works of all items for an average process."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked part by part
            nodes = self._nodes(self.signature.program, {} if known is None else known)
            return following(ItemTree(self.point, nodes))

    def memory_per_rank(self) -> Value | None:
        """Return the memory of a process, bytes; None if the signature does not say it."""
        formula = self.signature.limits.memory_per_rank
        key = key_of("limits", "memory_per_rank")
        try:
            return None if formula is None else self.point.amount(formula, key, key.name)
        except MissingQuantity as error:
            raise error.needed_by(key.name) from None

    def _nodes(self, body: tuple[Item, ...], known: Known) -> tuple[TreeNode, ...]:
        return tuple(self._node(item, known) for item in body)

    def _node(self, item: Item, known: Known) -> TreeNode:
        if id(item) in known:
            return known[id(item)][1]
        inside: tuple[TreeNode, ...] = ()
        try:
            numbers = item.at(self.point, item.name)
            if item.inside:
                inside = self._nodes(item.inside, known)
                node = TreeNode.around(numbers, inside)
            else:
                node = TreeNode(numbers, numbers.work(self.point))
        except MissingQuantity as error:
            if item.inside:  # what is in it is named already
                raise
            raise error.needed_by(item.name) from None
        self._check_finite(node)
        if not item.inside:
            known[id(item)] = item, node  # the item, so that no other gets its id
        return node

    def _check_finite(self, node: TreeNode) -> None:
        work = node.in_turn
        for name in ("serial", "stretched", "overhead", "waiting", "transfer"):
            if not np.isfinite(np.asarray(getattr(work, name), float)).all():
                raise UsageError(
                    f"{self.signature.name}: the time of {node.item.name!r} at {self.point} is "
                    "too large to represent",
                    "use smaller parameters, or check its counts and sizes",
                )


def prepare(
    signature: Signature,
    placement: Placement,
    parameters: Parameters,
    params: Mapping[str, Value],
    overlap: str | None = None,
    growth: Mapping[str, Value] | None = None,
    changed: Mapping[str, Value] | None = None,
) -> Model:
    """Evaluate the names of a signature and make the model."""
    values, extent = names(signature, placement.processes, placement.threads, params)
    periodic = () if signature.grid is None else signature.grid.periodic
    where = (signature.name, placement, parameters, values, extent, periodic, overlap)
    point = ModelPoint(*where, growth or {}, signature.first_touch, changed=changed or {})
    return Model(signature, point)
