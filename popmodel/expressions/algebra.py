"""Walk a checked syntax tree with values that are no numbers: units, symbols, text."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.expressions.grammar import dotted_name

Functions = Mapping[str, Callable[..., Any]]


class Algebra(ABC):
    """What a walk of the tree needs to know about its values."""

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


def walk(node: ast.expr, values: Mapping[str, Any], algebra: Algebra) -> Any:
    """Compute a checked tree once."""
    return prepared(node)(values, algebra)


Walk = Callable[[Mapping[str, Any], Algebra], Any]
"""Computes a tree for the values of its names, in an algebra."""


def prepared(node: ast.expr) -> Walk:
    """Return what computes a checked tree, as often as is asked: which node is what is settled."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return lambda _values, algebra: algebra.number(value)
        case ast.Constant(value=str() as word):
            return lambda _values, _algebra: word
        case ast.Name(id=name):
            return lambda values, _algebra: values[name]
        case ast.Attribute():
            dotted = dotted_name(node)
            return lambda values, _algebra: values[dotted]
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, prepared(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, prepared(left), prepared(right))
        case ast.BoolOp(op=op, values=children):
            return _logical(op, [prepared(child) for child in children])
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _comparison(ops, [prepared(child) for child in (left, *comparators)])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, chosen, otherwise = prepared(test), prepared(body), prepared(orelse)
            return lambda values, algebra: algebra.choice(
                condition(values, algebra), chosen(values, algebra), otherwise(values, algebra)
            )
        case ast.Call(func=ast.Name(id=name), args=args):
            given = [prepared(arg) for arg in args]
            return lambda values, algebra: algebra.functions[name](
                *[algebra.arithmetic(arg(values, algebra)) for arg in given]
            )
    raise AssertionError(f"{type(node).__name__} passed the check of the grammar")


def _unary(op: ast.unaryop, operand: Walk) -> Walk:
    if isinstance(op, ast.Not):
        return lambda values, algebra: algebra.negation(operand(values, algebra))
    if isinstance(op, ast.USub):
        return lambda values, algebra: -algebra.arithmetic(operand(values, algebra))
    return lambda values, algebra: algebra.arithmetic(operand(values, algebra))


def _binary(op: ast.operator, left: Walk, right: Walk) -> Walk:
    if isinstance(op, ast.FloorDiv):
        return lambda values, algebra: algebra.floor_division(
            algebra.arithmetic(left(values, algebra)), algebra.arithmetic(right(values, algebra))
        )
    if isinstance(op, ast.Mod):
        return lambda values, algebra: algebra.modulo(
            algebra.arithmetic(left(values, algebra)), algebra.arithmetic(right(values, algebra))
        )
    compute = _ARITHMETIC[type(op)]
    return lambda values, algebra: compute(
        algebra.arithmetic(left(values, algebra)), algebra.arithmetic(right(values, algebra))
    )


def _logical(op: ast.boolop, parts: Sequence[Walk]) -> Walk:
    if isinstance(op, ast.And):
        return lambda values, algebra: algebra.conjunction(
            [part(values, algebra) for part in parts]
        )
    return lambda values, algebra: algebra.disjunction([part(values, algebra) for part in parts])


def _comparison(ops: Sequence[ast.cmpop], operands: Sequence[Walk]) -> Walk:
    def computed(values: Mapping[str, Any], algebra: Algebra) -> Any:
        known = [algebra.arithmetic(operand(values, algebra)) for operand in operands]
        results = [
            algebra.compare(op, a, b) for op, a, b in zip(ops, known[:-1], known[1:], strict=True)
        ]
        return results[0] if len(results) == 1 else algebra.conjunction(results)

    return computed
