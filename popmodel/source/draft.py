"""From what a program does to the items of a signature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy

from popmodel.signatures.document import Noted, TomlItem, TomlTable, text_of
from popmodel.source.computing_items import computing_items
from popmodel.source.draft_formulas import DraftFormulas
from popmodel.source.formula_text import exact_number, guess, symbols_of
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
from popmodel.source.symbolic_memory import ARGUMENTS, PROCESSES, RANK, is_undecided
from popmodel.source.trace_join import JoinedLine, findings, join
from popmodel.source.user_compiler import as_compiled

if TYPE_CHECKING:
    from popmodel.traces import Trace

_NAMED = 8
"""Functions without a source that a note names."""
_EXTENTS = ("P0", "P1", "P2", "P3")
"""Processes along the dimensions of a grid."""
_REQUESTS = ("send_init", "recv_init", "start", "startall")
"""Calls about requests, whose messages stand beside them."""
_MOST_WORDS = 50
"""Words of a command line that are tried."""
_NOTHING = "Nothing here was measured."
_WORD = re.compile(r"[A-Za-z_]\w*")


class Draft(DraftFormulas):
    """Makes the signature of an interpreted program."""

    def __init__(
        self,
        interpreter: Interpreter,
        name: str,
        files: Sequence[Path] = (),
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(interpreter)
        self.files, self.options = files, options  # That a compiler may take for instructions
        self.name = name
        self.threads = {  # Numbers of threads, with those of the next ones
            symbol: symbol + 1
            for symbol, (text, _) in interpreter.unknown.items()
            if text == "omp_get_thread_num()"
        }
        self.names: dict[str, int] = {}
        self.is_periodic = False
        self.amounts: dict[str, WorkAmounts] = {}  # Of items that compute, by name
        self.iterations: dict[str, Tally] = {}  # What the innermost loop of an item does
        self.turns: dict[str, Any] = {}  # Of an innermost loop inside of another, as a formula
        self.counts: dict[str, float] = {}  # Estimated turns of loops, by name
        self.conditions: dict[str, list[SourcePlace]] = {}  # That nobody can decide
        self._costs: dict[tuple[Any, ...], list[LoopCost]] = {}
        self._arrays: dict[int, ArraySizes] = {}  # Of nests, by identity
        self.program: list[TomlItem] = []
        self.given: dict[str, Any] = {}  # Parameters
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
        self.used |= {one for cells in self.blocks.values() for one in cells.free_symbols}
        self.define_numbers()
        tables = self._tables()
        head = [
            f"What {self.name} does, by its source code: counts and formulas are of the source, "
            "times come from the machine. "
            + ("Numbers of one run stand where that is said." if trace else _NOTHING),
            *self.notes,
        ]
        return text_of(head, tables, program)

    def to_dict(self) -> dict[str, Any]:
        """What is known and what is open, once the text is made: facts of a document."""
        about = {"low": None, "high": None, "unit": None, "origin": "source"}
        values = [
            {"name": key, "value": None if noted.value == "?" else noted.value}
            | {**about, "source": noted.note}
            for key, noted in self.given.items()
        ]
        unknown: list[dict[str, Any]] = [
            {"name": key, "source": what, "place": str(place)}
            for key, (what, place) in self.open.items()
        ]
        unknown += [
            {"name": value["name"], "source": "parameter", "place": value["source"]}
            for value in values
            if value["value"] is None
        ]
        return {
            "values": values,
            "fidelity": [],
            "caveats": self.findings[:-1],
            "notes": self.notes[max(len(self.findings) - 1, 0) :],
            "unknown": unknown,
            "source": {
                "files": [str(file) for file in self.files],
                "items": dict(Counter(item.kind for item in _all_items(self.program))),
                "errors": len(self.interpreter.program.problems),
            },
        }

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
        known = self.interpreter.user_symbols
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
        known = self.interpreter.user_symbols
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
        hidden = [condition for condition in conditions if is_undecided(condition)]
        self.note_conditions(place, hidden)
        return [condition for condition in conditions if condition not in hidden]

    def note_conditions(self, place: SourcePlace, conditions: Iterable[sympy.Basic]) -> None:
        for condition in conditions:
            when = f"if {self.formula(self.plain(condition))}"
            if is_undecided(condition):
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

    def neighbour(self, condition: sympy.Basic) -> tuple[int, bool] | None:
        """Dimension, and whether there has to be a neighbour (or none), of a condition."""
        if isinstance(condition, (sympy.Ne, sympy.Eq)) and NOBODY in condition.args:
            symbol = next(one for one in condition.args if one != NOBODY)
            if symbol in self.interpreter.mpi.neighbours:
                return self.interpreter.mpi.neighbours[symbol][1], isinstance(condition, sympy.Ne)
        return None

    # Tables

    def _drop_unused(self, program: Sequence[TomlItem]) -> None:
        """Forget working sets and numbers of items that were folded away."""
        words = {word for text in texts_of(program) for word in _WORD.findall(text)}
        for name in [name for name in self.sets if name not in words]:
            del self.sets[name]
        words.update(*(_WORD.findall(str(value)) for value in self.sets.values()))
        names = {one.symbol: one.name for one in self.interpreter.parameters.values()}
        self.used = {symbol for symbol in self.used if names.get(symbol, symbol.name) in words}

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
        known = self.interpreter.user_symbols
        required = self.interpreter.required.values()
        return [
            one for one in required if one.free_symbols <= known and one.free_symbols - {ARGUMENTS}
        ]

    def _tables(self) -> list[TomlTable]:
        interpreter = self.interpreter
        parameters: dict[str, Any] = {}
        of_processes = [one for one in self._required() if one.has(PROCESSES)]
        self.used.update(*(condition.free_symbols for condition in of_processes))
        if ARGUMENTS in self.used:  # conditions of it are left: as without arguments
            number = self._arguments()
            words = f"the program, and {number - 1} more" if number > 1 else "the program alone"
            parameters[ARGUMENTS.name] = Noted(number, words)
        for one in interpreter.parameters.values():
            if one.symbol in self.used or any(
                one.symbol in cells.free_symbols for cells in self.blocks.values()
            ):
                value: str | int | float
                if one.symbol in self.measured:
                    number, call = self.measured[one.symbol]
                    value, origin = exact_number(number), f"from the trace, {call}"
                else:
                    value = "?" if one.default is None else exact_number(one.default)
                    origin = str(one.place)
                parameters[one.name] = Noted(value, origin)
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
            decomp["global"] = [self.formula(self.blocks[dim]) for dim in sorted(self.blocks)]
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


def _all_items(items: Iterable[TomlItem]) -> Iterable[TomlItem]:
    for item in items:
        yield item
        yield from _all_items(item.body)
