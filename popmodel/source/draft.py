"""From what a program does to the items of a signature."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import sympy

from popmodel.signatures.document import Noted, TomlItem, TomlTable, text_of
from popmodel.source.formula_text import formula
from popmodel.source.intermediate_form import SourcePlace
from popmodel.source.interpreter import Interpreter
from popmodel.source.loop_costs import LoopCost, WorkingSet, loop_costs
from popmodel.source.mpi_arguments import NOBODY
from popmodel.source.source_events import (
    Conditional,
    Event,
    MessageCall,
    RepeatedEvents,
    Work,
)
from popmodel.source.symbolic_memory import PROCESSES, RANK

COLLECTIVES = {
    "barrier": "barrier",
    "ibarrier": "barrier",
    "bcast": "bcast",
    "ibcast": "bcast",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "iallreduce": "allreduce",
    "scan": "scan",
    "exscan": "scan",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_block": "reduce_scatter",
    "gather": "gather",
    "gatherv": "gather",
    "scatter": "scatter",
    "scatterv": "scatter",
    "allgather": "allgather",
    "allgatherv": "allgather",
    "alltoall": "alltoall",
    "alltoallv": "alltoall",
}
"""Collective calls, with what they are in a signature."""
SENDS = ("send", "ssend", "bsend", "rsend", "isend", "issend", "irsend", "send_init")
RECEIVES = ("recv", "irecv", "recv_init")
WAITS = ("wait", "waitall", "waitany", "waitsome")
_IN_LISTS = {
    **dict.fromkeys(("ssend", "bsend", "rsend"), "send"),
    **dict.fromkeys(("issend", "irsend", "send_init"), "isend"),
    "recv_init": "irecv",
    "sendrecv_replace": "sendrecv",
    "waitany": "wait",
    "waitsome": "waitall",
}
"""What calls are in lists of them, where they are not called so."""
_NAMED = 8
"""Functions without a source that a note names."""
_DEEPEST = 6
"""Loops inside of each other whose variables are followed."""
_LEVELS = ("L2", "L3", "MEM")
_BEFORE = {"L2": "L1", "L3": "L2", "MEM": "last"}
"""The cache that decides what passes from a level."""


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
            self._note(f"no source here, taken as no time: {', '.join(unread[:_NAMED])}{more}")
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
        value = value.subs(self._exact_quotients())
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
            made.extend(self._computing(work, bool(loops)))
            made.extend(self._exchange(calls))
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
                    count = self._quantity(event.count)
                    made.append(
                        self._guarded(
                            TomlItem(
                                "loop",
                                {"name": self._called(event.name, event.place), "count": count},
                                tuple(body),
                            ),
                            every,
                            rest,
                            event.place,
                        )
                    )
            elif event.name in COLLECTIVES:
                flush()
                made.append(self._guarded(self._collective(event), every, rest, event.place))
            elif event.name in (*SENDS, *RECEIVES, *WAITS, "sendrecv", "sendrecv_replace"):
                calls.append((event, rest))
            else:
                self._note(f"{event.place}: MPI_{event.name.capitalize()} is not in this file")
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
            entries["every"] = self._quantity(every)
        for condition in rest:
            self._note_condition(place, condition)
        return TomlItem(item.kind, entries, item.body, item.notes)

    def _note_condition(self, place: SourcePlace, condition: sympy.Basic) -> None:
        when = f"if {self._formula(self.plain(condition))}"
        if any(symbol.name.startswith("condition~") for symbol in condition.free_symbols):
            when = "on a condition that is not known"
        self._note(f"{place}: taken as done always; the source does it {when}")

    def _called(self, name: str, place: SourcePlace) -> str:
        """A name of its own for an item."""
        self.names[name] = number = self.names.get(name, 0) + 1
        again = f" ({number})" if number > 2 else ""
        return name if number == 1 else f"{name}, line {place.line}{again}"

    def _quantity(self, value: Any, place: SourcePlace | None = None) -> Any:
        value = self.plain(value)
        self.used |= value.free_symbols
        text = self._formula(value)
        return Noted(text, str(place)) if place else text

    def _formula(self, value: sympy.Basic) -> str | int | float:
        """A formula with parameters named as the program names them."""
        names = {one.symbol: sympy.Symbol(one.name) for one in self.interpreter.parameters.values()}
        return formula(value.xreplace(names))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # Computing

    def _computing(
        self, work: Sequence[tuple[Work, tuple[sympy.Basic, ...]]], is_repeated: bool
    ) -> Iterator[TomlItem]:
        alike: dict[Any, list[tuple[LoopCost, Work, tuple[sympy.Basic, ...]]]] = {}
        for one, conditions in work:
            guards = [self._neighbour(condition) for condition in conditions]
            if any(guard is None for guard in guards):
                if any(condition.has(RANK) for condition in conditions):
                    self._note(f"{one.nest.place}: done by some processes only, left out")
                    continue
                for condition in conditions:
                    if self._neighbour(condition) is None:
                        self._note_condition(one.nest.place, condition)
            for cost in loop_costs(one.nest, is_repeated):
                if cost.flops == cost.loads == cost.stores == 0:
                    continue  # counts something, which costs next to nothing
                cost = self._plain_cost(cost)
                key = (
                    one.function,
                    one.directive,
                    cost.levels[-1].place,
                    cost.flops,
                    cost.loads,
                    cost.stores,
                    cost.layers[-1][1:],
                )
                alike.setdefault(key, []).append((cost, one, conditions))
        for members in alike.values():
            yield self._work_item(members)

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

    def _neighbour(self, condition: sympy.Basic) -> tuple[int, bool] | None:
        """Dimension, and whether there has to be a neighbour (or none), of a condition."""
        if isinstance(condition, (sympy.Ne, sympy.Eq)) and NOBODY in condition.args:
            symbol = next(one for one in condition.args if one != NOBODY)
            if symbol in self.interpreter.mpi.neighbours:
                return self.interpreter.mpi.neighbours[symbol][1], isinstance(condition, sympy.Ne)
        return None

    def _times(
        self, members: Sequence[tuple[LoopCost, Work, tuple[sympy.Basic, ...]]]
    ) -> sympy.Expr:
        """Iterations of all executions, of the process with the most neighbours, or walls."""
        total = sympy.Integer(0)
        by_guard: dict[tuple[tuple[int, bool] | None, sympy.Expr], int] = {}
        for cost, _, conditions in members:
            guard = next(iter(filter(None, map(self._neighbour, conditions))), None)
            trips = sympy.Integer(1)
            for trip in map(self.plain, mean_trips(cost)):
                trips *= trip
            by_guard[guard, sympy.expand(trips)] = by_guard.get((guard, sympy.expand(trips)), 0) + 1
        for (guard, trips), times in by_guard.items():
            total += times * trips if guard is None else self._sides(guard, times) * trips
        return sympy.factor_terms(sympy.expand(total)) if not total.has(sympy.Piecewise) else total

    def _sides(self, guard: tuple[int, bool], times: int) -> sympy.Expr:
        """Of two directions, how many have a neighbour, or none, at most; times how often."""
        dim, has_neighbour = guard
        extent = self._extent(dim)
        if self._periodic(dim):
            return sympy.Integer(times if has_neighbour else 0)
        rounds, rest = divmod(times, 2)
        if has_neighbour:
            return rounds * sympy.Min(extent - 1, 2) + rest * sympy.Min(extent - 1, 1)
        return rounds * sympy.Piecewise((2, sympy.Eq(extent, 1)), (1, True)) + rest

    def _extent(self, dim: int) -> sympy.Expr:
        grids = self.interpreter.mpi.grids
        if grids and dim < len(grids[0].extents):
            return grids[0].extents[dim]
        return PROCESSES if self.implicit else sympy.Symbol(f"P{dim}", integer=True, positive=True)

    def _periodic(self, dim: int) -> bool:
        grids = self.interpreter.mpi.grids
        return bool(grids and dim < len(grids[0].periodic) and grids[0].periodic[dim])

    def _work_item(
        self, members: Sequence[tuple[LoopCost, Work, tuple[sympy.Basic, ...]]]
    ) -> TomlItem:
        cost, work, _ = members[0]
        place = cost.levels[-1].place
        entries: dict[str, Any] = {"name": self._called(work.function, cost.levels[0].place)}
        is_parallel = bool(work.directive)
        trips = [self.plain(trip) for trip in mean_trips(cost)]
        if is_parallel:
            entries["trip"] = self._quantity(trips[0], cost.levels[0].place)
            inner = sympy.Integer(1)
            for trip in trips[1:]:
                inner *= trip
            if inner != 1:
                entries["inner"] = self._quantity(sympy.expand(inner))
            entries |= _clauses(work.directive)
        else:
            entries["trip"] = self._quantity(self._times(members), place)
        for name in ("flops", "loads", "stores"):
            value = getattr(cost, name)
            if value != 0:
                entries[name] = self._quantity(value)
        threads = (
            sympy.Symbol("T", integer=True, positive=True) if is_parallel else sympy.Integer(1)
        )
        names = [
            (
                self._set(f"{entries['name']}_set{number}", size.of_thread(threads)),
                self._set(f"{entries['name']}_last{number}", size.in_common(threads)),
            )
            for number, (size, *_) in enumerate(cost.layers[:-1], start=1)
            if size is not None
        ]
        for number, key in ((0, "bytes"), (1, "written")):
            traffic = {
                level: text
                for level in _LEVELS
                if (text := self._traffic(cost, number, level, names)) != 0
            }
            if traffic:
                entries[key] = traffic
        instructions = cost.loads + cost.stores + cost.flops + 3
        entries["instructions"] = Noted(
            self._quantity(instructions), "operations, loads, stores, and three of the loop"
        )
        return TomlItem("parallel" if is_parallel else "serial", entries)

    def _set(self, name: str, size: sympy.Expr) -> str:
        """The name of a working set."""
        text = str(self._quantity(size))
        known = next((key for key, other in self.sets.items() if other == text), None)
        name = known or re.sub(r"\W+", "_", name)
        self.sets[name] = text
        return name

    def _traffic(
        self, cost: LoopCost, number: int, level: str, names: Sequence[tuple[str, str]]
    ) -> Any:
        """Bytes of an iteration through a level, by the working sets that a cache holds."""
        *sets, (_, *last) = cost.layers
        text: Any = self._quantity(last[number])
        for (own, common), (_, *passed) in reversed(list(zip(names, sets, strict=True))):
            here = self._quantity(passed[number])
            if here != text:
                name = common if level == "MEM" else own
                text = f"if_fits({name}, {here}, {text}, '{_BEFORE[level]}')"
        return text

    # Messages

    def _collective(self, call: MessageCall) -> TomlItem:
        op = COLLECTIVES[call.name]
        entries: dict[str, Any] = {"name": self._called(call.name, call.place), "op": op}
        if op != "barrier":
            entries["bytes"] = "?" if call.bytes is None else self._quantity(call.bytes, call.place)
        if call.communicator not in ("world",) and not call.communicator.startswith("grid"):
            if call.communicator == "node":
                entries["comm"] = "node"
            elif call.communicator.startswith("dims"):
                entries["comm"] = [f"dim{dim}" for dim in call.communicator.split()[1:]]
            else:
                self._note(f"{call.place}: a communicator of its own, taken as all processes")
        if call.root is not None and call.root.is_Integer and call.root != 0:
            entries["root"] = int(call.root)
        return TomlItem("collective", entries)

    def _exchange(
        self, calls: Sequence[tuple[MessageCall, tuple[sympy.Basic, ...]]]
    ) -> Iterator[TomlItem]:
        sends = [
            call for call, _ in calls if call.name in SENDS or call.name.startswith("sendrecv")
        ]
        if not sends:
            if any(call.name in RECEIVES for call, _ in calls):
                self._note(f"{calls[0][0].place}: receives without sends, left out")
            return
        steps = [self._step(call, on) for call, on in calls if call in sends]
        if all(step is not None for step in steps):
            yield from self._along_grid(sends, [step for step in steps if step is not None])
            return
        yield self._list(calls)

    def _step(self, call: MessageCall, on: Sequence[sympy.Basic]) -> tuple[int, int] | None:
        """Dimension and steps along it to the partner of a call; None if it is no neighbour.

        Without a grid of MPI, by trying all ranks of six: those that carry out the call have to be
        those that have such a neighbour.
        """
        partner = call.partner
        if partner in self.interpreter.mpi.neighbours:
            _, dim, by = self.interpreter.mpi.neighbours[partner]
            return (dim, int(by)) if all(map(self._neighbour, on)) else None
        if partner is None or not partner.has(RANK):
            return None
        if (partner.free_symbols | sympy.And(*on).free_symbols) - {RANK, PROCESSES}:
            return None
        processes, partners = 6, []
        try:
            for rank in range(processes):
                here = {PROCESSES: processes, RANK: rank}
                acts = sympy.And(*on).subs(here) == sympy.true
                to = int(partner.subs(here)) if acts else -1
                partners.append(to if 0 <= to < processes else None)
        except TypeError:
            return None
        for by in (-2, -1, 1, 2):
            line = [rank + by if 0 <= rank + by < processes else None for rank in range(processes)]
            ring = [(rank + by) % processes for rank in range(processes)]
            if partners in (line, ring):
                self.implicit = True
                self.is_periodic |= partners == ring
                return 0, by
        return None

    def _along_grid(
        self, sends: Sequence[MessageCall], steps: Sequence[tuple[int, int]]
    ) -> Iterator[TomlItem]:
        sizes = [self.plain(call.bytes) for call in sends]
        known = dict(zip(steps, sizes, strict=True))
        dims = sorted({dim for dim, _ in steps})
        per_cell = set()
        for (dim, by), size in known.items():
            face = sympy.Integer(1)
            for other in self.blocks:
                if other != dim:
                    face *= sympy.Symbol(f"n{other}", positive=True, integer=True)
            per_cell.add(sympy.cancel(size / face) if abs(by) == 1 else None)
        both = all({(dim, 1), (dim, -1)} <= known.keys() for dim in dims)
        if (
            both
            and self.blocks
            and dims == sorted(self.blocks)
            and len(per_cell) == 1
            and None not in per_cell
        ):
            (cell,) = per_cell
            mode = (
                "blocking"
                if all(call.name in ("send", "ssend", "recv", "sendrecv") for call in sends)
                else "nonblocking"
            )
            yield TomlItem(
                "halo",
                {
                    "name": self._called("halo", sends[0].place),
                    "width": 1,
                    "bytes_per_cell": self._quantity(cell, sends[0].place),
                    "mode": mode,
                    "pack": "none",
                },
            )
            return
        for call, (dim, by), size in zip(sends, steps, sizes, strict=True):
            yield TomlItem(
                "shift",
                {
                    "name": self._called("shift", call.place),
                    "dim": dim,
                    "by": by,
                    "bytes": self._quantity(size, call.place),
                },
            )

    def _list(self, calls: Sequence[tuple[MessageCall, tuple[sympy.Basic, ...]]]) -> TomlItem:
        """Calls as they stand, with partners as formulas of rank."""
        rows: list[dict[str, Any]] = []
        for call, conditions in calls:
            row: dict[str, Any] = {}
            on = [self.plain(condition) for condition in conditions]
            if on:
                row["on"] = self._quantity(sympy.And(*on))
            row["do"] = _IN_LISTS.get(call.name, call.name)
            if call.name in SENDS or call.name.startswith("sendrecv"):
                row["to"] = self._quantity(call.partner)
                row["bytes"] = self._quantity(call.bytes)
            if call.name in RECEIVES:
                row["from"] = self._quantity(call.partner)
            if call.name.startswith("sendrecv"):
                row["from"] = self._quantity(call.source)
            rows.append(row)
        return TomlItem(
            "messages", {"name": self._called("messages", calls[0][0].place), "calls": rows}
        )

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
            self._formula(condition)
            for condition in interpreter.required
            if condition.free_symbols and condition.free_symbols <= known
        ]
        if require:
            limits["require"] = require
        decomp: dict[str, Any] = {}
        if self.blocks:
            decomp["global"] = [
                self._formula(self.blocks[dim].cells) for dim in sorted(self.blocks)
            ]
            decomp["periodic"] = [
                self._periodic(dim) or (self.implicit and self.is_periodic)
                for dim in sorted(self.blocks)
            ]
        elif interpreter.mpi.grids:
            grid = interpreter.mpi.grids[0]
            if all(extent.free_symbols <= known for extent in grid.extents):
                decomp["grid"] = [self._formula(extent) for extent in grid.extents]
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


def mean_trips(cost: LoopCost) -> list[sympy.Expr]:
    """Turns of each loop for each turn of those outside of it, in the mean."""
    means: list[sympy.Expr] = []
    before = sympy.Integer(1)
    for number, level in enumerate(cost.levels):
        total = level.trip
        for outer in reversed(cost.levels[:number]):
            if total.has(outer.variable):
                total = sympy.summation(sympy.expand(total), (outer.variable, 0, outer.trip - 1))
            else:
                total = total * outer.trip
        means.append(sympy.cancel(total / before))
        before = total
    return means


def _clauses(directive: str) -> dict[str, Any]:
    """Keys of a parallel item by the clauses of its directive."""
    entries: dict[str, Any] = {}
    schedule = re.search(r"schedule\s*\(\s*(\w+)\s*(?:,\s*(\w+))?", directive)
    if schedule and schedule[1] in ("static", "dynamic", "guided"):
        entries["schedule"] = schedule[1]
        if schedule[2] and schedule[2].isdigit():
            entries["chunk"] = int(schedule[2])
    constructs = {"parallel_for" if directive.startswith("parallel") else "for": 1}
    if "reduction" in directive:
        constructs = {"for": 1, "reduction": 1}
    entries["constructs"] = constructs
    return entries


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
