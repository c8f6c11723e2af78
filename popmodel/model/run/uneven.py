"""Work whose differences between processes, or between steps, are known one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.values import dataclass

Array = NDArray[np.float64]


@dataclass(frozen=True)
class UnevenWork:
    """A part of the work of an item, and how it differs."""

    share: float  # Its part of the work of an average process
    # float64[P] or None: Work of every process over that of an average one; None where it is not
    # known, and processes differ by a persistent coefficient of variation.
    ranks: Array | None = None
    # float64[n] or None: Values, each as likely as the others, of the factor by which a process has
    # more to do in a step; None where it is normal.
    turns: Array | None = None
    # float64[P, n] or None: That factor of each process in each of n executions, one after the
    # other, where these were recorded: a replay takes them in place of `turns`.
    sequence: Array | None = None


def relative(values: Sequence[float] | Array, factor: float = 1.0) -> Array:
    """Return values over their mean, their differences from it times a factor; none below 0."""
    found = np.asarray(values, dtype=np.float64)
    mean = found.mean()
    whole: Array = np.maximum(1 + factor * (found / mean - 1), 0.0)
    return whole
