"""Where the iterations of a run begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.structure import find
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace


@dataclass(frozen=True, eq=False)
class Marks:
    """Iterations of a run, as all processes have them."""

    at: NDArray[np.int64]  # int64[n]: When the last process begins each that is marked, ns
    first: int  # Number of the first of them, from 1
    every: int  # Every so many iterations one is marked
    count: int  # Iterations that begin in the run, or the part of it


def marks_of(trace: Trace, most: int) -> Marks | None:
    """Find where iterations begin; None where there are none, or no time they can be told in."""
    if trace.pieces is not None and len(trace.pieces) > 1:
        return None
    try:
        found = find(trace.whole or trace)
    except ReplayError:  # nothing repeats where calls do not fit each other
        return None
    if found.loop is None or len(found.iterations) < 2:
        return None
    begins = found.iterations[:-1].max(axis=1)
    inside = np.flatnonzero((begins >= trace.begin) & (begins < trace.end))
    if not len(inside):
        return None
    every = -(-len(inside) // most)
    return Marks(begins[inside[::every]], int(inside[0]) + 1, every, len(inside))
