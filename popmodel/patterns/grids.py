"""Which grids the ranks of a program have: those on which most bytes go between neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.patterns.grid import ProcessGrid, extents_of
from popmodel.patterns.recognise import PatternReading, on_grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from popmodel.patterns.units import Class, PatternUnit

_LEAST = 0.01
"""Share of the bytes between processes that a grid explains at least."""
_CLASSES = 64
"""Sets of messages, those with most bytes, that say which grid it is."""


def grids_of(groups: Iterable[PatternUnit], processes: int) -> tuple[list[ProcessGrid], str]:
    """Choose the grid on which most bytes go between neighbours, then one for what is left."""
    classes = [each for unit in groups for each in unit.classes]
    if not classes:
        return [], "no process sends messages to another"
    weights = [len(each.executions) * _weight(each) for each in classes]
    total = sum(weights)
    rest = sorted(range(len(classes)), key=lambda row: -weights[row])[:_CLASSES]
    read = {
        dims: {
            row: reading
            for row in rest
            if (reading := on_grid(classes[row].messages, dims)) is not None
        }
        for dims in extents_of(processes)
    }
    grids: list[ProcessGrid] = []
    why = ""
    while rest:
        scores = {
            dims: sum(weights[row] for row in rest if row in found)
            for dims, found in read.items()
            if _uses_all(dims, [found[row] for row in rest if row in found])
        }
        best = max(
            scores, key=lambda dims: scores[dims], default=None
        )  # of equal ones the simplest
        if best is None or scores[best] < _LEAST * total:
            break
        mine = [row for row in rest if row in read[best]]
        wraps = np.any([read[best][row].facts["periodic"] for row in mine], axis=0)
        grids.append(ProcessGrid(best, tuple(wraps.tolist()), scores[best] / max(total, 1)))
        if len(grids) == 1:
            ties = [
                dims for dims, score in scores.items() if score == scores[best] and dims != best
            ]
            why = _or_else(processes, ties)
        rest = [row for row in rest if row not in mine]
    return grids, why if grids else "no grid of the ranks explains who sends to whom"


def _uses_all(dims: Sequence[int], found: Sequence[PatternReading]) -> bool:
    """Whether messages go along every dimension."""
    used = np.zeros(len(dims), bool)
    for reading in found:
        for way in reading.facts["directions"]:
            used |= np.array(way["move"]) != 0
    return bool(used.all())


def _or_else(processes: int, ties: Sequence[tuple[int, ...]]) -> str:
    if ties:
        others = " or ".join(" x ".join(map(str, dims)) for dims in ties)
        return f"as good: {others}"
    return "two processes are neighbours in whatever grid" if processes == 2 else ""


def _weight(each: Class) -> int:
    """Bytes between processes in one execution; a message counts a little even if it is empty."""
    messages = each.messages
    return int((messages.size + 1)[messages.sender != messages.receiver].sum())
