"""The grid that a run has, where another run of the program has one: by where its messages go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from popmodel.model.run.grid import best_grid, divisors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.extraction.general import Grid
    from popmodel.extraction.sent import Sent

Axes = tuple[bool, ...]
"""Along which dimensions a message goes one step."""

_MOST = 0.5
"""Share of the bytes below which the messages of a run go to no neighbours of a grid."""


def extents_like(
    grid: Grid, sent: Sent, processes: int, kinds: Collection[Axes]
) -> tuple[int, ...] | None:
    """Return the extents at which the messages of a run go as those of another one do."""
    taken = best_grid(processes, grid.cells, grid.periodic)
    if not len(sent.size):
        return taken
    best, most = None, 0.0
    for dims in (taken, *_extents(processes, len(grid.dims))):
        going = along(dims, grid.periodic, sent)
        known = np.zeros(len(sent.size), dtype=bool)
        for kind in kinds:
            known |= (going == np.array(kind)).all(axis=1)
        moved = float((sent.size + 1)[known].sum())
        if moved > most * (1 + 1e-9):
            best, most = dims, moved
    return best if most > _MOST * float((sent.size + 1).sum()) else None


def along(dims: tuple[int, ...], periodic: tuple[bool, ...], sent: Sent) -> NDArray[np.int64]:
    """Return along which dimensions messages go: int64[M, dimensions]; -1 for more than a step."""
    found = np.zeros((len(sent.size), len(dims)), dtype=np.int64)
    stride = 1
    for axis in range(len(dims) - 1, -1, -1):
        extent = dims[axis]
        away = sent.receiver // stride % extent - sent.sender // stride % extent
        if periodic[axis]:
            away = (away + extent // 2) % extent - extent // 2
        found[:, axis] = np.where(np.abs(away) <= 1, np.abs(away), -1)
        stride *= extent
    return found


def _extents(processes: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        yield (processes,)
        return
    for first in divisors(processes):
        for rest in _extents(processes // first, dimensions - 1):
            yield first, *rest
