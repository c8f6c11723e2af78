"""Walk a checked syntax tree with floats, NumPy arrays or traced numbers as its values."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from popmodel.expressions.grammar import dotted_name

Functions = Mapping[str, Callable[..., Any]]


class Algebra(ABC):
    """What a walk of the tree needs to know about its values.

    Parameters
    ----------
    extra : mapping of str to callable, optional
        Functions that are added to those of the grammar.
    """

    def __init__(self, extra: Functions | None = None) -> None:
        self.functions: Functions = {**self.standard_functions(), **(extra or {})}

    @abstractmethod
    def standard_functions(self) -> Functions:
        """Return the functions of the grammar for these values."""

    @abstractmethod
    def number(self, value: int | float) -> Any:
        """Turn a literal into a value."""

    @abstractmethod
    def arithmetic(self, value: Any) -> Any:
        """Turn a condition into 0 or 1; leave numbers alone."""

    @abstractmethod
    def compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        """Compare two values."""

    @abstractmethod
    def conjunction(self, values: list[Any]) -> Any:
        """Return whether all values are true."""

    @abstractmethod
    def disjunction(self, values: list[Any]) -> Any:
        """Return whether any value is true."""

    @abstractmethod
    def negation(self, value: Any) -> Any:
        """Return whether the value is false."""

    @abstractmethod
    def choice(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        """Choose a value by a condition."""

    @abstractmethod
    def floor_division(self, a: Any, b: Any) -> Any:
        """Divide and round down."""

    @abstractmethod
    def modulo(self, a: Any, b: Any) -> Any:
        """Return the remainder of the floor division."""


_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class FloatAlgebra(Algebra):
    """Python floats without functions: needs no import, and overflows loudly."""

    def standard_functions(self) -> Functions:
        return {}

    def compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        return _COMPARE[type(op)](a, b)

    def number(self, value: int | float) -> Any:
        return float(value)

    def arithmetic(self, value: Any) -> Any:
        return value

    def conjunction(self, values: list[Any]) -> Any:
        return all(values)

    def disjunction(self, values: list[Any]) -> Any:
        return any(values)

    def negation(self, value: Any) -> Any:
        return not value

    def choice(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        return chosen if condition else otherwise

    def floor_division(self, a: Any, b: Any) -> Any:
        return a // b

    def modulo(self, a: Any, b: Any) -> Any:
        return a % b


class NumericAlgebra(FloatAlgebra):
    """NumPy scalars and arrays."""

    def standard_functions(self) -> Functions:
        return _numeric_functions()

    def number(self, value: int | float) -> Any:
        import numpy as np

        return np.float64(value)

    def arithmetic(self, value: Any) -> Any:
        import numpy as np

        # NumPy adds booleans as a logical or, so a condition counts as 0.0 or 1.0
        if isinstance(value, float):  # np.float64 is one, and nearly all values are
            return value
        return value * np.float64(1.0) if np.asarray(value).dtype == bool else value

    def conjunction(self, values: list[Any]) -> Any:
        import numpy as np

        return _reduce(np.logical_and, values)

    def disjunction(self, values: list[Any]) -> Any:
        import numpy as np

        return _reduce(np.logical_or, values)

    def negation(self, value: Any) -> Any:
        import numpy as np

        return np.logical_not(value)

    def choice(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        import numpy as np

        return np.where(condition, chosen, otherwise)[()]


@cache
def _numeric_functions() -> Functions:
    """The functions of the grammar by NumPy, made once: formulas are evaluated often."""
    import numpy as np

    def log(value: Any, base: Any = None) -> Any:
        return np.log(value) if base is None else np.log(value) / np.log(base)

    def is_square(value: Any) -> Any:
        root = np.rint(np.sqrt(value))
        return root * root == value

    functions: dict[str, Callable[..., Any]] = {
        "min": lambda *values: _reduce(np.minimum, values),
        "max": lambda *values: _reduce(np.maximum, values),
        "sqrt": np.sqrt,
        "log": log,
        "log2": np.log2,
        "exp": np.exp,
        "abs": np.abs,
        "ceiling": np.ceil,
        "floor": np.floor,
        "is_square": is_square,
    }
    return functions


class TracedAlgebra(FloatAlgebra):
    """Single numbers that remember how they were computed (`popmodel.expressions.traced`)."""

    def standard_functions(self) -> Functions:
        from popmodel.expressions.traced import is_square, log2

        # NumPy's functions call the methods of the same names
        return {
            **NumericAlgebra().standard_functions(),
            "min": lambda *values: min(values),
            "max": lambda *values: max(values),
            "log2": log2,
            "abs": abs,
            "is_square": is_square,
        }

    def arithmetic(self, value: Any) -> Any:
        return float(value) if isinstance(value, bool) else value


def walk(node: ast.expr, values: Mapping[str, Any], algebra: Algebra) -> Any:
    """Compute a checked tree.

    Parameters
    ----------
    node : ast.expr
        Passed the check of the grammar.
    values : mapping
        The value of every name in it.
    algebra : Algebra
        What the values are; it has every function that the tree calls.
    """
    match node:
        case ast.Constant(value=int() | float() as value):
            return algebra.number(value)
        case ast.Constant(value=str() as word):
            return word
        case ast.Name(id=name):
            return values[name]
        case ast.Attribute():
            return values[dotted_name(node)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return algebra.negation(walk(operand, values, algebra))
        case ast.UnaryOp(op=op, operand=operand):
            value = algebra.arithmetic(walk(operand, values, algebra))
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            a, b = (
                algebra.arithmetic(walk(left, values, algebra)),
                algebra.arithmetic(walk(right, values, algebra)),
            )
            if isinstance(op, ast.FloorDiv):
                return algebra.floor_division(a, b)
            if isinstance(op, ast.Mod):
                return algebra.modulo(a, b)
            return _ARITHMETIC[type(op)](a, b)
        case ast.BoolOp(op=op, values=children):
            parts = [walk(child, values, algebra) for child in children]
            if isinstance(op, ast.And):
                return algebra.conjunction(parts)
            return algebra.disjunction(parts)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operands = [
                algebra.arithmetic(walk(child, values, algebra)) for child in (left, *comparators)
            ]
            pairs = zip(ops, operands[:-1], operands[1:], strict=True)
            results = [algebra.compare(op, a, b) for op, a, b in pairs]
            return results[0] if len(results) == 1 else algebra.conjunction(results)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return algebra.choice(
                walk(test, values, algebra),
                walk(body, values, algebra),
                walk(orelse, values, algebra),
            )
        case ast.Call(func=ast.Name(id=name), args=args):
            return algebra.functions[name](
                *(algebra.arithmetic(walk(arg, values, algebra)) for arg in args)
            )
    raise AssertionError(f"{type(node).__name__} passed the check of the grammar")


def _reduce(function: Callable[[Any, Any], Any], values: Iterable[Any]) -> Any:
    iterator = iter(values)
    result = next(iterator)
    for value in iterator:
        result = function(result, value)
    return result
