"""From what a program does to the items of a signature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy
from sympy.logic.boolalg import Boolean

from popmodel.base.expressions.grammar import MAX_LENGTH
from popmodel.signatures.document import Noted, TomlItem, TomlTable, text_of
from popmodel.source.computing_items import computing_items
from popmodel.source.formula_text import (
    exact_number,
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
from popmodel.source.item_folding import (
    WorkAmounts,
    equal_once,
    notes_once,
    several,
    small_together,
    texts_of,
    without_cheaper,
)
from popmodel.source.loop_costs import (
    ArraySizes,
    LoopCost,
    WorkingSet,
    array_sizes,
    loop_costs,
    working_set,
)
from popmodel.source.message_items import (
    COLLECTIVES,
    RECEIVES,
    SENDS,
    WAITS,
    collective_item,
    loop_of_one_process,
    message_items,
)
from popmodel.source.mpi_arguments import NOBODY
from popmodel.source.source_events import (
    Event,
    MessageCall,
    Nest,
    RepeatedEvents,
    Tally,
    Work,
    all_events,
    formulas_of,
    with_conditions,
)
from popmodel.source.symbolic_memory import ARGUMENTS, PROCESSES, RANK
from popmodel.source.trace_join import JoinedLine, findings, join
from popmodel.source.user_compiler import as_compiled

if TYPE_CHECKING:
    from popmodel.traces import Trace

_NAMED = 8
"""Functions without a source that a note names."""
_SOME_ELEMENT = re.compile(r"\[[^\]]*[^\]\d][^\]]*\]")
"""An index that is a formula."""
_VARIABLE = re.compile(r"[A-Za-z_][\w.\[\]]*")
_NO_VARIABLES = (
    "unknown",
    "bits",
    "choice",
    "converted",
    "value",
    "distance",
    "call",
    "count",
    "turns",
)
"""What else symbols stand for."""
_DEEPEST = 6
"""Loops inside of each other whose variables are followed."""


_EXTENTS = ("P0", "P1", "P2", "P3")
"""Processes along the dimensions of a grid."""
_REQUESTS = ("send_init", "recv_init", "start", "startall")
"""Calls about requests, whose messages stand beside them."""
_MOST_WORDS = 50
"""Words of a command line that are tried."""
_NOTHING = "Nothing here was measured."
_RANGE = "a range in "
_WORD = re.compile(r"[A-Za-z_]\w*")


class Block(NamedTuple):
    """How cells along a dimension are divided among processes."""

    dim: int
    cells: sympy.Expr


class Draft:
    """Makes the signature of an interpreted program."""

    def __init__(
        self,
        interpreter: Interpreter,
        name: str,
        files: Sequence[Path] = (),
        options: Sequence[str] = (),
    ) -> None:
        self.interpreter = interpreter
        self.files, self.options = files, options  # That a compiler may take for instructions
        self.name = name
        self._answers = Counter(text for text, _ in set(interpreter.unknown.values()))
        self.threads = {  # Numbers of threads, with those of the next ones
            symbol: symbol + 1
            for symbol, (text, _) in interpreter.unknown.items()
            if text == "omp_get_thread_num()"
        }
        self._variables: dict[sympy.Symbol, sympy.Symbol] = {}  # As `by_variable`
        self._parameters = {ARGUMENTS.name}
        for parameter in interpreter.parameters.values():
            parameter.name = formula_name(parameter.name, self._parameters)
            self._parameters.add(parameter.name)
        self.blocks: dict[int, Block] = {}
        self.notes: list[str] = list(interpreter.notes)
        self.names: dict[str, int] = {}
        self.used: set[sympy.Symbol] = set()
        self.sets: dict[str, str] = {}  # Working sets by their names
        self.implicit = False  # A line of processes by rank, without a grid of MPI
        self.is_periodic = False
        self.set_names: dict[str, str] = {}  # By their formulas
        self.amounts: dict[str, WorkAmounts] = {}  # Of items that compute, by name
        self.iterations: dict[str, Tally] = {}  # What the innermost loop of an item does
        self.counts: dict[str, float] = {}  # Estimated turns of loops, by name
        self.conditions: dict[str, list[SourcePlace]] = {}  # That nobody can decide
        # Of symbols by variables: those that they stand for, with the formulas that define these
        self._definitions: dict[sympy.Symbol, dict[sympy.Symbol, sympy.Expr | None]] = {}
        self._plain: dict[sympy.Basic, sympy.Basic] = {}
        self._costs: dict[tuple[Any, ...], list[LoopCost]] = {}
        self._begins: set[sympy.Symbol] = set()  # Elements at which a range of an array begins
        self._arrays: dict[int, ArraySizes] = {}  # Of nests, by identity
        self._quotients = exact_quotients(interpreter.required)
        self.program: list[TomlItem] = []
        self.given: dict[str, Any] = {}  # Parameters
        self.measured: dict[sympy.Symbol, tuple[Any, str]] = {}  # By a trace, with their places
        self.advice: list[str] = []  # What the source shows that could be faster
        self.joined: list[JoinedLine] = []  # What source and a trace say of the same calls
        self.findings: list[str] = []  # What a trace contradicts
        self.open: dict[str, tuple[str, SourcePlace]] = {}  # What is not known, by name

    def text(self, trace: Trace | None = None) -> str:
        """The signature as TOML, with numbers of a traced run where the source says none."""
        for event in all_events(self.interpreter.events):
            for value in formulas_of(event):
                self.plain(value)  # which recognises the cells of a process along a dimension
        if unread := sorted(self.interpreter.unread):
            more = f" and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
            self.note(f"no source here, taken as no time: {', '.join(unread[:_NAMED])}{more}")
        self._plain.clear()  # now that the blocks are known
        program = small_together(self, self._items(self.interpreter.events, ()))
        program = as_compiled(self, program)
        self.program = program
        if trace is not None:
            self.measured, self.joined = join(self, trace)
            self.findings = findings(self.joined)
        for when, places in self.conditions.items():
            self.note(f"{several(places)}: taken as done always; the source does it {when}")
        self.advice = notes_once(dict.fromkeys(self.advice))
        self.notes = [*self.findings, *self.advice, *notes_once(self.notes)]
        self._drop_unused(program)
        self.used |= {one for block in self.blocks.values() for one in block.cells.free_symbols}
        self._define()
        tables = self._tables()
        head = [
            f"What {self.name} does, by its source code: counts and formulas are of the source, "
            "times come from the machine. "
            + ("Numbers of one run stand where that is said." if trace else _NOTHING),
            *self.notes,
        ]
        return text_of(head, tables, program)

    # Blocks of cells

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
            self.blocks[dim] = Block(dim, cells)
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
                self.blocks[dim] = Block(dim, cells)
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

    # Items

    def costs_of(self, nest: Nest, between: WorkingSet | None) -> list[LoopCost]:
        """Costs of a nest that do something, its formulas as `plain`; of equal nests once."""
        key = *self._likeness(nest, {}), between
        if key not in self._costs:
            self._costs[key] = [
                self._plain_cost(cost)
                for cost in loop_costs(nest, between)
                if not cost.flops == cost.loads == cost.stores == 0
            ]
        return self._costs[key]

    def _arrays_of(self, nest: Nest) -> ArraySizes:
        if id(nest) not in self._arrays:
            self._arrays[id(nest)] = array_sizes(nest)
        return self._arrays[id(nest)]

    def _likeness(self, nest: Nest, arrays: dict[str, int]) -> tuple[Any, ...]:
        """What costs of a nest depend on, whatever numbers its arrays and symbols have."""
        accesses = tuple(
            (
                arrays.setdefault(access.array, len(arrays)),
                tuple(part if isinstance(part, str) else self._alike(part) for part in access.path),
                access.is_store,
                access.size,
                access.depends,
            )
            for access in nest.tally.accesses
        )
        flops = tuple(sorted(nest.tally.flops.items()))
        inner = tuple(self._likeness(one, arrays) for one in nest.inner)
        return nest.place, nest.variable, self._alike(nest.trip), accesses, flops, inner

    def _alike(self, value: sympy.Basic) -> sympy.Basic:
        if not symbols_of(value) & self.interpreter.unknown.keys():
            return value
        return value.xreplace(self.by_variable(value))

    def _plain_cost(self, cost: LoopCost) -> LoopCost:
        layers = tuple(
            (
                None if size is None else WorkingSet(*map(self.plain, size)),
                self.plain(read),
                self.plain(written),
            )
            for size, read, written in cost.layers
        )
        return cost._replace(layers=layers)

    def _items(
        self,
        events: Sequence[Event],
        loops: tuple[RepeatedEvents, ...],
        of_ranks: tuple[sympy.Basic, ...] = (),
    ) -> list[TomlItem]:
        """Items of events; of those in a loop that some processes carry out, with conditions."""
        made: list[TomlItem] = []
        calls: list[tuple[MessageCall, Sequence[sympy.Basic]]] = []
        work: list[tuple[Work, Sequence[sympy.Basic]]] = []

        every = sympy.Integer(1)  # Of what waits to be written
        between = None
        if loops:
            nests = (event.nest for event in all_events(events) if isinstance(event, Work))
            between = WorkingSet(*map(self.plain, working_set(map(self._arrays_of, nests))))

        def flush() -> None:
            items = (*computing_items(self, work, between), *message_items(self, calls))
            made.extend(self._repeated(item, every) for item in items)
            work.clear()
            calls.clear()

        dearer = partial(without_cheaper, self)
        for event, conditions in with_conditions(events, of_ranks, dearer):
            turns, rest = self._every(conditions, loops)
            if turns != every:
                flush()
                every = turns
            if isinstance(event, Work):
                if calls and self._is_awaited(calls[-1][0]):
                    flush()
                work.append((event, rest))
            elif isinstance(event, RepeatedEvents):
                flush()
                some = tuple(condition for condition in rest if condition.has(RANK))
                by_hand = loop_of_one_process(self, event, some) if some else None
                if by_hand is not None:
                    made.extend(self._repeated(item, every) for item in by_hand)
                    continue
                body = self._items(event.body, (*loops, event), some)
                if body:
                    name = self.called(event.name, event.place)
                    decided, rest = self.by_split([one for one in rest if one not in some])
                    self.counts[name] = guess(self.plain(event.count / every))
                    entries = {"name": name, "count": self.quantity(event.count * decided)}
                    loop = TomlItem("loop", entries, tuple(body))
                    self.note_conditions(event.place, rest)
                    made.append(self._repeated(loop, every))
            elif event.name in COLLECTIVES:
                flush()
                decided, rest = self.by_split(rest)
                self.note_conditions(event.place, rest)
                item = self._where(collective_item(self, event), decided)
                made.append(self._repeated(item, every))
            elif event.name in (*SENDS, *RECEIVES, *WAITS, "sendrecv", "sendrecv_replace"):
                calls.append((event, rest))
            elif event.name not in _REQUESTS:
                self.note(f"{event.place}: MPI_{event.name.capitalize()} is not in this file")
        flush()
        once = equal_once(made, lambda: self.unique("again"))
        for item in once:
            if item.entries.get("name", "").startswith("again"):
                self.counts[item.entries["name"]] = item.entries["count"]
        return once

    def _is_awaited(self, call: MessageCall) -> bool:
        """Whether what follows waits for what comes, of a neighbour where a call only receives."""
        if call.name == "recv" and call.partner is not None:
            return call.partner.has(RANK) or call.partner in self.interpreter.mpi.neighbours
        return call.name in (*WAITS, "sendrecv", "sendrecv_replace")

    def _every(
        self, conditions: Sequence[sympy.Basic], loops: Sequence[RepeatedEvents]
    ) -> tuple[sympy.Expr, list[sympy.Basic]]:
        """How rarely something is done by the turns of a loop, and what else it hangs on."""
        every, rest = sympy.Integer(1), []
        for condition in conditions:
            turns = self._turns_between(condition, loops)
            if turns is None:
                rest.append(condition)
            else:
                every *= turns
        return every, rest

    def _turns_between(
        self, condition: sympy.Basic, loops: Sequence[RepeatedEvents]
    ) -> sympy.Expr | None:
        """In each how many turns of a loop a condition holds once; None of others."""
        if not isinstance(condition, (sympy.Eq, sympy.Ne)):
            return None
        variables = {loop.variable for loop in loops}
        is_equal = isinstance(condition, sympy.Eq)
        for one, other in (condition.args, condition.args[::-1]) if is_equal else ():
            is_rest = isinstance(one, sympy.Mod) and one.args[0].free_symbols & variables
            if is_rest and variables.isdisjoint(one.args[1].free_symbols | other.free_symbols):
                return one.args[1]
        own = [loop for loop in loops if loop.variable in condition.free_symbols]
        functions = condition.atoms(sympy.Function)
        if not own or any(part.free_symbols & variables for part in functions):
            return None
        return own[-1].count if is_equal else sympy.Integer(1)  # in one turn, or in all others

    def _repeated(self, item: TomlItem, every: sympy.Expr) -> TomlItem:
        """An item that is done in some turns of its loop only."""
        if every == 1:
            return item
        name = item.entries.get("name", "")
        if name in self.amounts:
            amounts = self.amounts[name]
            self.amounts[name] = amounts._replace(iterations=amounts.iterations / every)
        return item._replace(entries={**item.entries, "every": self.quantity(every)})

    def by_split(self, conditions: Iterable[sympy.Basic]) -> tuple[sympy.Expr, list[sympy.Basic]]:
        """1 or 0 by conditions that the user's processes and parameters decide; the others."""
        known = {PROCESSES, ARGUMENTS, *self.interpreter.parameters}
        decided: list[sympy.Basic] = []
        others: list[sympy.Basic] = []
        for condition in conditions:
            is_known = bool(condition.free_symbols) and condition.free_symbols <= known
            (decided if is_known else others).append(condition)
        return sympy.Piecewise((1, sympy.And(*decided)), (0, True)), others

    def is_open(self, condition: sympy.Basic) -> bool:
        """Whether neither rank, grid, parameters nor the turn of a loop decide a condition."""
        mpi, symbols = self.interpreter.mpi, condition.free_symbols
        decided = {RANK, *self.interpreter.turns, *mpi.neighbours, *mpi.places}
        known = {PROCESSES, ARGUMENTS, *self.interpreter.parameters}
        return symbols.isdisjoint(decided) and not symbols <= known

    def _where(self, item: TomlItem, decided: sympy.Expr) -> TomlItem:
        """An item that is carried out by some splits or problems only."""
        if decided == 1:
            return item
        entries = {"name": self.unique("where"), "count": self.quantity(decided)}
        self.counts[entries["name"]] = 1.0
        return TomlItem("loop", entries, (item,))

    def nameable(self, place: SourcePlace, conditions: Sequence[sympy.Basic]) -> list[sympy.Basic]:
        """Conditions that formulas can say; of the others a note."""
        hidden = [
            condition
            for condition in conditions
            if any(symbol.name.startswith("condition~") for symbol in condition.free_symbols)
        ]
        self.note_conditions(place, hidden)
        return [condition for condition in conditions if condition not in hidden]

    def note_conditions(self, place: SourcePlace, conditions: Iterable[sympy.Basic]) -> None:
        for condition in conditions:
            when = f"if {self.formula(self.plain(condition))}"
            if any(symbol.name.startswith("condition~") for symbol in condition.free_symbols):
                when = "on a condition that is not known"
            elif condition.free_symbols & self.interpreter.turns.keys():
                when = "in some turns of a loop"
            places = self.conditions.setdefault(when, [])
            if place not in places:
                places.append(place)

    def called(self, name: str, place: SourcePlace) -> str:
        """A name of its own for an item."""
        self.names[name] = number = self.names.get(name, 0) + 1
        again = f" ({number})" if number > 2 else ""
        return name if number == 1 else f"{name}, line {place.line}{again}"

    def unique(self, name: str) -> str:
        """A name of its own for what stands at no one place."""
        self.names[name] = number = self.names.get(name, 0) + 1
        return name if number == 1 else f"{name} ({number})"

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
        name = self.set_names.setdefault(text, re.sub(r"\W+", "_", name).strip("_"))
        self.sets[name] = text
        return name

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

    def _drop_unused(self, program: Sequence[TomlItem]) -> None:
        """Forget working sets and numbers of items that were folded away."""
        words = {word for text in texts_of(program) for word in _WORD.findall(text)}
        for name in [name for name in self.sets if name not in words]:
            del self.sets[name]
        words.update(*(_WORD.findall(str(value)) for value in self.sets.values()))
        names = {one.symbol: one.name for one in self.interpreter.parameters.values()}
        self.used = {symbol for symbol in self.used if names.get(symbol, symbol.name) in words}

    def _define(self) -> None:
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

    def _arguments(self) -> int:
        """The fewest words of the command line without which the program does not end."""
        asked = [
            one for one in self.interpreter.required.values() if one.free_symbols == {ARGUMENTS}
        ]
        for number in range(1, _MOST_WORDS):
            if all(one.xreplace({ARGUMENTS: sympy.Integer(number)}) == sympy.true for one in asked):
                return number
        return 1

    def _required(self) -> list[sympy.Basic]:
        """What parameters and processes have to fulfil."""
        known = {*self.interpreter.parameters, PROCESSES, ARGUMENTS}
        required = self.interpreter.required.values()
        return [
            one for one in required if one.free_symbols <= known and one.free_symbols - {ARGUMENTS}
        ]

    def _tables(self) -> list[TomlTable]:
        interpreter = self.interpreter
        names = {one.symbol: one.name for one in interpreter.parameters.values()}
        parameters: dict[str, Any] = {}
        of_processes = [one for one in self._required() if one.has(PROCESSES)]
        self.used.update(*(condition.free_symbols for condition in of_processes))
        if ARGUMENTS in self.used:  # conditions of it are left: as without arguments
            number = self._arguments()
            words = f"the program, and {number - 1} more" if number > 1 else "the program alone"
            parameters[ARGUMENTS.name] = Noted(number, words)
        for one in interpreter.parameters.values():
            if one.symbol in self.used or any(
                one.symbol in block.cells.free_symbols for block in self.blocks.values()
            ):
                value: str | int | float
                if one.symbol in self.measured:
                    number, call = self.measured[one.symbol]
                    value, origin = exact_number(number), f"from the trace, {call}"
                else:
                    value = "?" if one.default is None else exact_number(one.default)
                    origin = str(one.place)
                parameters[names[one.symbol]] = Noted(value, origin)
        self.given = parameters
        self.open = {
            symbol.name: (what.removesuffix("()"), place)
            for symbol in sorted(self.used & interpreter.unknown.keys(), key=str)
            for what, place in [interpreter.unknown[symbol]]
            if symbol not in self.measured
        }
        constants = {
            name: Noted("?", f"{place}: {what}") for name, (what, place) in self.open.items()
        }
        constants |= {
            symbol.name: Noted(exact_number(number), f"from the trace, {call}")
            for symbol, (number, call) in self.measured.items()
            if symbol in self.used and symbol in interpreter.unknown
        }
        limits: dict[str, Any] = {}
        known = set(interpreter.parameters) - {ARGUMENTS} | {PROCESSES}
        written = {one.symbol for one in interpreter.parameters.values() if one.name in parameters}
        require = [
            self.formula(condition)
            for condition in self._required()
            if condition.free_symbols <= written | {PROCESSES, ARGUMENTS}
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
            else:  # as MPI_Dims_create does it: as many along each dimension as can be
                cells = ["P"] * len(grid.extents)
                decomp["global"] = Noted(cells, "sizes of the grid are not known: a cube of cells")
            decomp["periodic"] = list(grid.periodic)
        elif self.implicit:
            decomp = {"grid": ["P"], "periodic": [self.is_periodic]}
        elif interpreter.mpi.dims and not {one.name for one in self.used}.isdisjoint(_EXTENTS):
            cells = ["P"] * interpreter.mpi.dims
            decomp = {"global": cells, "periodic": [False] * interpreter.mpi.dims}
        return [
            TomlTable("", {"schema": "popmodel/signature/1"}),
            TomlTable("app", {"name": self.name, "basis": "source"}),
            TomlTable("params", parameters),
            TomlTable("constants", constants),
            TomlTable("let", self.sets),
            TomlTable("decomp", decomp),
            TomlTable("limits", limits),
        ]
