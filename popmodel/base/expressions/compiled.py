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

from popmodel.base.expressions.grammar import FUNCTIONS, ExpressionError, dotted_name

Functions = Mapping[str, Callable[..., Any]]
Compiled = Callable[[Mapping[str, Any], Functions, Functions], Any]
"""Computes a formula: values by name, functions of the grammar, functions of the caller."""

_SYMBOLS: Mapping[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.FloorDiv: "//"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.And: "and", ast.Or: "or"},
}


def of_numbers(tree: ast.expr) -> Compiled:
    """Compile a tree for single numbers."""
    return _Numbers().function(tree)


def of_arrays(tree: ast.expr) -> Compiled:
    """Compile a tree for NumPy's arrays and numbers."""
    return _Arrays().function(tree)


class _Numbers:
    """Writes a tree with Python's own operators, but for powers and functions."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {"__builtins__": {}}

    def function(self, tree: ast.expr) -> Compiled:
        text = f"lambda values, functions, further: {self.text(tree)}"
        try:
            made: Compiled = eval(text, self.known)
        except (SyntaxError, MemoryError, RecursionError):
            raise ExpressionError(ast.unparse(tree), "is nested too deeply") from None
        return made

    def text(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str() as word):
                return repr(word)
            case ast.Constant(value=int() | float() as value):
                name = f"k{len(self.known)}"
                self.known[name] = self.constant(value)
                return name
            case ast.Name() | ast.Attribute():
                return f"values[{dotted_name(node)!r}]"
            case ast.Call(func=ast.Name(id=name), args=args):
                given = map(self.number, args)
                if name in FUNCTIONS:
                    return self.call(name, *given)
                return f"further[{name!r}]({', '.join(given)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.negation(self.text(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.number(operand)})"
            case ast.UnaryOp(operand=operand):
                return self.number(operand)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.call("**", self.number(left), self.number(right))
            case ast.BinOp(left=left, op=op, right=right):
                return f"({self.number(left)} {_SYMBOLS[type(op)]} {self.number(right)})"
            case ast.Compare(left=left, ops=ops, comparators=others):
                terms = [self.number(one) for one in (left, *others)]
                steps = zip(terms, ops, terms[1:], strict=False)
                held = [f"{one} {_SYMBOLS[type(op)]} {other}" for one, op, other in steps]
                return f"({held[0]})" if len(held) == 1 else self.combined("and", held)
            case ast.BoolOp(op=op, values=values):
                return self.combined(_SYMBOLS[type(op)], list(map(self.text, values)))
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.chosen(*map(self.text, (test, body, otherwise)))
        raise AssertionError(f"{type(node).__name__} passed the check of the grammar")

    def number(self, node: ast.expr) -> str:
        """An operand of arithmetic: Python's conditions are numbers."""
        return self.text(node)

    def constant(self, value: float) -> float:
        return float(value)

    def call(self, name: str, *arguments: str) -> str:
        return f"functions[{name!r}]({', '.join(arguments)})"

    def negation(self, operand: str) -> str:
        return f"(not {operand})"

    def combined(self, word: str, parts: list[str]) -> str:
        return self.call("bool", f" {word} ".join(parts))

    def chosen(self, test: str, one: str, other: str) -> str:
        return f"({one} if {test} else {other})"


class _Arrays(_Numbers):
    """The same elementwise."""

    def number(self, node: ast.expr) -> str:
        """An operand of arithmetic: NumPy adds booleans as a logical or, so they become numbers."""
        text = self.text(node)
        return self.call("number", text) if _may_be_condition(node) else text

    def constant(self, value: float) -> float:
        return np.float64(value)  # which divides by 0 and overflows as arrays do

    def negation(self, operand: str) -> str:
        return self.call("not", operand)

    def combined(self, word: str, parts: list[str]) -> str:
        return self.call(word, *parts)

    def chosen(self, test: str, one: str, other: str) -> str:
        return f"{self.call('where', test, one, other)}[()]"


def _may_be_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id="is_square")):
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
        "where": np.where,
        "and": reduce(np.logical_and),
        "or": reduce(np.logical_or),
        "not": np.logical_not,
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
    from popmodel.base.expressions.elementary import is_square, log2

    return {
        **array_functions(),
        "bool": bool,
        "min": lambda *values: min(values),
        "max": lambda *values: max(values),
        "log2": log2,
        "abs": abs,
        "is_square": is_square,
    }
