"""Which functions of a program a call may mean: by key, name, type of a pointer, or class."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from popmodel.source.fortran_text import SUFFIXES as FORTRAN
from popmodel.source.intermediate_form import (
    Invocation,
    Literal,
    SourceFunction,
    SourcePlace,
    SourceProgram,
    SourceType,
)

_CLASS = re.compile(r"@(\w+)@FT?@")
"""The class of a method, or a namespace, in the key of a function."""


class FunctionIndex:
    """The functions of a program, by what calls say of them."""

    def __init__(self, program: SourceProgram) -> None:
        self.program = program
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


def _of_type(value: Any) -> str:
    type_ = value.type.element or value.type
    return str(type_.name.removeprefix("const "))
