"""Elementary functions that accept numbers, arrays and traced numbers alike.

A cost is written once with these functions. The closed form evaluates it with arrays of parameter
draws, the replay with numbers, and a report with traced numbers that remember their formula, so
the three cannot disagree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# what the functions below work on: float, ndarray or Traced
Value = Any


def maximum(first: Value, *others: Value) -> Value:
    """Return the largest value, elementwise."""
    for other in others:
        first = np.maximum(first, other)
    return first


def minimum(first: Value, *others: Value) -> Value:
    """Return the smallest value, elementwise."""
    for other in others:
        first = np.minimum(first, other)
    return first


def ceiling(value: Value) -> Value:
    """Round up."""
    return np.ceil(value)


def floor(value: Value) -> Value:
    """Round down."""
    return np.floor(value)


def sqrt(value: Value) -> Value:
    """Return the square root."""
    return np.sqrt(value)


def log(value: Value) -> Value:
    """Return the natural logarithm."""
    return np.log(value)


def choose(condition: Value, chosen: Value, otherwise: Value) -> Value:
    """Return ``chosen`` where the condition holds, else ``otherwise``."""
    result: Value = np.where(condition, chosen, otherwise)
    return result[()]


def floor_log2(value: Value) -> Value:
    """Return the largest k with ``2**k <= value``, exact for every integer below 2**53.

    A rounded logarithm is off by one near large powers of two, hence the binary exponent.
    """
    _, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    return exponent - 1


def ceiling_log2(value: Value) -> Value:
    """Return the smallest k with ``2**k >= value``, exact for every integer below 2**53."""
    mantissa, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    result: Value = np.where(mantissa == 0.5, exponent - 1, exponent)
    return result[()]
