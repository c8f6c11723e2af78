"""Checked syntax trees as Python functions: the node types are known, so nothing else can run.

`of_numbers` computes with Python's floats or with traced numbers, and raises where a number has no
value; `of_arrays` computes elementwise with NumPy, whose numbers become infinite or not a number.
Conditions count as 0 or 1 in arithmetic.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from popmodel.base.expressions.grammar import FUNCTIONS, dotted_name

Functions = Mapping[str, Callable[..., Any]]
Compiled = Callable[[Mapping[str, Any], Functions, Functions], Any]
"""Computes a formula: values by name, functions of the grammar, functions of the caller."""


def of_numbers(tree: ast.expr) -> Compiled:
    """Compile a tree for single numbers."""
    return _function(_Numbers().visit(tree))


def of_arrays(tree: ast.expr) -> Compiled:
    """Compile a tree for NumPy's arrays and numbers."""
    return _function(_Arrays().visit(tree))


def _function(body: ast.expr) -> Compiled:
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg("values"), ast.arg("functions"), ast.arg("further")],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    code = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    made: Compiled = eval(compile(code, "<formula>", "eval"), {"__builtins__": {}, "np": np})
    return made


def _entry(table: str, name: str) -> ast.expr:
    return ast.Subscript(ast.Name(table, ast.Load()), ast.Constant(name), ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_entry("functions", name), list(arguments), [])


class _Numbers(ast.NodeVisitor):
    """Makes a new tree of Python's own operators, but for powers and functions."""

    def generic_visit(self, node: ast.AST) -> ast.expr:
        raise AssertionError(f"{type(node).__name__} passed the check of the grammar")

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_word = isinstance(node.value, str)
        return ast.Constant(node.value if is_word else float(node.value))  # type: ignore[arg-type]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _entry("values", node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return _entry("values", dotted_name(node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        table = "functions" if node.func.id in FUNCTIONS else "further"
        arguments = [self.arithmetic(each) for each in node.args]
        return ast.Call(_entry(table, node.func.id), arguments, [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self.negation(operand)
        operand = self.arithmetic(node.operand)
        return ast.UnaryOp(node.op, operand) if isinstance(node.op, ast.USub) else operand

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.arithmetic(node.left), self.arithmetic(node.right)
        if isinstance(node.op, ast.Pow):
            return _call("**", left, right)
        return ast.BinOp(left, node.op, right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [self.arithmetic(each) for each in (node.left, *node.comparators)]
        steps = zip(operands, node.ops, operands[1:], strict=False)
        results: list[ast.expr] = [ast.Compare(a, [op], [b]) for a, op, b in steps]
        return results[0] if len(results) == 1 else self.combined(ast.And(), results)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self.combined(node.op, [self.visit(each) for each in node.values])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(*(self.visit(each) for each in (node.test, node.body, node.orelse)))

    def arithmetic(self, node: ast.expr) -> ast.expr:
        """An operand of arithmetic: Python's conditions are numbers."""
        found: ast.expr = self.visit(node)
        return found

    def negation(self, operand: ast.expr) -> ast.expr:
        return ast.UnaryOp(ast.Not(), operand)

    def combined(self, op: ast.boolop, parts: list[ast.expr]) -> ast.expr:
        return _call("bool", ast.BoolOp(op, parts))


class _Arrays(_Numbers):
    """The same elementwise."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        # NumPy's numbers divide by 0 and overflow as arrays do
        constant = super().visit_Constant(node)
        return constant if isinstance(node.value, str) else _numpy("float64", constant)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        parts = (self.visit(each) for each in (node.test, node.body, node.orelse))
        return ast.Subscript(_numpy("where", *parts), ast.Tuple([], ast.Load()), ast.Load())

    def arithmetic(self, node: ast.expr) -> ast.expr:
        """An operand of arithmetic: NumPy adds booleans as a logical or, so they become numbers."""
        operand = super().arithmetic(node)
        return _call("number", operand) if _may_be_condition(node) else operand

    def negation(self, operand: ast.expr) -> ast.expr:
        return _numpy("logical_not", operand)

    def combined(self, op: ast.boolop, parts: list[ast.expr]) -> ast.expr:
        name = "logical_and" if isinstance(op, ast.And) else "logical_or"
        found = parts[0]
        for part in parts[1:]:
            found = _numpy(name, found, part)
        return found


def _numpy(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load()), [*arguments], [])


def _may_be_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Call():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _may_be_condition(body) or _may_be_condition(orelse)
    return False


def _finite(choose: Callable[..., float]) -> Callable[..., float]:
    """The least or largest of finite numbers: Python's own depends on the order of NaN."""

    def chosen(*values: float) -> float:
        if not math.isfinite(sum(values)):
            raise ValueError("not finite")
        return choose(values)

    return chosen


def _is_square(value: Any) -> Any:
    root = np.rint(np.sqrt(value))
    return root * root == value


def _log(value: Any, base: Any = None) -> Any:
    return np.log(value) if base is None else np.log(value) / np.log(base)


def _number(value: Any) -> Any:
    if isinstance(value, float):  # np.float64 is one
        return value
    return value * np.float64(1.0) if np.asarray(value).dtype == bool else value


@cache
def array_functions() -> Functions:
    """Functions of the grammar by NumPy."""

    def reduce(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def reduced(first: Any, *others: Any) -> Any:
            for other in others:
                first = function(first, other)
            return first

        return reduced

    return {
        "**": operator.pow,
        "number": _number,
        "min": reduce(np.minimum),
        "max": reduce(np.maximum),
        "sqrt": np.sqrt,
        "log": _log,
        "log2": np.log2,
        "exp": np.exp,
        "abs": np.abs,
        "ceiling": np.ceil,
        "floor": np.floor,
        "is_square": _is_square,
    }


@cache
def number_functions() -> Functions:
    """Functions of the grammar for floats; they raise where there is no value.

    Logarithms and exponentials are NumPy's, as of arrays: the last digit is the same.
    """

    def defined(function: Callable[..., Any]) -> Callable[..., float]:
        def found(*values: float) -> float:
            with np.errstate(all="raise"):
                return float(function(*values))

        return found

    return {
        "**": math.pow,
        "bool": bool,
        "min": _finite(min),
        "max": _finite(max),
        "sqrt": math.sqrt,
        "log": defined(_log),
        "log2": defined(np.log2),
        "exp": defined(np.exp),
        "abs": abs,
        "ceiling": lambda value: float(math.ceil(value)),
        "floor": lambda value: float(math.floor(value)),
        "is_square": lambda value: math.sqrt(value).is_integer(),
    }


@cache
def traced_functions() -> Functions:
    """Functions of the grammar for traced numbers, whose methods NumPy's functions call."""
    from popmodel.base.expressions.traced import is_square, log2

    return {
        **array_functions(),
        "**": operator.pow,
        "bool": bool,
        "min": lambda *values: min(values),
        "max": lambda *values: max(values),
        "log2": log2,
        "abs": abs,
        "is_square": is_square,
    }
