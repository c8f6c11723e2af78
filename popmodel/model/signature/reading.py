"""Reads values of a signature: tables, words and formulas, each with its line if it is wrong."""

from __future__ import annotations

import ast
import keyword
import math
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from popmodel.base.documents import ShapeError
from popmodel.base.errors import FileError, did_you_mean
from popmodel.base.expressions import Expression, ExpressionError, Takes, parse
from popmodel.base.expressions.grammar import FUNCTIONS
from popmodel.base.values import dataclass
from popmodel.machines.quantity import Quantity, read_quantity
from popmodel.model.signature.keys import (
    MACHINE,
    Domain,
    GrammarKey,
    known_names,
    of_machine,
    parameter_of,
)
from popmodel.model.symbols import RESERVED

ORIGINS = ("user", "static", "trace", "fit", "assumed")
"""Where the numbers of a signature may come from."""
LEVELS = ("L1", "L2", "L3", "L4")
LAST_LEVEL = "last"
EXTRA_FUNCTIONS = {"if_fits": Takes(3, (*LEVELS, LAST_LEVEL))}

Part = TypeVar("Part")
UNREADABLE = parse("1")  # stands for a formula with a mistake while others are looked for
OPEN = "?"
"""Stands for a number or a formula that is known to be unknown."""
UNKNOWN = Expression(OPEN, frozenset({OPEN}), frozenset(), ast.Name(OPEN))
"""The formula of what is unknown: nothing gives its one name a value."""


class SignatureError(FileError):
    """A signature cannot be read or contradicts itself."""


@dataclass
class GrammarReading(ABC):
    """Reads values of a TOML document; knows where everything stands in the text."""

    path: str  # File, for messages
    lines: Mapping[Path, int]  # Lines of the keys
    # Where mistakes are collected; None ends the reading at the first.
    mistakes: list[SignatureError] | None = None
    # Every formula that was read, by its place in the document.
    formulas: dict[Path, Expression] = field(default_factory=dict)
    # Names that formulas may use so far.
    names: set[str] = field(default_factory=lambda: {"P", "T"})
    dimensions: int = 0  # Of the grid; 0 without one
    has_cells: bool = False  # Whether the grid has cells
    # dict of str to float64[P, n]: Recorded times by name.
    recorded: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    unknown: list[Path] = field(default_factory=list)  # Places of what is written as unknown
    # Names that are the whole formula of a key, and what its values may be.
    domains: list[tuple[str, Domain]] = field(default_factory=list)
    _known: dict[tuple[str, frozenset[str]], Expression] = field(default_factory=dict)

    def note(self, mistake: SignatureError) -> None:
        """Collect a mistake that does not keep the rest from being read, or end the reading."""
        if self.mistakes is None:
            raise mistake
        self.mistakes.append(mistake)

    def part(self, read: Callable[[], Part], instead: Part) -> Part:
        """Read a part; if it is beyond reading, note why and go on without it."""
        try:
            return read()
        except SignatureError as mistake:
            self.note(mistake)
            return instead

    def error(self, where: Path, problem: str, hint: str | None = None) -> SignatureError:
        line = line_of(self.lines, where)
        return SignatureError(self.path, problem, line=line, hint=hint)

    @abstractmethod
    def body(self, value: object, where: Path) -> tuple[Any, ...]:
        """Read the items of a body; what reads programs knows their kinds."""

    def check_keys(self, keys: Sequence[GrammarKey], table: Mapping[str, Any], where: Path) -> None:
        """Refuse keys that are not known, and the absence of those that have to be there."""
        known = [key.name for key in keys]
        place = f" in {where[-1]}" if where else ""
        for name in table:
            if name not in known:
                hint = did_you_mean(name, known, f"known: {', '.join(known)}")
                self.note(self.error((*where, name), f"unknown key {name!r}{place}", hint))
        for key in keys:
            if key.default is None and key.name not in table:
                raise self.error(where, f"{key.name} is missing{place}")

    def value(self, key: GrammarKey, table: Mapping[str, Any], where: Path) -> Any:
        at = (*where, key.name)
        if key.read is not None:
            return key.read(self, table, at)
        if key.choices:
            is_there = key.name in table or key.default in key.choices
            return self.choice(key, table, at) if is_there else None
        if key.names:
            return self.named(key, table, at)
        if key.table is not None:
            return self.inner_table(key, table, at)
        if key.name not in table and not key.has_number:
            return None
        return self.formula(key, table, at)

    def table(self, document: Mapping[str, Any], where: Path) -> Mapping[str, Any]:
        value = document.get(str(where[-1]), {})
        if not isinstance(value, Mapping):
            raise self.error(where, f"{where[-1]} must be a table")
        return value

    def text(self, table: Mapping[str, Any], where: Path) -> str:
        value = table[str(where[-1])]
        if not isinstance(value, str) or not value:
            problem = "must not be empty" if value == "" else f"must be text, not {value!r}"
            raise self.error(where, f"{where[-1]} {problem}")
        return value

    def choice(self, key: GrammarKey, table: Mapping[str, Any], where: Path) -> str:
        value = table.get(key.name, key.default)
        if value not in key.choices:
            listed = ", ".join(key.choices[:-1]) + f" or {key.choices[-1]}"
            raise self.error(where, f"{key.name} must be {listed}, not {value!r}")
        return str(value)

    def inner_table(self, key: GrammarKey, table: Mapping[str, Any], where: Path) -> Any:
        if key.name not in table:
            return None
        assert key.table is not None
        inside = self.table(table, where)
        self.check_keys(key.table.keys(), inside, where)
        return key.table.read(self, inside, where)

    def named(
        self, key: GrammarKey, table: Mapping[str, Any], where: Path
    ) -> dict[str, Expression]:
        entries = table.get(key.name, key.entries)
        if not isinstance(entries, Mapping):
            raise self.error(where, f"{key.name} must {key.names}")
        return {
            name: self.within(key.domain, self.expression(value, (*where, name)), (*where, name))
            for name, value in entries.items()
        }

    def formula(self, key: GrammarKey, table: Mapping[str, Any], where: Path) -> Expression:
        extra = ("rank",) if key.of_ranks else ()
        expression = self.expression(table.get(key.name, key.default), where, extra)
        return self.within(key.domain_of(is_constant=True), expression, where)

    def within(self, domain: Domain | None, expression: Expression, where: Path) -> Expression:
        """Refuse a formula without names whose value makes no sense; others depend on the run."""
        if expression.names or expression.calls & EXTRA_FUNCTIONS.keys():
            if domain is not None and (name := expression.text.strip()) in expression.names:
                self.domains.append((name, domain))
            return expression
        try:
            value = expression.evaluate({})
        except ExpressionError as error:
            self.note(self.error(where, f"{where[-1]}: {error.message}", error.hint))
            return expression
        if domain is not None and not domain.holds(value):
            problem = f"{where[-1]} must be {domain.text}, not {float(value):g}"
            self.note(self.error(where, problem))
        return expression

    def quantity(self, value: object, where: Path) -> Quantity:
        """Read a number, or a table with value, low, high and origin."""
        entry = value if isinstance(value, Mapping) else {"value": value}
        is_open = entry.get("value") == OPEN
        if is_open:
            self.unknown.append(where)
            entry = {**entry, "value": 1}
        try:
            quantity = read_quantity(entry, "1", zero=True, origins=ORIGINS)
            return replace(quantity, value=math.nan) if is_open else quantity
        except ShapeError as error:
            problem = f"{error.path} {error.problem}".strip()
            raise self.error(where, f"{where[-1]}: {problem}", error.hint) from None

    def new_name(self, name: str, where: Path) -> None:
        if not name.isidentifier() or keyword.iskeyword(name):
            problem = f"{name!r} cannot be a name in formulas"
            self.note(self.error(where, problem, "use letters, digits and _"))
        elif name in RESERVED or name in FUNCTIONS or name in EXTRA_FUNCTIONS or name == MACHINE:
            meaning = "quantities of the machine" if name == MACHINE else "a function"
            meaning = RESERVED.get(name, meaning)
            self.note(self.error(where, f"the name {name} is reserved: {meaning}"))
        elif name in self.names:
            self.note(self.error(where, f"{name} is defined twice"))
        self.names.add(name)

    def expressions(self, table: Mapping[str, Any], where: Path) -> tuple[Expression, ...]:
        value = table[str(where[-1])]
        if not isinstance(value, list) or not value:
            raise self.error(where, f"{where[-1]} must be a list of formulas")
        return tuple(
            self.expression(entry, (*where, index), functions={})
            for index, entry in enumerate(value)
        )

    def expression(
        self,
        value: object,
        where: Path,
        extra: Iterable[str] = (),
        functions: Mapping[str, Takes] = EXTRA_FUNCTIONS,
    ) -> Expression:
        """Read a formula; what holds whatever the machine is gets none of its `functions`."""
        read = partial(self._formula, value, where, self.names | set(extra), functions)
        self.formulas[where] = self.part(read, UNREADABLE)
        return self.formulas[where]

    def _parsed(self, text: str, functions: Mapping[str, Takes]) -> Expression:
        """Parse a text once: lists of calls have the same ones over and over."""
        key = text, frozenset(functions)
        if key not in self._known:
            self._known[key] = parse(text, functions, MACHINE)
        return self._known[key]

    def _formula(
        self, value: object, where: Path, known: set[str], functions: Mapping[str, Takes]
    ) -> Expression:
        key = next(part for part in reversed(where) if isinstance(part, str))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.error(where, f"{key} must be a number or a formula, not {value!r}")
        if value == OPEN:
            self.unknown.append(where)
            return UNKNOWN
        try:
            expression = self._parsed(str(value), functions)
        except ExpressionError as error:
            raise self.error(where, f"{key}: {error.message}", error.hint) from None
        of_machine_ = of_machine(expression.names)
        for name in of_machine_:
            if not functions:
                raise self.error(
                    where,
                    f"{key}: {name} is known on a machine only",
                    "name quantities of the machine in formulas of the program",
                )
            if parameter_of(name) is None:
                every = known_names()
                hint = did_you_mean(name, every, f"known: {', '.join(every)}")
                raise self.error(where, f"{key}: unknown name {name!r} in {value!r}", hint)
        for name in sorted(expression.names - known - set(of_machine_)):
            hint = did_you_mean(name, known, f"known: {', '.join(sorted(known))}")
            raise self.error(where, f"{key}: unknown name {name!r} in {value!r}", hint)
        return expression


# Find the line of a key in TOML text: the standard reader gives values without positions.


Path = tuple[str | int, ...]

_BLANK = r"(?:[ \t\r\n]|#[^\n]*)*"
_QUOTED = r'"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'"
_PART = rf"(?:{_QUOTED}|[A-Za-z0-9_-]+)"
_DOTTED = rf"({_PART}(?:[ \t]*\.[ \t]*{_PART})*)"
_HEADER = re.compile(rf"(\[\[?)[ \t]*{_DOTTED}[ \t]*\]\]?{_BLANK}")
_KEY = re.compile(rf"{_DOTTED}[ \t]*={_BLANK}")
_LONG = r'"""(?:\\.|[^\\])*?"""+' + r"|'''.*?'''+"
_VALUE = re.compile(rf"{_LONG}|{_QUOTED}|[^,\]}}#\n]+", re.DOTALL)
_SPACE, _PARTS = re.compile(_BLANK), re.compile(_PART)


def key_lines(text: str) -> dict[Path, int]:
    """Return the line of every table header, every key and every element of an array."""
    return _Scanner(text).document()


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """Return the line of a path, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


class _Scanner:
    """Walks over TOML that parses; that is why nothing unexpected is looked for here."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._seen = (0, 1)

    def document(self) -> dict[Path, int]:
        table: Path = ()
        at = self._next(0)
        while at < len(self.text):
            if header := _HEADER.match(self.text, at):
                table, at = self._header(header), header.end()
            else:
                at = self._pair(table, at)
        return self.lines

    def _header(self, header: re.Match[str]) -> Path:
        """Note a header; behind every array of tables on its way stands the number of the element.

        A table on the way that has no header of its own is where it is first named.
        """
        line, counts = self._line(header.start()), self._counts
        *above, last = _names(header[2])
        path: Path = ()
        for part in above:
            path = (*path, part)
            self.lines.setdefault(path, line)
            path = (*path, counts[path]) if path in counts else path
        path = (*path, last)
        self.lines.setdefault(path, line)
        if header[1] == "[[":
            counts[path] = counts.get(path, -1) + 1
            for key in [key for key in counts if key[: len(path)] == path and key != path]:
                del counts[key]  # a new element starts its own arrays at 0
            path = (*path, counts[path])
            self.lines[path] = line
        return path

    def _key(self, table: Path, at: int) -> tuple[Path, int]:
        """Note a key; return its path, and where its value begins."""
        match = _KEY.match(self.text, at)
        assert match is not None, "the text is not TOML"
        for part in _names(match[1]):
            table = (*table, part)
            self.lines.setdefault(table, self._line(at))
        return table, match.end()

    def _pair(self, table: Path, at: int) -> int:
        """Note a key and the lines of what is in its value; without recursion, however nested."""
        inside: list[tuple[str, Path, int]] = []  # what ends a container, its path, its elements
        path, at = self._key(table, at)
        while True:
            if (opened := self.text[at]) in "[{":
                inside.append(("]" if opened == "[" else "}", path, 0))
                at = self._next(at + 1)
            elif value := _VALUE.match(self.text, at):
                at = self._next(value.end())
            while inside:  # on to the next element, or out of what is finished
                closing, container, count = inside.pop()
                at = self._next(at + (self.text[at] == ","))
                if self.text[at] == closing:
                    at = self._next(at + 1)
                    continue
                inside.append((closing, container, count + 1))
                if closing == "}":
                    path, at = self._key(container, at)
                else:
                    path = (*container, count)
                    self.lines[path] = self._line(at)
                break
            if not inside:
                return at

    def _next(self, at: int) -> int:
        """Return the place of what is neither blank nor comment."""
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def _line(self, at: int) -> int:
        """Line of a place; counted on from the last one asked for."""
        before, line = self._seen
        line += self.text.count("\n", before, at)
        self._seen = (at, line)
        return line


def _names(dotted: str) -> list[str]:
    """The parts of a key."""
    parts = _PARTS.findall(dotted)
    return [str(tomllib.loads(f"key = {p}")["key"]) if p[0] in "\"'" else p for p in parts]
