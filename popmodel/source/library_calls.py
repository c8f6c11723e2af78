"""Functions whose source is not here: what those of the standard libraries do to values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import sympy

from popmodel.source.intermediate_form import Invocation, SourcePlace, SourceType
from popmodel.source.symbolic_memory import (
    THREADS,
    LiteralText,
    Pointer,
    SourceParameter,
    SymbolicMemory,
    UnfollowedReal,
    named,
)

ALLOCATORS = ("malloc", "calloc", "realloc", "aligned_alloc", "operator new", "operator new[]")
_NUMBERS = (
    *("strtol", "strtoll", "strtoul", "atoi", "atol", "atoll", "strtod", "atof", "stoi", "stol"),
)
_CHEAP_NAMES = (
    "printf fprintf sprintf snprintf vprintf puts fputs putchar fflush fopen fclose perror free "
    "time clock gettimeofday clock_gettime srand rand getenv getopt strcmp strncmp strlen "
    "strcpy strncpy strcat strdup strtok strchr strstr isnan isinf signal atexit "
    "localtime gmtime strftime ctime asctime difftime fgets sleep usleep mpi_wtime"
)
_CHEAP = frozenset(_CHEAP_NAMES.split())
"""Functions of the C library whose time is not worth a word."""
_READERS = ("scanf", "fscanf", "sscanf")
_MATH_NAMES = (
    "sqrt cbrt exp log log2 log10 pow sin cos tan asin acos atan atan2 sinh cosh tanh fabs "
    "floor ceil round lround lrint trunc fmod fmin fmax hypot abs labs min max"
)
_MATH = frozenset(_MATH_NAMES.split())


_GROWTH = {"push_back": 1, "emplace_back": 1, "pop_back": -1}
"""By how many elements functions of containers lengthen them."""
_SIZE = SourceType("int", 8)


class LibraryCalls(SymbolicMemory):
    """Carries out calls of functions of libraries."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: set[str] = set()  # Functions whose source is not here
        self.is_dry = 0  # Inside of a trial of a loop's body

    def _library(
        self, name: str, values: list[Any], invocation: Invocation, place: SourcePlace
    ) -> Any:
        """A function whose source is not here."""
        if name in ALLOCATORS:
            return Pointer(self.allocate(name, invocation.type), (), sympy.Integer(0))
        if (
            name in _NUMBERS
            and values
            and isinstance(values[0], LiteralText)
            and values[0].kind == "argument"
        ):
            return self._argument(values[0].text, place)
        if name in _READERS:
            for value in values:
                if isinstance(value, Pointer):
                    self._read_in(value, place)
            return UnfollowedReal()
        if name == "omp_get_max_threads" or name == "omp_get_num_threads":
            return THREADS
        if name.removeprefix("std::") in _MATH:
            return self._mathematics(name, values)
        if name in ("memcpy", "memmove", "memset", "qsort", "fread"):
            if values and isinstance(values[0], Pointer):
                self.forget(values[0])
            return values[0] if values else UnfollowedReal()
        is_member = "@N@std@" in invocation.key or not invocation.key  # Unknown inside of templates
        if is_member and values and isinstance(values[0], Pointer):
            types = [argument.type for argument in invocation.arguments[1:]]
            answer = self._of_container(name, values[0], values[1:], types, place)
            if answer is not None:
                return answer
        for value, argument in zip(values, invocation.arguments, strict=False):
            if (
                isinstance(value, Pointer)
                and argument.type.kind == "pointer"
                and "const" not in argument.type.name
            ):
                self.forget(value)
        is_standard = "@N@std@" in invocation.key or name.startswith(
            ("operator", "omp_", "__builtin_")
        )
        if name and not is_standard and name not in (*_CHEAP, *_NUMBERS) and not self.is_dry:
            self.unread.add(name)
        return self._anything(invocation.type, name or "call", place)

    def _of_container(
        self,
        name: str,
        container: Pointer,
        values: Sequence[Any],
        types: Sequence[SourceType],
        place: SourcePlace,
    ) -> Any:
        """What a container of the standard library answers; None for other calls."""
        memory, size = container.memory, (*container.path, "size")
        if name == "data":
            return Pointer(memory, container.path, sympy.Integer(0))
        if name == "size" or name in _GROWTH:
            number = self.load(memory, size, _SIZE, place)
            if name == "size":
                return number
            if values and self.tally is not None and self.nest is not None:  # one behind the other
                self._access(memory, (*container.path, self.nest.variable), types[0], True, place)
            if values and number.is_Integer:
                self.put({(memory, (*container.path, number)): values[0]})
            self.store(memory, size, number + _GROWTH[name], _SIZE, place)
            return UnfollowedReal()
        if name not in ("vector", "resize", "assign", "clear", "insert", "erase"):
            return None
        number = values[0] if values else sympy.Integer(0)
        if name in ("insert", "erase") or not isinstance(number, sympy.Expr):
            number = self.symbol(named(self.memories[memory].name, size), place)
        self.store(memory, size, number, _SIZE, place)
        return UnfollowedReal()

    def _argument(self, number: str, place: SourcePlace) -> sympy.Symbol:
        symbol = sympy.Symbol(f"argument_{number}", integer=True, positive=True)
        if symbol in self.parameters and self.parameters[symbol].place != place:
            # with another count of arguments it may be another one
            symbol = sympy.Symbol(f"argument_{number}_{place.line}", integer=True, positive=True)
        self.parameters.setdefault(symbol, SourceParameter(symbol, f"argument_{number}", place))
        return symbol

    def _read_in(self, pointer: Pointer, place: SourcePlace) -> None:
        memory, path = self.at(pointer, sympy.Integer(0))
        name = named(self.memories[memory].name, path)
        symbol = sympy.Symbol(re.sub(r"\W+", "_", name).strip("_"), integer=True, nonnegative=True)
        contents = self.state.get(memory, {})
        before = contents.get(path)
        default = before if isinstance(before, sympy.Integer) else None
        self.parameters.setdefault(symbol, SourceParameter(symbol, symbol.name, place, default, 0))
        self.state[memory] = {**contents, path: symbol}

    def _mathematics(self, name: str, values: list[Any]) -> Any:
        name = name.removeprefix("std::")
        if all(isinstance(value, sympy.Expr) for value in values) and values:
            exact: dict[str, Callable[..., Any]] = {
                "sqrt": sympy.sqrt,
                "floor": sympy.floor,
                "ceil": sympy.ceiling,
                "abs": sympy.Abs,
                "fabs": sympy.Abs,
                "labs": sympy.Abs,
                "min": sympy.Min,
                "max": sympy.Max,
                "fmin": sympy.Min,
                "fmax": sympy.Max,
                "pow": sympy.Pow,
                "lround": lambda x: x if _is_root(x) else sympy.floor(x + sympy.Rational(1, 2)),
                "round": lambda x: x if _is_root(x) else sympy.floor(x + sympy.Rational(1, 2)),
                "cbrt": sympy.cbrt,
                "log2": lambda x: sympy.log(x, 2),
                "log": sympy.log,
                "exp": sympy.exp,
            }
            if name in exact and not any(self.dependence(value) for value in values):
                return exact[name](*values)
        depends = frozenset().union(*map(self.dependence, values))
        self._count(name, depends)
        return UnfollowedReal(depends)

    def _anything(self, type_: SourceType, text: str, place: SourcePlace) -> Any:
        if type_.kind == "int":
            return self.symbol(f"{text}()", place)  # Another one at each place
        if type_.kind == "pointer":
            return Pointer(self.allocate(text, type_.element or type_), (), sympy.Integer(0))
        return UnfollowedReal()

    def _count(self, operator: str, depends: frozenset[sympy.Symbol]) -> None:
        """Note an operation on real numbers that every turn of the innermost loop does."""
        if self.tally is None or self.nest is None or self.nest.variable not in depends:
            return
        self.tally.flops[operator] = self.tally.flops.get(operator, 0) + 1


def _is_root(value: sympy.Expr) -> bool:
    return value.is_Pow and value.exp in (sympy.Rational(1, 2), sympy.Rational(1, 3))
