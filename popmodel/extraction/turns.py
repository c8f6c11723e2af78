"""How the iterations of a loop differ, and the loops with equal iterations that do the same.

Iterations differ where a place is passed in some of them only, or an inner loop has another count.
What comes again and again (every fifth step ends with a reduction) becomes a loop around its
period; a few stretches of equal iterations become loops one after the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.patterns.table import iterations
from popmodel.structure.nest import Leaf, Loop
from popmodel.units import count, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.patterns.table import Table

_MOST = 16
"""Stretches one after the other, or steps of a period, that are still worth writing out."""


@dataclass(frozen=True)
class Step:
    """Iterations that do the same."""

    count: int  # How many follow one another
    # int64[n]: Executions of the body that they are, over all executions of the loop.
    which: NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """Steps that are repeated."""

    count: int  # How often
    steps: tuple[Step, ...]  # In order


@dataclass(frozen=True)
class Turns:
    """A loop as stretches, one after the other, and what they do not say."""

    stretches: tuple[Stretch, ...]
    notes: tuple[str, ...] = ()


def turns(table: Table, loop: Loop, executions: int, which: NDArray[np.int64], name: str) -> Turns:
    """Find out how the iterations of a loop differ."""
    first = iterations(loop, executions)
    counts = first[which + 1] - first[which]
    kinds = _kinds(table, loop, int(first[-1]))
    notes: list[str] = []
    length = round(float(counts.mean()))
    if (counts != length).any():
        notes.append(
            f"{name} has {int(counts.min())} to {int(counts.max())} iterations: written as "
            f"{length}, their mean"
        )
        every = np.concatenate([np.arange(first[one], first[one + 1]) for one in which])
        return Turns((Stretch(length, (Step(1, every),)),) if length else (), tuple(notes))
    if not length:
        return Turns(())
    rows = first[which][:, None] + np.arange(length)  # executions x iterations
    of_first = kinds[rows[0]]
    if (kinds[rows] != of_first).any():
        notes.append(f"executions of {name} differ in what iterations do: the first is kept")
    stretches = _stretches(of_first)
    if stretches is None:
        number = plural(len(np.unique(of_first)), "kind")
        notes.append(
            f"the {count(length)} iterations of {name} are of {number} in no simple order: "
            "written as if each did all"
        )
        stretches = [(length, [(1, np.arange(length))])]
    return Turns(
        tuple(
            Stretch(
                times,
                tuple(Step(number, rows[:, turn].reshape(-1)) for number, turn in steps),
            )
            for times, steps in stretches
        ),
        tuple(notes),
    )


def _kinds(table: Table, loop: Loop, total: int) -> NDArray[np.int64]:
    """A number for each iteration of a loop, equal where the same is there: int64[total]."""
    columns: list[NDArray[np.int64]] = []
    for node in loop.body:
        if isinstance(node, Leaf):
            there = [(table.event[place][:, :total] >= 0).any(axis=0) for place in node.places]
            columns += [np.asarray(one, dtype=np.int64) for one in there]
        else:
            columns.append(_executions(table, node, total))
    stacked = np.stack(columns, axis=1)
    _, found = np.unique(stacked, axis=0, return_inverse=True)
    return np.asarray(found.reshape(-1), dtype=np.int64)


def _executions(table: Table, loop: Loop, total: int) -> NDArray[np.int64]:
    """A number for each execution of a loop, equal where all of its iterations are: int64[n]."""
    first = iterations(loop, total)
    inner = _kinds(table, loop, int(first[-1]))
    numbers: dict[bytes, int] = {}
    spans = pairwise(first.tolist())
    found = [numbers.setdefault(inner[a:b].tobytes(), len(numbers)) for a, b in spans]
    return np.array(found, dtype=np.int64)


def _stretches(
    kinds: NDArray[np.int64],
) -> list[tuple[int, list[tuple[int, NDArray[np.int64]]]]] | None:
    """Stretches of equal iterations: (count, [(count, iterations)]); None for no simple order."""
    runs = _runs(kinds)
    if len(runs) == 1:
        return [(len(kinds), [(1, np.arange(len(kinds)))])]
    for period in range(2, len(kinds) // 2 + 1):
        inside = _runs(kinds[:period])
        if len(inside) > _MOST or (kinds[period:] != kinds[:-period]).any():
            continue
        times = len(kinds) // period
        starts = np.arange(times)[:, None] * period
        steps = [(b - a, (starts + np.arange(a, b)).reshape(-1)) for a, b in inside]
        rest = _runs(kinds[times * period :])
        behind = times * period
        return [
            (times, steps),
            *((b - a, [(1, np.arange(behind + a, behind + b))]) for a, b in rest),
        ]
    if len(runs) <= _MOST:
        return [(b - a, [(1, np.arange(a, b))]) for a, b in runs]
    return None


def _runs(kinds: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Begin and end of stretches of equal values."""
    if not len(kinds):
        return []
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    return list(pairwise(edges))
