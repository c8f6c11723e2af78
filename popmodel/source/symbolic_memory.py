"""Values of a program that is carried out with symbols, and the memory that holds them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import sympy

from popmodel.source.formula_text import expanded, parts_of, symbols_of
from popmodel.source.intermediate_form import SourcePlace, SourceType
from popmodel.source.source_events import Access, Nest, Tally

PROCESSES, THREADS = (sympy.Symbol(name, integer=True, positive=True) for name in "PT")
RANK = sympy.Symbol("rank", integer=True, nonnegative=True)
EACH = sympy.Symbol("each~", integer=True, nonnegative=True)
"""In a way to elements, any index: what lies there is a formula of it."""
ARGUMENTS = sympy.Symbol("argc", integer=True, positive=True)
LARGEST = 200
"""Parts of a formula beyond which it is no longer followed."""
UNDECIDED = "condition~"
"""How symbols begin that stand for conditions."""
UNNAMED = 99
"""Depth of calls at which a parameter has no name yet."""


class UnfollowedReal(NamedTuple):
    """A number that is not followed: it depends on these loop variables."""

    depends: frozenset[sympy.Symbol] = frozenset()


class Pointer(NamedTuple):
    """Points into a block of memory; without an offset at something that is no element."""

    memory: int
    path: tuple[Any, ...]
    offset: sympy.Expr | None = None


class Alias(NamedTuple):
    """What a parameter is another name of: block of memory, and the way to it."""

    memory: int
    path: tuple[Any, ...]


class ObjectParts(NamedTuple):
    """An object that is returned or copied: values by the ways to them."""

    parts: tuple[tuple[tuple[Any, ...], Any], ...]


class LiteralText(NamedTuple):
    """A text, or the key of a function."""

    text: str
    kind: str = "text"


@dataclass
class MemoryBlock:
    """A block of memory: a variable, or what was allocated."""

    name: str
    type: SourceType
    is_argument_list: bool = False
    is_assumed: bool = False  # Behind a pointer that the program was not seen to set
    is_open: bool = False  # Has been set by nobody knows whom, or where, or to zeros


@dataclass
class SourceParameter:
    """A number that the user gives."""

    symbol: sympy.Symbol
    name: str
    place: SourcePlace
    default: sympy.Expr | None = None
    depth: int = UNNAMED  # Of the call that named it


Contents: TypeAlias = dict[tuple[Any, ...], Any]
"""What a block of memory holds, by the way to it: names of fields, and indexes."""


class SymbolicMemory:
    """Blocks of memory, and the symbols for what is not known."""

    def __init__(self) -> None:
        self.memories: list[MemoryBlock] = []
        self.state: dict[int, Contents] = {}
        self.parameters: dict[sympy.Symbol, SourceParameter] = {}
        self.unknown: dict[
            sympy.Symbol, tuple[str, SourcePlace]
        ] = {}  # What it stands for, and where
        # Of symbols that stand for formulas too long to be worked with
        self.defined: dict[sympy.Symbol, sympy.Expr] = {}
        self.order: dict[sympy.Symbol, int] = {}  # Of symbols for what is not known
        self.depends: dict[sympy.Symbol, frozenset[sympy.Symbol]] = {}
        self.turns: dict[sympy.Symbol, sympy.Expr] = {}  # Of loops, by their variables
        self.pointed: dict[tuple[int, tuple[str, ...]], int] = {}  # Blocks by where pointers lie
        self.parts_of_cases = 0  # Of all values that are one or another by a condition
        self.names: Counter[str] = Counter()  # How many symbols have a name
        # Bytes of objects in arrays: of which block, and behind how many parts of a way
        self.records: dict[tuple[int, int], int] = {}
        self.tally: Tally | None = None
        self.nest: Nest | None = None

    def symbol(
        self, text: str, place: SourcePlace, depends: frozenset[sympy.Symbol] = frozenset()
    ) -> sympy.Symbol:
        """A symbol for a whole number that is not known."""
        name = re.sub(r"\W+", "_", text).strip("_") or "unknown"
        self.names[name] += 1
        if self.names[name] > 1:
            name = f"{name}_{self.names[name]}"
        found = sympy.Symbol(name, integer=True)
        self.unknown[found] = text, place
        self.order[found] = len(self.order)
        self.depends[found] = depends
        return found

    def defined_symbol(self, text: str, place: SourcePlace, formula: sympy.Expr) -> sympy.Symbol:
        """A symbol for a formula that is too long to be worked with."""
        symbol = self.symbol(text, place, self.dependence(formula))
        self.defined[symbol] = formula
        return symbol

    @property
    def user_symbols(self) -> set[sympy.Symbol]:
        """What the user decides: processes, words of the command line, and parameters."""
        return {PROCESSES, ARGUMENTS, *self.parameters}

    def dependence(self, value: Any) -> frozenset[sympy.Symbol]:
        """The loop variables that a value depends on."""
        if isinstance(value, UnfollowedReal):
            return value.depends
        if isinstance(value, Pointer):
            parts = [part for part in (*value.path, value.offset) if isinstance(part, sympy.Basic)]
            return frozenset().union(*map(self.dependence, parts))
        if isinstance(value, sympy.Basic):
            symbols = symbols_of(value)
            return frozenset().union(*(self.depends[one] for one in symbols if one in self.depends))
        return frozenset()

    def allocate(self, name: str, type_: SourceType) -> int:
        self.memories.append(MemoryBlock(name, type_))
        self.state[len(self.memories) - 1] = {}
        return len(self.memories) - 1

    def at(self, pointer: Pointer, index: sympy.Expr) -> tuple[int, tuple[Any, ...]]:
        if pointer.offset is None:
            return pointer.memory, pointer.path if index == 0 else (*pointer.path, index)
        return pointer.memory, (*pointer.path, pointer.offset + index)

    def load(
        self, memory: int, path: tuple[Any, ...], type_: SourceType, place: SourcePlace
    ) -> Any:
        """What stands somewhere."""
        contents = self.state.get(memory, {})
        if type_.kind == "array":
            return Pointer(memory, path, sympy.Integer(0))
        if path in contents:
            return contents[path]
        depends = frozenset().union(
            *(self.dependence(part) for part in path if isinstance(part, sympy.Basic))
        )
        if self.tally is not None and any(isinstance(part, sympy.Basic) for part in path):
            self._access(memory, path, type_, False, place)
        for number, part in enumerate(path if type_.kind == "int" else ()):
            rule = contents.get((*path[:number], EACH, *path[number + 1 :]))
            if isinstance(part, sympy.Basic) and isinstance(rule, sympy.Expr):
                return rule.xreplace({EACH: part})
        block = self.memories[memory]
        name = named(block.name, path)
        value: Any
        if block.is_argument_list:
            value = LiteralText(str(path[-1]), "argument")
        elif type_.kind == "int":
            value = self.symbol(name, place, depends)
        elif type_.kind == "pointer":
            # of an array of pointers, all that they point to is one array with one more index
            indexes = tuple(part for part in path if isinstance(part, sympy.Basic))
            indexes = () if is_known(indexes) else indexes
            shape = tuple("" if part in indexes else str(part) for part in path)
            if not indexes or (memory, shape) not in self.pointed:
                self.pointed[memory, shape] = self.allocate(name, type_.element or type_)
            value = Pointer(self.pointed[memory, shape], indexes, sympy.Integer(0))
            self.memories[value.memory].is_assumed = self.memories[value.memory].is_open = True
        else:
            value = UnfollowedReal(depends)
        contents = self.state[memory] = dict(contents)
        contents[path] = value
        return value

    def store(
        self, memory: int, path: tuple[Any, ...], value: Any, type_: SourceType, place: SourcePlace
    ) -> None:
        """Put a value somewhere: what may be the same place is not known any more."""
        contents = self.state[memory] = dict(self.state.get(memory, {}))
        is_exact, length = is_known(path), len(path)
        self.memories[memory].is_open |= not is_exact
        for other in list(contents) if length else ():
            if len(other) != length or other == path or (is_exact and is_known(other)):
                continue
            if all(_may_be(a, b) for a, b in zip(path, other, strict=True)):
                del contents[other]
        if self.tally is not None and any(isinstance(part, sympy.Basic) for part in path):
            self._access(memory, path, type_, True, place)
        contents[path] = value

    def forget(self, pointer: Pointer) -> None:
        """What a pointer points to has been changed by nobody knows whom."""
        way = pointer.path
        self.memories[pointer.memory].is_open = True
        contents = self.state.get(pointer.memory, {})
        self.state[pointer.memory] = {
            path: value for path, value in contents.items() if path[: len(way)] != way
        }

    def turning(self, path: tuple[Any, ...]) -> frozenset[sympy.Symbol]:
        """The loop variables that decide which element a way leads to."""
        formulas = [part for part in path if isinstance(part, sympy.Basic) and not part.is_Integer]
        return frozenset().union(*map(self.dependence, formulas))

    def by_index(
        self, path: tuple[Any, ...], value: Any, variable: sympy.Symbol
    ) -> tuple[tuple[Any, ...], sympy.Expr] | None:
        """Elements that a loop set one by one, as a formula of the index; None of others."""
        indexes = [part for part in path if isinstance(part, sympy.Basic) and part.has(variable)]
        if len(indexes) != 1 or not isinstance(value, sympy.Expr):
            return None
        (index,) = indexes
        first = expanded(index - variable)
        if first.has(variable) or self.dependence(value) - {variable}:
            return None
        others = (value.free_symbols | first.free_symbols) - {variable}
        if any(variable in self.depends.get(one, ()) for one in others):
            return None
        place = path.index(index)
        return (*path[:place], EACH, *path[place + 1 :]), value.xreplace({variable: EACH - first})

    def put(self, values: dict[tuple[int, tuple[Any, ...]], Any]) -> None:
        for (memory, path), value in values.items():
            contents = self.state[memory] = dict(self.state.get(memory, {}))
            contents[path] = value
            if value is None:
                self.memories[memory].is_open = True
                del contents[path]

    def is_same_place(self, one: Any, other: Any) -> bool | None:
        """Whether two pointers are equal, if that is known: what was allocated is there, once."""
        if sympy.Integer(0) in (one, other):
            return False
        if not (isinstance(one, Pointer) and isinstance(other, Pointer)):
            return None
        if one.memory != other.memory:
            is_assumed = any(self.memories[part.memory].is_assumed for part in (one, other))
            return None if is_assumed else False
        apart = sympy.expand((one.offset or 0) - (other.offset or 0))
        return bool(apart == 0) if one.path == other.path and apart.is_number else None

    def changes(self, before: dict[int, Contents]) -> list[tuple[int, tuple[Any, ...]]]:
        """What has changed: blocks of memory and ways in them that were known before."""
        return [
            (memory, path)
            for memory, contents in before.items()
            if (new := self.state.get(memory, contents)) is not contents
            for path, value in contents.items()
            if new.get(path) != value
        ]

    def is_real(self, where: tuple[int, tuple[Any, ...]]) -> bool:
        memory, path = where
        return not path and self.memories[memory].type.kind == "real"

    def is_whole(self, where: tuple[int, tuple[Any, ...]]) -> bool:
        type_ = self.memories[where[0]].type
        while type_.kind == "array" and type_.element is not None:
            type_ = type_.element
        return type_.kind == "int"

    def end_turns(
        self, before: dict[int, Contents], variable: sympy.Symbol, turns: sympy.Expr
    ) -> None:
        """Forget what only the last turn could name."""
        last = {variable: turns - 1}
        state = {}
        for memory, old in before.items():
            contents = self.state.get(memory, old)
            if contents is not old:
                left: Contents = {}
                for path, value in contents.items():
                    if value is old.get(path):
                        left[path] = value
                    elif not any(map(variable.__eq__, self.turning(path))):
                        is_formula = isinstance(value, sympy.Expr)
                        left[path] = value.xreplace(last) if is_formula else value
                    elif (rule := self.by_index(path, value, variable)) is not None:
                        left[rule[0]] = rule[1]
                contents = left
            state[memory] = contents
        self.state = state

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

    def _parts(self, place: tuple[int, tuple[Any, ...]]) -> ObjectParts:
        """What is known of an object: the ways to its parts, and their values."""
        memory, path = place
        known = self.state.get(memory, {}).items()
        depth = len(path)
        return ObjectParts(tuple((way[depth:], v) for way, v in known if way[:depth] == path))

    def _access(
        self,
        memory: int,
        path: tuple[Any, ...],
        type_: SourceType,
        is_store: bool,
        place: SourcePlace,
    ) -> None:
        is_word = self.memories[memory].is_argument_list and type_.kind == "pointer"
        if is_known(path) or is_word:
            return
        assert self.tally is not None
        name = f"{self.memories[memory].name}#{memory}"
        depends = frozenset().union(
            *(self.dependence(part) for part in path if isinstance(part, sympy.Basic))
        )
        size = type_.size or 8
        indexes = [number for number, part in enumerate(path, 1) if isinstance(part, sympy.Basic)]
        record = self.records.get((memory, indexes[-1]), 0) if indexes else 0
        self.tally.accesses.append(Access(name, path, is_store, size, place, depends, record))

    def merge(
        self,
        condition: sympy.Basic,
        first: dict[int, Contents],
        second: dict[int, Contents],
        place: SourcePlace,
    ) -> dict[int, Contents]:
        """What holds after either side of a branch."""
        found = dict(first)
        for memory, other in second.items():
            one = first.get(memory)
            if one is other:
                continue
            if one is None:
                found[memory] = other  # lives on one side only
                continue
            both: Contents = {}
            for path in one | other:  # in order: what is made on the way is numbered
                if path in one and path in other:
                    continue
                value = one.get(path, other.get(path))  # nobody reads what was never set
                if not self.memories[memory].is_open and not self.dependence(value):
                    both[path] = value
            for path in one:
                if path not in other:
                    continue
                a, b = one[path], other[path]
                both[path] = (
                    a
                    if a == b
                    else self.merged(
                        condition, a, b, named(self.memories[memory].name, path), place
                    )
                )
            found[memory] = both
        return found

    def merged(
        self, condition: sympy.Basic, one: Any, other: Any, text: str, place: SourcePlace
    ) -> Any:
        """A value that is one or another by a condition."""
        if one == other:
            return one
        depends = self.dependence(one) | self.dependence(other) | self.dependence(condition)
        if isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr):
            if ARGUMENTS in condition.free_symbols:
                for given, default in ((one, other), (other, one)):
                    if given in self.unknown and default.is_number:
                        name = given.name  # read from the command line by what nobody follows
                        self.parameters[given] = SourceParameter(given, name, place)
                    if given in self.parameters:
                        if default.is_number:
                            self.parameters[given].default = default
                        return given
            free = condition.free_symbols
            is_open = is_undecided(condition)
            if is_open or free <= self.unknown.keys():
                for given, default in ((one, other), (other, one)):
                    if given in self.parameters and default.is_number:
                        parameter = self.parameters[given]  # what was read in, unless that failed
                        if parameter.default is None:
                            parameter.default = default
                        return given
            if is_open:
                return self.symbol(text, place, depends)
            parts = sum(map(parts_of, (one, other, condition)))
            self.parts_of_cases += parts
            if parts > LARGEST or condition.has(sympy.Piecewise):  # SymPy would multiply cases out
                return self.defined_symbol(text, place, _undivided(one, condition, other))
            chosen = sympy.Piecewise((one, condition), (other, True))
            functions = condition.atoms(sympy.Function) - condition.atoms(sympy.Mod)
            if chosen.count_ops() < LARGEST // 4 and not functions:
                return chosen
            return self.defined_symbol(text, place, chosen)
        if isinstance(one, Pointer) and isinstance(other, Pointer):
            return one
        if isinstance(one, ObjectParts) and isinstance(other, ObjectParts):
            both = dict(other.parts)
            return ObjectParts(
                tuple(
                    (way, self.merged(condition, part, both.get(way, part), text, place))
                    for way, part in one.parts
                )
            )
        return UnfollowedReal(depends)


def _undivided(one: sympy.Expr, condition: sympy.Basic, other: sympy.Expr) -> sympy.Piecewise:
    """Two cases as they are: SymPy looks for the cases of the condition in each other."""
    case = sympy.Basic.__new__(sympy.functions.elementary.piecewise.ExprCondPair, one, condition)
    otherwise = sympy.functions.elementary.piecewise.ExprCondPair(other, sympy.true)
    return sympy.Basic.__new__(sympy.Piecewise, case, otherwise)


def is_undecided(value: sympy.Basic) -> bool:
    """Whether a formula hangs on a condition of which nothing is known."""
    return any(symbol.name.startswith(UNDECIDED) for symbol in value.free_symbols)


@lru_cache(100_000)
def is_known(path: tuple[Any, ...]) -> bool:
    """Whether a way has no index that is a formula."""
    return all(isinstance(part, str) or bool(part.is_Integer) for part in path)


@lru_cache(100_000)
def _may_be(a: Any, b: Any) -> bool:
    """Whether two parts of a way may be the same."""
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    difference = a - b
    return not (bool(difference.is_number) and bool(difference != 0))


def difference(old: Any, new: Any) -> sympy.Expr | None:
    """By how much a number, or a pointer within its block, has grown."""
    if isinstance(old, sympy.Expr) and isinstance(new, sympy.Expr):
        return expanded(new - old)
    if not isinstance(old, Pointer) or not isinstance(new, Pointer) or old[:2] != new[:2]:
        return None
    if old.offset is None or new.offset is None:
        return None
    return expanded(new.offset - old.offset)


def further(value: Any, by: sympy.Expr) -> Any:
    """A number, or a pointer within its block, that has grown."""
    if isinstance(value, Pointer):
        assert value.offset is not None
        return value._replace(offset=expanded(value.offset + by))
    return expanded(value + by)


def named(name: str, path: tuple[Any, ...]) -> str:
    """How the source calls what lies there; an index that is a formula is not written out."""
    return name + "".join(
        f".{part}" if isinstance(part, str) else f"[{part if part.is_Atom else '?'}]"
        for part in path
    )
