"""Terms of laws: products of powers and logarithms of P, T and parameters, or any formula."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from popmodel.expressions import Expression, parse
from popmodel.fit.samples import Array
from popmodel.values import dataclass

Factors = Mapping[str, tuple[Fraction, int]]
"""By variable: its power and the power of its binary logarithm."""

_LARGEST_DENOMINATOR = 12


@dataclass(frozen=True)
class LawTerm:
    """A term without its coefficient."""

    text: str  # In the grammar of signatures: ``N**3/P``
    factors: Factors | None  # What it is a product of; None for any other formula

    @property
    def names(self) -> frozenset[str]:
        """Variables that it depends on."""
        return frozenset(self.factors) if self.factors is not None else _parsed(self.text).names

    def at(self, configuration: Mapping[str, Any]) -> Array:
        """Compute the term for numbers or arrays of one shape."""
        shape = np.broadcast_shapes(*(np.shape(value) for value in configuration.values()))
        if self.factors is None or not self.factors.keys() <= configuration.keys():
            value = _parsed(self.text).evaluate(configuration)
            return np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        product = np.ones(shape)
        for name, (power, logs) in self.factors.items():
            value = np.asarray(configuration[name], dtype=np.float64)
            product = product * value ** float(power)
            if logs:
                product = product * np.log2(value) ** logs
        return product

    def relative_to(self, reference: Mapping[str, float]) -> str:
        """Formula of the term over its value at a configuration: ``(N/64)**3*8/P``; "1" for 1."""
        if not self.names:
            return "1"
        if self.factors is None or any(logs for _, logs in self.factors.values()):
            value = float(self.at(reference))
            inner = self.text if self.factors is not None else f"({self.text})"
            return inner if value == 1 else f"{inner}/{number(value)}"
        return "*".join(
            _power_of_ratio(name, power, reference[name])
            for name, (power, _) in self.factors.items()
        )


def number(value: float) -> str:
    """A number as formulas have it: no digits beyond those that matter."""
    return f"{value:.12g}"


def _power_of_ratio(name: str, power: Fraction, reference: float) -> str:
    shown = number(reference)
    if reference == 1:
        ratio = name if power > 0 else f"1/{name}"
    else:
        ratio = f"{name}/{shown}" if power > 0 else f"{shown}/{name}"
    size = abs(power)
    if size == 1:
        return f"({ratio})"
    if size == Fraction(1, 2):
        return f"sqrt({ratio})"
    return f"({ratio})**{size if size.denominator == 1 else f'({size})'}"


def product(factors: Factors) -> LawTerm:
    """Return the term that is a product of powers, with its shortest text."""
    kept = {name: factors[name] for name in sorted(factors, key=_rank) if any(factors[name])}
    above: list[str] = []
    below: list[str] = []
    for name, (power, logs) in kept.items():
        if power:
            (above if power > 0 else below).append(_power(name, abs(power)))
        if logs:
            above.append(f"log2({name})" + (f"**{logs}" if logs > 1 else ""))
    text = "*".join(above) or "1"
    if below:
        joined = "*".join(below)
        text += f"/({joined})" if len(below) > 1 else f"/{joined}"
    return LawTerm(text, kept)


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    if power == Fraction(1, 2):
        return f"sqrt({name})"
    return f"{name}**{power if power.denominator == 1 else f'({power})'}"


@cache
def read_form(text: str) -> tuple[LawTerm, ...]:
    """Read a sum of terms: ``1/P + log2(P)``."""
    parse(text)
    terms = tuple(_term(node) for node in _summands(ast.parse(text.strip(), mode="eval").body))
    if len(terms) > 2:
        raise ValueError(f"{text}: a form has at most two terms")
    return terms


def form_text(terms: tuple[LawTerm, ...]) -> str:
    """The form that terms make: ``1/P + 1``."""
    return " + ".join(term.text for term in terms)


def _summands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_summands(node.left), *_summands(node.right)]
    return [node]


def _term(node: ast.expr) -> LawTerm:
    factors = _factors(node)
    if factors is None:
        return LawTerm(ast.unparse(node), None)
    return product(factors)


def _rank(name: str) -> tuple[int, str]:
    """Parameters first, then P, then T."""
    return {"P": 1, "T": 2}.get(name, 0), name


def _factors(node: ast.expr) -> dict[str, tuple[Fraction, int]] | None:
    """Powers whose product a formula is; None if it is none."""
    match node:
        case ast.Constant(value=1):
            return {}
        case ast.Name(id=name):
            return {name: (Fraction(1), 0)}
        case ast.Call(func=ast.Name(id="log2"), args=[ast.Name(id=name)]):
            return {name: (Fraction(0), 1)}
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            return _raised(_factors(inner), Fraction(1, 2))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            sign = 1 if isinstance(op, ast.Mult) else -1
            return _multiplied(_factors(left), _raised(_factors(right), Fraction(sign)))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _raised(_factors(left), _constant(right))
    return None


def _constant(node: ast.expr) -> Fraction | None:
    text = ast.unparse(node)
    expression = parse(text)
    if expression.names or expression.calls:
        return None
    value = float(expression.evaluate({}))
    near = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    return near if math.isclose(float(near), value, rel_tol=1e-9, abs_tol=1e-12) else None


def _raised(
    factors: dict[str, tuple[Fraction, int]] | None, power: Fraction | None
) -> dict[str, tuple[Fraction, int]] | None:
    if factors is None or power is None:
        return None
    raised = {name: (own * power, logs * power) for name, (own, logs) in factors.items()}
    if any(logs.denominator != 1 or logs < 0 for _, logs in raised.values()):
        return None
    return {name: (own, int(logs)) for name, (own, logs) in raised.items()}


def _multiplied(
    left: dict[str, tuple[Fraction, int]] | None, right: dict[str, tuple[Fraction, int]] | None
) -> dict[str, tuple[Fraction, int]] | None:
    if left is None or right is None:
        return None
    both = dict(left)
    for name, (power, logs) in right.items():
        own, own_logs = both.get(name, (Fraction(0), 0))
        both[name] = (own + power, own_logs + logs)
    return both


@cache
def _parsed(text: str) -> Expression:
    return parse(text)
