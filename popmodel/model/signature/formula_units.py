"""Units of formulas: those that are stated must agree in sums, choices and what keys need.

A unit is a product of powers of byte and second; what is counted is a number. A number that is
written out may carry any unit (the 8 of ``8*n0`` may be bytes per cell), and so may a name of which
nobody states one: what is made of them is open, and agrees with everything.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise

from popmodel.base.expressions import Expression
from popmodel.base.expressions.grammar import dotted_name
from popmodel.base.values import NamedTuple
from popmodel.model.kinds import key_at, label_of
from popmodel.model.signature.application import EXTENTS, Signature
from popmodel.model.signature.keys import of_machine, parameter_of
from popmodel.model.signature.reading import Path, SignatureError, line_of


class FormulaUnit(NamedTuple):
    """Exponents of byte and second in the unit of a value."""

    bytes: Fraction = Fraction(0)
    seconds: Fraction = Fraction(0)

    def times(self, other: FormulaUnit, power: int = 1) -> FormulaUnit:
        return FormulaUnit(*(a + power * b for a, b in zip(self, other, strict=True)))

    def to(self, exponent: Fraction) -> FormulaUnit:
        return FormulaUnit(*(exponent * power for power in self))

    def __str__(self) -> str:
        powers = tuple(zip("Bs", self, strict=True))
        above = "*".join(_power(name, power) for name, power in powers if power > 0)
        below = "/".join(_power(name, -power) for name, power in powers if power < 0)
        return f"{above or '1'}/{below}" if below else above or "1"

    @property
    def noun(self) -> str:
        """What a value of this unit is, in words."""
        return {"1": "a number", "B": "bytes", "s": "seconds"}.get(str(self), str(self))


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})"


NO_UNIT = "counts, P, T and the extents of the grid have no unit"
NUMBER, BYTE = FormulaUnit(), FormulaUnit(bytes=Fraction(1))
_STATED = {
    "B": BYTE,
    "s": FormulaUnit(seconds=Fraction(1)),
    "Hz": FormulaUnit(seconds=Fraction(-1)),
}


def units_of(
    signature: Signature, formulas: Mapping[Path, Expression], lines: Mapping[Path, int]
) -> tuple[dict[str, FormulaUnit], list[SignatureError]]:
    """Find the units of names, and formulas whose units clash, in order, at most one of each."""

    def told(name: str) -> str:
        path = tuple(signature.paths.get(name, f"let.{name}").split("."))
        return f"{name} is {known[name].noun} (line {line_of(lines, path)})"

    counted = dict.fromkeys(("P", "T", "rank", *EXTENTS), NUMBER)
    known = {name: _stated(text) for name, text in signature.units.items()}
    clashes: list[SignatureError] = []
    seen: set[tuple[str, str | None]] = set()
    for path, expression in formulas.items():
        key = key_at(path)
        if path[0] == "program":
            # lists of calls have the same formula many times
            alike = (expression.text, None if key is None else key.unit)
            if alike in seen:
                continue
            seen.add(alike)
        machine = {name: parameter_of(name) for name in of_machine(expression.names)}
        of_machine_ = {name: _stated(one.unit) for name, one in machine.items() if one is not None}
        walk = _UnitWalk({**counted, **known, **of_machine_})
        unit = walk.of(expression.tree)
        if key is not None and key.unit:  # a condition has none
            walk.agree("gives {0}, not {1}", unit, _stated(key.unit))
        if path[0] == "let" and unit is not None:
            known[str(path[1])] = unit
        if walk.problems:  # the others follow from the first
            problem = f"{label_of(path).partition('.')[2]}: {expression.text!r} {walk.problems[0]}"
            names = sorted(expression.names & known.keys(), key=expression.text.find)
            hint = "; ".join(map(told, names)) or NO_UNIT
            line = line_of(lines, path)
            clashes.append(SignatureError(signature.path, problem, line=line, hint=hint))
    return known, clashes


def _stated(text: str) -> FormulaUnit:
    """Return a unit that is stated or needed; what is counted, cycles included, is a number."""
    above, _, below = text.partition("/")
    return _STATED.get(above, NUMBER).times(_STATED.get(below, NUMBER), -1)


class _UnitWalk:
    """Finds the unit of a formula, None where it is open, and what in it does not fit."""

    def __init__(self, known: Mapping[str, FormulaUnit]) -> None:
        self.known = known
        self.problems: list[str] = []

    def agree(self, phrase: str, *units: FormulaUnit | None) -> FormulaUnit | None:
        """Note the phrase about neighbours that differ; return the unit that they have."""
        known = [one for one in units if one is not None]
        for one, other in pairwise(known):
            if one != other:
                self.problems.append(phrase.format(one.noun, other.noun))
        return known[0] if known else None

    def of(self, node: ast.expr) -> FormulaUnit | None:
        match node:
            case ast.Name() | ast.Attribute():
                return self.known.get(dotted_name(node))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.of(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(op, left, right)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                self.of(test)
                return self.agree("chooses between {0} and {1}", self.of(body), self.of(otherwise))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self.of(one) for one in args])
            case ast.Compare(left=left, comparators=others):
                self.agree("compares {0} with {1}", *map(self.of, (left, *others)))
            case ast.BoolOp(values=values):
                for one in values:
                    self.of(one)
            case ast.UnaryOp(operand=operand):
                self.of(operand)
        return None if isinstance(node, ast.Constant) else NUMBER

    def _operation(self, op: ast.operator, left: ast.expr, right: ast.expr) -> FormulaUnit | None:
        one, other = self.of(left), self.of(right)
        match op:
            case ast.Add():
                return self.agree("adds {0} and {1}", one, other)
            case ast.Sub() if one is not None and other is not None:
                self.agree("subtracts {0} from {1}", other, one)
            case ast.Mod():
                self.agree("takes the remainder of {0} by {1}", one, other)
            case ast.Pow():
                return self._raised(one, other, right)
            case ast.Mult() if one is not None and other is not None:
                return one.times(other)
            case ast.Div() | ast.FloorDiv() if one is not None and other is not None:
                return one.times(other, -1)
            case ast.Mult() | ast.Div() | ast.FloorDiv():
                return None
        return other if one is None else one

    def _raised(
        self, base: FormulaUnit | None, exponent: FormulaUnit | None, written: ast.expr
    ) -> FormulaUnit | None:
        with suppress(ValueError):  # a number that is written out
            power = Fraction(ast.literal_eval(written)).limit_denominator(1000)
            return None if base is None else base.to(power)
        self.agree("has {0} as an exponent", exponent, NUMBER)
        if exponent is not None:
            self.agree("raises {0} to an exponent that is not a constant", base, NUMBER)
        return base if base == NUMBER else None

    def _call(self, name: str, args: list[FormulaUnit | None]) -> FormulaUnit | None:
        match name:
            case "min" | "max":
                return self.agree("compares {0} with {1}", *args)
            case "sqrt":
                return None if args[0] is None else args[0].to(Fraction(1, 2))
            case "abs" | "ceiling" | "floor":
                return args[0]
            case "if_fits":
                self.agree("gives if_fits {0}, not {1}", args[0], BYTE)
                return self.agree("chooses between {0} and {1}", *args[1:3])
        what = {"exp": "the exponential", "is_square": "is_square"}.get(name, "the logarithm")
        for one in args:
            self.agree(f"takes {what} of {{0}}", one, NUMBER)
        return NUMBER
