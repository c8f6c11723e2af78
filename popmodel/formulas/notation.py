"""Formulas as text and as LaTeX.

The text is what `popmodel.expressions` reads: what is printed can be evaluated again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from sympy.core.exprtools import factor_terms
from sympy.core.symbol import Symbol
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from popmodel.efficiency.aggregates import AGGREGATES

_LONGEST_SYMBOL = 2  # letters; longer names are words
_KNOWN = 1024  # formulas: the metrics of a run share most of theirs
_GREEK = ("alpha", "beta", "gamma", "kappa", "lambda", "sigma")


class _TextPrinter(StrPrinter):  # type: ignore[misc]
    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))


class _LatexPrinter(LatexPrinter):  # type: ignore[misc]
    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:  # noqa: ARG002
        return latex_name(expr.name)

    def _print_Float(self, expr: Any) -> str:
        mantissa, _, exponent = repr(float(expr)).partition("e")
        return mantissa if not exponent else rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


@lru_cache(maxsize=_KNOWN, typed=True)
def text(formula: Any) -> str:
    """Return a SymPy expression as text in the grammar of `popmodel.expressions`."""
    return str(_TextPrinter().doprint(formula))


@lru_cache(maxsize=_KNOWN, typed=True)
def latex(formula: Any) -> str:
    """Return a SymPy expression as LaTeX."""
    return str(_LatexPrinter({"mul_symbol": r" \, "}).doprint(formula))


@lru_cache(maxsize=_KNOWN, typed=True)
def tidy(formula: Any) -> Any:
    """Take out common factors of a sum where that makes the expression shorter."""
    factored = factor_terms(formula)
    return factored if len(text(factored)) < len(text(formula)) else formula


@lru_cache(maxsize=1024)
def latex_name(name: str) -> str:
    """Return a name as LaTeX: a letter or two with subscripts, or words as words."""
    head, *below = name.split("_")
    if name in AGGREGATES or (len(head) > _LONGEST_SYMBOL and head not in _GREEK):
        return rf"\text{{{name.replace('_', ' ')}}}"
    split = re.fullmatch(r"([A-Za-z]+)(\d+)", head)
    if split:
        head, below = split[1], [split[2], *below]
    if not below:
        return _upright(head)
    return f"{_upright(head)}_{{{','.join(_upright(part) for part in below if part)}}}"


def symbol(name: str, value: float) -> Symbol:
    """Return the SymPy symbol of a name, positive if its value is."""
    return Symbol(name, positive=True) if value > 0 else Symbol(name, real=True)


def _upright(word: str) -> str:
    if word in _GREEK:
        return rf"\{word}"
    return word if len(word) == 1 or word.isdigit() else rf"\mathrm{{{word}}}"
