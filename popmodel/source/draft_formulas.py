"""Formulas of a program, in the terms of a signature: cells, unknown numbers, processes.

The cells that a process has along a dimension are ``n0``, ``n1``, ..., whatever formula of its rank
the program has for them. Unknown values of one variable are one number, by the variable's name.
What differs from process to process is its mean, and the variable of a loop too.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from popmodel.base.expressions.grammar import MAX_LENGTH
from popmodel.signatures.document import Noted
from popmodel.source.formula_text import (
    exact_quotients,
    expanded,
    formula,
    formula_name,
    guess,
    is_block,
    sum_over_turns,
    symbols_of,
    without_undefined,
)
from popmodel.source.intermediate_form import SourcePlace
from popmodel.source.interpreter import Interpreter
from popmodel.source.symbolic_memory import ARGUMENTS, PROCESSES, RANK

_SOME_ELEMENT = re.compile(r"\[[^\]]*[^\]\d][^\]]*\]")
"""An index that is a formula."""
_VARIABLE = re.compile(r"[A-Za-z_][\w.\[\]]*")
_NO_VARIABLES = (
    *("unknown", "bits", "choice", "converted", "value", "distance", "call", "count", "turns"),
)
"""What else symbols stand for."""
_DEEPEST = 6
"""Loops inside of each other whose variables are followed."""
_RANGE = "a range in "


class DraftFormulas:
    """Names what formulas of an interpreted program stand for, and writes them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.notes: list[str] = list(interpreter.notes)
        self.blocks: dict[int, sympy.Expr] = {}  # Cells that processes share, by dimension
        self.implicit = False  # A line of processes by rank, without a grid of MPI
        self.used: set[sympy.Symbol] = set()
        self.sets: dict[str, str] = {}  # Working sets by their names
        self._set_names: dict[str, str] = {}  # By their formulas
        self.measured: dict[sympy.Symbol, tuple[Any, str]] = {}  # By a trace, with their places
        self._answers = Counter(text for text, _ in set(interpreter.unknown.values()))
        self._variables: dict[sympy.Symbol, sympy.Symbol] = {}  # As `by_variable`
        self._parameters = {ARGUMENTS.name}
        for parameter in interpreter.parameters.values():
            parameter.name = formula_name(parameter.name, self._parameters)
            self._parameters.add(parameter.name)
        # Of symbols by variables: those that they stand for, with the formulas that define these
        self._definitions: dict[sympy.Symbol, dict[sympy.Symbol, sympy.Expr | None]] = {}
        self._plain: dict[sympy.Basic, sympy.Basic] = {}
        self._begins: set[sympy.Symbol] = set()  # Elements at which a range of an array begins
        self._quotients = exact_quotients(interpreter.required)

    def plain(self, value: Any) -> Any:
        """A formula with the cells of a process named as signatures do."""
        if not isinstance(value, sympy.Basic):
            return value
        if value not in self._plain:
            plain = self._find_plain(value)
            if plain.has(sympy.zoo, sympy.nan):
                unknown = self.interpreter.symbol("division by zero", self.interpreter.place)
                plain = self.plain(without_undefined(plain, unknown))
            self._plain[value] = plain
        return self._plain[value]

    def _find_plain(self, value: Any) -> Any:
        for _ in range(_DEEPEST):  # what is left of a loop's variable: its mean
            left = value.free_symbols & self.interpreter.turns.keys()
            if not left:
                break
            value = value.subs({one: (self.interpreter.turns[one] - 1) / 2 for one in left})
        value = self._by_variable_apart(value)
        if self._quotients and value.has(sympy.floor):
            value = value.subs(self._quotients)
        value = self._by_ends(value)
        places = self.interpreter.mpi.places
        for part in sorted(value.atoms(sympy.Piecewise), key=sympy.default_sort_key):
            place = self._place_of(part)
            if place is None or not part.atoms(sympy.Mod):
                continue
            rest = min(part.atoms(sympy.Mod), key=sympy.default_sort_key)
            cells, processes = rest.args
            dim = places[place][1] if place in places else 0
            floor = sympy.floor(cells / processes)
            sizes = ((whole, part + whole) for whole in (floor, sympy.Integer(0)))
            size = next((one for one in sizes if is_block(one[1], place, cells, processes)), None)
            if size is None:
                continue
            whole, _ = size
            if place == RANK:
                self.implicit = True
            self.blocks[dim] = cells
            value = value.subs(part, sympy.Symbol(f"n{dim}", positive=True, integer=True) - whole)
            value = sympy.expand(value) if isinstance(value, sympy.Expr) else value
        return value

    def _place_of(self, part: sympy.Basic) -> sympy.Symbol | None:
        """The one symbol of a formula for where a process is: its rank, or place in a grid."""
        places = self.interpreter.mpi.places
        symbols = [one for one in part.free_symbols if one in places or one == RANK]
        return symbols[0] if len(symbols) == 1 else None

    def _by_ends(self, value: Any) -> Any:
        """A formula with blocks from rank*cells/P to (rank + 1)*cells/P by their cells."""
        parts = sorted(value.atoms(sympy.floor), key=sympy.default_sort_key)
        ends = {sympy.expand(part.args[0]): part for part in parts}
        for first, part in ends.items():
            place = self._place_of(part)
            if place is None or first.subs(place, 0) != 0:
                continue
            end = ends.get(sympy.expand(first.subs(place, place + 1)))
            grid, dim = self.interpreter.mpi.places.get(place, (None, 0))
            processes = PROCESSES if grid is None else grid.extents[dim]
            cells = sympy.cancel(first.subs(place, 1) * processes)
            if end is not None and is_block(end - part, place, cells, processes):
                self.implicit |= place == RANK
                self.blocks[dim] = cells
                own = sympy.Symbol(f"n{dim}", positive=True, integer=True)
                value = expanded(value.xreplace({end: part + own}))
        return value

    def _by_variable_apart(self, value: sympy.Basic) -> sympy.Basic:
        """As `by_variable`; what two elements of an array differ by is a number of its own."""
        names = self.by_variable(value)
        image = value.xreplace(names)
        for name in sorted(set(names.values()) - image.free_symbols, key=str):
            elements = [one for one in names if names[one] == name]
            text, place = self.interpreter.unknown[name]
            if len(elements) < 2 or not _SOME_ELEMENT.search(text):
                continue
            if self._begins.isdisjoint(elements):
                taken_off = (
                    [one for one in elements if value.coeff(one).is_negative]
                    if isinstance(value, sympy.Expr)
                    else []
                )
                self._begins.add(min(taken_off or elements, key=str))
            width = sympy.Symbol(f"{name}_range", integer=True, positive=True)
            self.interpreter.unknown.setdefault(width, (f"{_RANGE}{text}", place))
            names |= {one: sympy.Integer(0) if one in self._begins else width for one in elements}
        return value.xreplace(names)

    def by_variable(self, value: sympy.Basic) -> dict[sympy.Symbol, sympy.Symbol]:
        """Unknown values of one variable, of its elements or of one place, by one symbol."""
        unknown = self.interpreter.unknown
        symbols = [
            symbol
            for symbol in symbols_of(value) & unknown.keys()
            if not unknown[symbol][0].startswith(_RANGE)
        ]
        for symbol in sorted((one for one in symbols if one not in self._variables), key=str):
            self._variables[symbol] = self._variable_of(symbol)
        return {symbol: self._variables[symbol] for symbol in symbols}

    def _variable_of(self, symbol: sympy.Symbol) -> sympy.Symbol:
        text, place = self.interpreter.unknown[symbol]
        if text.endswith("()"):  # what calls answer: another number at each place
            text = text if self._answers[text] > 1 else text.removesuffix("()")
        name = _SOME_ELEMENT.sub("", text)
        if not _VARIABLE.fullmatch(name) or name in _NO_VARIABLES:
            name = f"{name} {place}"
        word = formula_name(name)
        if word in self._parameters:  # which was read in, and is another number here
            word, name = f"{word}_later", text
        variable = sympy.Symbol(word, integer=True)
        stands_for = text if name.endswith(str(place)) else name
        self.interpreter.unknown.setdefault(variable, (stands_for, place))
        formulas = self._definitions.setdefault(variable, {})
        formulas[symbol] = self.interpreter.defined.get(symbol)
        return variable

    def quantity(
        self, value: Any, place: SourcePlace | None = None, is_by_rank: bool = False
    ) -> Any:
        value = self.plain(value)
        if is_by_rank or isinstance(value, Boolean):
            value = self.interpreter.mpi.by_rank(value)
        else:
            value = self.over_ranks(value, place)
        self.used |= value.free_symbols
        text = self.formula(value)
        if len(str(text)) > MAX_LENGTH:
            symbol = self.interpreter.symbol("long formula", place or self.interpreter.place)
            self._plain[value] = symbol = next(iter(self.by_variable(symbol).values()))
            self.used.add(symbol)
            text = symbol.name
        return Noted(text, str(place)) if place else text

    def over_ranks(self, value: Any, place: SourcePlace | None = None) -> Any:
        """A formula without `rank`: its mean over all processes; by neighbours, the dearer case."""
        if not isinstance(value, sympy.Expr):
            return value
        mpi = self.interpreter.mpi
        for part in sorted(value.atoms(sympy.Piecewise), key=sympy.default_sort_key):
            if part.free_symbols & mpi.neighbours.keys():
                value = value.xreplace({part: max((case for case, _ in part.args), key=guess)})
        places = value.free_symbols & mpi.places.keys()
        value = value.xreplace({one: (self.extent(mpi.places[one][1]) - 1) / 2 for one in places})
        if not value.has(RANK):
            return value
        total = sum_over_turns(value, RANK, PROCESSES)
        if total is None:
            where = f"{place}: " if place else ""
            self.note(f"{where}a number differs from process to process: that of the middle one")
            return value.xreplace({RANK: (PROCESSES - 1) / 2})
        return expanded(total / PROCESSES)

    def named_set(self, name: str, size: sympy.Expr) -> str:
        """The name of bytes that `let` defines: of equal ones the first."""
        text = str(self.quantity(size))
        name = self._set_names.setdefault(text, re.sub(r"\W+", "_", name).strip("_"))
        self.sets[name] = text
        return name

    def formula(self, value: sympy.Basic) -> str | int | float:
        """A formula with parameters named as the program names them."""
        names = {one.symbol: sympy.Symbol(one.name) for one in self.interpreter.parameters.values()}
        return formula(value.xreplace(names))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def extent(self, dim: int) -> sympy.Expr:
        grids = self.interpreter.mpi.grids
        if grids and dim < len(grids[0].extents):
            return grids[0].extents[dim]
        return PROCESSES if self.implicit else sympy.Symbol(f"P{dim}", integer=True, positive=True)

    def periodic(self, dim: int) -> bool:
        grids = self.interpreter.mpi.grids
        return bool(grids and dim < len(grids[0].periodic) and grids[0].periodic[dim])

    def define_numbers(self) -> None:
        """Define numbers by formulas where the source does, one for each variable."""
        waiting = sorted(self.used, key=str)
        while waiting:
            symbol = waiting.pop()
            formulas = set(self._definitions.get(symbol, {}).values())
            if len(formulas) != 1 or None in formulas or symbol in self.measured:
                continue
            meaning = self.over_ranks(self.plain(formulas.pop()))
            text = self.formula(meaning)
            if symbol in meaning.free_symbols or len(str(text)) > MAX_LENGTH:
                continue
            self.used.discard(symbol)
            waiting += sorted(meaning.free_symbols - self.used, key=str)
            self.used |= {one for one in meaning.free_symbols if one.name not in self.sets}
            self.sets[symbol.name] = str(text)
