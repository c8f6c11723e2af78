"""Expressions of a program that is carried out with symbols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy

from popmodel.source import mpi_arguments
from popmodel.source.formula_text import combined, compared, expanded, parts_of, quotient
from popmodel.source.intermediate_form import (
    CONTAINERS,
    OTHER,
    Address,
    Assignment,
    Element,
    Expression,
    Field,
    Invocation,
    Literal,
    SourceFunction,
    SourceOperation,
    SourcePlace,
    SourceType,
    Variable,
    words_of,
)
from popmodel.source.library_calls import ALLOCATORS, LibraryCalls
from popmodel.source.source_events import Event
from popmodel.source.symbolic_memory import (
    LARGEST,
    UNDECIDED,
    Contents,
    LiteralText,
    ObjectParts,
    Pointer,
    UnfollowedReal,
    named,
)

_COMPARISONS = {
    "==": sympy.Eq,
    "!=": sympy.Ne,
    "<": sympy.Lt,
    "<=": sympy.Le,
    ">": sympy.Gt,
    ">=": sympy.Ge,
}


LASTING = (Variable, Field, Element)
"""Expressions for what lies in memory."""


@dataclass
class Frame:
    """A call that is being carried out."""

    function: SourceFunction
    variables: dict[str, int]
    # Of names for what is elsewhere, such as references: block of memory, and the way to it
    others: dict[str, tuple[int, tuple[Any, ...]]] = field(default_factory=dict)
    # Condition, value and state of returns on the way
    returns: list[tuple[sympy.Basic, Any, dict[int, Contents]]] = field(default_factory=list)
    own: list[int] = field(default_factory=list)  # Blocks of memory that end with the call


class Ended(Exception):
    """The program ends here."""


class SymbolicEvaluation(LibraryCalls, ABC):
    """Evaluates expressions."""

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[str, int] = {}  # Of the files
        self.frames: list[Frame] = []
        self.events: list[Event] = []
        self.path: list[sympy.Basic] = []  # Conditions of the branches that are carried out
        # Conditions without which the program ends; the same with those that lead there
        self.required: dict[sympy.Basic, sympy.Basic] = {}
        self.notes: list[str] = []
        self.place = SourcePlace("?", 0)  # Of the statement that is carried out
        self.number = 0  # Of loops and conditions so far
        # Places that pointers were made of
        self.addressed: set[tuple[int, tuple[Any, ...]]] = set()
        self.mpi = mpi_arguments.MpiCalls(self)

    @abstractmethod
    def _invoke(self, invocation: Invocation) -> Any:
        """What a call gives, with what it does."""

    @abstractmethod
    def _returned(self, invocation: Invocation) -> tuple[int, tuple[Any, ...]] | None:
        """Where that lies which a call returns a reference to, as methods for elements do."""

    def require(self, condition: sympy.Basic) -> None:
        """Remember a condition without which the program ends, if it comes here at all."""
        if not self.is_dry and condition not in self.required:
            known = self.user_symbols
            way = [one for one in self.path if one.free_symbols and one.free_symbols <= known]
            self.required[condition] = sympy.Or(*map(sympy.Not, way), condition)

    def note(self, text: str) -> None:
        """Remember what the user should know."""
        if not self.is_dry and text not in self.notes:
            self.notes.append(text)

    def locate(self, target: Expression) -> tuple[int, tuple[Any, ...]]:
        """Where something lies: block of memory, and the way to it."""
        if isinstance(target, Variable):
            other = self.frames[-1].others.get(target.key) if self.frames else None
            return other or (self._home(target), ())
        if isinstance(target, Field):
            memory, path = self.locate(target.base)
            if path and isinstance(path[-1], sympy.Basic):
                self.records[memory, len(path)] = target.base.type.size
            return memory, (*path, target.name)
        if isinstance(target, Element):
            index = self.value(target.subscript)
            if target.base.type.kind == "array" and not isinstance(target.base, Invocation):
                memory, path = self.locate(target.base)
                return memory, (*path, _exact(index, self, target))
            where = None
            if isinstance(target.base, (Variable, Field, Element)):
                where = self.locate(target.base)
                base = self.load(*where, target.base.type, self._place(target.base))
            else:
                base = self.value(target.base)
            if isinstance(base, Pointer):
                return self.at(base, _exact(index, self, target))
            if where is not None:
                return where[0], (*where[1], _exact(index, self, target))
            return self.allocate(words_of(target.base), target.type), (_exact(index, self, target),)
        if isinstance(target, SourceOperation) and target.operator in ("cast", ","):
            return self.locate(target.operands[-1])
        if isinstance(target, Invocation) and (place := self._returned(target)) is not None:
            return place
        memory = self.allocate(words_of(target), target.type)
        return memory, ()

    def _home(self, variable: Variable) -> int:
        key, frames = variable.key, self.frames
        if frames and key in frames[-1].variables:
            return frames[-1].variables[key]
        if key in self.variables:
            return self.variables[key]
        for frame in frames[-2::-1]:  # what a lambda captures
            if key in frame.variables:
                return frame.variables[key]
        memory = self.allocate(variable.name, variable.type)
        if frames:
            frames[-1].own.append(memory)
        (frames[-1].variables if frames else self.variables)[key] = memory
        return memory

    def _initialise(
        self, memory: int, path: tuple[Any, ...], value: Expression, type_: SourceType
    ) -> None:
        place = self._place(value)
        if (
            isinstance(value, SourceOperation)
            and value.operator == "list"
            and type_.kind in ("array", "record")
        ):
            self.memories[memory].is_open = True  # Others are zeros
            for number, part in enumerate(value.operands):
                inner = type_.element or part.type
                if type_.kind == "array":
                    self._initialise(memory, (*path, sympy.Integer(number)), part, inner)
                elif isinstance(part, SourceOperation) and part.operator[:1] == ".":
                    self._initialise(
                        memory, (*path, part.operator[1:]), part.operands[0], part.type
                    )
            if not value.operands and CONTAINERS.match(type_.name):
                self.put({(memory, (*path, "size")): sympy.Integer(0)})
            return
        if isinstance(value, LASTING) and type_.kind == value.type.kind == "record":
            self._copy((memory, path), self.locate(value))
            return
        self._put_value(memory, path, self.value(value), type_, place)

    def value(self, expression: Expression) -> Any:
        """The value of an expression, with what it does."""
        if isinstance(expression, Literal):
            if isinstance(expression.value, str):
                return LiteralText(expression.value, expression.type.kind)
            if expression.type.kind == "real":
                return _exact_real(expression.value)
            return sympy.Integer(expression.value)
        if isinstance(expression, (Variable, Field, Element)):
            if isinstance(expression, Variable) and expression.name.startswith("MPI_"):
                return LiteralText(expression.name, "mpi")
            if isinstance(expression, Variable) and expression.name == "optarg":  # of getopt
                return LiteralText("optarg", "argument")
            memory, path = self.locate(expression)
            return self.load(memory, path, expression.type, self._place(expression))
        if isinstance(expression, Address):
            return self._address(expression.target)
        if isinstance(expression, Assignment):
            return self._assign(expression)
        if isinstance(expression, Invocation):
            return self._invoke(expression)
        return self._operation(expression)

    def _address(self, target: Expression) -> Any:
        memory, path = self.locate(target)
        if path and isinstance(path[-1], sympy.Basic):
            return Pointer(memory, path[:-1], path[-1])
        self.addressed.add((memory, path))
        return Pointer(memory, path)

    def _assign(self, assignment: Assignment) -> Any:
        target = assignment.target
        if getattr(assignment.value, "operator", "") == "list" and target.type.kind == "record":
            self._initialise(*self.locate(target), assignment.value, target.type)
            return UnfollowedReal()
        old: Any = None
        if assignment.operator:
            old = self.value(target)
            right = self.value(assignment.value)
            new = self._arithmetic(assignment.operator, [old, right], assignment.type)
        else:
            new = self.value(assignment.value)
            if assignment.type.kind == "record" and isinstance(assignment.value, LASTING):
                memory, path = self.locate(target)
                self._copy((memory, path), self.locate(assignment.value))
                if self.tally is not None and path:
                    self._access(memory, path, target.type, True, self._place(target))
                return new
        is_cut = (target.type.kind, assignment.value.type.kind) == ("int", "real")
        if is_cut and isinstance(new, sympy.Expr) and not new.is_integer:
            new = sympy.floor(new)  # as Fortran does it without a word
        memory, path = self.locate(target)
        self._put_value(memory, path, new, target.type, self._place(target))
        whole = target.base if isinstance(target, Element) else target  # as of *n = atoi(...)
        if isinstance(whole, (Variable, Field)):
            self._name_parameter(new, whole.name)
        return old if assignment.is_postfix else new

    def _name_parameter(self, value: Any, name: str) -> None:
        """Call a parameter as the outermost call does that keeps it, and memory by its pointer."""
        if isinstance(value, Pointer) and self.memories[value.memory].name in ALLOCATORS:
            self.memories[value.memory].name = name
        found = self.parameters.get(value) if isinstance(value, sympy.Symbol) else None
        if found is not None and len(self.frames) < found.depth:
            found.name, found.depth = name, len(self.frames)

    def _returned_object(self, place: tuple[int, tuple[Any, ...]]) -> ObjectParts:
        """As `_parts`; a number whose address somebody has is a default that options change."""
        memory, path = place
        parts = []
        for way, value in self._parts(place).parts:
            if isinstance(value, sympy.Integer) and (memory, (*path, *way)) in self.addressed:
                if value.is_negative:  # for what was not given
                    value = self.symbol(named(self.memories[memory].name, way), self.place)
                else:
                    self._read_in(Pointer(memory, (*path, *way)), self.place)
                    value = self.state[memory][*path, *way]
            parts.append((way, value))
        return ObjectParts(tuple(parts))

    def _copy(
        self, target: tuple[int, tuple[Any, ...]], source: tuple[int, tuple[Any, ...]]
    ) -> None:
        self._put_value(*target, self._parts(source), OTHER, self.place)

    def _operation(self, operation: SourceOperation) -> Any:
        operator = operation.operator
        if operator == "?:":
            condition = self.condition(operation.operands[0])
            if condition == sympy.true:
                return self.value(operation.operands[1])
            if condition == sympy.false:
                return self.value(operation.operands[2])
            sides = []
            for part, holds in zip(
                operation.operands[1:], (condition, sympy.Not(condition)), strict=True
            ):
                try:
                    sides.append(self.value(part))
                except Ended:  # as of assert: the other side it is
                    self.require(sympy.Not(holds))
            if len(sides) < 2:
                return sides[0] if sides else UnfollowedReal()
            one, other = sides
            return self.merged(condition, one, other, "choice", self._place(operation))
        if operator in ("&&", "||", "!", *_COMPARISONS):
            condition = self.condition(operation)
            if condition in (sympy.true, sympy.false):
                return sympy.Integer(condition == sympy.true)
            if condition.is_Symbol:
                return UnfollowedReal(self.dependence(condition))
            return sympy.Piecewise((1, condition), (0, True))
        values = [self.value(part) for part in operation.operands]
        if operator == "cast":
            (value,) = values
            if (
                operation.type.kind == "int"
                and isinstance(value, sympy.Expr)
                and not value.is_integer
            ):
                return sympy.floor(value)
            if operation.type.kind == "int" and isinstance(value, UnfollowedReal):
                return self.symbol("converted", self._place(operation), value.depends)
            return value
        if operator == ",":
            return values[-1]
        if operator in ("list", "unknown") or operator[:1] == ".":
            if operation.type.kind == "int" and operator == "unknown":
                return self.symbol("unknown", self._place(operation))
            return values[0] if len(values) == 1 else UnfollowedReal()
        return self._arithmetic(operator, values, operation.type)

    def _arithmetic(self, operator: str, values: list[Any], type_: SourceType) -> Any:
        pointers = [value for value in values if isinstance(value, Pointer)]
        if pointers and len(values) == 2:
            return self._moved(operator, values)
        if all(isinstance(value, sympy.Expr) for value in values):
            if type_.kind == "real" and any(self.dependence(value) for value in values):
                depends = frozenset().union(*map(self.dependence, values))
                if operator != "neg":
                    self._count(operator, depends)
                return UnfollowedReal(depends)
            return self._exact(operator, values, type_)
        depends = frozenset().union(*map(self.dependence, values))
        if type_.kind == "int":
            return self.symbol("whole number", self.place, depends)
        if operator != "neg":
            self._count(operator, depends)
        return UnfollowedReal(depends)

    def _exact(self, operator: str, values: list[sympy.Expr], type_: SourceType) -> sympy.Expr:
        if operator == "neg":
            return -values[0]
        if operator == "~" or len(values) != 2:  # more where the parser met an error
            return self.symbol("bits", self.place, self.dependence(values[0]))
        a, b = values
        found: sympy.Expr
        if operator in "+-*":
            found = combined(operator, a, b, _MOST_PARTS)
        elif operator == "/":
            if b == 0:
                return self.symbol("division by zero", self.place)
            found = a / b
            if type_.kind == "int":
                found = quotient(a, b)
        elif operator == "%":
            found = sympy.Mod(a, b) if b != 0 else self.symbol("division by zero", self.place)
        elif operator == "**":
            found = a**b
        elif operator == "<<" and b.is_Integer and b < 64:
            found = a * 2**b
        elif operator == ">>" and b.is_Integer and b < 64:
            found = quotient(a, sympy.Integer(2) ** b)
        elif operator in "&|^" and a.is_Integer and b.is_Integer:
            found = sympy.Integer(
                {"&": int(a) & int(b), "|": int(a) | int(b), "^": int(a) ^ int(b)}[operator]
            )
        else:
            return self.symbol("bits", self.place, self.dependence(a) | self.dependence(b))
        if type_.kind == "real" and parts_of(found) > _MOST_PARTS_OF_REALS:
            return UnfollowedReal(self.dependence(found))
        if parts_of(found) > _MOST_PARTS:
            return self.defined_symbol("long formula", self.place, found)
        return found

    def _moved(self, operator: str, values: list[Any]) -> Any:
        """A pointer some elements on, or the distance of two."""
        one, other = values
        if operator in "+-" and isinstance(one, Pointer) and isinstance(other, sympy.Expr):
            by = other if operator == "+" else -other
            return one._replace(offset=expanded((one.offset or sympy.Integer(0)) + by))
        if operator == "+" and isinstance(other, Pointer) and isinstance(one, sympy.Expr):
            return other._replace(offset=expanded((other.offset or 0) + one))
        if operator == "-" and isinstance(one, Pointer) and isinstance(other, Pointer):
            if (one.memory, one.path) == (other.memory, other.path) and one.offset is not None:
                return expanded(one.offset - (other.offset or 0))
            return self.symbol("distance", self.place)
        return one if isinstance(one, Pointer) else other

    def condition(self, expression: Expression) -> Any:
        """A condition as a formula; a symbol where it cannot be known."""
        if isinstance(expression, SourceOperation):
            operator = expression.operator
            if operator == "&&" or operator == "||":
                join = sympy.And if operator == "&&" else sympy.Or
                first = self.condition(expression.operands[0])
                if first == (sympy.false if operator == "&&" else sympy.true):
                    return first
                return join(first, self.condition(expression.operands[1]))
            if operator == "!":
                return sympy.Not(self.condition(expression.operands[0]))
            if operator in _COMPARISONS:
                one, other = (self.value(part) for part in expression.operands)
                if isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr):
                    try:
                        return self.mpi.decided(compared(_COMPARISONS[operator], one, other))
                    except TypeError:
                        return self._undecided(self.dependence(one) | self.dependence(other))
                if isinstance(one, (LiteralText, mpi_arguments.SourceCommunicator)) and isinstance(
                    other, (LiteralText, mpi_arguments.SourceCommunicator)
                ):
                    same = one == other
                    return sympy.true if same == (operator == "==") else sympy.false
                if Pointer in (type(one), type(other)) and operator in ("==", "!="):
                    is_same = self.is_same_place(one, other)
                    if is_same is not None:
                        return sympy.true if is_same == (operator == "==") else sympy.false
                if expression.operands[0].type.kind == "real" and operator not in ("==", "!="):
                    self._count("compare", self.dependence(one) | self.dependence(other))
                return self._undecided(self.dependence(one) | self.dependence(other))
        value = self.value(expression)
        if isinstance(value, sympy.Expr):
            return compared(sympy.Ne, value, sympy.Integer(0))
        if isinstance(value, (Pointer, LiteralText)):
            return sympy.true
        return self._undecided(self.dependence(value))

    def _undecided(self, depends: frozenset[sympy.Symbol]) -> sympy.Symbol:
        self.number += 1
        found = sympy.Symbol(f"{UNDECIDED}{self.number}")
        self.depends[found] = depends
        return found

    def _place(self, expression: Any) -> SourcePlace:
        place = getattr(expression, "place", None)
        if isinstance(place, SourcePlace):
            return place
        return self.place


_LARGEST_REAL = 1e15
"""Beyond, numbers are not followed."""
_ROUNDED = 12
"""Digits of a number that may be one of a formula, such as of a third."""
_MOST_PARTS_OF_REALS = 20
_MOST_PARTS = 2 * LARGEST
"""A formula of so many operations has about twice as many parts: operations and what they join."""


@lru_cache(10_000)
def _exact_real(value: float) -> Any:
    if not abs(value) < _LARGEST_REAL:
        return UnfollowedReal()
    digits = repr(value)
    return sympy.Rational(digits) if len(digits) < _ROUNDED else sympy.nsimplify(value)


def _exact(index: Any, interpreter: SymbolicEvaluation, target: Element) -> sympy.Expr:
    if isinstance(index, sympy.Expr):
        return index
    return interpreter.symbol(
        words_of(target.subscript), interpreter._place(target), interpreter.dependence(index)
    )
