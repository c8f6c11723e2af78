"""Elementary functions that accept numbers, NumPy arrays and SymPy expressions alike.

A cost is written once with these functions. The closed form evaluates it with arrays of parameter
draws, the replay with numbers, and a report can show it as a formula, so the three cannot disagree.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

# what the functions below work on: float, ndarray or sympy.Expr. SymPy is not imported for a type.
Value = Any


def is_symbolic(*values: Value) -> bool:
    """Tell whether any of the values is a SymPy object, without importing SymPy."""
    sympy = sys.modules.get("sympy")  # nobody can hold a SymPy object before it was imported
    return sympy is not None and any(isinstance(value, sympy.Basic) for value in values)


def maximum(first: Value, *others: Value) -> Value:
    """Return the largest value, elementwise."""
    if is_symbolic(first, *others):
        import sympy

        return sympy.Max(first, *others)
    for other in others:
        first = np.maximum(first, other)
    return first


def minimum(first: Value, *others: Value) -> Value:
    """Return the smallest value, elementwise."""
    if is_symbolic(first, *others):
        import sympy

        return sympy.Min(first, *others)
    for other in others:
        first = np.minimum(first, other)
    return first


def ceiling(value: Value) -> Value:
    """Round up."""
    if is_symbolic(value):
        import sympy

        return sympy.ceiling(value)
    return np.ceil(value)


def floor(value: Value) -> Value:
    """Round down."""
    if is_symbolic(value):
        import sympy

        return sympy.floor(value)
    return np.floor(value)


def sqrt(value: Value) -> Value:
    """Return the square root."""
    if is_symbolic(value):
        import sympy

        return sympy.sqrt(value)
    return np.sqrt(value)


def log(value: Value) -> Value:
    """Return the natural logarithm."""
    if is_symbolic(value):
        import sympy

        return sympy.log(value)
    return np.log(value)


def choose(condition: Value, chosen: Value, otherwise: Value) -> Value:
    """Return ``chosen`` where the condition holds, else ``otherwise``."""
    if is_symbolic(condition, chosen, otherwise):
        import sympy

        return sympy.Piecewise((chosen, condition), (otherwise, True))
    result: Value = np.where(condition, chosen, otherwise)
    return result[()]


def floor_log2(value: Value) -> Value:
    """Return the largest k with ``2**k <= value``, exact for every integer below 2**53.

    A rounded logarithm is off by one near large powers of two, hence the binary exponent.
    """
    if is_symbolic(value):
        import sympy

        return sympy.floor(sympy.log(value, 2))
    _, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    return exponent - 1


def ceiling_log2(value: Value) -> Value:
    """Return the smallest k with ``2**k >= value``, exact for every integer below 2**53."""
    if is_symbolic(value):
        import sympy

        return sympy.ceiling(sympy.log(value, 2))
    mantissa, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    result: Value = np.where(mantissa == 0.5, exponent - 1, exponent)
    return result[()]
