"""From what a program does to the items of a signature."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import sympy

from popmodel.signatures.document import Noted, TomlItem, TomlTable, text_of
from popmodel.source.computing_items import computing_items
from popmodel.source.formula_text import formula
from popmodel.source.intermediate_form import SourcePlace
from popmodel.source.interpreter import Interpreter
from popmodel.source.message_items import (
    COLLECTIVES,
    RECEIVES,
    SENDS,
    WAITS,
    collective_item,
    message_items,
)
from popmodel.source.mpi_arguments import NOBODY
from popmodel.source.source_events import (
    Conditional,
    Event,
    MessageCall,
    RepeatedEvents,
    Work,
)
from popmodel.source.symbolic_memory import PROCESSES, RANK

_NAMED = 8
"""Functions without a source that a note names."""
_SOME_ELEMENT = re.compile(r"\[[^\]]*[^\]\d][^\]]*\]")
"""An index that is a formula."""
_VARIABLE = re.compile(r"[A-Za-z_][\w.\[\]]*")
_NO_VARIABLES = ("unknown", "bits", "choice", "converted", "value", "distance", "call")
"""What else symbols stand for."""
_DEEPEST = 6
"""Loops inside of each other whose variables are followed."""


class Block(NamedTuple):
    """How cells along a dimension are divided among processes."""

    dim: int
    cells: sympy.Expr


class Draft:
    """Makes the signature of an interpreted program."""

    def __init__(self, interpreter: Interpreter, name: str) -> None:
        self.interpreter = interpreter
        self.name = name
        self.blocks: dict[int, Block] = {}
        self.notes: list[str] = list(interpreter.notes)
        self.names: dict[str, int] = {}
        self.used: set[sympy.Symbol] = set()
        self.sets: dict[str, str] = {}  # Working sets by their names
        self.implicit = False  # A line of processes by rank, without a grid of MPI
        self.is_periodic = False
        self.program: list[TomlItem] = []
        self.given: dict[str, Any] = {}  # Parameters
        self.open: dict[str, tuple[str, SourcePlace]] = {}  # What is not known, by name

    def text(self) -> str:
        """The signature as TOML."""
        self._find_blocks()
        if unread := sorted(self.interpreter.unread):
            more = f" and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
            self.note(f"no source here, taken as no time: {', '.join(unread[:_NAMED])}{more}")
        self.program = program = self._items(self.interpreter.events, ())
        tables = self._tables()
        head = [
            f"What {self.name} does, by its source code: counts and formulas are of the source, "
            "times come from the machine. Nothing here was measured.",
            *self.notes,
        ]
        return text_of(head, tables, program)

    # Blocks of cells

    def _find_blocks(self) -> None:
        """Recognise numbers of cells that a process has of those along a dimension."""
        for event in _all(self.interpreter.events):
            for value in _formulas(event):
                self.plain(value)

    def plain(self, value: Any) -> Any:
        """A formula with the cells of a process named as signatures do."""
        if not isinstance(value, sympy.Basic):
            return value
        for _ in range(_DEEPEST):  # what is left of a loop's variable: its mean
            left = value.free_symbols & self.interpreter.turns.keys()
            value = value.subs({one: (self.interpreter.turns[one] - 1) / 2 for one in left})
        value = value.xreplace(self._by_variable(value)).subs(self._exact_quotients())
        places = self.interpreter.mpi.places
        for part in sorted(value.atoms(sympy.Piecewise), key=sympy.default_sort_key):
            symbols = [one for one in part.free_symbols if one in places or one == RANK]
            if len(symbols) != 1 or not part.atoms(sympy.Mod):
                continue
            (place,) = symbols
            (rest,) = list(part.atoms(sympy.Mod))[:1]
            cells, processes = rest.args
            dim = places[place][1] if place in places else 0
            whole = sympy.floor(cells / processes)
            if not _is_block(part + whole, place, cells, processes):
                continue
            if place == RANK:
                self.implicit = True
            self.blocks[dim] = Block(dim, cells)
            value = value.subs(part, sympy.Symbol(f"n{dim}", positive=True, integer=True) - whole)
            value = sympy.expand(value) if isinstance(value, sympy.Expr) else value
        return value

    def _by_variable(self, value: sympy.Basic) -> dict[sympy.Symbol, sympy.Symbol]:
        """Unknown values of one variable of the program, or of its elements, by one symbol."""
        unknown = self.interpreter.unknown
        found = {}
        for symbol in value.free_symbols & unknown.keys():
            text, place = unknown[symbol]
            name = _SOME_ELEMENT.sub("", text)
            if _VARIABLE.fullmatch(name) and name not in _NO_VARIABLES:
                one = sympy.Symbol(re.sub(r"\W+", "_", name).strip("_"), integer=True)
                unknown.setdefault(one, (name, place))
                found[symbol] = one
        return found

    def _exact_quotients(self) -> dict[sympy.Expr, sympy.Expr]:
        """Quotients without a remainder, since the program asks for that."""
        found = {}
        for condition in self.interpreter.required:
            if (
                isinstance(condition, sympy.Eq)
                and condition.rhs == 0
                and isinstance(condition.lhs, sympy.Mod)
            ):
                one, other = condition.lhs.args
                found[sympy.floor(one / other)] = one / other
        return found

    # Items

    def _items(self, events: Sequence[Event], loops: tuple[RepeatedEvents, ...]) -> list[TomlItem]:
        made: list[TomlItem] = []
        calls: list[tuple[MessageCall, tuple[sympy.Basic, ...]]] = []
        work: list[tuple[Work, tuple[sympy.Basic, ...]]] = []

        def flush() -> None:
            made.extend(computing_items(self, work, bool(loops)))
            made.extend(message_items(self, calls))
            work.clear()
            calls.clear()

        for event, conditions in _flat(events):
            every, rest = self._every(conditions, loops)
            if isinstance(event, Work):
                if work and calls and calls[-1][0].name in WAITS:
                    flush()
                work.append((event, rest))
            elif isinstance(event, RepeatedEvents):
                flush()
                body = self._items(event.body, (*loops, event))
                if body:
                    count = self.quantity(event.count)
                    made.append(
                        self._guarded(
                            TomlItem(
                                "loop",
                                {"name": self.called(event.name, event.place), "count": count},
                                tuple(body),
                            ),
                            every,
                            rest,
                            event.place,
                        )
                    )
            elif event.name in COLLECTIVES:
                flush()
                made.append(self._guarded(collective_item(self, event), every, rest, event.place))
            elif event.name in (*SENDS, *RECEIVES, *WAITS, "sendrecv", "sendrecv_replace"):
                calls.append((event, rest))
            else:
                self.note(f"{event.place}: MPI_{event.name.capitalize()} is not in this file")
        flush()
        return made

    def _every(
        self, conditions: Sequence[sympy.Basic], loops: Sequence[RepeatedEvents]
    ) -> tuple[sympy.Expr, tuple[sympy.Basic, ...]]:
        """How rarely something is done by the turns of a loop, and what else it hangs on."""
        every, rest = sympy.Integer(1), []
        variables = {loop.variable for loop in loops}
        for condition in conditions:
            if (
                isinstance(condition, sympy.Eq)
                and isinstance(condition.lhs, sympy.Mod)
                and condition.rhs.is_Integer
            ):
                turn, period = condition.lhs.args
                if turn.free_symbols & variables and not period.free_symbols & variables:
                    every *= period
                    continue
            rest.append(condition)
        return every, tuple(rest)

    def _guarded(
        self, item: TomlItem, every: sympy.Expr, rest: Sequence[sympy.Basic], place: SourcePlace
    ) -> TomlItem:
        entries = dict(item.entries)
        if every != 1:
            entries["every"] = self.quantity(every)
        for condition in rest:
            self.note_condition(place, condition)
        return TomlItem(item.kind, entries, item.body, item.notes)

    def note_condition(self, place: SourcePlace, condition: sympy.Basic) -> None:
        when = f"if {self.formula(self.plain(condition))}"
        if any(symbol.name.startswith("condition~") for symbol in condition.free_symbols):
            when = "on a condition that is not known"
        self.note(f"{place}: taken as done always; the source does it {when}")

    def called(self, name: str, place: SourcePlace) -> str:
        """A name of its own for an item."""
        self.names[name] = number = self.names.get(name, 0) + 1
        again = f" ({number})" if number > 2 else ""
        return name if number == 1 else f"{name}, line {place.line}{again}"

    def quantity(self, value: Any, place: SourcePlace | None = None) -> Any:
        value = self.plain(value)
        self.used |= value.free_symbols
        text = self.formula(value)
        return Noted(text, str(place)) if place else text

    def formula(self, value: sympy.Basic) -> str | int | float:
        """A formula with parameters named as the program names them."""
        names = {one.symbol: sympy.Symbol(one.name) for one in self.interpreter.parameters.values()}
        return formula(value.xreplace(names))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def neighbour(self, condition: sympy.Basic) -> tuple[int, bool] | None:
        """Dimension, and whether there has to be a neighbour (or none), of a condition."""
        if isinstance(condition, (sympy.Ne, sympy.Eq)) and NOBODY in condition.args:
            symbol = next(one for one in condition.args if one != NOBODY)
            if symbol in self.interpreter.mpi.neighbours:
                return self.interpreter.mpi.neighbours[symbol][1], isinstance(condition, sympy.Ne)
        return None

    def extent(self, dim: int) -> sympy.Expr:
        grids = self.interpreter.mpi.grids
        if grids and dim < len(grids[0].extents):
            return grids[0].extents[dim]
        return PROCESSES if self.implicit else sympy.Symbol(f"P{dim}", integer=True, positive=True)

    def periodic(self, dim: int) -> bool:
        grids = self.interpreter.mpi.grids
        return bool(grids and dim < len(grids[0].periodic) and grids[0].periodic[dim])

    # Tables

    def _tables(self) -> list[TomlTable]:
        interpreter = self.interpreter
        names = {one.symbol: one.name for one in interpreter.parameters.values()}
        parameters: dict[str, Any] = {}
        for one in interpreter.parameters.values():
            if one.symbol in self.used or any(
                one.symbol in block.cells.free_symbols for block in self.blocks.values()
            ):
                value = "?" if one.default is None else formula(one.default)
                parameters[names[one.symbol]] = Noted(value, f"{one.place}")
        self.given = parameters
        self.open = {
            symbol.name: interpreter.unknown[symbol]
            for symbol in sorted(self.used & interpreter.unknown.keys(), key=str)
        }
        constants = {
            name: Noted("?", f"{place}: {what}") for name, (what, place) in self.open.items()
        }
        limits: dict[str, Any] = {}
        known = set(interpreter.parameters) | {PROCESSES}
        require = [
            self.formula(condition)
            for condition in interpreter.required
            if condition.free_symbols and condition.free_symbols <= known
        ]
        if require:
            limits["require"] = require
        decomp: dict[str, Any] = {}
        if self.blocks:
            decomp["global"] = [self.formula(self.blocks[dim].cells) for dim in sorted(self.blocks)]
            decomp["periodic"] = [
                self.periodic(dim) or (self.implicit and self.is_periodic)
                for dim in sorted(self.blocks)
            ]
        elif interpreter.mpi.grids:
            grid = interpreter.mpi.grids[0]
            if all(extent.free_symbols <= known for extent in grid.extents):
                decomp["grid"] = [self.formula(extent) for extent in grid.extents]
                decomp["periodic"] = list(grid.periodic)
        elif self.implicit:
            decomp = {"grid": ["P"], "periodic": [self.is_periodic]}
        return [
            TomlTable("", {"schema": "popmodel/signature/1"}),
            TomlTable("app", {"name": self.name}),
            TomlTable("params", parameters),
            TomlTable("constants", constants),
            TomlTable("let", self.sets),
            TomlTable("decomp", decomp),
            TomlTable("limits", limits),
        ]


def _is_block(
    value: sympy.Expr, place: sympy.Symbol, cells: sympy.Expr, processes: sympy.Expr
) -> bool:
    """Whether all processes together have all cells, no one more than one more than another."""
    symbols = sorted((cells.free_symbols | processes.free_symbols) - {place}, key=str)
    for numbers, count in product(((23,), (16,)), (3, 4)):
        given = {symbol: numbers[0] + 7 * index for index, symbol in enumerate(symbols)}
        if processes.is_Symbol:
            given[processes] = count
        try:
            parts = [
                int(value.subs({**given, place: number}))
                for number in range(int(processes.subs(given)))
            ]
            whole = int(cells.subs(given))
        except TypeError:
            return False
        if sum(parts) != whole or max(parts) - min(parts) > 1:
            return False
    return True


def _flat(
    events: Iterable[Event], conditions: tuple[sympy.Basic, ...] = ()
) -> Iterator[tuple[Any, tuple[sympy.Basic, ...]]]:
    for event in events:
        if isinstance(event, Conditional):
            yield from _flat(event.body, (*conditions, event.condition))
        else:
            yield event, conditions


def _all(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        yield event
        if isinstance(event, (Conditional, RepeatedEvents)):
            yield from _all(event.body)


def _formulas(event: Event) -> Iterator[sympy.Basic]:
    if isinstance(event, MessageCall) and event.bytes is not None:
        yield event.bytes
    if isinstance(event, Work):
        stack = [event.nest]
        while stack:
            nest = stack.pop()
            yield nest.trip
            stack += nest.inner
