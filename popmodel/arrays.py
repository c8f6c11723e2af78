"""What NumPy does with arrays, at less cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TABLE = 1 << 20
"""Entries of a table that costs less than to sort."""


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Sorted values, each once.

    As `numpy.unique`, which for nothing but values imports ``numpy.ma`` (9 ms) and makes a table of
    hashes, which takes longer than to sort.
    """
    return np.unique(values, return_counts=True)[0]


def alike(*columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows of some columns of equal length, in order, and the one that each row is.

    As `numpy.unique` of rows, which compares them byte by byte: here columns are sorted one after
    the other, in a third of its time; small numbers are looked up in a table, in a tenth of that.
    """
    most = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(most) <= _TABLE and all(column.min(initial=0) >= 0 for column in columns):
        key = columns[0]
        for column, size in zip(columns[1:], most[1:], strict=True):
            key = key * size + column
        there = np.bincount(key, minlength=1) > 0
        found = np.stack(np.unravel_index(np.flatnonzero(there), most), axis=1)
        return found, (np.cumsum(there) - 1)[key]
    which = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, index = np.unique(column, return_inverse=True)
        which = np.unique(which * len(values) + index, return_inverse=True)[1]
    first = np.empty(which.max(initial=-1) + 1, np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return np.stack([column[first] for column in columns], axis=1), which


def quantile(values: NDArray[np.float64], share: float) -> float:
    """Return a quantile, linear between values, as `numpy.quantile` but in a tenth of its time."""
    ordered = np.sort(values)
    position = share * (ordered.size - 1)
    below = int(position)
    above = min(below + 1, ordered.size - 1)
    return float(ordered[below] + (position - below) * (ordered[above] - ordered[below]))
