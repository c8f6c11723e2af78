"""Joins source with a traced run, by file:line of the calls of MPI.

How often a process comes to a line, and how many bytes a call there moves, are formulas in the
source and numbers in the trace, for each process. A formula with one number that nobody knows
gives that number; one without any is checked, and what does not agree is a finding. A condition
that nobody can decide counts as the share of its executions in which it holds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy

from popmodel.runs.sites import calls_by_process, sites_of
from popmodel.source.formula_text import expanded, with_values
from popmodel.source.intermediate_form import Invocation
from popmodel.source.mpi_arguments import QUIET, SHAPES, MpiCalls
from popmodel.source.source_events import Conditional, Event, MessageCall, RepeatedEvents, Work
from popmodel.source.symbolic_memory import PROCESSES, RANK

if TYPE_CHECKING:
    from popmodel.source.draft import Draft
    from popmodel.traces import Trace

_IS_RECEIVE = re.compile(r"MPI_I?m?recv$", re.IGNORECASE)
_AT_LINE = re.compile(r":\d+$")
_LINES = 20
"""Lines of a call at most: a trace may name a later one than that where it begins."""
_CALLS = "calls by a process"
_EQUAL = 0.005
"""Relative difference of numbers that agree."""
_MOST_PROCESSES = 16
"""Processes that are compared: of more, some spread evenly."""
_MOST_TURNS = 200
"""Turns of a loop that are followed one by one where conditions inside depend on its variable."""
_MOST_EVENTS = 100_000
"""Calls and loops of a process that are followed in one go; beyond, loops by their mean turn."""
_OF_ALL = ("allgather", "alltoall")
"""Collectives of which a trace has the bytes for all peers, the source those for one."""

_TESTS = ("test", "testall", "testany", "testsome", "probe", "iprobe")
"""Calls that move nothing, as often as a run happens to make them."""
_OPEN = ("share~", "cases~")
"""What symbols begin with that nobody can solve for alone."""
_OWN_SIZES = (
    *("gatherv", "scatterv", "allgatherv", "alltoallv", "reduce_scatter", "start", "startall"),
)
"""Calls of which each process may send another size, or several: these are not compared."""

Line: TypeAlias = tuple[str, str]
"""Name of a call, such as ``bcast``, and file:line."""
Executions: TypeAlias = list[tuple[sympy.Expr, MessageCall, sympy.Expr]]
"""How often calls are made, which, and how many bytes each time, or 0."""


@dataclass
class JoinedLine:
    """What source and trace say of the calls at a line, each for the processes that are compared.

    `state` is ``agrees``, ``differs``, ``undecided`` or ``given``: a number that the source does
    not say comes from here.
    """

    place: str  # With the name of the call
    what: str  # Such as ``B in each call``
    source: list[sympy.Expr] = field(default_factory=list)
    trace: list[float] = field(default_factory=list)
    state: str = "undecided"

    def finding(self) -> str:
        """What differs, of the process where it differs most."""
        pairs = [
            (said, number)
            for said, number in zip(map(_most, self.source), self.trace, strict=True)
            if said is not None and not _equal(said, number)
        ]
        if self.what == _CALLS and not any(said for said, _ in pairs):
            most = max(number for _, number in pairs)
            return f"{self.place}: made {most:g} times, of which the draft says nothing"
        said, number = max(pairs, key=lambda pair: abs(pair[0] - pair[1]))
        times = f", {number / said:.3g} times that" if said and number else ""
        return f"{self.place}: the source says {said:g} {self.what}, the trace {number:g}{times}"


@dataclass
class _TracedProcess:
    """A process of the run, with what is known of it."""

    draft: Draft
    rank: int
    known: dict[sympy.Basic, Any]
    shares: dict[frozenset[sympy.Basic], sympy.Symbol] = field(default_factory=dict)
    followed: int = 0
    values: dict[sympy.Basic, Any] = field(default_factory=dict)  # Of formulas
    cases: dict[tuple[sympy.Basic, ...], sympy.Symbol] = field(default_factory=dict)
    turns: dict[sympy.Basic, sympy.Expr] = field(default_factory=dict)  # Numbers of these
    in_turn: dict[sympy.Basic, Any] = field(default_factory=dict)  # As `values`, of these turns

    def learn(self, symbol: sympy.Symbol, value: sympy.Expr) -> None:
        self.known[symbol] = value
        self.values.clear()

    def value(self, formula: sympy.Basic) -> Any:
        """A formula with what is known, of the turns of loops that are followed, too."""
        value = with_values(formula, self._known, self._undecided, self.values)
        if self.turns.keys().isdisjoint(value.free_symbols):
            return value
        turns = self.turns
        return with_values(value, lambda one: turns.get(one, one), self._undecided, self.in_turn)

    def _known(self, symbol: sympy.Symbol) -> sympy.Basic:
        defined = self.draft.interpreter.defined.get(symbol)
        if defined is not None:
            return with_values(defined, self._known, self._undecided, self.values)
        name = self.draft.by_variable(symbol).get(symbol, symbol)
        return self.known.get(name, name)

    def _undecided(self, formula: sympy.Basic, cases: tuple[sympy.Basic, ...]) -> sympy.Basic:
        """A symbol for one of some cases; the cases as long as turns of a loop may decide."""
        turns = self.draft.interpreter.turns.keys()
        if not all(turns.isdisjoint(condition.free_symbols) for condition in cases[1::2]):
            if isinstance(formula, sympy.ITE):
                return sympy.ITE(cases[1], cases[0], cases[2] if len(cases) > 2 else False)
            return sympy.Piecewise(*zip(cases[::2], cases[1::2], strict=True))
        name = f"cases~{len(self.cases)}"
        return self.cases.setdefault(cases, sympy.Symbol(name, integer=formula.is_integer))

    def executions(self) -> dict[Line, Executions]:
        """How often the process makes the calls at each line."""
        self.followed = 0
        lines: dict[Line, Executions] = defaultdict(list)
        self._follow(self.draft.interpreter.events, sympy.Integer(1), frozenset(), lines)
        return lines

    def _follow(
        self,
        events: Sequence[Event],
        times: sympy.Expr,
        conditions: frozenset[sympy.Basic],
        lines: dict[Line, Executions],
    ) -> None:
        """Add the calls of events that are carried out `times` where conditions hold."""
        for event in events:
            self.followed += 1
            if isinstance(event, MessageCall):
                count = times * self._share(conditions) if conditions else times
                size = sympy.Integer(0) if event.bytes is None else self.value(event.bytes)
                lines[event.name, str(event.place)].append((count, event, size))
            elif isinstance(event, Conditional):
                holds = self.value(event.condition)
                if holds == sympy.true:
                    self._follow(event.body, times, conditions, lines)
                elif holds != sympy.false:
                    period = _period(holds)
                    if period is None:
                        both = conditions.union(sympy.And.make_args(holds))
                        self._follow(event.body, times, both, lines)
                    else:
                        self._follow(event.body, times / period, conditions, lines)
            elif isinstance(event, RepeatedEvents):
                count = self.value(event.count)
                if count == 0 or count.is_negative:
                    continue
                own = [one for one in event.body if _depends([one], event.variable)]
                others = [one for one in event.body if not any(one is part for part in own)]
                self._follow(others, times * count, conditions, lines)
                few = count.is_Integer and count <= _MOST_TURNS
                if own and few and self.followed < _MOST_EVENTS:
                    for turn in range(int(count)):
                        self.turns[event.variable] = sympy.Integer(turn)
                        self.in_turn = {}
                        self._follow(own, times, conditions, lines)
                    del self.turns[event.variable]
                    self.in_turn = {}
                else:
                    self._follow(own, times * count, conditions, lines)
            else:
                assert isinstance(event, Work)

    def _share(self, conditions: frozenset[sympy.Basic]) -> sympy.Expr:
        """The share of executions in which conditions hold that nobody can decide."""
        name = f"share~{len(self.shares)}"
        share = self.shares.setdefault(conditions, sympy.Symbol(name, nonnegative=True))
        return self.known.get(share, share)


def join(
    draft: Draft, trace: Trace
) -> tuple[dict[sympy.Symbol, tuple[Any, str]], list[JoinedLine]]:
    """Numbers that a trace gives for symbols, with their places; and what both say of each line."""
    recorded = _recorded(draft, trace)
    step = -(-trace.processes // _MOST_PROCESSES)
    processes = [
        _TracedProcess(draft, rank, _ranks_place(draft, rank, trace.processes))
        for rank in range(0, trace.processes, step)
    ]
    measured: dict[sympy.Symbol, tuple[Any, str]] = {}
    giving: set[tuple[str, str]] = set()
    is_last, with_shares = False, False
    while True:
        lines = list(_lines(recorded, processes))
        is_new = False
        for line in () if is_last else lines:
            for process, said, number in zip(processes, line.source, line.trace, strict=True):
                shares = set(process.shares.values()) if with_shares else set()
                for symbol, value in _solution(process.value(said), number, shares):
                    process.learn(symbol, value)
                    is_new = True
                    giving.add((line.place, line.what))
                    if symbol not in shares:
                        before = measured.get(symbol, (value, ""))[0]
                        measured[symbol] = max(before, value), line.place
        if is_last:
            break
        is_last = with_shares and not is_new
        with_shares = not is_new  # conditions only where nothing else is left to solve
    for line in lines:
        is_part = draft.interpreter.is_too_large
        line.state = _state(line, (line.place, line.what) in giving, is_part)
    return measured, lines


def _ranks_place(draft: Draft, rank: int, processes: int) -> dict[sympy.Basic, Any]:
    """What is known of a process: its rank and, of the grid, extents and its own place."""
    known: dict[sympy.Basic, Any] = {PROCESSES: sympy.Integer(processes), RANK: sympy.Integer(rank)}
    for symbol, (grid, dim) in draft.interpreter.mpi.places.items():
        dims = len(grid.extents)
        if all(
            extent == sympy.Symbol(f"P{index}", integer=True, positive=True)
            for index, extent in enumerate(grid.extents)
        ):
            extents = _balanced(processes, dims)
        else:
            extents = [extent.xreplace(known) for extent in grid.extents]
        if prod(extents) == processes:
            known |= {
                one: sympy.Integer(number)
                for one, number in zip(grid.extents, extents, strict=True)
                if one.is_Symbol
            }
            known[symbol] = sympy.Integer(rank // prod(extents[dim + 1 :]) % extents[dim])
    return known


def _balanced(processes: int, dims: int) -> list[int]:
    """Extents as MPI_Dims_create gives them: as close to each other as can be, falling."""
    if dims <= 1:
        return [processes] * dims
    root = processes ** (1 / dims)
    first = next(
        part
        for part in range(max(int(root - 1e-9), 1), processes + 1)
        if processes % part == 0 and part >= root - 1e-9
    )
    return [first, *_balanced(processes // first, dims - 1)]


def findings(lines: Sequence[JoinedLine]) -> list[str]:
    """What does not agree, and how many lines do."""
    if not lines:
        return [
            "no call of the trace stands on a line of these files, so that nothing of it was used: "
            "compile them with -g, and trace that program"
        ]
    states = Counter(line.state for line in lines)
    return [
        *(line.finding() for line in lines if line.state == "differs"),
        f"of {len(lines)} counts and sizes of calls in the trace {states['agrees']} agree with the "
        f"source, {states['given']} give a number that it does not say",
    ]


def _recorded(draft: Draft, trace: Trace) -> dict[tuple[str, tuple[Line, ...]], Any]:
    """What the trace has of each line, by process: the place there, and the calls in the source.

    Compilers have some calls at the line where their function begins.
    """
    calls, within = _calls_by_file(draft)
    table = calls_by_process(trace)
    recorded: dict[tuple[str, tuple[Line, ...]], Any] = {}
    for (kind, place), rows in table.groupby(["kind", "place"], sort=False):
        assert isinstance(kind, str) and isinstance(place, str)
        name = kind.removeprefix("MPI_").lower()
        file, _, line = place.rpartition(":")
        is_silent = name in QUIET or name in _TESTS or hasattr(MpiCalls, f"_{name}")
        if not _AT_LINE.search(place) or file not in calls or (is_silent and name not in SHAPES):
            continue  # an address, a library, or what a signature does not have
        begins = calls[file].get(name, [])
        number = bisect_right(begins, int(line))
        is_there = number > 0 and begins[number - 1] > int(line) - _LINES
        here = begins[number - 1 : number] if is_there else within.get((place, name), ())
        lines = tuple((name, f"{file}:{begin}") for begin in sorted(here))
        if lines and not draft.interpreter.mpi.left_out.isdisjoint(lines):
            continue  # a note says so
        recorded[f"{place}: {kind}", lines] = rows.groupby("process").agg(
            executions=("executions", "sum"),
            size_min=("size_min", "min"),
            size_max=("size_max", "max"),
            amount=("amount", lambda amounts: amounts.sum(min_count=1)),
        )
    return recorded


def _calls_by_file(
    draft: Draft,
) -> tuple[dict[str, dict[str, list[int]]], dict[tuple[str, str], set[int]]]:
    """Lines where calls of MPI begin: by file and name, by where their function begins and name."""
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    within: dict[tuple[str, str], set[int]] = defaultdict(set)
    for function in draft.interpreter.program.functions.values():
        waiting: list[Any] = [function.body]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Invocation) and part.name.upper().startswith("MPI_"):
                file, _, line = str(part.place).rpartition(":")
                name = part.name[len("MPI_") :].lower()
                found[file][name].add(int(line))
                within[str(function.place), name].add(int(line))
            waiting += [one for one in part if isinstance(one, tuple)]
    return {
        file: {name: sorted(lines) for name, lines in of_file.items()}
        for file, of_file in found.items()
    }, within


def _lines(
    recorded: dict[tuple[str, tuple[Line, ...]], Any], processes: Sequence[_TracedProcess]
) -> Iterator[JoinedLine]:
    """Counts and sizes of all lines, in the source and in the trace."""
    executions = [process.executions() for process in processes]
    for (place, keys), rows in recorded.items():
        of_source = [[call for key in keys for call in own.get(key, ())] for own in executions]
        recorded_here = [process.rank in rows.index for process in processes]
        yield JoinedLine(
            place,
            _CALLS,
            [sympy.Add(*(count for count, _, _ in calls)) for calls in of_source],
            [
                float(rows["executions"][process.rank]) if here else 0.0
                for process, here in zip(processes, recorded_here, strict=True)
            ],
        )
        sent = rows.dropna(subset=["amount"])
        if not len(sent) or not any(of_source) or keys[0][0] in _OWN_SIZES:
            continue
        sizes = [
            [(count, _of_all(call, size, process)) for count, call, size in calls if count != 0]
            for process, calls in zip(processes, of_source, strict=True)
        ]
        is_one = (sent["size_min"] == sent["size_max"]).all() and all(
            len({size for _, size in calls}) <= 1 for calls in sizes
        )
        line = JoinedLine(place, "B in each call" if is_one else "B by a process")
        for process, calls in zip(processes, sizes, strict=True):
            here = process.rank in sent.index and bool(calls)
            said = calls[0][1] if is_one and here else sympy.Add(*(a * b for a, b in calls))
            column = "size_min" if is_one else "amount"
            line.source.append(process.draft.plain(said) if here else sympy.Integer(0))
            line.trace.append(float(sent[column][process.rank]) if here else 0.0)
        yield line


def _of_all(call: MessageCall, size: sympy.Expr, process: _TracedProcess) -> sympy.Expr:
    """Bytes of a call as traces have them: of collectives those for all peers."""
    is_root = call.name in ("gather", "scatter") and process.value(call.root) == process.rank
    return size * process.known[PROCESSES] if is_root or call.name in _OF_ALL else size


def _solution(
    formula: sympy.Expr, number: float, shares: set[sympy.Symbol]
) -> list[tuple[sympy.Symbol, sympy.Expr]]:
    """The one number that is not known, where a formula is linear in it; or shares, by bounds."""
    symbols = formula.free_symbols
    if not symbols:
        return []
    value = sympy.Integer(number) if number.is_integer() else sympy.nsimplify(number)
    if symbols <= shares:
        most = formula.xreplace(dict.fromkeys(symbols, sympy.Integer(1)))
        if value in (0, most):
            return [(symbol, sympy.Integer(value != 0)) for symbol in symbols]
    if len(symbols) > 1 or any(symbol.name.startswith(_OPEN) for symbol in symbols - shares):
        return []
    (symbol,) = symbols
    slope = expanded(formula.diff(symbol))
    if not slope.is_number or slope == 0:
        return []
    value = (value - formula.xreplace({symbol: sympy.Integer(0)})) / slope
    is_possible = 0 <= value <= 1 if symbol in shares else value.is_Integer and value >= 0
    return [(symbol, value)] if is_possible else []


def _state(line: JoinedLine, is_giving: bool, is_part: bool) -> str:
    """Whether both say the same, as far as that can be known; of a part of a source it is less."""
    is_open = False
    for said, number in zip(line.source, line.trace, strict=True):
        most = _most(said)
        has_shares = bool(said.free_symbols)
        if _IS_RECEIVE.search(line.place) and line.what != _CALLS and most is not None:
            most = number if most > number else most  # there is room for more than comes
        is_less = most is not None and most < number
        if most is not None and not _equal(most, number) and (is_less or not has_shares):
            if not (is_less and is_part):
                return "differs"
            is_open = True
        is_open |= has_shares
    return "undecided" if is_open else "given" if is_giving else "agrees"


def _most(said: sympy.Expr) -> float | None:
    """What a formula is at most, where only conditions in it are not known."""
    most = said.xreplace({one: sympy.Integer(1) for one in said.free_symbols if _is_share(one)})
    return float(most) if most.is_number else None


def _is_share(symbol: sympy.Symbol) -> bool:
    return bool(symbol.name.startswith("share~"))


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= _EQUAL * max(abs(one), abs(other))


def _depends(events: Sequence[Event], variable: sympy.Symbol) -> bool:
    """Whether what is done in a turn of a loop depends on which one it is."""
    for event in events:
        if isinstance(event, MessageCall):
            if event.bytes is not None and variable in event.bytes.free_symbols:
                return True
        elif not isinstance(event, Work):
            formula = event.condition if isinstance(event, Conditional) else event.count
            if variable in formula.free_symbols or _depends(event.body, variable):
                return True
    return False


def _period(condition: sympy.Basic) -> sympy.Expr | None:
    """Of ``turn % n == m``: n."""
    if isinstance(condition, sympy.Eq) and isinstance(condition.lhs, sympy.Mod):
        period: sympy.Expr = condition.lhs.args[1]
        return period
    return None


def functions_of(trace: Trace) -> frozenset[str]:
    """Names of functions that call MPI or have parallel regions, without what compilers add."""
    names = (re.match(r"\w+", str(name)) for name in sites_of(trace)["function"].dropna())
    return frozenset(match[0] for match in names if match)
