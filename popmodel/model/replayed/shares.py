"""What each process has to do in each step, where more is known of it than a spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from popmodel.model.run.uneven import Uneven

Array = NDArray[np.float64]


def dealt(values: Sequence[Array], processes: int, stream: Sequence[int]) -> Iterator[Array]:
    """Deal out factors, execution by execution, without an end.

    Every process takes the values of a part in an order of its own until none is left, and then
    again: after as many executions as there are values it has done all of them once, so that its
    whole work is exact.
    """
    sizes = sorted({one.size for one in values})
    groups = [[row for row, one in enumerate(values) if one.size == size] for size in sizes]
    decks = [
        _deck(np.stack([values[row] for row in rows]), processes, [*stream, size])
        for size, rows in zip(sizes, groups, strict=True)
    ]
    for _ in count():
        found = np.empty((len(values), processes))
        for rows, deck in zip(groups, decks, strict=True):
            found[rows] = next(deck)
        yield found


def _deck(values: Array, processes: int, stream: Sequence[int]) -> Iterator[Array]:
    """Deal out the values of parts that have as many."""
    rng = np.random.default_rng(stream)
    whole = np.repeat(values[:, :, None], processes, axis=2)
    while True:
        shuffled = rng.permuted(whole, axis=1)
        yield from shuffled.transpose(1, 0, 2)


class Factors:
    """By what the work of processes is multiplied in each execution of some parts."""

    def __init__(self, parts: Sequence[Uneven], processes: int, stream: Sequence[int]) -> None:
        self._known = np.array([one.ranks is not None for one in parts])[:, None]
        self._sequence = {
            row: one.sequence for row, one in enumerate(parts) if one.sequence is not None
        }
        self._drawn = [
            row
            for row, one in enumerate(parts)
            if one.turns is not None and row not in self._sequence
        ]
        turns = [parts[row].turns for row in self._drawn]
        self._deck = dealt([one for one in turns if one is not None], processes, stream)
        self._execution = 0

    def next(self, lasting: Array, turns: Array) -> Array:
        """Return the factors of the next execution, those of known processes left out."""
        base = np.where(self._known, 1.0, 1.0 + lasting)
        # where processes are known, they vary in proportion to what they have to do
        found: Array = np.maximum(base + turns, 0.0)
        if self._drawn:
            found[self._drawn] = np.maximum(base[self._drawn], 0.0) * next(self._deck)
        for row, sequence in self._sequence.items():
            found[row] = sequence[:, self._execution % sequence.shape[1]]
        self._execution += 1
        return found
