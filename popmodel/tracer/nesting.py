"""Things that open and close inside each other on a thread: what is open after each record.

All at once for a whole chunk of records where they nest as they should; record by record where they
do not, because tracing was switched off in between, a record is lost, or a task was left for
another one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def after(
    step: NDArray[np.int8], value: NDArray[np.int64], stack: Iterable[int], outside: int
) -> NDArray[np.int64]:
    """Value of the innermost thing that is open after each record."""
    open_ = [outside, *stack]
    steps = np.concatenate([np.ones(len(open_), np.int8), step])
    values = np.concatenate([np.array(open_, np.int64), value])
    depth = np.cumsum(steps, dtype=np.int64)
    # Among the records after which so much is open, the last opening one opened what is open now.
    order = np.argsort(depth.astype(np.int16), kind="stable")
    opening = np.where(steps[order] > 0, np.arange(len(order)), 0)
    found = np.empty(len(order), np.int64)
    found[order] = values[order[np.maximum.accumulate(opening)]]
    return found[len(open_) :]


def nests(step: NDArray[np.int8], group: NDArray[np.int64], stack: NDArray[np.int64]) -> bool:
    """Whether every closing record is of the same group as the innermost thing then open."""
    steps = np.concatenate([np.ones(len(stack), np.int8), step])
    groups = np.concatenate([stack, group])
    depth = np.cumsum(steps, dtype=np.int64)
    if not len(depth):
        return True
    if depth.min() < 0 or depth.max() >= np.iinfo(np.int16).max:
        return False
    level = np.where(steps > 0, depth, depth + 1).astype(np.int16)
    order = np.argsort(level, kind="stable")
    closing = np.flatnonzero(steps[order] < 0)
    return bool(np.all(groups[order[closing]] == groups[order[closing - 1]]))
