"""Formulas of symbols as a signature writes them."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.printing.str import StrPrinter


class _Printer(StrPrinter):  # type: ignore[misc]
    """Writes the operators and functions that formulas of a signature may have."""

    def _print_Mod(self, expr: Any) -> str:
        one, other = (self.parenthesize(part, 60) for part in expr.args)
        return f"({one} % {other})"

    def _print_Piecewise(self, expr: Any) -> str:
        text: str = self._print(expr.args[-1].expr)
        for part, condition in reversed(expr.args[:-1]):
            text = f"({self._print(part)} if {self._print(condition)} else {text})"
        return text

    def _print_Relational(self, expr: Any) -> str:
        return f"{self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)}"

    def _print_And(self, expr: Any) -> str:
        return "(" + " and ".join(map(self._print, expr.args)) + ")"

    def _print_Or(self, expr: Any) -> str:
        return "(" + " or ".join(map(self._print, expr.args)) + ")"

    def _print_Not(self, expr: Any) -> str:
        return f"not ({self._print(expr.args[0])})"

    def _print_Function(self, expr: Any) -> str:
        names = {"Max": "max", "Min": "min", "Abs": "abs"}
        name = expr.func.__name__
        return f"{names.get(name, name)}({', '.join(map(self._print, expr.args))})"

    _print_Max = _print_Min = _print_Abs = _print_Function


def formula(value: sympy.Basic) -> str | int | float:
    """A formula as a signature has it; a number where it is one."""
    if value.is_Integer:
        return int(value)
    if value.is_Rational and value.q in (2, 4, 8, 5, 10):
        return float(value)
    return str(_Printer().doprint(value))
