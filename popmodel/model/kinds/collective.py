"""A collective operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import did_you_mean
from popmodel.base.expressions import Expression, ExpressionError, parse
from popmodel.base.values import dataclass
from popmodel.model.kinds.item import (
    Amount,
    Entry,
    Further,
    Item,
    ListedItem,
    listed,
    quantity,
    symbol,
)
from popmodel.model.run.collective_times import Communicator
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import OperationsBuilder
from popmodel.model.run.work import RunWork
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.network.collectives import OPERATIONS, ROOTED

COMMUNICATORS = {
    "world": "among all processes",
    "node": "among the processes of each node",
    "leaders": "among one process per node",
}
"""Communicators that have a name, in words."""
_ROOTS = {"bcast": "from", "scatter": "from", "reduce": "to", "gather": "to"}


def _operation(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> str:
    op = table["op"]
    if op not in tuple(OPERATIONS):  # it may be anything, a list too
        hint = did_you_mean(str(op), OPERATIONS, f"known: {', '.join(OPERATIONS)}")
        raise reading.error(where, f"unknown collective {op!r}", hint)
    return str(op)


def _size(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> Expression:
    if "bytes" not in table and table["op"] != "barrier":
        raise reading.error(where[:-1], "collective needs bytes")
    return reading.formula(Collective.key("bytes"), {"bytes": 0, **table}, where)


def _names(text: str) -> frozenset[str]:
    """Names in a text, if it is a formula."""
    try:
        return parse(text).names
    except ExpressionError:
        return frozenset()


def _communicator(
    reading: GrammarReading, table: Mapping[str, Any], where: Path
) -> Communicator | Expression | ListedItem:
    """Read ``world``, ``node``, ``leaders``, one or several of ``dim0`` to ``dim2``, or colours."""
    value = table.get("comm", "world")
    if isinstance(value, str) and value in COMMUNICATORS:
        return value
    if isinstance(value, str) and "rank" in _names(value):
        return reading.expression(value, where, ("rank",), functions={})
    if isinstance(value, list) and value and all(type(one) is int for one in value):
        return ListedItem(tuple(value))
    known = [f"dim{dim}" for dim in range(reading.dimensions)]
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and names and all(name in known for name in names):
        dims = tuple(sorted(known.index(name) for name in names))
        if len(set(dims)) == len(dims):
            return dims
    raise reading.error(
        where,
        f"comm must be {', '.join(COMMUNICATORS)}, grid dimensions or a formula of rank, "
        f"not {value!r}",
        f"dimensions of this decomp: {', '.join(known)}"
        if known
        else "grid dimensions need decomp",
    )


def _root(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> Expression:
    if "root" in table and table["op"] not in ROOTED:
        only = f"only {', '.join(ROOTED)} have one"
        raise reading.error(where, f"{table['op']} has no root", only)
    return reading.formula(Collective.key("root"), table, where)


def colours(values: NDArray[np.float64]) -> tuple[str, tuple[int, ...]]:
    return "colours", tuple(np.rint(values).astype(np.int64).tolist())


@dataclass(frozen=True)
class Collective(Item):
    """The processes of each communicator take part in operation ``op``."""

    kind: ClassVar[str] = "collective"
    further: ClassVar[Further] = {
        "op": {"read": _operation},
        "bytes": {"of_ranks": True, "read": _size},
        "comm": {"of_ranks": True, "read": _communicator},
        "root": {"is_whole": True, "read": _root},
    }
    communicates: ClassVar[bool] = True
    one_sender: ClassVar[str] = "a collective is called by one thread"

    op: str
    bytes: Amount
    # Who takes part together: ``world``, all; ``node``, the processes of a node; ``leaders``, the
    # first process of every node; grid dimensions, the processes that differ in these only. Or the
    # colour of every process, as a formula of rank or one by one: those of equal colour; a colour
    # below 0 takes no part.
    comm: Communicator | Amount
    root: Amount

    def at(self, point: ModelPoint, of: str, inside: str = "") -> Self:
        """Return the collective with numbers; of those of ranks, the largest size."""
        found = super().at(point, of, inside)
        if "rank" in self.bytes.names:
            return replace(found, bytes=float(np.max(found.bytes)))
        return found

    def who(self, point: ModelPoint) -> Communicator:
        """Return the communicator at a point; `self` has numbers."""
        if isinstance(self.comm, ListedItem):
            return colours(point.listed(self.comm.values, f"comm of {self.name!r}"))
        return colours(self.comm) if isinstance(self.comm, np.ndarray) else self.comm

    def check(self, numbers: Self, point: ModelPoint) -> None:
        sizes = [ranks.size for ranks in point.teams.members(numbers.who(point))]
        size = min(sizes, default=None)
        if size is not None and numbers.root >= size:
            raise point.refuse(
                f"root of {self.name!r} is {self.root.text!r} = {numbers.root}",
                f": the smallest communicator has the ranks 0 to {size - 1}",
                "a root is a rank in the communicator, not in the whole program",
            )

    def work(self, point: ModelPoint) -> RunWork:
        asked = self.op, self.bytes, self.who(point)
        time = point.teams.collective(*asked)
        is_measured = point.teams.is_measured(*asked)
        return RunWork(transfer=time, measured=time if is_measured else 0.0, steps=1.0)

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        for ranks, cost in point.teams.in_teams(self.op, self.bytes, self.who(point)):
            team = ranks.tolist()
            root = team[self.root] if self.op in ROOTED else -1
            build.collective(self.op, self.bytes, root, cost, team)

    @staticmethod
    def sentence(entry: Entry) -> str:
        text = str(entry["op"])
        if entry["op"] != "barrier":
            text += f" of {quantity(entry['bytes'])} per process"
        if entry["op"] in _ROOTS:
            text += f" {_ROOTS[entry['op']]} rank {symbol(entry['root'])}"
        if isinstance(entry["comm"], str):
            return f"{text}, {COMMUNICATORS[entry['comm']]}"
        if isinstance(entry["comm"], Mapping):
            what = entry["comm"].get("formula", "colour, as listed")
            return f"{text}, among the processes with the same {what}"
        dims = listed([str(dim) for dim in entry["comm"]])
        return f"{text}, among the processes along grid dimension {dims}"
