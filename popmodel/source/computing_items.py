"""From loops of a program to the items of a signature that compute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sympy

from popmodel.signatures.document import Noted, TomlItem
from popmodel.source.formula_text import expanded, parts_of, sum_over_turns
from popmodel.source.item_folding import WorkAmounts
from popmodel.source.loop_costs import LINE, LoopCost, WorkingSet
from popmodel.source.openmp_directives import PAID, OpenMPDirective, parsed_directive
from popmodel.source.source_events import Access, Nest, Work
from popmodel.source.symbolic_memory import PROCESSES, RANK, THREADS

if TYPE_CHECKING:
    from popmodel.source.draft import Draft

_LONG = 150
"""Parts of a formula that is left as it is: SymPy takes long to see its factors."""
_LEVELS = ("L2", "L3", "MEM")
_BEFORE = {"L2": "L1", "L3": "L2", "MEM": "last"}
"""The cache that decides what passes from a level."""


def computing_items(
    draft: Draft,
    work: Sequence[tuple[Work, Sequence[sympy.Basic]]],
    between: WorkingSet | None,
) -> Iterator[TomlItem]:
    alike: dict[Any, Any] = {}  # Members of an item, or an item
    for one, conditions in work:
        _advise_by_thread(draft, one.nest)
        construct = _construct(draft, one)
        if construct is not None:
            alike[one.nest.place, len(alike)] = construct
            continue
        of_ranks = sympy.And(*(condition for condition in conditions if condition.has(RANK)))
        share = sympy.Piecewise((1, of_ranks), (0, True))
        if sum_over_turns(share, RANK, PROCESSES) is None:
            draft.note(f"{one.nest.place}: done by some processes only, left out")
            continue
        decided, others = draft.by_split([one for one in conditions if not one.has(RANK)])
        share *= decided
        unknown = (condition for condition in others if draft.neighbour(condition) is None)
        draft.note_conditions(one.nest.place, unknown)
        for cost in draft.costs_of(one.nest, between):
            key = (
                one.function,
                one.directive,
                cost.levels[-1].place,
                cost.flops,
                cost.loads,
                cost.stores,
                cost.layers[-1][1:],
                share,
            )
            alike.setdefault(key, []).append((cost, one, conditions))
    for key, members in alike.items():
        yield members if isinstance(members, TomlItem) else _work_item(draft, members, key[-1])


def _construct(draft: Draft, work: Work) -> TomlItem | None:
    """An item for a directive that costs time without a loop of its own."""
    constructs = parsed_directive(work.directive).constructs
    if not constructs or constructs[-1] not in PAID or work.nest.tally.size or work.nest.inner:
        return None
    name = draft.called(f"{work.function}, {constructs[-1]}", work.nest.place)
    entries = {
        "name": name,
        "trip": draft.quantity(work.nest.trip, work.nest.place),
        "constructs": dict.fromkeys(
            ["parallel"] * (constructs[0] == "parallel") + [PAID[constructs[-1]]], 1
        ),
    }
    return TomlItem("parallel", entries)


def _times(
    draft: Draft, members: Sequence[tuple[LoopCost, Work, Sequence[sympy.Basic]]]
) -> sympy.Expr:
    """Iterations of all executions, of the process with the most neighbours, or walls."""
    total = sympy.Integer(0)
    by_guard: dict[tuple[tuple[int, bool] | None, sympy.Expr], int] = {}
    for cost, _, conditions in members:
        guard = next(iter(filter(None, map(draft.neighbour, conditions))), None)
        trips = sympy.Integer(1)
        for trip in map(draft.plain, mean_trips(cost)):
            trips *= trip
        by_guard[guard, expanded(trips)] = by_guard.get((guard, expanded(trips)), 0) + 1
    for (guard, trips), times in by_guard.items():
        total += times * trips if guard is None else _sides(draft, guard, times) * trips
    if total.has(sympy.Piecewise) or parts_of(total) > _LONG:
        return total
    return sympy.factor_terms(sympy.expand(total))


def _sides(draft: Draft, guard: tuple[int, bool], times: int) -> sympy.Expr:
    """Of two directions, how many have a neighbour, or none, at most; times how often."""
    dim, has_neighbour = guard
    extent = draft.extent(dim)
    if draft.periodic(dim):
        return sympy.Integer(times if has_neighbour else 0)
    rounds, rest = divmod(times, 2)
    if has_neighbour:
        return rounds * sympy.Min(extent - 1, 2) + rest * sympy.Min(extent - 1, 1)
    return rounds * sympy.Piecewise((2, sympy.Eq(extent, 1)), (1, True)) + rest


def _work_item(
    draft: Draft,
    members: Sequence[tuple[LoopCost, Work, Sequence[sympy.Basic]]],
    share: sympy.Expr,
) -> TomlItem:
    """An item of equal work, which a share of 1 or 0 of a process carries out, or does not."""
    cost, work, _ = members[0]
    place = cost.levels[-1].place
    name = draft.called(work.function, cost.levels[0].place)
    entries: dict[str, Any] = {"name": name}
    is_parallel = bool(work.directive)
    trips = [draft.plain(trip) for trip in mean_trips(cost)]
    iterations = sympy.Mul(*trips) if is_parallel else _times(draft, members)
    by_rank = iterations * share if iterations.has(RANK) or not share.has(RANK) else share
    iterations = draft.over_ranks(iterations * share, place)
    draft.amounts[name] = WorkAmounts(
        work.function,
        work.directive,
        iterations,
        (cost.flops, cost.loads, cost.stores, *cost.layers[-1][1:]),
    )
    if is_parallel:
        directive = parsed_directive(work.directive)
        shared, inner = (
            sympy.expand(sympy.Mul(*part))
            for part in (trips[: directive.collapsed], trips[directive.collapsed :])
        )
        shared = shared * share
        entries["trip"] = draft.quantity(shared, cost.levels[0].place)
        if inner != 1:
            entries["inner"] = draft.quantity(inner)
        entries |= _clauses(directive)
        sharing = _shared_writes(draft, cost, shared, inner, entries)
        if sharing:
            entries["shared_writes"] = sharing
    else:
        entries["trip"] = draft.quantity(iterations, place)
    if by_rank.has(RANK):
        text = draft.quantity(by_rank, is_by_rank=True)
        if re.search(r"\brank\b", str(text)):  # No name in place of a formula that is too long
            entries["by_rank"] = text
    for key in ("flops", "loads", "stores"):
        value = getattr(cost, key)
        if value != 0:
            entries[key] = draft.quantity(value)
    if cost.chain:
        note = "cycles, operations one after the other: a turn needs what the one before has made"
        entries["chain"] = Noted(cost.chain, note)
    threads = sympy.Symbol("T", integer=True, positive=True) if is_parallel else sympy.Integer(1)
    names = [
        (
            draft.named_set(f"{name}_set{number}", size.of_thread(threads)),
            draft.named_set(f"{name}_last{number}", size.in_common(threads)),
        )
        for number, (size, *_) in enumerate(cost.layers[:-1], start=1)
        if size is not None
    ]
    for number, key in ((1, "bytes"), (2, "written")):
        passed = [
            draft.quantity(_where_nothing_is_done(draft, layer[number])) for layer in cost.layers
        ]
        traffic = {
            level: text for level in _LEVELS if (text := _traffic(passed, level, names)) != 0
        }
        if traffic:
            entries[key] = traffic
    draft.iterations[name] = cost.levels[-1].tally
    if len(trips) > 1:
        draft.turns[name] = draft.quantity(trips[-1])
    instructions = cost.loads + cost.stores + cost.flops + 3
    entries["instructions"] = Noted(
        draft.quantity(instructions), "operations, loads, stores, and three of the loop"
    )
    return TomlItem("parallel" if is_parallel else "serial", entries)


def _advise_by_thread(draft: Draft, nest: Nest) -> None:
    """Say where the number of a thread decides which element of a cache line it writes to."""
    for level in _levels(nest) if draft.threads else ():
        for access in level.tally.accesses:
            last = next((part for part in access.path[::-1] if isinstance(part, sympy.Basic)), None)
            if not access.is_store or last is None:
                continue
            distance = abs(sympy.expand(last.xreplace(draft.threads) - last)) * access.size
            if distance.is_number and 0 < distance < LINE:
                _advise(draft, access, distance)


def _levels(nest: Nest) -> Iterator[Nest]:
    yield nest
    for inner in nest.inner:
        yield from _levels(inner)


def _advise(draft: Draft, access: Access, distance: sympy.Expr) -> None:
    name = access.array.partition("#")[0]
    draft.advice.append(
        f"{access.place}: neighbouring threads write to the same cache lines of {name}, "
        f"{float(distance):g} B apart: give each a line of its own"
    )


def _shared_writes(
    draft: Draft, cost: LoopCost, shared: sympy.Expr, inner: sympy.Expr, entries: dict[str, Any]
) -> dict[str, Any]:
    """Writes to lines that neighbouring threads write to as well, by the indexes of stores."""
    chunk = sympy.Integer(entries.get("chunk", 1))
    if entries.get("schedule", "static") == "static" and "chunk" not in entries:
        chunk = sympy.cancel(shared / THREADS)
    if not chunk.is_number or entries.get("schedule") == "guided":
        return {}
    outer, stores = cost.levels[0].variable, {}
    for level in cost.levels:
        for access in level.tally.accesses:
            parts = [part for part in access.path if isinstance(part, sympy.Basic)]
            steps = [sympy.expand(part.subs(outer, outer + 1) - part) for part in parts]
            if access.is_store and steps and not any(steps[:-1]) and steps[-1].is_number:
                distance = abs(steps[-1]) * access.size
                if distance > 0 and chunk * distance < LINE:
                    stores[access.array, access.path] = distance, access
    if not stores:
        return {}
    distance, access = min(stores.values(), key=lambda store: float(store[0]))
    _advise(draft, access, distance)
    return {
        "count": draft.quantity(shared * inner * len(stores)),
        "bytes": int(distance),
        "chunk": draft.quantity(sympy.Max(chunk, 1)),
    }


def _traffic(passed: Sequence[Any], level: str, names: Sequence[tuple[str, str]]) -> Any:
    """Bytes of an iteration through a level, by the working sets that a cache holds."""
    *before, text = passed
    for (own, common), here in reversed(list(zip(names, before, strict=True))):
        if here != text:
            name = common if level == "MEM" else own
            text = f"if_fits({name}, {here}, {text}, '{_BEFORE[level]}')"
    return text


def _where_nothing_is_done(draft: Draft, amount: sympy.Expr) -> sympy.Expr:
    """A share of a loop's turns that is a number, too, where an unknown count of them is zero."""
    unknown = draft.interpreter.unknown.keys()
    preset = {
        symbol: one.default
        for symbol, one in draft.interpreter.parameters.items()
        if one.default is not None
    }
    turns: dict[sympy.Basic, sympy.Basic] = {}
    for share in (one for one in amount.atoms(sympy.Pow) if one.exp.is_negative):
        if share.free_symbols & unknown:
            turns[share] = sympy.Max(share.base, 1) ** share.exp
        elif share.base.xreplace(preset) == 0:
            turns[share] = sympy.Piecewise((share, share.base > 0), (1, True))
    return amount.xreplace(turns)


def mean_trips(cost: LoopCost) -> list[sympy.Expr]:
    """Turns of each loop for each turn of those outside of it, in the mean."""
    means: list[sympy.Expr] = []
    before = sympy.Integer(1)
    for number, level in enumerate(cost.levels):
        total = level.trip
        outside = cost.levels[:number]
        if not any(total.has(outer.variable) for outer in outside):
            means.append(total)
            before = before * total
            continue
        for outer in reversed(outside):
            if total.has(outer.variable):
                exact = sum_over_turns(total, outer.variable, outer.trip)
                # of others the mean of the first and the last turn
                ends = total.subs(outer.variable, 0) + total.subs(outer.variable, outer.trip - 1)
                total = ends * outer.trip / 2 if exact is None else exact
            else:
                total = total * outer.trip
        means.append(sympy.cancel(total / before))
        before = total
    return means


def _clauses(directive: OpenMPDirective) -> dict[str, Any]:
    """Keys of a parallel item by the clauses of its directive."""
    entries: dict[str, Any] = {}
    kind, _, chunk = (directive.argument("schedule") or "").rpartition(":")[2].partition(",")
    if kind.strip().lower() in ("static", "dynamic", "guided"):
        entries["schedule"] = kind.strip().lower()
        if chunk.strip().isdigit() and int(chunk) > 0:
            entries["chunk"] = int(chunk)
    constructs = {"parallel_for" if directive.constructs[0] == "parallel" else "for": 1}
    if directive.argument("reduction") is not None:
        constructs = {"for": 1, "reduction": 1}
    entries["constructs"] = constructs
    return entries
