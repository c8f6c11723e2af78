"""Elementary functions that accept numbers, arrays and traced numbers alike.

A cost is written once with these functions. The closed form evaluates it with arrays of parameter
draws, the replay with numbers, and a report with traced numbers that remember their formula, so
the three cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.base.expressions.traced import TracedExpression

Value: TypeAlias = "float | NDArray[np.float64] | TracedExpression"
"""A quantity of the model: a number, the number in every draw, or one that knows its formula."""

Condition: TypeAlias = "bool | np.bool_ | NDArray[np.bool_]"
"""What a comparison of quantities gives."""

_numpy: Any = np
"""NumPy, whose functions call the methods of traced numbers, which its types do not know."""


def numbers(value: Value) -> NDArray[np.float64]:
    """Return the numbers of a quantity, one for every draw, without their formula."""
    if type(value) is float:
        return np.array([value])
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def some(value: Value) -> bool:
    """Tell whether a quantity is anything but 0, in any draw."""
    return bool(value.any()) if isinstance(value, np.ndarray) else bool(value)


def maximum(first: Value, *others: Value) -> Value:
    """Return the largest value, elementwise."""
    for other in others:
        first = _numpy.maximum(first, other)
    return first


def minimum(first: Value, *others: Value) -> Value:
    """Return the smallest value, elementwise."""
    for other in others:
        first = _numpy.minimum(first, other)
    return first


ceiling: Callable[[Value], Value] = _numpy.ceil
floor: Callable[[Value], Value] = _numpy.floor
sqrt: Callable[[Value], Value] = _numpy.sqrt
log: Callable[[Value], Value] = _numpy.log


def choose(condition: Condition, chosen: Value, otherwise: Value) -> Value:
    """Return ``chosen`` where the condition holds, else ``otherwise``."""
    taken: Value = _numpy.where(condition, chosen, otherwise)[()]
    return taken


def floor_log2(value: Value) -> Value:
    """Return the largest k with ``2**k <= value``, exact for every integer below 2**53.

    A rounded logarithm is off by one near large powers of two, hence the binary exponent.
    """
    _, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    power: Value = exponent - 1
    return power


def ceiling_log2(value: Value) -> Value:
    """Return the smallest k with ``2**k >= value``, exact for every integer below 2**53."""
    mantissa, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    power: Value = np.where(mantissa == 0.5, exponent - 1, exponent)[()]
    return power
