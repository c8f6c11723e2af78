"""Calls of a program's functions: which one is meant, what it is given, and what it changes.

A call means a function by key, name, type of a pointer, or class. Programs are not followed without
end: calls inside of each other, calls of a function that sends no messages, and all statements
together have limits; what is beyond answers nobody knows what, and a note says so.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import sympy

from popmodel.source.fortran_text import SUFFIXES as FORTRAN
from popmodel.source.intermediate_form import (
    OTHER,
    Address,
    Assignment,
    Body,
    Directive,
    Expression,
    Invocation,
    Leave,
    Literal,
    SourceFunction,
    SourcePlace,
    SourceProgram,
    SourceType,
    Variable,
)
from popmodel.source.openmp_directives import parsed_directive
from popmodel.source.source_events import Work, has_flops
from popmodel.source.symbolic_evaluation import LASTING, Ended, Frame, SymbolicEvaluation
from popmodel.source.symbolic_memory import (
    Alias,
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
_MOST_WITHOUT_MESSAGES = 2_000
"""Statements of a function that sends nothing, such as one that reads texts, all calls together."""
_TIMES_OF_WORK = 10
"""How much more often than others functions are followed that compute."""
_LONG_CALL = 100
"""Statements of a call that is not followed again where only what a loop changes is asked for."""
_NAMED = 4
"""Functions that a note names."""
_DEEPEST = 40
"""Calls inside of each other that are followed."""
_ENDS = ("exit", "_exit", "abort", "MPI_Abort", "quick_exit", "__assert_fail", "terminate")
_COMPUTING = {"simd", "tile", "unroll", "atomic", "critical"}
"""Directives that leave a loop one of plain computing."""
_CLASS = re.compile(r"@(\w+)@FT?@")
"""The class of a method, or a namespace, in the key of a function."""


class FunctionIndex:
    """The functions of a program, by what calls say of them."""

    def __init__(self, program: SourceProgram) -> None:
        self.program = program
        self._messages: dict[str, bool] = {}  # By functions, as `has_messages`
        self._plain: dict[int, tuple[Body, bool]] = {}  # Statements by identity, as `is_plain`
        self.named: dict[str, list[str]] = {}  # Their keys
        self.specialised: dict[str, list[SourceFunction]] = {}  # Templates for certain types
        for key, function in program.functions.items():
            self.named.setdefault(function.name, []).append(key)
            if f"F@{function.name}<" in key:
                self.specialised.setdefault(function.name, []).append(function)

    def candidates(self, invocation: Invocation) -> list[SourceFunction]:
        """The functions of the program that may be called; none for those of others."""
        functions = self.program.functions
        keys: list[str] = []
        if invocation.callee is not None:
            type_ = invocation.callee.type
            name = (type_.element or type_).name.removeprefix("const ")
            keys = self._values.get(name) or self.named.get("operator()", [])
        elif invocation.is_dynamic:
            waiting = [invocation.key]
            while waiting:
                keys.append(waiting.pop())
                waiting += self.program.overriders.get(keys[-1], ())
        else:
            known = functions.get(invocation.key) or self._only(invocation.name)
            given = [_of_type(argument) for argument in invocation.arguments]
            for one in () if known else self.specialised.get(invocation.name, ()):
                own = [_of_type(part) for part in one.parameters if part.name != "this"]
                if given[len(given) - len(own) :] == own:
                    known = one
            if known is not None or invocation.key:
                return [] if known is None else [known]
            keys = self.named.get(invocation.name, [])
        return [functions[key] for key in dict.fromkeys(keys) if key in functions]

    def _only(self, name: str) -> SourceFunction | None:
        """The one function of a name: templates are called by the keys of their instances."""
        keys = self.named.get(name) or self._in_other_language(name)
        return self.program.functions[keys[0]] if len(keys) == 1 else None

    def _in_other_language(self, name: str) -> list[str]:
        """Keys of what C calls ``name_`` and Fortran ``name``, as their compilers link them."""
        plain = name.rstrip("_")
        linked = (plain,) if plain != name else (f"{name}_", f"{name}__")
        return [
            key
            for one in linked
            for key in self.named.get(one, ())
            if self.program.functions[key].place.file.endswith(FORTRAN) == (plain != name)
        ]

    def methods(self, type_name: str, name: str, arguments: int) -> list[SourceFunction]:
        """The methods of a class that have a name, if any those of so many arguments."""
        plain = re.sub(r"<.*|\[.*", "", type_name.removeprefix("const ")).strip(" *&")
        methods = self._methods.get((plain.rpartition("::")[2], name), [])
        methods = [one for one in methods if len(one.parameters) == arguments] or methods
        alike = {tuple(map(_of_type, one.parameters[1:])) for one in methods}
        return methods[:1] if len(alike) == 1 else methods  # that for constant objects is the same

    @cached_property
    def _methods(self) -> dict[tuple[str, str], list[SourceFunction]]:
        """Methods by their class, which their keys have, and name."""
        found: dict[tuple[str, str], list[SourceFunction]] = {}
        for key, function in self.program.functions.items():
            if match := _CLASS.search(key):
                found.setdefault((match[1], function.name), []).append(function)
        return found

    @cached_property
    def _values(self) -> dict[str, list[str]]:
        """Functions that are values somewhere, by their types."""
        values: dict[str, list[str]] = {}
        waiting: list[Any] = [
            *(function.body for function in self.program.functions.values()),
            *self.program.variables.values(),
        ]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Literal):
                if part.type.kind == "function":
                    values.setdefault(part.type.name, []).append(str(part.value))
            elif isinstance(part, tuple) and not isinstance(part, (SourceType, SourcePlace)):
                waiting += part
        return values

    def has_messages(self, function: SourceFunction) -> bool:
        """Whether a function sends messages or has directives, calls included."""
        if function.key not in self._messages:
            self._messages[function.key] = not self.is_plain(function.body)
        return self._messages[function.key]

    def is_plain(self, body: Body) -> bool:
        """Whether statements only compute: no message, no directive of OpenMP, calls included."""
        if id(body) not in self._plain:
            self._plain[id(body)] = body, self._computes_only(body)
        return self._plain[id(body)][1]

    def _computes_only(self, body: Body) -> bool:
        called: set[str] = set()
        waiting: list[Any] = list(body)
        while waiting:
            part = waiting.pop()
            if isinstance(part, Directive) and not (
                set(parsed_directive(part.text).constructs) <= _COMPUTING
            ):
                return False
            if isinstance(part, Invocation):
                if part.name.startswith("MPI_") and part.name not in ("MPI_Wtime", "MPI_Abort"):
                    return False
                for function in self.candidates(part):
                    if function.key not in called:
                        called.add(function.key)
                        waiting += function.body
            if isinstance(part, tuple) and not isinstance(
                part, (SourceType, SourcePlace, Literal, Variable)
            ):
                waiting += [one for one in part if isinstance(one, tuple)]
        return True


def _of_type(value: Any) -> str:
    type_ = value.type.element or value.type
    return str(type_.name.removeprefix("const "))


class FunctionCalls(SymbolicEvaluation, ABC):
    """Carries out calls."""

    def __init__(self, program: SourceProgram) -> None:
        super().__init__()
        self.program = program
        self.index = FunctionIndex(program)
        # Functions that a traced run was in
        self.traced: Callable[[], frozenset[str]] = frozenset
        self.steps = 0  # Statements that were carried out
        self.spent: Counter[str] = Counter()  # The same, of functions
        self.working: set[str] = set()  # Functions with loops that compute
        # What long calls of functions change: blocks of memory, and ways in them
        self.effects: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}

    @abstractmethod
    def carry_out(self, body: Body) -> tuple[str | None, Any]:
        """Carry out statements: how they are left, and the value that is returned."""

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
            or len(self.frames) >= _DEEPEST
        ):
            self.note(f"{function.place}: {function.name} calls itself: followed twice")
            return self._anything(function.type, function.name, function.place)
        limit = _MOST_WITHOUT_MESSAGES * (_TIMES_OF_WORK if function.key in self.working else 1)
        if self.spent[function.key] > limit and not self.index.has_messages(function):
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
        if self.steps - before > _LONG_CALL:
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
        if function is None or len(function.body) != 1 or len(self.frames) >= _DEEPEST:
            return None
        (statement,) = function.body
        lasting = (*LASTING, Invocation)
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
        is_lasting = isinstance(argument, LASTING)
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

    def _of_objects(self, invocation: Invocation) -> bool:
        """Whether a call is one of the standard library that copies or exchanges two objects."""
        name, arguments = invocation.name, invocation.arguments
        if name not in ("vector", "operator=", "swap") or len(arguments) != 2:
            return False
        given = [one.target if isinstance(one, Address) else one for one in arguments]
        if not all(isinstance(one, LASTING) for one in given):
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
