"""Formulas of symbols: comparisons, sums over turns of loops, and how a signature writes them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from math import inf, prod
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

from popmodel.base.expressions.grammar import FUNCTIONS
from popmodel.model.signature.keys import MACHINE
from popmodel.model.signature.reading import EXTRA_FUNCTIONS
from popmodel.model.symbols import RESERVED

_ORDERS = (sympy.Gt, sympy.Ge, sympy.Lt, sympy.Le)


class _Printer(StrPrinter):  # type: ignore[misc]
    """Writes the operators and functions that formulas of a signature may have."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[sympy.Basic, str] = {}

    def _print(self, expr: Any, **options: Any) -> str:
        if not isinstance(expr, sympy.Basic) or options:
            return str(super()._print(expr, **options))
        if expr not in self.texts:
            self.texts[expr] = str(super()._print(expr))
        return self.texts[expr]

    def _print_Mod(self, expr: Any) -> str:
        one, other = (self.parenthesize(part, 60) for part in expr.args)
        return f"({one} % {other})"

    def _print_Piecewise(self, expr: Any) -> str:
        text: str = self._print(expr.args[-1].expr)
        (one, test), other = expr.args[0], expr.args[-1].expr
        if len(expr.args) == 2 and isinstance(test, _ORDERS) and set(test.args) == {one, other}:
            is_most = isinstance(test, _ORDERS[:2]) == (test.lhs == one)
            return f"{'max' if is_most else 'min'}({self._print(one)}, {text})"
        for part, condition in reversed(expr.args[:-1]):
            text = f"({self._print(part)} if {self._print(condition)} else {text})"
        return text

    def _print_Relational(self, expr: Any) -> str:
        return f"{self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)}"

    def _print_And(self, expr: Any) -> str:
        return "(" + " and ".join(map(self._print, expr.args)) + ")"

    def _print_Or(self, expr: Any) -> str:
        return "(" + " or ".join(map(self._print, expr.args)) + ")"

    def _print_ITE(self, expr: Any) -> str:
        test, one, other = expr.args
        both = sympy.And(test, one), sympy.And(sympy.Not(test), other)
        return str(self._print(sympy.Or(*both)))

    def _print_Not(self, expr: Any) -> str:
        return f"not ({self._print(expr.args[0])})"

    def _print_Function(self, expr: Any) -> str:
        names = {"Max": "max", "Min": "min", "Abs": "abs"}
        name = expr.func.__name__
        return f"{names.get(name, name)}({', '.join(map(self._print, expr.args))})"

    _print_Max = _print_Min = _print_Abs = _print_Function


_MOST_TERMS = 100
"""Terms beyond which a product of sums is left as it is."""


@lru_cache(200_000)
def expanded(value: sympy.Expr) -> sympy.Expr:
    """A formula without products of sums, functions in it left as they are."""
    if value.is_Add:
        return sympy.Add(*map(expanded, value.args))
    if value.is_Pow and value.exp.is_Integer and value.exp > 1 and value.base.is_Add:
        factors = [expanded(value.base)] * int(value.exp)
    elif value.is_Mul:
        factors = [expanded(part) for part in value.args]
    else:
        return value
    sums = [part.args for part in factors if part.is_Add]
    if not sums:
        return sympy.Mul(*factors)
    if prod(map(len, sums)) > _MOST_TERMS:
        return value
    others = sympy.Mul(*(part for part in factors if not part.is_Add))
    return sympy.Add(*(sympy.Mul(others, *term) for term in product(*sums)))


@lru_cache(200_000)
def parts_of(formula: sympy.Basic) -> int:
    """How many operations and symbols a formula has."""
    return 1 + sum(map(parts_of, formula.args))


@lru_cache(200_000)
def symbols_of(formula: sympy.Basic) -> frozenset[sympy.Symbol]:
    """The symbols of a formula; of each part they are looked for once."""
    if formula.is_Symbol:
        return frozenset((formula,))
    return frozenset().union(*map(symbols_of, formula.args))


@lru_cache(100_000)
def combined(operator: str, a: sympy.Expr, b: sympy.Expr, most_parts: int) -> sympy.Expr:
    """A sum, a difference or a product; of expanded formulas an expanded one, if that is short."""
    if operator != "*":
        return a + b if operator == "+" else a - b
    product = a * b
    is_short = (a.is_Add or b.is_Add) and parts_of(product) < most_parts
    return expanded(product) if is_short else product


_COUNT = n = sympy.Symbol("n", integer=True)
_SUMS = (n, n * (n - 1) / 2, n * (n - 1) * (2 * n - 1) / 6, n**2 * (n - 1) ** 2 / 4)
"""Of the powers 0 to 3 of the numbers from 0 on, the first n of them."""


_MOST_CASES = 4
"""Values with cases in a sum over turns: each doubles what there is to sum."""


def sum_over_turns(
    value: sympy.Expr, variable: sympy.Symbol, turns: sympy.Expr
) -> sympy.Expr | None:
    """The sum over all turns of a polynomial of the number of a turn, or of one with two cases."""
    cases = [part for part in value.atoms(sympy.Piecewise) if part.has(variable)]
    if len(cases) > _MOST_CASES:
        return None
    if cases:
        return _sum_of_cases(value, cases[0], variable, turns)
    total = sympy.Integer(0)
    for term in sympy.Add.make_args(expanded(value)) if value != 0 else ():
        factor, power = term.as_independent(variable, as_Add=False)
        base, exponent = power.as_base_exp()
        degree = 0 if power == 1 else int(exponent) if exponent.is_Integer else -1
        if base not in (variable, 1) or not 0 <= degree < len(_SUMS) or factor.has(variable):
            return None
        total += factor * _SUMS[degree].xreplace({_COUNT: turns})
    return expanded(total)


def _sum_of_cases(
    value: sympy.Expr, cases: sympy.Piecewise, variable: sympy.Symbol, turns: sympy.Expr
) -> sympy.Expr | None:
    """The sum of what is one formula in some consecutive turns, and another one in all others."""
    if len(cases.args) != 2:
        return None
    (one, condition), (other, _) = cases.args
    if isinstance(condition, sympy.Ne):
        one, other, condition = other, one, sympy.Not(condition)
    span = span_of(condition, variable, turns)
    apart = value.xreplace({cases: one}) - value.xreplace({cases: other})
    rest = sum_over_turns(value.xreplace({cases: other}), variable, turns)
    if span is None or rest is None:
        return None
    sums = [sum_over_turns(apart, variable, end) for end in span]
    return None if None in sums else expanded(rest + sums[1] - sums[0])


def span_of(
    condition: sympy.Basic, variable: sympy.Symbol, turns: sympy.Expr
) -> tuple[sympy.Expr, sympy.Expr] | None:
    """The first turn in which a condition holds, and that behind the last one; None if unknown."""
    begin, end = sympy.Integer(0), turns
    for part in sympy.And.make_args(condition):
        if not isinstance(part, sympy.core.relational.Relational) or isinstance(part, sympy.Ne):
            return None
        apart = sympy.expand(part.lhs - part.rhs)
        slope, rest = apart.coeff(variable, 1), apart.coeff(variable, 0)
        if expanded(apart - slope * variable - rest) != 0 or rest.has(variable):
            return None
        where = -rest / slope if slope.is_positive or slope.is_negative else None
        if where is None:
            return None
        if isinstance(part, sympy.Eq):
            begin, end = where, where + 1
            continue
        is_below = isinstance(part, (sympy.Lt, sympy.Le)) == bool(slope.is_positive)
        is_with = isinstance(part, (sympy.Le, sympy.Ge))
        if is_below:
            last = sympy.floor(where) + 1 if is_with else sympy.ceiling(where)
            is_within = last.func == sympy.Mod and last.args[1] == turns
            last = last if is_within or (turns - last).is_nonnegative else sympy.Min(last, turns)
            end = last if end == turns else sympy.Min(end, last)
        else:
            first = sympy.ceiling(where) if is_with else sympy.floor(where) + 1
            first = first if first.is_nonnegative else sympy.Max(first, 0)
            begin = first if begin == 0 else sympy.Max(begin, first)
    is_ordered = begin == 0 or (end - begin).is_nonnegative or isinstance(condition, sympy.Eq)
    return begin, end if is_ordered else sympy.Max(begin, end)


_MOST_PIECES = 4
"""Cases of a value that are compared one by one."""


@lru_cache(100_000)
def compared(comparison: Any, one: sympy.Expr, other: sympy.Expr) -> sympy.Basic:
    """A comparison; of a value with few cases one of each: SymPy decides some wrongly."""
    cases: tuple[tuple[sympy.Expr, Callable[[sympy.Expr], sympy.Basic]], ...] = (
        (one, lambda part: compared(comparison, part, other)),
        (other, lambda part: compared(comparison, one, part)),
    )
    for value, compare in cases:
        if value.is_Piecewise and len(value.args) <= _MOST_PIECES:
            holds, others = sympy.false, sympy.true
            for part, test in value.args:
                holds = sympy.Or(holds, sympy.And(others, test, compare(part)))
                others = sympy.And(others, sympy.Not(test))
            return holds
    found: sympy.Basic = comparison(one, other)
    return found


def quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """A whole quotient; where the remainder is known to be none, or a root divides, it is exact."""
    plain = sympy.cancel(a / b) if b.is_number else a / b
    if plain.is_integer:
        return plain
    return sympy.floor(a / b)


def exact_quotients(required: Iterable[sympy.Basic]) -> dict[sympy.Expr, sympy.Expr]:
    """Quotients without a remainder, since the program asks for that."""
    found = {}
    for condition in required:
        sides = condition.args if isinstance(condition, sympy.Eq) else ()
        for one, other in (sides, sides[::-1]) if sides else ():
            if isinstance(one, sympy.Mod) and other == 0:
                found[sympy.floor(one.args[0] / one.args[1])] = one.args[0] / one.args[1]
            for part in one.atoms(sympy.floor):  # n == P*floor(n/P)
                if sympy.expand(one - other * part / part.args[0]) == 0:
                    found[part] = part.args[0]
    return found


def is_block(
    value: sympy.Expr, place: sympy.Symbol, cells: sympy.Expr, processes: sympy.Expr
) -> bool:
    """Whether all processes together have all cells, no one more than one more than another."""
    symbols = sorted((cells.free_symbols | processes.free_symbols) - {place}, key=str)
    for numbers, count in product(((23,), (16,)), (3, 4)):
        given = {symbol: numbers[0] + 7 * index for index, symbol in enumerate(symbols)}
        if processes.is_Symbol:
            given[processes] = count
        try:
            parts = [
                int(value.subs({**given, place: number}))
                for number in range(int(processes.subs(given)))
            ]
            whole = int(cells.subs(given))
        except TypeError:
            return False
        if sum(parts) != whole or max(parts) - min(parts) > 1:
            return False
    return True


def formula_name(text: str, taken: Iterable[str] = ()) -> str:
    """A name for formulas of signatures, like a text that is none, is reserved or taken."""
    word = re.sub(r"\W+", "_", text).strip("_")
    if not word.isidentifier() or keyword.iskeyword(word) or word in _NOT_FREE:
        word = f"{word}_" if word[:1].isalpha() else f"value_{word}"
    name, number = word, 1
    while name in taken:
        number += 1
        name = f"{word}_{number}"
    return name


_NOT_FREE = {*RESERVED, *FUNCTIONS, *EXTRA_FUNCTIONS, MACHINE}

_GUESS = 50
"""What stands for a number that nobody knows, to estimate costs."""


def guess(value: sympy.Expr) -> float:
    """A number of the usual size for a formula."""
    number = value.xreplace(
        {one: sympy.Integer(_GUESS) if one.is_integer else sympy.true for one in value.free_symbols}
    )
    try:
        size = float(number)
    except TypeError:
        return 0.0
    return size if 0 <= size < inf else 0.0  # which is also no number at all


def with_values(
    formula: sympy.Basic,
    known: Callable[[sympy.Symbol], sympy.Basic],
    undecided: Callable[[sympy.Basic, tuple[sympy.Basic, ...]], sympy.Basic],
    values: dict[sympy.Basic, sympy.Basic],
) -> sympy.Basic:
    """A formula with what its symbols stand for; of cases only those that can hold are looked at.

    What `undecided` gives stands for a formula of cases by conditions of which none is known to
    hold. `values` has what parts of formulas came to, and is added to.
    """
    if not formula.args and not formula.is_Symbol:
        return formula
    if formula in values:
        return values[formula]
    value: sympy.Basic
    if formula.is_Symbol:
        value = known(formula)
    elif isinstance(formula, (sympy.Piecewise, sympy.ITE)):
        is_value = isinstance(formula, sympy.Piecewise)
        first, *rest = formula.args
        cases = formula.args if is_value else ((rest[0], first), (rest[1], sympy.true))
        left: list[sympy.Basic] = []
        for part, condition in cases:
            holds = with_values(condition, known, undecided, values)
            if holds != sympy.false:
                left += [with_values(part, known, undecided, values), holds]
            if holds == sympy.true:
                break
        is_one = len(set(left[::2])) == 1 and holds == sympy.true
        value = left[0] if is_one else undecided(formula, tuple(left))
    else:
        args = tuple(with_values(part, known, undecided, values) for part in formula.args)
        value = formula if args == formula.args else formula.func(*args)
    values[formula] = value
    return value


def without_undefined(value: sympy.Basic, unknown: sympy.Symbol) -> sympy.Basic:
    """A formula without the cases that divide by zero: a program that runs does not meet them."""

    def defined(cases: sympy.Piecewise) -> sympy.Basic:
        left = [case for case in cases.args if not case[0].has(*_UNDEFINED)]
        return sympy.Piecewise(*left[:-1], (left[-1][0], True)) if left else unknown

    value = value.replace(lambda part: isinstance(part, sympy.Piecewise), defined)
    return value.xreplace(dict.fromkeys(_UNDEFINED, unknown))


_UNDEFINED = (sympy.zoo, sympy.nan)


def formula(value: sympy.Basic) -> str | int | float:
    """A formula as a signature has it; a number where it is one."""
    if value.is_Integer:
        return int(value)
    if value.is_Rational and value.q in (2, 4, 8, 5, 10):
        return float(value)
    return str(_PRINTER.doprint(value))


def exact_number(value: sympy.Expr) -> int | float:
    """A number as a signature has it."""
    return int(value) if value.is_Integer else float(value)


_PRINTER = _Printer()
