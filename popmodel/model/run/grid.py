"""The grid of processes with the least surface between its blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popmodel.model.run.placement import ImpossibleSplit
from popmodel.units import plural


def best_grid(processes: int, cells: Sequence[float], periodic: Sequence[bool]) -> tuple[int, ...]:
    """Return the factorisation of P whose blocks have the least surface to their neighbours."""
    extents = np.array(_factorisations(processes, len(cells)), dtype=np.float64)
    extents = extents[(extents <= np.array(cells)).all(axis=1)]
    if not len(extents):
        shown = " x ".join(f"{size:g}" for size in cells)
        raise ImpossibleSplit(
            f"no grid of {plural(processes, 'process', 'processes')} fits {shown} cells: "
            "each process needs at least one"
        )
    local = np.array(cells) / extents
    # two processes in a line are neighbours on one side only
    sides = np.where(np.array(periodic) & (extents > 1), 2, np.minimum(2, extents - 1))
    # of a block, as a part of its volume, which is the same for all
    surface = (sides / local).sum(axis=1)
    # rounding must not decide between grids that are the same in another order
    best = extents[surface <= surface.min() * (1 + 1e-12)]
    return min(tuple(int(size) for size in extent) for extent in best)


def divisors(number: int) -> list[int]:
    """Return all divisors of a number from 1, rising."""
    found = [1]
    left, prime = number, 2
    while left > 1:
        if prime * prime > left:
            prime = left
        powers = [1]
        while left % prime == 0:
            left //= prime
            powers.append(powers[-1] * prime)
        if len(powers) > 1:
            found = [one * power for one in found for power in powers]
        prime += 1
    return sorted(found)


def _factorisations(number: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in divisors(number)
        for rest in _factorisations(number // first, parts - 1)
    ]
