"""Shortens the program of a draft to what a person reads: equal items once, small ones together.

An item that stands several times in one body is written once, in a loop with its count: amounts
stay exact, only the order of the executions is lost. Of a long program, computing below a
hundredth of the estimated cost is joined by function, and, if that does not do, by body.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from popmodel.signatures.document import Noted, TomlItem
from popmodel.source.formula_text import expanded, guess
from popmodel.source.intermediate_form import SourcePlace
from popmodel.source.source_events import Conditional, Event, estimate
from popmodel.source.symbolic_memory import THREADS

if TYPE_CHECKING:
    from popmodel.source.draft import Draft

SHORT = 40
"""Items that compute, of a program whose small ones are not joined."""
_SMALL = 0.01
"""Share of the estimated cost below which an item is small."""


_FEW = 12
"""Items of a body that is read as it is, but for loops that do the same."""
_LONG = 60
"""Operations of a formula that nobody reads."""


class WorkAmounts(NamedTuple):
    """What an item that computes does in one execution, all iterations together."""

    function: str
    directive: str
    iterations: sympy.Expr
    amounts: tuple[sympy.Expr, ...]  # Per iteration: flops, loads, stores, bytes, written bytes
    regions: int = 1  # How often threads start
    loops: int = 1  # That were joined

    def cost(self) -> float:
        """About how much there is to do, with a guess for each number that is not known."""
        size = self.iterations * (3 + sum(self.amounts[:3], sympy.Integer(0)))
        return guess(size)


def equal_once(items: Sequence[TomlItem], named: Callable[[], str]) -> list[TomlItem]:
    """Items of a long body, equal ones in a loop with their count where the first one stands."""
    is_short = len(items) <= _FEW
    keys: list[Any] = [
        number if is_short and item.kind != "loop" else _key(item)
        for number, item in enumerate(items)
    ]
    counts = Counter(keys)
    first = dict(zip(reversed(keys), reversed(items), strict=True))
    once: list[TomlItem] = []
    for count, run in groupby(dict.fromkeys(keys), key=lambda key: counts[key]):
        body = tuple(first[key] for key in run)
        if count == 1:
            once += body
        else:
            once.append(TomlItem("loop", {"name": named(), "count": count}, body))
    return once


def _key(item: TomlItem) -> tuple[Any, ...]:
    """What an item does, whatever its name and place are."""
    entries = tuple(
        (key, repr(value.value if isinstance(value, Noted) else value))
        for key, value in item.entries.items()
        if key != "name"
    )
    return item.kind, entries, tuple(map(_key, item.body))


def without_cheaper(draft: Draft, events: Sequence[Event]) -> Sequence[Event]:
    """Of two branches that nobody can decide the dearer one, and all else."""
    sides: dict[tuple[SourcePlace, sympy.Basic], list[Conditional]] = {}
    for event in events:
        if isinstance(event, Conditional) and draft.is_open(event.condition):
            both = frozenset((event.condition, sympy.Not(event.condition)))
            sides.setdefault((event.place, both), []).append(event)
    cheaper: list[Event] = []
    for (place, _), branches in sides.items():
        if len(branches) == 2:
            cheaper.append(min(branches, key=lambda branch: estimate(branch.body)))
            draft.note(f"{place}: of two branches that nobody can decide the dearer counts")
    return [event for event in events if not any(event is one for one in cheaper)]


def small_together(draft: Draft, program: Sequence[TomlItem]) -> list[TomlItem]:
    """A long program with its small items joined."""
    for by_function in (True, False):
        costs: dict[str, float] = {}
        _estimate(draft, program, 1.0, costs)
        if len(costs) <= SHORT:
            break
        limit = _SMALL * sum(costs.values())
        small = {name for name, cost in costs.items() if cost < limit}
        program = _joined(draft, program, small, by_function)
    return list(program)


def _estimate(
    draft: Draft, items: Iterable[TomlItem], times: float, costs: dict[str, float]
) -> None:
    for item in items:
        name = item.entries.get("name", "")
        if item.kind == "loop":
            _estimate(draft, item.body, times * draft.counts.get(name, 1.0), costs)
        elif name in draft.amounts:
            costs[name] = times * draft.amounts[name].cost()


def _joined(
    draft: Draft, items: Sequence[TomlItem], small: set[str], by_function: bool
) -> list[TomlItem]:
    groups: dict[Any, list[WorkAmounts]] = {}
    made: list[TomlItem | tuple[Any, ...]] = []
    for item in items:
        name = item.entries.get("name", "")
        if item.kind == "loop":
            body = _joined(draft, item.body, small, by_function)
            made.append(item._replace(body=tuple(body)))
        elif name in small and name in draft.amounts and "every" not in item.entries:
            work = draft.amounts[name]
            key = bool(work.directive), work.function if by_function else ""
            if key not in groups:
                made.append(key)
            groups.setdefault(key, []).append(work)
        else:
            made.append(item)
    return [
        item if isinstance(item, TomlItem) else joined_item(draft, groups[item]) for item in made
    ]


def _of_all(iterations: sympy.Expr, amount: sympy.Expr) -> sympy.Expr:
    """What all iterations do: a share of turns that may be none is multiplied out."""
    shares = [one for one in amount.atoms(sympy.Pow) if one.exp.is_negative and one.base.is_Add]
    product: sympy.Expr = iterations * amount
    return sympy.cancel(product) if shares else product


def joined_item(draft: Draft, members: Sequence[WorkAmounts]) -> TomlItem:
    """One item of several: what they do in one execution of their body, threads alike."""
    functions = list(dict.fromkeys(work.function for work in members))
    is_parallel = bool(members[0].directive)
    trip = THREADS if is_parallel else sympy.Integer(1)
    ones = sympy.Integer(1)
    totals = [
        sympy.Add(*(_of_all(work.iterations, (*work.amounts, ones)[number]) for work in members))
        for number in range(6)
    ]
    is_long = max(total.count_ops() for total in totals) > _LONG
    if is_long:
        trip = max(members, key=WorkAmounts.cost).iterations
        turns = guess(trip) or 1.0
        totals = [sympy.Rational(f"{guess(total) / turns:.3g}") for total in totals]
    else:
        totals = [expanded(total) / trip for total in totals]
    flops, loads, stores, moved, written, iterations = totals
    if is_long:
        moved = max(moved, written)  # of which there may be no guess
    several = f" and {len(functions) - 1} more functions" if len(functions) > 1 else ""
    name = draft.unique(f"small loops of {functions[0]}{several}")
    entries: dict[str, Any] = {"name": name, "trip": draft.quantity(trip)}
    for key, value in (("flops", flops), ("loads", loads), ("stores", stores)):
        if value != 0:
            entries[key] = draft.quantity(value)
    for key, value in (("bytes", moved), ("written", written)):
        if value != 0:
            size = draft.named_set(draft.unique(f"{functions[0]} {key}"), value)
            entries[key] = dict.fromkeys(("L2", "L3", "MEM"), size)
    entries["instructions"] = draft.quantity(flops + loads + stores + 3 * iterations)
    regions = sum(work.regions for work in members)
    if is_parallel:
        entries["constructs"] = {"parallel_for": regions}
    draft.amounts[name] = WorkAmounts(
        functions[0],
        members[0].directive,
        trip,
        (flops, loads, stores, moved, written),
        regions,
        sum(work.loops for work in members),
    )
    loops = draft.amounts[name].loops
    about = "loop" if loops == 1 else "loops"
    note = f"{loops} {about} below a hundredth of the estimated cost each, without what caches hold"
    if is_long:
        note += "; all as multiples of the dearest one, for the formulas are long"
    return TomlItem("parallel" if is_parallel else "serial", entries, (), (note,))


def texts_of(value: Any) -> Iterator[str]:
    """All that items say, in full."""
    if isinstance(value, Noted):
        yield str(value.value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from texts_of(part)
    else:
        yield str(value)


_AT_PLACE = re.compile(r"(\S+:\d+): (.*)")
_MOST_NOTES = 40
"""Notes that are shown."""


def several(places: Sequence[Any]) -> str:
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{places[0]}{more}"


def notes_once(notes: Iterable[str]) -> list[str]:
    """Notes that say the same of several places as one."""
    places: dict[str, list[str]] = {}
    for note in notes:
        match = _AT_PLACE.match(note)
        place, text = match.groups() if match else ("", note)
        places.setdefault(text, []).append(place)
    joined = [f"{several(where)}: {text}" if where[0] else text for text, where in places.items()]
    if len(joined) > _MOST_NOTES:
        rest = len(joined) - _MOST_NOTES
        joined = [*joined[:_MOST_NOTES], f"{rest} more notes on conditions and places like these"]
    return joined
