"""Amounts of a signature: a formula, the constants in it, and where they come from."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.signature.names import TIME
from popmodel.signature.outline import OutlineCalls, OutlineMeeting, OutlineRepeat, OutlineWork
from popmodel.signature.toml import Noted, number
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from popmodel.signature.computing import Computing
    from popmodel.signature.outline import Node, Outline
    from popmodel.signature.recorded_times import Description
    from popmodel.signature.scaling_lists import ScalingGrid


Key = tuple[Any, ...]
"""What an amount is of: what it is, and where it stands in the outline."""


@dataclass(frozen=True)
class SignatureConstant:
    """A number that was found."""

    name: str  # In formulas
    value: float  # Best estimate, in the unit
    # Ends of its 90 % interval; None where nothing is known of it.
    low: float | None = None
    high: float | None = None
    unit: str = "s"  # ``s``, ``B``, ``1`` or what is counted
    origin: str = "trace"  # ``trace``, ``fit`` or ``assumed``
    source: str = ""  # What it rests on, in words

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as JSON types."""
        return dict(vars(self))

    def entry(self) -> dict[str, Any]:
        """Return its table in a signature."""
        known: dict[str, Any] = {"value": number(self.value)}
        if self.low is not None and self.high is not None:
            # rounding must not put the value outside
            known["low"] = min(number(self.low), known["value"])
            known["high"] = max(number(self.high), known["value"])
        if self.unit:
            known["unit"] = self.unit
        return {**known, "origin": self.origin, "source": self.source}


@dataclass(frozen=True)
class SignatureAmount:
    """What a key of a signature says."""

    formula: str | int | float  # Its value
    constants: tuple[SignatureConstant, ...] = field(default=())  # Those that it needs
    note: str = ""  # Comment behind it: its origin

    @property
    def noted(self) -> Any:
        """The value, with a comment if there is one."""
        return Noted(self.formula, self.note) if self.note else self.formula


def table_of(amounts: Iterable[SignatureAmount]) -> dict[str, dict[str, Any]]:
    """The table ``[constants]`` of some amounts."""
    return {one.name: one.entry() for amount in amounts for one in amount.constants}


# Amounts of a signature from one run: what was traced, and how it is assumed to scale.
#
# One run shows nothing of other numbers of processes. Strong scaling is assumed: the work of the
# whole program stays, so that of a process goes with 1/P, and that of a thread with 1/(P T). What
# is
# done once beside an iterative part, such as setting up, is as often done again by every process:
# that is in its interval. The whole vectors of Bcast, Reduce and Allreduce stay; the parts of a
# process in Gather, Scatter and Allgather go with 1/P, the blocks for one peer of Alltoall with
# 1/P**2.


SCALES = ("strong", "weak")
"""Whether the work of the whole program stays, or that of a process."""
_DRIFT = (0.85, 1.15)
"""90 % interval of the exponent with which work is assumed to divide."""
_ONCE = (0.0, 1.15)
"""The same of what is done once: anything from what every process does to what they share."""
_MOSTLY = 0.5
"""Share of the time of a phase in one execution from which it is done once."""
SCALARS = 64
"""Bytes up to which a part is taken for a few numbers, which no decomposition makes smaller."""
PARTS = {"gather": "1/P", "scatter": "1/P", "allgather": "1/P", "alltoall": "1/P**2"}
"""How the bytes of collectives go with P in strong scaling; those of others stay."""


def let(outline: Outline, processes: int, threads: int, scaling: str) -> dict[str, Any]:
    """Names of the factors by which work is assumed to scale: ``work``, ``setup``, ``share``."""
    from popmodel.signature.toml import Noted

    teams = [team is not None for team in outline.teams]
    found: dict[str, Any] = {}
    if not all(teams):
        formula = (
            f"({processes}/P)**grows" if scaling == "strong" else f"(P/{processes})**(1 - grows)"
        )
        found["work"] = Noted(formula, f"assumed: {scaling} scaling, work of a process")
        if once(outline):
            note = f"assumed: {scaling} scaling, what a process does once"
            found["setup"] = Noted(formula.replace("grows", "begins"), note)
    if any(teams):
        split = (
            f"({processes}/P)**grows" if scaling == "strong" else f"(P/{processes})**(1 - grows)"
        )
        found["share"] = Noted(
            f"({threads}/T)**divides*{split}", f"assumed: {scaling}, work of a thread"
        )
    return found


def exponents(outline: Outline) -> dict[Key, SignatureAmount]:
    """Return how sure it is that work divides: exponents that what is assumed is raised to."""
    known = {"grows": "assumed: the work of a process goes with 1/P to this power"}
    if any(team is not None for team in outline.teams):
        known["divides"] = "assumed: the work of a thread goes with 1/T to this power"
    if once(outline):
        known["begins"] = "assumed: what a process does once goes with 1/P to this power"
    return {
        (name,): SignatureAmount(
            name,
            (
                SignatureConstant(
                    name, 1.0, *(_ONCE if name == "begins" else _DRIFT), "1", "assumed", source
                ),
            ),
        )
        for name, source in known.items()
    }


def once(outline: Outline) -> frozenset[int]:
    """Points outside of regions that are mostly computed once, beside what is computed often.

    None where that is the larger part of the run: its iterations are in no loop then.
    """
    found = frozenset(
        point
        for point, one in enumerate(outline.points)
        if outline.teams[point] is None and _is_once(one)
    )
    whole = sum(one.total for one in outline.points)
    mine = sum(outline.points[point].total for point in found)
    return found if mine < _MOSTLY * whole else frozenset()


def _is_once(point: Computing) -> bool:
    turns = np.nansum(point.seconds, axis=0)
    return bool(turns.size and turns.max() > _MOSTLY * turns.sum())


def amounts(
    outline: Outline, descriptions: Sequence[Description], processes: int, scaling: str
) -> dict[Key, SignatureAmount]:
    """Return the amounts of a signature that rests on one run."""
    found: dict[Key, SignatureAmount] = {}
    setup = once(outline)
    for point, one in enumerate(descriptions):
        factor = "setup" if point in setup else "work"
        found["seconds", point] = _seconds(outline, point, one, processes, factor)
    for path, node in paths(outline.body):
        match node:
            case OutlineRepeat():
                found["count", path] = SignatureAmount(node.count, note="trace")
            case OutlineMeeting():
                found["bytes", path] = _size(node, processes, scaling)
            case OutlineCalls() if node.moves is None:
                found["processes", path] = SignatureAmount(
                    processes, note="as traced; for another P scaled"
                )
                found |= _scaled(node, path, processes, scaling)
            case OutlineCalls():
                found |= _sizes(node, path, outline.grid, scaling)
            case OutlineWork():
                pass
    return found


def paths(
    body: Sequence[Node], before: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Node]]:
    """All nodes with where they stand."""
    for index, node in enumerate(body):
        yield (*before, index), node
        if isinstance(node, OutlineRepeat):
            yield from paths(node.body, (*before, index))


def _seconds(
    outline: Outline, point: int, one: Description, processes: int, factor: str
) -> SignatureAmount:
    team = outline.teams[point]
    label = outline.labels[point]
    rests = plural(one.executions, "execution")
    rests += f" x {plural(processes, 'process', 'processes')}" if processes > 1 else ""
    if team is None:
        source, value, low, high = label, one.mean, one.low, one.high
    else:
        source, factor, value = f"{label}, average thread", "share", team.useful
        ends = [None if end is None else end * value / one.mean for end in (one.low, one.high)]
        low, high = ends
    if not value > 0:
        return SignatureAmount(0)
    constant = SignatureConstant(
        TIME + outline.names[point], value, low, high, "s", "trace", f"{source}, {rests}"
    )
    return SignatureAmount(f"{constant.name}*{factor}", (constant,))


def _sizes(
    node: OutlineCalls, path: tuple[int, ...], grid: ScalingGrid | None, scaling: str
) -> dict[Key, SignatureAmount]:
    """Bytes of rows that hold on a grid: a side goes with the extents of the other dimensions."""
    found: dict[Key, SignatureAmount] = {}
    assert node.moves is not None and grid is not None
    if scaling == "weak":
        return found
    for row, move in node.moves.items():
        size = row_at(node.rows, row).get("bytes", 0)
        sides = [axis for axis, step in enumerate(move) if not step and grid.dims[axis] > 1]
        if isinstance(size, int) and size and sides:
            over = "".join(f"*{grid.dims[axis]}/P{axis}" for axis in sides)
            found["bytes", (*path, *row)] = SignatureAmount(
                f"{size}{over}", note="assumed: surface"
            )
    return found


def row_at(rows: Sequence[dict[str, Any]], where: tuple[int, ...]) -> dict[str, Any]:
    """Return a row of a list of calls by where it stands."""
    row = rows[where[0]]
    return row if len(where) == 1 else row_at(row["calls"], where[1:])


def _scaled(
    node: OutlineCalls, path: tuple[int, ...], processes: int, scaling: str
) -> dict[Key, SignatureAmount]:
    """What stands for a list at another number of processes: as many messages, of a surface."""
    if not node.offsets:
        return {}
    messages = number(node.messages / processes, 4)
    size = number(node.bytes / node.messages)
    formula = f"{size:.12g}*({processes}/P)**(1/2)" if scaling == "strong" and size else size
    return {
        ("scaled messages", path): SignatureAmount(messages, note="assumed: as many messages"),
        ("scaled size", path): SignatureAmount(formula, note="assumed: surface of a plane"),
    }


def _size(node: OutlineMeeting, processes: int, scaling: str) -> SignatureAmount:
    size = number(node.bytes, 15)
    part = PARTS.get(node.op)
    if part is None or size <= SCALARS:
        return SignatureAmount(size, note="trace")
    if scaling == "weak":
        return SignatureAmount(size, note="trace; assumed to stay with P")
    power = part.removeprefix("1/P")
    return SignatureAmount(
        f"{size:.15g}*({processes}/P){power}", note=f"trace; assumed to go with {part}"
    )
