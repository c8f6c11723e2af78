"""Joins source with a traced run, by file:line of the calls of MPI.

How often the process with most calls comes to a line, and how many bytes a call there moves, are
formulas in the source and numbers in the trace. A formula with one number that nobody knows gives
that number; one without any is checked, and what does not agree is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from popmodel.runs.sites import sites_of
from popmodel.source.formula_text import expanded
from popmodel.source.source_events import Conditional, Event, MessageCall, RepeatedEvents, Work
from popmodel.source.symbolic_memory import PROCESSES, RANK

if TYPE_CHECKING:
    from popmodel.source.draft import Draft
    from popmodel.traces import Trace

_AT_LINE = re.compile(r":\d+$")
_LINES = 5
"""Lines of a call: a trace may name a later one than that where it begins."""
_EQUAL = 0.005
"""Relative difference of numbers that agree."""


class MeasuredLine(NamedTuple):
    """What a trace says of a quantity of the source."""

    formula: sympy.Expr
    number: float
    what: str  # Such as ``B in each call``
    place: str  # With the name of the call


def join(draft: Draft, trace: Trace) -> tuple[dict[sympy.Symbol, tuple[Any, str]], list[str]]:
    """Numbers that a trace gives for symbols, with their places, and what does not agree."""
    lines = list(_lines(draft, trace))
    known: dict[sympy.Symbol, Any] = {PROCESSES: sympy.Integer(trace.processes)}
    measured: dict[sympy.Symbol, tuple[Any, str]] = {}
    while True:
        solved = False
        for line in lines:
            formula = line.formula.xreplace(known)
            symbols = formula.free_symbols
            if len(symbols) != 1 or symbols & {RANK}:
                continue
            (symbol,) = symbols
            slope = expanded(formula.diff(symbol))
            if not slope.is_number or slope == 0:
                continue
            value = (sympy.nsimplify(line.number) - formula.xreplace({symbol: 0})) / slope
            if value.is_Integer and value >= 0:
                known[symbol] = value
                measured[symbol] = value, line.place
                solved = True
        if not solved:
            return measured, list(_findings(lines, known, len(measured)))


def _findings(
    lines: Sequence[MeasuredLine], known: dict[sympy.Symbol, Any], solved: int
) -> Iterator[str]:
    if not lines:
        yield (
            "no call of the trace stands on a line of these files, so that nothing of it was used: "
            "compile them with -g, and trace that program"
        )
        return
    agreeing = -solved
    for line in lines:
        value = line.formula.xreplace(known)
        if not value.is_number:
            continue
        said = float(value)
        if abs(said - line.number) <= _EQUAL * max(abs(line.number), abs(said)):
            agreeing += 1
        else:
            times = f", {line.number / said:.3g} times that" if said and line.number else ""
            if line.formula == 0:
                yield f"{line.place}: made {line.number:g} times, of which the draft says nothing"
                continue
            yield (
                f"{line.place}: the source says {said:g} {line.what}, the trace "
                f"{line.number:g}{times}"
            )
    yield (
        f"of {len(lines)} counts and sizes of calls in the trace {agreeing} agree with the source, "
        f"{solved} give a number that it does not say"
    )


def _lines(draft: Draft, trace: Trace) -> Iterator[MeasuredLine]:
    calls: dict[tuple[str, str], list[tuple[sympy.Expr, MessageCall]]] = {}
    for times, call in _calls(draft.interpreter.events, sympy.Integer(1)):
        calls.setdefault((f"mpi_{call.name}", str(call.place)), []).append((times, call))
    table = sites_of(trace)
    table = table[table["kind"].str.startswith("MPI_") & (table["place"] != "")]
    for (kind, place), rows in table.groupby(["kind", "place"], sort=False):
        assert isinstance(kind, str) and isinstance(place, str)
        if not _AT_LINE.search(place):
            continue  # an address
        where = f"{place}: {kind}"
        file, _, line = place.rpartition(":")
        of_source = next(
            (
                calls[kind.lower(), begin]
                for begin in (f"{file}:{int(line) - number}" for number in range(_LINES))
                if (kind.lower(), begin) in calls
            ),
            None,
        )
        executions = float(rows["executions_max"].max())
        if of_source is None:
            if any(other.rpartition(":")[0] == file for _, other in calls):
                none = sympy.Integer(0)
                yield MeasuredLine(none, executions, "calls by a process", where)
            continue
        count = sympy.Add(*(times for times, _ in of_source))
        yield MeasuredLine(draft.plain(count), executions, "calls by a process", where)
        sizes = {call.bytes for _, call in of_source}
        size = rows["size_median"].dropna()
        is_constant = (rows["size_min"] == rows["size_max"]).all()
        (formula,) = sizes if len(sizes) == 1 else (None,)
        if formula is not None and len(size) and is_constant and size.nunique() == 1:
            yield MeasuredLine(draft.plain(formula), float(size.iloc[0]), "B in each call", where)


def _calls(events: Sequence[Event], times: sympy.Expr) -> Iterator[tuple[sympy.Expr, MessageCall]]:
    """All calls with how often a process comes to them, conditions taken as true."""
    for event in events:
        if isinstance(event, MessageCall):
            yield times, event
        elif isinstance(event, RepeatedEvents):
            yield from _calls(event.body, times * event.count)
        elif isinstance(event, Conditional):
            yield from _calls(event.body, times / _period(event.condition))
        else:
            assert isinstance(event, Work)


def _period(condition: sympy.Basic) -> sympy.Expr:
    """Of ``turn % n == m``: n."""
    if isinstance(condition, sympy.Eq) and isinstance(condition.lhs, sympy.Mod):
        period: sympy.Expr = condition.lhs.args[1]
        return period
    return sympy.Integer(1)
