"""Expressions and calls of a program that is carried out with symbols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy

from popmodel.source import mpi_arguments
from popmodel.source.formula_text import combined, compared, expanded, parts_of, quotient
from popmodel.source.fortran_text import SUFFIXES as FORTRAN
from popmodel.source.function_index import FunctionIndex
from popmodel.source.intermediate_form import (
    CONTAINERS,
    OTHER,
    Address,
    Assignment,
    Body,
    Element,
    Expression,
    Field,
    Invocation,
    Leave,
    Literal,
    SourceFunction,
    SourceOperation,
    SourcePlace,
    SourceProgram,
    SourceType,
    Variable,
    words_of,
)
from popmodel.source.library_calls import ALLOCATORS, LibraryCalls
from popmodel.source.source_events import Event, Work, has_flops
from popmodel.source.symbolic_memory import (
    ARGUMENTS,
    LARGEST,
    PROCESSES,
    Alias,
    Contents,
    LiteralText,
    ObjectParts,
    Pointer,
    UnfollowedReal,
    named,
)

MOST_STEPS = 160_000
"""Statements, beyond which calls are not followed any more."""
_TOO_LARGE = "the program is too large to be followed to its end: calls from"
_PARTS_OF_A_STEP = 10
"""Parts of values with cases that take about as long as a statement."""
MOST_WITHOUT_MESSAGES = 2_000
"""Statements of a function that sends nothing, such as one that reads texts, all calls together."""
_TIMES_OF_WORK = 10
"""How much more often than others functions are followed that compute."""
LONG_CALL = 100
"""Statements of a call that is not followed again where only what a loop changes is asked for."""
_NAMED = 4
"""Functions that a note names."""
DEEPEST = 40
"""Calls inside of each other that are followed."""
_ENDS = ("exit", "_exit", "abort", "MPI_Abort", "quick_exit", "__assert_fail", "terminate")
_COMPARISONS = {
    "==": sympy.Eq,
    "!=": sympy.Ne,
    "<": sympy.Lt,
    "<=": sympy.Le,
    ">": sympy.Gt,
    ">=": sympy.Ge,
}


_LASTING = (Variable, Field, Element)
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
    """Evaluates expressions, and carries out calls."""

    def __init__(self, program: SourceProgram) -> None:
        super().__init__()
        self.program = program
        self.index = FunctionIndex(program)
        self.variables: dict[str, int] = {}  # Of the files
        self.frames: list[Frame] = []
        self.events: list[Event] = []
        self.path: list[sympy.Basic] = []  # Conditions of the branches that are carried out
        # Conditions without which the program ends; the same with those that lead there
        self.required: dict[sympy.Basic, sympy.Basic] = {}
        self.notes: list[str] = []
        self.place = SourcePlace("?", 0)  # Of the statement that is carried out
        # Functions that a traced run was in
        self.traced: Callable[[], frozenset[str]] = frozenset
        self.number = 0  # Of loops and conditions so far
        self.steps = 0  # Statements that were carried out
        self.spent: Counter[str] = Counter()  # The same, of functions
        self.working: set[str] = set()  # Functions with loops that compute
        # What long calls of functions change: blocks of memory, and ways in them
        self.effects: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
        self.addressed: set[tuple[int, tuple[Any, ...]]] = (
            set()
        )  # Places that pointers were made of
        self.mpi = mpi_arguments.MpiCalls(self)

    @abstractmethod
    def has_messages(self, function: SourceFunction) -> bool:
        """Whether a function sends messages or has directives, calls included."""

    @abstractmethod
    def carry_out(self, body: Body) -> tuple[str | None, Any]:
        """Carry out statements: how they are left, and the value that is returned."""

    def require(self, condition: sympy.Basic) -> None:
        """Remember a condition without which the program ends, if it comes here at all."""
        if not self.is_dry and condition not in self.required:
            known = {PROCESSES, ARGUMENTS, *self.parameters}
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
        if isinstance(value, _LASTING) and type_.kind == value.type.kind == "record":
            self._copy((memory, path), self.locate(value))
            return
        self._put_value(memory, path, self.value(value), type_, place)

    def _put_value(
        self, memory: int, path: tuple[Any, ...], value: Any, type_: SourceType, place: SourcePlace
    ) -> None:
        """Store a value; of an object that a function returns its parts, of numbers whole ones."""
        if isinstance(value, ObjectParts):
            parts = {(*path, *way): part for way, part in value.parts}
            self.state[memory] = {**self.state.get(memory, {}), **parts}
            return
        if type_.kind == "int" and isinstance(value, UnfollowedReal):
            value = self.symbol(named(self.memories[memory].name, path), place, value.depends)
        self.store(memory, path, value, type_, place)

    @property
    def is_too_large(self) -> bool:
        """Whether a program was too large to be followed to its end."""
        return self.steps + self.parts_of_cases // _PARTS_OF_A_STEP > MOST_STEPS

    def call(self, function: SourceFunction, arguments: Sequence[Any]) -> Any:
        """Carry out a function."""
        if self.is_too_large:
            if not any(note.startswith(_TOO_LARGE) for note in self.notes):
                self.note(f"{_TOO_LARGE} {function.name} ({function.place}) on are not followed")
            return self._anything(function.type, function.name, function.place)
        if (
            sum(frame.function.key == function.key for frame in self.frames) > 1
            or len(self.frames) >= DEEPEST
        ):
            self.note(f"{function.place}: {function.name} calls itself: followed twice")
            return self._anything(function.type, function.name, function.place)
        limit = MOST_WITHOUT_MESSAGES * (_TIMES_OF_WORK if function.key in self.working else 1)
        if self.spent[function.key] > limit and not self.has_messages(function):
            self.note(f"{function.place}: {function.name} is followed for its first calls only")
            return self._anything(function.type, function.name, function.place)
        if self.is_dry and function.key in self.effects:
            return self._as_before(function)
        frame, before, state = self._frame(function, arguments), self.steps, dict(self.state)
        made = len(self.events)
        value: Any = None
        self.frames.append(frame)
        try:
            flow, value = self.carry_out(function.body)
            if flow != "return":
                value = UnfollowedReal()
        except Ended:
            if not frame.returns:
                raise
            condition, value, self.state = frame.returns.pop()
            self.require(condition)
        finally:
            for condition, other, left in reversed(frame.returns):
                value = self.merged(condition, other, value, function.name, function.place)
                self.state = self.merge(condition, left, self.state, function.place)
            self.frames.pop()
            self.spent[function.key] += self.steps - before
            for memory in frame.own:  # nothing points to them any more
                self.state.pop(memory, None)
        if any(isinstance(event, Work) and has_flops(event.nest) for event in self.events[made:]):
            self.working.add(function.key)
        if self.steps - before > LONG_CALL:
            self.effects[function.key] = self.changes(state)
        return value

    def _frame(self, function: SourceFunction, arguments: Sequence[Any]) -> Frame:
        frame = Frame(function, {})
        for variable, argument in zip(function.parameters, arguments, strict=False):
            if isinstance(argument, Alias):
                frame.others[variable.key] = argument.memory, argument.path
                continue
            memory = frame.variables[variable.key] = self.allocate(variable.name, variable.type)
            frame.own.append(memory)
            self._put_value(memory, (), argument, variable.type, self.place)
        return frame

    def _returned(self, invocation: Invocation) -> tuple[int, tuple[Any, ...]] | None:
        """Where that lies which a call returns a reference to, as methods for elements do."""
        function = self._called(invocation)
        if function is None or len(function.body) != 1 or len(self.frames) >= DEEPEST:
            return None
        (statement,) = function.body
        lasting = (*_LASTING, Invocation)
        if not isinstance(statement, Leave) or not isinstance(statement.value, lasting):
            return None
        self.frames.append(self._frame(function, self._arguments(function, invocation)))
        try:
            return self.locate(statement.value)
        finally:
            for memory in self.frames.pop().own:
                self.state.pop(memory, None)

    def _arguments(self, function: SourceFunction, invocation: Invocation) -> list[Any]:
        given: tuple[Expression, ...] = invocation.arguments
        own = [part.name for part in function.parameters]
        if own[:1] == ["this"] and len(given) < len(own) and invocation.callee is not None:
            given = (Address(invocation.callee, OTHER), *given)
        pairs = zip(given, function.parameters, strict=False)
        return [self._passed(function, *pair) for pair in pairs]

    def _as_before(self, function: SourceFunction) -> Any:
        """A long call in a trial: what it changed when it was followed is not known any more."""
        for memory, path in self.effects[function.key]:
            contents = self.state.get(memory, {})
            if path in contents:
                old = contents[path]
                new: Any = UnfollowedReal()
                if isinstance(old, sympy.Expr):
                    name = named(self.memories[memory].name, path)
                    new = self.symbol(name, function.place)
                elif isinstance(old, Pointer):
                    continue
                self.state[memory] = {**contents, path: new}
        return self._anything(function.type, function.name, function.place)

    def _invoke(self, invocation: Invocation) -> Any:
        name, place = invocation.name, invocation.place
        function = self._called(invocation)
        if name in _ENDS:
            raise Ended
        if name.startswith(("MPI_", "PMPI_")):
            return self.mpi.call(invocation)
        if function is not None:
            return self.call(function, self._arguments(function, invocation))
        if self._of_objects(invocation):
            return UnfollowedReal()
        values = [self.value(argument) for argument in invocation.arguments]
        if invocation.callee is not None or invocation.is_dynamic:
            return self._anything(invocation.type, name or "call", place)
        return self._library(name, values, invocation, place)

    def _passed(self, function: SourceFunction, argument: Expression, parameter: Variable) -> Any:
        """The value of an argument, or what its parameter is another name of."""
        is_record = "record" in (parameter.type.kind, argument.type.kind)
        is_lasting = isinstance(argument, _LASTING)
        if is_lasting and (is_record or parameter.key in function.references):
            return Alias(*self.locate(argument))
        is_called_by_c = function.place.file.endswith(FORTRAN)
        if is_lasting and parameter.type.kind == "pointer" and not is_called_by_c:
            by_fortran = self.frames[-1].function.place.file.endswith(FORTRAN)
            if by_fortran and argument.type.kind in ("int", "real", "record"):
                return self._address(argument)
        value = self.value(argument)
        if isinstance(value, Pointer) and is_called_by_c and parameter.type.kind != "pointer":
            return Alias(*self.at(value, sympy.Integer(0)))
        if not is_record:
            return value
        memory = self.allocate("value", argument.type)
        if isinstance(value, ObjectParts):
            self._put_value(memory, (), value, argument.type, self.place)
        return Alias(memory, ())

    def _method(self, target: Expression, name: str, arguments: int) -> list[SourceFunction]:
        """The method of an object, by the class that is known of it only now."""
        type_ = target.type
        if type_.kind != "record" or not type_.name:
            memory, path = self.locate(target)
            type_ = type_ if path else self.memories[memory].type
        return self.index.methods(type_.name, name, arguments)

    def _called(self, invocation: Invocation) -> SourceFunction | None:
        """The function that is called: of pointers and virtual methods the only one it can be."""
        name = invocation.name
        if invocation.callee is not None:
            value = self.value(invocation.callee)
            if isinstance(value, LiteralText) and value.kind == "function":
                return self.program.functions.get(value.text)
        target: Any = invocation.arguments[0] if invocation.arguments else None
        found: list[SourceFunction] = []
        if invocation.callee is not None:
            found = self._method(invocation.callee, "operator()", len(invocation.arguments) + 1)
        elif not invocation.key and isinstance(target, Address):
            found = self._method(target.target, name, len(invocation.arguments))
        found = found or self.index.candidates(invocation)
        if len(found) > 1:
            names_in_trace = self.traced()
            found = [one for one in found if one.name in names_in_trace] or found
        if len(found) == 1:
            return found[0]
        if len(found) > 1 or invocation.callee is not None or invocation.is_dynamic:
            names = sorted(f"{function.name} ({function.place})" for function in found)
            which = f"may be {', '.join(names[:_NAMED])}" if names else "is not known"
            self.note(f"{invocation.place}: {name or 'a pointer'}: the function {which}: left out")
        return None

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
            if assignment.type.kind == "record" and isinstance(assignment.value, _LASTING):
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

    def _parts(self, place: tuple[int, tuple[Any, ...]]) -> ObjectParts:
        """What is known of an object: the ways to its parts, and their values."""
        memory, path = place
        known = self.state.get(memory, {}).items()
        depth = len(path)
        return ObjectParts(tuple((way[depth:], v) for way, v in known if way[:depth] == path))

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

    def _of_objects(self, invocation: Invocation) -> bool:
        """Whether a call is one of the standard library that copies or exchanges two objects."""
        name, arguments = invocation.name, invocation.arguments
        if name not in ("vector", "operator=", "swap") or len(arguments) != 2:
            return False
        given = [one.target if isinstance(one, Address) else one for one in arguments]
        if not all(isinstance(one, _LASTING) for one in given):
            return False
        if name != "swap" and given[1].type.kind != "record":
            return False
        if name == "operator=":
            self._assign(Assignment(given[0], "", given[1], given[1].type))
            return True
        one, other = map(self.locate, given)
        parts = self._parts(one)
        self._copy(one, other)
        if name == "swap":
            self._put_value(*other, parts, OTHER, self.place)
        return True

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
        found = sympy.Symbol(f"condition~{self.number}")
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
