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
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from itertools import count, pairwise
from typing import TypeAlias

from popmodel.expressions import Expression
from popmodel.expressions.algebra import Algebra, Functions
from popmodel.model.grammar.machine_names import of_machine, parameter_of
from popmodel.model.grammar.reading import OPEN
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.signature.program import EXTENTS, Signature
from popmodel.model.signature.tables import key_at, label_of
from popmodel.values import dataclass

LARGEST_ROOT = 1000
"""Exponents are taken as fractions up to this denominator: 0.3333 is meant as a third."""


class Base(Enum):
    """What the units of all values are made of."""

    BYTE = "B"
    SECOND = "s"


Unknown: TypeAlias = str | int | Base
"""A parameter by its name, a number that is written out by its count, or what is known."""


@dataclass(frozen=True)
class DimensionUnit:
    """A product of powers of byte and second, and of units not known yet; a number has none."""

    powers: Mapping[Unknown, Fraction]  # Exponents; none of them is 0

    def times(self, other: DimensionUnit, power: Fraction = Fraction(1)) -> DimensionUnit:
        """Return the unit of a product, the second factor to a power."""
        total = dict(self.powers)
        for key, exponent in other.powers.items():
            total[key] = total.get(key, Fraction(0)) + power * exponent
        return DimensionUnit({key: exponent for key, exponent in total.items() if exponent})

    def power(self, exponent: Fraction) -> DimensionUnit:
        """Return the unit of a power."""
        return NUMBER.times(self, exponent)

    @property
    def unknown(self) -> list[str | int]:
        """What in it is not known yet."""
        return [key for key in self.powers if not isinstance(key, Base)]

    def __str__(self) -> str:
        powers = [(base.value, self.powers.get(base, Fraction(0))) for base in Base]
        above = "*".join(_power(name, power) for name, power in powers if power > 0)
        below = "/".join(_power(name, -power) for name, power in powers if power < 0)
        return f"{above or '1'}/{below}" if below else above or "1"

    @property
    def noun(self) -> str:
        """What a value of this unit is, in words."""
        return {"1": "a number", "B": "bytes", "s": "seconds"}.get(str(self), str(self))


def _one(key: Unknown) -> DimensionUnit:
    return DimensionUnit({key: Fraction(1)})


NUMBER, BYTE, SECOND = DimensionUnit({}), _one(Base.BYTE), _one(Base.SECOND)


@dataclass(frozen=True)
class Clash:
    """Units that do not fit together."""

    path: Path  # Place of the formula
    problem: str  # What does not fit
    names: tuple[str, ...]  # Names in the formula whose unit was known before


@dataclass(frozen=True)
class DimensionDecision:
    """The unit of a name, and the place that tells it: its definition, or a use of it."""

    unit: DimensionUnit
    path: Path


@dataclass(frozen=True)
class Dimensions:
    """What is known of the units of a signature."""

    # Of parameters and let names; one that could have any unit is not in it.
    decisions: Mapping[str, DimensionDecision]
    clashes: tuple[Clash, ...]  # In the order of the signature, at most one of each formula


def infer(signature: Signature, formulas: Mapping[Path, Expression]) -> Dimensions:
    """Find the unit of every name, and the formulas whose units clash."""
    equations = _Equations()
    values = {name: equations.known(NUMBER) for name in ("P", "T", "rank", *EXTENTS)}
    values |= {name: equations.unknown(name) for name in signature.inputs}
    named = list(signature.inputs)
    decisions: dict[str, DimensionDecision] = {}
    clashes: list[Clash] = []
    seen: set[tuple[str, str | None]] = set()
    places: dict[str, Path] = {}  # where a name was used last, or what defines it

    def decide() -> None:
        for name in named:
            unit = None if name in decisions else equations.solve(values[name])
            if unit is not None:
                decisions[name] = DimensionDecision(unit, places[name])

    for name, text in signature.units.items():
        equations.equal(values[name], equations.known(_stated(text)), "is {0}, not {1}")
        places[name] = tuple(signature.paths[name].split("."))
        decide()
    for path, expression in formulas.items():
        key = key_at(path)
        if path[0] == "program":
            # lists of calls have the same formula many times, and numbers, of any unit
            alike = (expression.text, None if key is None else key.unit)
            if alike in seen or not (expression.names or expression.calls):
                continue
            seen.add(alike)
        before = sorted(expression.names & decisions.keys(), key=expression.text.find)
        for name in of_machine(expression.names):
            if parameter := parameter_of(name):
                values[name] = equations.known(_stated(parameter.unit))
        values[OPEN] = equations.any()
        form = expression.walk(values, _UnitAlgebra(equations))
        if key is not None and key.unit:  # a condition has none
            equations.equal(form, equations.known(_stated(key.unit)), "gives {0}, not {1}")
        places |= dict.fromkeys(expression.names & signature.inputs.keys(), path)
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


def _stated(text: str) -> DimensionUnit:
    """Return a unit that is stated or needed; what is counted, cycles included, is a number."""
    above, _, below = text.partition("/")
    known = {"B": BYTE, "s": SECOND, "Hz": SECOND.power(Fraction(-1))}
    return known.get(above, NUMBER).times(known.get(below, NUMBER), Fraction(-1))


class _Equations:
    """Linear equations for the exponents of units, kept solved.

    A row gives an unknown by the others. No unknown that has a row occurs in a row.
    """

    def __init__(self) -> None:
        self._rows: dict[Unknown, DimensionUnit] = {}
        self._numbers = count()
        self._problems: list[str] = []

    def known(self, unit: DimensionUnit) -> _Form:
        """Return the form of something whose unit is known."""
        return _Form(self, unit, is_named=True)

    def unknown(self, name: str) -> _Form:
        """Return the form of a name."""
        return _Form(self, _one(name), is_named=True)

    def any(self, constant: float | None = None) -> _Form:
        """Return the form of something that may have any unit, such as a number written out."""
        return _Form(self, _one(next(self._numbers)), constant)

    def equal(self, one: _Form, other: _Form, phrase: str) -> None:
        """State that two forms have the same unit; note the phrase about both if they cannot."""
        quotient = self._reduced(one.unit.times(other.unit, Fraction(-1)))
        if quotient.unknown:
            self._add(quotient)
        elif quotient != NUMBER:
            a, b = self.solve(one), self.solve(other)
            if a is None or b is None:
                self._problems.append(phrase.format(f"a value times {quotient.noun}", "a value"))
            else:
                self._problems.append(phrase.format(a.noun, b.noun))

    def solve(self, form: _Form) -> DimensionUnit | None:
        """Return the unit of a form; None while it is open."""
        unit = self._reduced(form.unit)
        return None if unit.unknown else unit

    def take_problems(self) -> list[str]:
        """Return the phrases noted since the last time."""
        problems, self._problems = self._problems, []
        return problems

    def _add(self, number: DimensionUnit) -> None:
        """Add a row that makes a product a pure number."""
        unknown = number.unknown
        # rather the unknown of a number than that of a name: nobody asks for it
        pivot = next((key for key in unknown if isinstance(key, int)), unknown[0])
        power = number.powers[pivot]
        self._rows[pivot] = _one(pivot).times(number, -1 / power)
        for key, row in self._rows.items():
            if pivot in row.powers:
                self._rows[key] = self._reduced(row)

    def _reduced(self, unit: DimensionUnit) -> DimensionUnit:
        """Put in what is known of the unknowns."""
        found = NUMBER
        for key, power in unit.powers.items():
            found = found.times(self._rows.get(key, _one(key)), power)
        return found


@dataclass(frozen=True)
class _Form:
    """The unit of a formula."""

    equations: _Equations
    unit: DimensionUnit
    # Value of a number that is written out, or that is computed from such by arithmetic.
    constant: float | None = None
    is_named: bool = False  # Whether any name takes part

    def __add__(self, other: _Form) -> _Form:
        self.equations.equal(self, other, "adds {0} and {1}")
        return self._with(other, self.unit, operator.add)

    def __sub__(self, other: _Form) -> _Form:
        self.equations.equal(self, other, "subtracts {1} from {0}")
        return self._with(other, self.unit, operator.sub)

    def __neg__(self) -> _Form:
        return replace(self, constant=None if self.constant is None else -self.constant)

    def __mul__(self, other: _Form) -> _Form:
        return self._with(other, self.unit.times(other.unit), operator.mul)

    def __truediv__(self, other: _Form) -> _Form:
        return self._with(other, self.unit.times(other.unit, Fraction(-1)), operator.truediv)

    def __pow__(self, other: _Form) -> _Form:
        if other.constant is not None:
            exponent = Fraction(other.constant).limit_denominator(LARGEST_ROOT)
            return self._with(other, self.unit.power(exponent), operator.pow)
        if not other.is_named:  # such as 2**sqrt(4): a constant, of a value that is not known here
            return self.equations.any()
        number = self.equations.known(NUMBER)
        self.equations.equal(other, number, "has {0} as an exponent")
        self.equations.equal(self, number, "raises {0} to an exponent that is not a constant")
        return number

    def _with(
        self, other: _Form, unit: DimensionUnit, compute: Callable[[float, float], float]
    ) -> _Form:
        constant = None
        if self.constant is not None and other.constant is not None:
            with suppress(OverflowError, ZeroDivisionError):
                constant = compute(self.constant, other.constant)
        if not (isinstance(constant, float) and math.isfinite(constant)):
            constant = None
        return _Form(self.equations, unit, constant, self.is_named or other.is_named)


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

        def if_fits(working_set: _Form, hit: _Form, miss: _Form, *_level: str) -> _Form:
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

    def negation(self, value: _Form) -> _Form:  # noqa: ARG002
        return self.equations.known(NUMBER)

    def conjunction(self, values: list[_Form]) -> _Form:  # noqa: ARG002
        return self.equations.known(NUMBER)

    disjunction = conjunction

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
