"""Units of the names and formulas of a signature, inferred from where they are used.

Every parameter has one unit everywhere, a product of powers of byte and second. Sums, comparisons
and choices need the same unit on both sides, products add the exponents of units, and what a key
needs is known. That gives linear equations for the exponents, which are solved exactly. A number
that is written out may carry any unit (the 8 of ``8*n0`` may be bytes per cell), so it is an
unknown of its own wherever it stands.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import count, pairwise
from typing import TypeAlias

from popmodel.expressions import Expression
from popmodel.expressions.algebra import Algebra, Functions
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.signature.program import EXTENTS, Signature
from popmodel.model.signature.tables import key_at, label_of
from popmodel.values import dataclass

LARGEST_ROOT = 1000
"""Exponents are taken as fractions up to this denominator: 0.3333 is meant as a third."""

Unknown: TypeAlias = str | int
"""A parameter by its name, or a number that is written out by its count."""

_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}


@dataclass(frozen=True)
class Unit:
    """A product of powers of byte and second; whatever is counted is a pure number."""

    bytes: Fraction = Fraction(0)
    seconds: Fraction = Fraction(0)

    def times(self, other: Unit) -> Unit:
        """Return the unit of a product."""
        return Unit(self.bytes + other.bytes, self.seconds + other.seconds)

    def power(self, exponent: Fraction) -> Unit:
        """Return the unit of a power."""
        return Unit(self.bytes * exponent, self.seconds * exponent)

    def __str__(self) -> str:
        powers = (("B", self.bytes), ("s", self.seconds))
        above = "*".join(_power(name, power) for name, power in powers if power > 0)
        below = "/".join(_power(name, -power) for name, power in powers if power < 0)
        return f"{above or '1'}/{below}" if below else above or "1"

    @property
    def noun(self) -> str:
        """What a value of this unit is, in words."""
        return {"1": "a number", "B": "bytes", "s": "seconds"}.get(str(self), str(self))


NUMBER = Unit()
BYTE = Unit(bytes=Fraction(1))
SECOND = Unit(seconds=Fraction(1))


@dataclass(frozen=True)
class Clash:
    """Units that do not fit together.

    Attributes
    ----------
    path : path
        Place of the formula.
    problem : str
        What does not fit.
    names : tuple of str
        Names in the formula whose unit was known before.
    """

    path: Path
    problem: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """The unit of a name, and the place that tells it: its definition, or a use of it."""

    unit: Unit
    path: Path


@dataclass(frozen=True)
class Dimensions:
    """What is known of the units of a signature.

    Attributes
    ----------
    decisions : mapping of str to Decision
        Of parameters and let names; one that could have any unit is not in it.
    clashes : tuple of Clash
        In the order of the signature, at most one of each formula.
    """

    decisions: Mapping[str, Decision]
    clashes: tuple[Clash, ...]


def infer(signature: Signature, formulas: Mapping[Path, Expression]) -> Dimensions:
    """Find the unit of every name, and the formulas whose units clash.

    Parameters
    ----------
    signature : Signature
        Its parameters and the units that it states for them.
    formulas : mapping of path to Expression
        Every formula by its place, in the order of reading: a name of ``let`` before its use.
    """
    equations = _Equations()
    values = {name: equations.known(NUMBER) for name in ("P", "T", "rank", *EXTENTS)}
    values |= {name: equations.unknown(name) for name in signature.params}
    named = list(signature.params)
    decisions: dict[str, Decision] = {}
    clashes: list[Clash] = []
    places: dict[str, Path] = {}  # where a name was used last, or what defines it

    def decide() -> None:
        for name in named:
            unit = None if name in decisions else equations.solve(values[name])
            if unit is not None:
                decisions[name] = Decision(unit, places[name])

    for name, text in signature.units.items():
        equations.equal(values[name], equations.known(_stated(text)), "is {0}, not {1}")
        places[name] = ("params", name)
        decide()
    for path, expression in formulas.items():
        before = sorted(expression.names & decisions.keys(), key=expression.text.find)
        form = expression.walk(values, _UnitAlgebra(equations))
        key = key_at(path)
        if key is not None and key.unit:  # a condition has none
            equations.equal(form, equations.known(_stated(key.unit)), "gives {0}, not {1}")
        places |= dict.fromkeys(expression.names & signature.params.keys(), path)
        if path[0] == "let":
            name = str(path[1])
            values[name], places[name] = form, path
            named.append(name)
        decide()
        problems = equations.take_problems()
        if problems:  # the others follow from the first
            problem = f"{label_of(path).partition('.')[2]}: {expression.text!r} {problems[0]}"
            clashes.append(Clash(path, problem, tuple(before)))
    return Dimensions(decisions, tuple(clashes))


def _stated(text: str) -> Unit:
    """Return the unit that a parameter states, or a key needs; what is counted is a number."""
    return {"B": BYTE, "s": SECOND}.get(text, NUMBER)


class _Equations:
    """Linear equations for the exponents of units, kept solved.

    A row gives an unknown by the others: powers of them, times a known unit. No unknown that has a
    row occurs in a row.
    """

    def __init__(self) -> None:
        self._rows: dict[Unknown, tuple[dict[Unknown, Fraction], Unit]] = {}
        self._numbers = count()
        self._problems: list[str] = []

    def known(self, unit: Unit) -> _Form:
        """Return the form of something whose unit is known."""
        return _Form(self, {}, unit, is_named=True)

    def unknown(self, name: str) -> _Form:
        """Return the form of a name."""
        return _Form(self, {name: Fraction(1)}, NUMBER, is_named=True)

    def any(self, constant: float | None = None) -> _Form:
        """Return the form of something that may have any unit, such as a number written out."""
        return _Form(self, {next(self._numbers): Fraction(1)}, NUMBER, constant)

    def equal(self, one: _Form, other: _Form, phrase: str) -> None:
        """State that two forms have the same unit; note the phrase about both if they cannot."""
        quotient = one / other
        left, unit = self._reduce(quotient)
        if left:
            self._add(left, unit)
        elif unit != NUMBER:
            a, b = self.solve(one), self.solve(other)
            if a is None or b is None:
                self._problems.append(phrase.format(f"a value times {unit.noun}", "a value"))
            else:
                self._problems.append(phrase.format(a.noun, b.noun))

    def solve(self, form: _Form) -> Unit | None:
        """Return the unit of a form; None while it is open."""
        left, unit = self._reduce(form)
        return None if left else unit

    def take_problems(self) -> list[str]:
        """Return the phrases noted since the last time."""
        problems, self._problems = self._problems, []
        return problems

    def _add(self, left: dict[Unknown, Fraction], unit: Unit) -> None:
        """Add a row that makes a product of unknowns and a unit a pure number."""
        # rather the unknown of a number than that of a name: nobody asks for it
        pivot = next((key for key in left if isinstance(key, int)), next(iter(left)))
        scale = -1 / left[pivot]
        row = {key: scale * power for key, power in left.items() if key != pivot}
        value = unit.power(scale)
        for key, (powers, rest) in self._rows.items():
            if pivot in powers:
                power = powers[pivot]
                others = {name: one for name, one in powers.items() if name != pivot}
                self._rows[key] = _product(others, row, power), rest.times(value.power(power))
        self._rows[pivot] = row, value

    def _reduce(self, form: _Form) -> tuple[dict[Unknown, Fraction], Unit]:
        """Put in what is known of the unknowns."""
        left: dict[Unknown, Fraction] = {}
        unit = form.unit
        for key, power in form.powers.items():
            if key in self._rows:
                row, value = self._rows[key]
                left = _product(left, row, power)
                unit = unit.times(value.power(power))
            else:
                left = _product(left, {key: power}, Fraction(1))
        return left, unit


def _product(
    one: Mapping[Unknown, Fraction], other: Mapping[Unknown, Fraction], power: Fraction
) -> dict[Unknown, Fraction]:
    """Return the exponents of a product, the second factor to a power."""
    total = dict(one)
    for key, exponent in other.items():
        total[key] = total.get(key, Fraction(0)) + power * exponent
    return {key: exponent for key, exponent in total.items() if exponent}


@dataclass(frozen=True)
class _Form:
    """The unit of a formula: powers of unknown units, times a known one.

    Attributes
    ----------
    constant : float or None
        Value of a number that is written out, or that is computed from such by arithmetic.
    is_named : bool
        Whether any name takes part.
    """

    equations: _Equations
    powers: Mapping[Unknown, Fraction]
    unit: Unit
    constant: float | None = None
    is_named: bool = False

    def __add__(self, other: _Form) -> _Form:
        self.equations.equal(self, other, "adds {0} and {1}")
        return self._with(other, self.powers, self.unit, "+")

    def __sub__(self, other: _Form) -> _Form:
        self.equations.equal(self, other, "subtracts {1} from {0}")
        return self._with(other, self.powers, self.unit, "-")

    def __neg__(self) -> _Form:
        constant = None if self.constant is None else -self.constant
        return _Form(self.equations, self.powers, self.unit, constant, self.is_named)

    def __mul__(self, other: _Form) -> _Form:
        powers = _product(self.powers, other.powers, Fraction(1))
        return self._with(other, powers, self.unit.times(other.unit), "*")

    def __truediv__(self, other: _Form) -> _Form:
        powers = _product(self.powers, other.powers, Fraction(-1))
        return self._with(other, powers, self.unit.times(other.unit.power(Fraction(-1))), "/")

    def __pow__(self, other: _Form) -> _Form:
        if other.constant is not None:
            exponent = Fraction(other.constant).limit_denominator(LARGEST_ROOT)
            powers = _product({}, self.powers, exponent)
            return self._with(other, powers, self.unit.power(exponent), "**")
        if not other.is_named:  # such as 2**sqrt(4): a constant, of a value that is not known here
            return self.equations.any()
        number = self.equations.known(NUMBER)
        self.equations.equal(other, number, "has {0} as an exponent")
        self.equations.equal(self, number, "raises {0} to an exponent that is not a constant")
        return number

    def _with(
        self, other: _Form, powers: Mapping[Unknown, Fraction], unit: Unit, symbol: str
    ) -> _Form:
        constant = None
        if self.constant is not None and other.constant is not None:
            constant = _compute(self.constant, symbol, other.constant)
        return _Form(self.equations, powers, unit, constant, self.is_named or other.is_named)


class _UnitAlgebra(Algebra):
    """Units as the values of a walk: what it meets on its way becomes equations."""

    def __init__(self, equations: _Equations) -> None:
        self.equations = equations
        super().__init__()

    def standard_functions(self) -> Functions:
        number = self.equations.known(NUMBER)

        def same(*values: _Form) -> _Form:
            for one, other in pairwise(values):
                self.equations.equal(one, other, "compares {0} with {1}")
            return values[0]

        def of_numbers(what: str) -> Callable[..., _Form]:
            def function(*values: _Form) -> _Form:
                for value in values:
                    self.equations.equal(value, number, f"takes {what} of {{0}}")
                return number

            return function

        def if_fits(working_set: _Form, hit: _Form, miss: _Form) -> _Form:
            size = self.equations.known(BYTE)
            self.equations.equal(working_set, size, "gives if_fits {0}, not {1}")
            self.equations.equal(hit, miss, "chooses between {0} and {1}")
            return hit

        logarithm = of_numbers("the logarithm")
        return {
            "min": same,
            "max": same,
            "sqrt": lambda value: value ** self.equations.any(0.5),
            "log": logarithm,
            "log2": logarithm,
            "exp": of_numbers("the exponential"),
            "abs": lambda value: value,
            "ceiling": lambda value: value,
            "floor": lambda value: value,
            "is_square": of_numbers("is_square"),
            "if_fits": if_fits,
        }

    def number(self, value: int | float) -> _Form:
        return self.equations.any(float(value))

    def arithmetic(self, value: _Form) -> _Form:
        return value

    def compare(self, op: ast.cmpop, a: _Form, b: _Form) -> _Form:  # noqa: ARG002
        self.equations.equal(a, b, "compares {0} with {1}")
        return self.equations.known(NUMBER)

    def conjunction(self, values: list[_Form]) -> _Form:  # noqa: ARG002
        return self.equations.known(NUMBER)

    def disjunction(self, values: list[_Form]) -> _Form:  # noqa: ARG002
        return self.equations.known(NUMBER)

    def negation(self, value: _Form) -> _Form:  # noqa: ARG002
        return self.equations.known(NUMBER)

    def choice(self, condition: _Form, chosen: _Form, otherwise: _Form) -> _Form:  # noqa: ARG002
        self.equations.equal(chosen, otherwise, "chooses between {0} and {1}")
        return chosen

    def floor_division(self, a: _Form, b: _Form) -> _Form:
        return a / b

    def modulo(self, a: _Form, b: _Form) -> _Form:
        self.equations.equal(a, b, "takes the remainder of {0} by {1}")
        return a


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})"


def _compute(one: float, symbol: str, other: float) -> float | None:
    """Return the value of constant arithmetic; None if it has none."""
    try:
        value = _OPERATORS[symbol](one, other)
    except (OverflowError, ZeroDivisionError):
        return None
    return value if isinstance(value, float) and math.isfinite(value) else None
