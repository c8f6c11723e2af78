"""What each process has to do in each step, where more is known of it than a spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.model.run.uneven import UnevenWork

Array = NDArray[np.float64]


class _Decks:
    """Deals out factors, execution by execution.

    Every process takes the values of a part in an order of its own until none is left, and then
    again: after as many executions as there are values it has done all of them once, so that its
    whole work is exact. Parts with as many values share a deck.
    """

    def __init__(self, values: Sequence[Array], processes: int, stream: Sequence[int]) -> None:
        sizes = sorted({one.size for one in values})
        self._shape = len(values), processes
        self._decks = []
        for size in sizes:
            rows = [row for row, one in enumerate(values) if one.size == size]
            many = np.stack([values[row] for row in rows])
            self._decks.append((rows, many, _deck(many, processes, [*stream, size])))

    def mean(self, times: int) -> Array:
        """Return the mean of the next executions: a deck that is dealt out whole has its own."""
        found = np.empty(self._shape)
        for rows, values, deck in self._decks:
            whole, rest = divmod(times, values.shape[1])
            total = sum((next(deck) for _ in range(rest)), np.zeros((len(rows), self._shape[1])))
            found[rows] = (whole * values.sum(axis=1, keepdims=True) + total) / times
        return found


def _deck(values: Array, processes: int, stream: Sequence[int]) -> Iterator[Array]:
    """Deal out the values of parts that have as many."""
    rng = np.random.default_rng(stream)
    whole = np.repeat(values[:, :, None], processes, axis=2)
    while True:
        shuffled = rng.permuted(whole, axis=1)
        yield from shuffled.transpose(1, 0, 2)


class Factors:
    """By what the work of processes is multiplied in each execution of some parts."""

    def __init__(self, parts: Sequence[UnevenWork], processes: int, stream: Sequence[int]) -> None:
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
        self._decks = _Decks([one for one in turns if one is not None], processes, stream)
        self._execution = 0

    def next(self, lasting: Array, turns: Array, times: int = 1) -> Array:
        """Return the mean factors of the next executions, those of known processes left out."""
        base = np.where(self._known, 1.0, 1.0 + lasting)
        # where processes are known, they vary in proportion to what they have to do
        found: Array = np.maximum(base + turns, 0.0)
        if self._drawn:
            found[self._drawn] = np.maximum(base[self._drawn], 0.0) * self._decks.mean(times)
        for row, sequence in self._sequence.items():
            passed = (self._execution + np.arange(times)) % sequence.shape[1]
            found[row] = sequence[:, passed].mean(axis=1)
        self._execution += times
        return found
