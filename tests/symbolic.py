"""Expressions in SymPy's symbols: for proofs, and to hold the numbers against."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from popmodel.expressions import Expression
from popmodel.expressions.algebra import Algebra, Functions


def symbolic(expression: Expression, symbols: Mapping[str, Any] | None = None) -> Any:
    """Return an expression in SymPy's symbols; a name that is not given is a positive one."""
    named = {name: sympy.Symbol(name, positive=True) for name in expression.names}
    return expression.walk({**named, **(symbols or {})}, SymbolicAlgebra())


_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: sympy.Eq,  # == of SymPy compares structure, not value
    ast.NotEq: sympy.Ne,
}


class SymbolicAlgebra(Algebra):
    """SymPy expressions."""

    def standard_functions(self) -> Functions:
        functions: dict[str, Callable[..., Any]] = {
            "min": sympy.Min,
            "max": sympy.Max,
            "sqrt": sympy.sqrt,
            "log": sympy.log,
            "log2": lambda value: sympy.log(value, 2),
            "exp": sympy.exp,
            "abs": sympy.Abs,
            "ceiling": sympy.ceiling,
            "floor": sympy.floor,
            "is_square": lambda value: sympy.Eq(sympy.floor(sympy.sqrt(value)) ** 2, value),
        }
        return functions

    def number(self, value: int | float) -> Any:
        return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)

    def arithmetic(self, value: Any) -> Any:
        return value if isinstance(value, sympy.Expr) else sympy.Piecewise((1, value), (0, True))

    def compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        return _COMPARE[type(op)](a, b)

    def conjunction(self, values: list[Any]) -> Any:
        return sympy.And(*(_condition(value) for value in values))

    def disjunction(self, values: list[Any]) -> Any:
        return sympy.Or(*(_condition(value) for value in values))

    def negation(self, value: Any) -> Any:
        return sympy.Not(_condition(value))

    def choice(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        return sympy.Piecewise((chosen, _condition(condition)), (otherwise, True))

    def floor_division(self, a: Any, b: Any) -> Any:
        return sympy.floor(a / b)

    def modulo(self, a: Any, b: Any) -> Any:
        return sympy.Mod(a, b)


def _condition(value: Any) -> Any:
    return sympy.Ne(value, 0) if isinstance(value, sympy.Expr) else value
