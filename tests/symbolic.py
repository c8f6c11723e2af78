"""Expressions in SymPy's symbols: for proofs, and to hold the numbers against."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import sympy

from popmodel.base.expressions import Expression

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.FloorDiv: lambda a, b: sympy.floor(a / b),
    ast.Mod: sympy.Mod,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: sympy.Eq,  # == of SymPy compares structure, not value
    ast.NotEq: sympy.Ne,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
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


def symbolic(expression: Expression, symbols: Mapping[str, Any] | None = None) -> Any:
    """Return an expression in SymPy's symbols; a name that is not given is a positive one."""
    named = {name: sympy.Symbol(name, positive=True) for name in expression.names}
    return _Symbolic({**named, **(symbols or {})}).visit(expression.tree)


class _Symbolic(ast.NodeVisitor):
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)

    def visit_Name(self, node: ast.Name) -> Any:
        return self.values[node.id]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return sympy.Not(self.condition(node.operand))
        value = self.number(node.operand)
        return -value if isinstance(node.op, ast.USub) else value

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return _OPERATORS[type(node.op)](self.number(node.left), self.number(node.right))

    def visit_Compare(self, node: ast.Compare) -> Any:
        operands = [self.number(operand) for operand in (node.left, *node.comparators)]
        found = [
            _OPERATORS[type(op)](*ends)
            for op, ends in zip(node.ops, pairwise(operands), strict=True)
        ]
        return found[0] if len(found) == 1 else sympy.And(*found)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        combine = sympy.And if isinstance(node.op, ast.And) else sympy.Or
        return combine(*(self.condition(value) for value in node.values))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        chosen = self.visit(node.body), self.condition(node.test)
        return sympy.Piecewise(chosen, (self.visit(node.orelse), True))

    def visit_Call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        return _FUNCTIONS[node.func.id](*(self.number(argument) for argument in node.args))

    def number(self, node: ast.expr) -> Any:
        value = self.visit(node)
        return value if isinstance(value, sympy.Expr) else sympy.Piecewise((1, value), (0, True))

    def condition(self, node: ast.expr) -> Any:
        value = self.visit(node)
        return sympy.Ne(value, 0) if isinstance(value, sympy.Expr) else value
