"""Reads values of a signature: tables, words and formulas, each with its line if it is wrong."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

from popmodel.errors import FileError
from popmodel.expressions import Expression, ExpressionError, parse
from popmodel.expressions.grammar import FUNCTIONS
from popmodel.machine.quantity import Quantity, read_quantity
from popmodel.model.signature import toml_lines
from popmodel.model.signature.keys import KEYS, Domain, key_of
from popmodel.model.signature.program import Grid
from popmodel.model.symbols import RESERVED
from popmodel.values import dataclass

ORIGINS = ("user", "static", "trace", "fit")
EXTRA_FUNCTIONS = {"if_fits": 3}

Part = TypeVar("Part")
UNREADABLE = parse("1")  # stands for a formula with a mistake while others are looked for


class SignatureError(FileError):
    """A signature cannot be read or contradicts itself."""


@dataclass
class Reading:
    """Reads values of a TOML document; knows where everything stands in the text.

    Attributes
    ----------
    path : str
        File, for messages.
    lines : mapping of path to int
        Lines of the keys.
    mistakes : list of SignatureError, or None
        Where mistakes are collected; None ends the reading at the first.
    formulas : dict of path to Expression
        Every formula that was read, by its place in the document.
    """

    path: str
    lines: Mapping[toml_lines.Path, int]
    mistakes: list[SignatureError] | None = None
    formulas: dict[toml_lines.Path, Expression] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: {"P", "T"})
    grid: Grid | None = None
    units: dict[str, str] = field(default_factory=dict)

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

    def error(
        self, where: toml_lines.Path, problem: str, hint: str | None = None
    ) -> SignatureError:
        line = toml_lines.line_of(self.lines, where)
        return SignatureError(self.path, problem, line=line, hint=hint)

    def keys(self, table: Mapping[str, Any], where: toml_lines.Path) -> None:
        """Refuse keys that `KEYS` does not know, and the absence of required ones."""
        keys = KEYS[str(where[-1]) if where else ""]
        known = [key.name for key in keys]
        place = f" in {where[-1]}" if where else ""
        for name in table:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                self.note(self.error((*where, name), f"unknown key {name!r}{place}", hint))
        for key in keys:
            if key.default is None and key.name not in table:
                raise self.error(where, f"{key.name} is missing{place}")

    def table(self, document: Mapping[str, Any], where: toml_lines.Path) -> Mapping[str, Any]:
        value = document.get(str(where[-1]), {})
        if not isinstance(value, Mapping):
            raise self.error(where, f"{where[-1]} must be a table")
        return value

    def text(self, table: Mapping[str, Any], where: toml_lines.Path) -> str:
        value = table[str(where[-1])]
        if not isinstance(value, str) or not value:
            problem = "must not be empty" if value == "" else f"must be text, not {value!r}"
            raise self.error(where, f"{where[-1]} {problem}")
        return value

    def choice(
        self, table: Mapping[str, Any], where: toml_lines.Path, choices: tuple[str, ...]
    ) -> str:
        """Read one of some words; the first is the default."""
        value = table.get(str(where[-1]), choices[0])
        if value not in choices:
            listed = ", ".join(choices[:-1]) + f" or {choices[-1]}"
            raise self.error(where, f"{where[-1]} must be {listed}, not {value!r}")
        return str(value)

    def inner_table(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> dict[str, Expression] | None:
        """Read a table of formulas inside an item."""
        name = str(where[-1])
        if name not in table:
            return None
        if not isinstance(table[name], Mapping):
            raise self.error(where, f"{name} must be a table")
        self.keys(table[name], where)
        return {key.name: self.formula(table[name], (*where, key.name)) for key in KEYS[name]}

    def named(self, table: Mapping[str, Any], where: toml_lines.Path) -> dict[str, Expression]:
        """Read a table whose keys are free: levels of the memory, OpenMP constructs."""
        domain = key_of(str(where[-2]), str(where[-1])).domain
        return {
            name: self.within(domain, self.expression(value, (*where, name)), (*where, name))
            for name, value in table.items()
        }

    def all_of(
        self, table: Mapping[str, Any], where: toml_lines.Path, names: Iterable[str]
    ) -> list[Expression]:
        return [self.formula(table, (*where, name)) for name in names]

    def formula(self, table: Mapping[str, Any], where: toml_lines.Path) -> Expression:
        """Read the formula of a key, or its default."""
        key = key_of(str(where[-2]), str(where[-1]))
        expression = self.expression(table.get(key.name, key.default), where)
        return self.within(key.domain_of(is_constant=True), expression, where)

    def within(
        self, domain: Domain | None, expression: Expression, where: toml_lines.Path
    ) -> Expression:
        """Refuse a formula without names whose value makes no sense; others depend on the run."""
        if expression.names or expression.calls & EXTRA_FUNCTIONS.keys():
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

    def quantity(self, value: object, where: toml_lines.Path) -> Quantity:
        """Read a number, or a table with value, low, high and origin."""
        entry = value if isinstance(value, Mapping) else {"value": value}
        try:
            return read_quantity(entry, "1", zero=True, origins=ORIGINS)
        except ValueError as error:
            raise self.error(where, f"{where[-1]}: {error}") from None

    def new_name(self, name: str, where: toml_lines.Path) -> None:
        if not name.isidentifier() or keyword.iskeyword(name):
            problem = f"{name!r} cannot be a name in formulas"
            self.note(self.error(where, problem, "use letters, digits and _"))
        elif name in RESERVED or name in FUNCTIONS or name in EXTRA_FUNCTIONS:
            meaning = RESERVED.get(name, "a function")
            self.note(self.error(where, f"the name {name} is reserved: {meaning}"))
        elif name in self.names:
            self.note(self.error(where, f"{name} is defined twice"))
        self.names.add(name)

    def expressions(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> tuple[Expression, ...]:
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
        where: toml_lines.Path,
        extra: Iterable[str] = (),
        functions: Mapping[str, int] = EXTRA_FUNCTIONS,
    ) -> Expression:
        """Read a formula; what holds whatever the machine is gets none of its `functions`."""
        read = partial(self._formula, value, where, self.names | set(extra), functions)
        self.formulas[where] = self.part(read, UNREADABLE)
        return self.formulas[where]

    def _formula(
        self,
        value: object,
        where: toml_lines.Path,
        known: set[str],
        functions: Mapping[str, int],
    ) -> Expression:
        key = next(part for part in reversed(where) if isinstance(part, str))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.error(where, f"{key} must be a number or a formula, not {value!r}")
        try:
            expression = parse(str(value), functions=functions)
        except ExpressionError as error:
            raise self.error(where, f"{key}: {error.message}", error.hint) from None
        for name in sorted(expression.names - known):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise self.error(where, f"{key}: unknown name {name!r} in {value!r}", hint)
        return expression
