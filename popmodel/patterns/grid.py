"""Cartesian grids of ranks: neighbours, and what directions a set of messages goes in.

Ranks are numbered with the last dimension fastest, as those of MPI_Cart_create and of signatures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DIMENSIONS = 3


@dataclass(frozen=True)
class ProcessGrid:
    """A grid of ranks."""

    # Extents; their product is the number of ranks. The last dimension varies fastest.
    dims: tuple[int, ...]
    periodic: tuple[bool, ...]  # Whether the last along a dimension is a neighbour of the first
    # Share of the bytes of all point-to-point messages that go as on this grid, 0 to 1.
    confidence: float = 1.0

    def __str__(self) -> str:
        return " x ".join(map(str, self.dims))


@dataclass(frozen=True)
class GridMessages:
    """Messages of one execution of some places, ordered by sender, receiver and size."""

    # int64[m]: Ranks and bytes.
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.size)

    @classmethod
    def of(
        cls, sender: NDArray[np.int64], receiver: NDArray[np.int64], size: NDArray[np.int64]
    ) -> GridMessages:
        """Put messages in order."""
        order = np.lexsort((size, receiver, sender))
        columns = (np.asarray(each)[order].astype(np.int64) for each in (sender, receiver, size))
        return cls(*columns)

    def only(self, rows: NDArray[np.bool_]) -> GridMessages:
        """Some of them."""
        return GridMessages(self.sender[rows], self.receiver[rows], self.size[rows])

    def __add__(self, other: GridMessages) -> GridMessages:
        return GridMessages.of(
            np.concatenate([self.sender, other.sender]),
            np.concatenate([self.receiver, other.receiver]),
            np.concatenate([self.size, other.size]),
        )


@dataclass(frozen=True)
class Direction:
    """Every rank that has a neighbour one step along `move` sends to it."""

    move: tuple[int, ...]  # -1, 0 or 1 for each dimension
    rows: NDArray[np.int64]  # int64[m]: Which messages they are


def extents_of(processes: int, most: int = MOST_DIMENSIONS) -> Iterator[tuple[int, ...]]:
    """All grids of so many ranks, those with few dimensions first; none has an extent of 1."""

    def factors(rest: int, number: int) -> Iterator[tuple[int, ...]]:
        if number == 1:
            yield (rest,)
            return
        for first in range(2, rest // 2 + 1):
            if rest % first == 0:
                for others in factors(rest // first, number - 1):
                    yield first, *others

    for number in range(1, most + 1):
        yield from (dims for dims in factors(processes, number) if min(dims) > 1 or processes == 1)


def strides_of(dims: Sequence[int]) -> list[int]:
    """By how much the rank grows with a step along each dimension."""
    return [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]


def neighbours(
    dims: Sequence[int], periodic: Sequence[bool], move: Sequence[int]
) -> NDArray[np.int64]:
    """Rank one step along a move from each rank; -1 where the grid ends: int64[P]."""
    rank = np.arange(math.prod(dims))
    found = np.zeros(len(rank), np.int64)
    inside = np.ones(len(rank), bool)
    for extent, stride, wraps, step in zip(dims, strides_of(dims), periodic, move, strict=True):
        to = rank // stride % extent + step
        if not wraps:
            inside &= (to >= 0) & (to < extent)
        found += to % extent * stride
    return np.where(inside, found, -1)


def periods_of(messages: GridMessages, dims: Sequence[int]) -> tuple[bool, ...]:
    """Along which dimensions messages go from the last to the first or back.

    With two ranks along a dimension both neighbours are the same: it is periodic if one sends the
    other two messages.
    """
    found = []
    pairs, often = np.unique(_codes(messages, dims), return_counts=True)
    for axis, extent in enumerate(dims):
        move = [int(other == axis) for other in range(len(dims))]
        around = neighbours(dims, [True] * len(dims), move)
        straight = neighbours(dims, [False] * len(dims), move)
        wrapping = np.flatnonzero(straight < 0)
        codes = np.concatenate(
            [wrapping * len(around) + around[wrapping], around[wrapping] * len(around) + wrapping]
        )
        here = np.searchsorted(pairs, codes)
        there = np.append(pairs, -1)[here] == codes
        least = 2 if extent == 2 else 1
        found.append(bool(np.any(there & (np.append(often, 0)[here] >= least))))
    return tuple(found)


def directions(
    messages: GridMessages, dims: Sequence[int], periodic: Sequence[bool]
) -> list[Direction] | None:
    """Tell messages apart by the direction they go in."""
    codes = _codes(messages, dims)
    processes = math.prod(dims)
    taken = np.zeros(len(codes), bool)
    found: list[Direction] = []
    for move in _moves(len(dims)):
        to = neighbours(dims, periodic, move)
        senders = np.flatnonzero(to >= 0)
        if not len(senders):
            continue
        wanted = np.sort(senders * processes + to[senders])
        free = np.flatnonzero(~taken)
        at = np.searchsorted(codes[free], wanted)
        if len(free) < len(wanted) or at.max() >= len(free):
            continue
        if np.array_equal(codes[free[at]], wanted):
            rows = free[at]
            taken[rows] = True
            found.append(Direction(move, rows))
            if taken.all():
                return found
    return None


@cache
def _moves(dimensions: int) -> list[tuple[int, ...]]:
    every = [move for move in product((1, 0, -1), repeat=dimensions) if any(move)]
    return sorted(every, key=lambda move: sum(map(abs, move)))


def _codes(messages: GridMessages, dims: Sequence[int]) -> NDArray[np.int64]:
    """A number for each pair, in the order of the messages, which rises."""
    codes: NDArray[np.int64] = messages.sender * math.prod(dims) + messages.receiver
    return codes
