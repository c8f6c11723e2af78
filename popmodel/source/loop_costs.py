"""What an iteration of a nest of loops costs: operations, and data through each level of cache.

Traffic follows from layer conditions: with the data that one turn of a loop of the nest touches
still in a cache, what the next turn touches again does not come from behind it. The outermost loop
whose turn fits decides. Two accesses to an array share what they load if the distance of their
elements is a small multiple of what the index moves by in a turn of such a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import sympy

from popmodel.source.formula_text import expanded, symbols_of
from popmodel.source.source_events import Access, Nest

LINE = 64
"""Bytes of a cache line."""
LATENCY = 4
"""Cycles until the result of an addition or a multiplication is there, on common processors."""
FLOPS = {
    **dict.fromkeys(("compare", "fabs", "abs"), 0),
    **dict.fromkeys(("sin", "cos", "exp", "log", "log2", "log10", "fmod"), 20),
    **dict.fromkeys(("atan", "asin", "acos", "cbrt"), 25),
    **dict.fromkeys(("tan", "atan2", "sinh", "cosh", "tanh"), 30),
    **{"hypot": 6, "pow": 40},
}
"""Operations of a function in common libraries, to the nearest five; of operators: one."""
_FARTHEST = 4
"""Turns between two accesses that are looked for."""


class WorkingSet(NamedTuple):
    """Bytes that have to stay in a cache, of a team whose threads share the outermost loop."""

    divided: sympy.Expr  # Of all threads, a part each
    own: sympy.Expr  # Of each thread
    shared: sympy.Expr  # The same for all threads

    def of_thread(self, threads: sympy.Expr) -> sympy.Expr:
        """In a cache of its own."""
        return expanded(self.divided / threads + self.own + self.shared)

    def in_common(self, threads: sympy.Expr) -> sympy.Expr:
        """Of a thread, in a cache that all share."""
        return expanded((self.divided + self.shared) / threads + self.own)


class LoopCost(NamedTuple):
    """A loop nest down to one of its innermost loops."""

    levels: tuple[Nest, ...]  # The outermost first
    flops: sympy.Expr
    loads: sympy.Expr  # Of 8 bytes
    stores: sympy.Expr
    # Working set with what passes the cache that holds it: bytes and written bytes of an iteration;
    # the largest set first, the last without one.
    layers: tuple[tuple[WorkingSet | None, sympy.Expr, sympy.Expr], ...]
    chain: float = 0  # Cycles that a turn waits for the one before


def loop_costs(nest: Nest, between: WorkingSet | None) -> Iterator[LoopCost]:
    """Costs of a nest, for each of its innermost loops.

    Parameters
    ----------
    nest : Nest
        The outermost loop.
    between : WorkingSet, optional
        What is touched until it is carried out again: a cache that holds that loads nothing. None
        of what is carried out once.

    Yields
    ------
    LoopCost
        Per iteration of an innermost loop.
    """
    for levels in _paths(nest, ()):
        inner = levels[-1]
        moved = [
            access
            for access in inner.tally.accesses
            if inner.variable in access.depends or _moves(access, inner.variable)
        ]
        flops = sum(FLOPS.get(name, 1) * times for name, times in inner.tally.flops.items())
        yield LoopCost(
            levels,
            sympy.nsimplify(flops),
            _amount(moved, is_store=False),
            _amount(moved, is_store=True),
            tuple(_layers(levels, between)),
            flops * LATENCY if _is_recurrence(inner) else 0,
        )


def _is_recurrence(nest: Nest) -> bool:
    """Whether a turn reads the element that the turn before has written."""
    before = {nest.variable: nest.variable + 1}
    stored = {
        (access.array, _expanded(access.path)) for access in nest.tally.accesses if access.is_store
    }
    return any(
        (access.array, moved) in stored
        for access in nest.tally.accesses
        if not access.is_store and _moves(access, nest.variable)
        for moved in [_expanded(access.path, before)]
    )


def _expanded(
    path: Sequence[sympy.Expr | str], by: dict[sympy.Symbol, sympy.Expr] | None = None
) -> tuple[sympy.Expr | str, ...]:
    return tuple(one if isinstance(one, str) else expanded(one.xreplace(by or {})) for one in path)


ArraySizes: TypeAlias = dict[str, tuple[sympy.Expr, bool]]
"""Bytes of arrays that a nest touches, and whether all threads touch all of them."""


def array_sizes(nest: Nest) -> ArraySizes:
    """Bytes of each array of a nest."""
    return _largest(_array_sizes(levels) for levels in _paths(nest, ()))


def working_set(nests: Iterable[ArraySizes]) -> WorkingSet:
    """Bytes of all arrays of some nests, each array once."""
    sizes = _largest(nests).values()
    divided, shared = (
        sympy.Add(*(amount for amount, is_shared in sizes if is_shared == wanted))
        for wanted in (False, True)
    )
    return WorkingSet(divided, sympy.Integer(0), shared)


def _largest(parts: Iterable[ArraySizes]) -> ArraySizes:
    largest: ArraySizes = {}
    for part in parts:
        for array, size in part.items():
            if array not in largest or size[0].count_ops() > largest[array][0].count_ops():
                largest[array] = size
    return largest


def _paths(nest: Nest, outer: tuple[Nest, ...]) -> Iterator[tuple[Nest, ...]]:
    levels = (*outer, nest)
    inner = [one for one in nest.inner if one.tally.size or one.inner]
    if not inner:
        if nest.tally.size or not outer:
            yield levels
        return
    for one in inner:
        yield from _paths(one, levels)


def _amount(accesses: Sequence[Access], is_store: bool) -> sympy.Expr:
    """Loads or stores of 8 bytes, each element once."""
    places = {(one.array, one.path): one.size for one in accesses if one.is_store == is_store}
    return sympy.Rational(sum(places.values()), 8)


def _places(
    levels: Sequence[Nest], accesses: Sequence[Access], meaning: dict[sympy.Symbol, sympy.Expr]
) -> Iterator[tuple[Access, sympy.Expr]]:
    """Accesses with the number of their element; of several indexes the last one moves fastest.

    Elements along an index are a symbol with a meaning where they are a sum: distances stay short.
    """
    spans: dict[tuple[str, int], sympy.Expr] = {}  # Elements of an array along an index
    lengths: dict[sympy.Basic, sympy.Expr] = {}  # By index
    indexes = [[part for part in one.path if isinstance(part, sympy.Basic)] for one in accesses]
    for access, parts in zip(accesses, indexes, strict=True):
        for number, part in enumerate(reversed(parts[1:])):
            if part not in lengths:
                steps = [(_step(part, one.variable), one.trip) for one in levels]
                lengths[part] = sympy.Add(*(abs(step) * trip for step, trip in steps if step != 0))
            span = lengths[part]
            if span == 0 and part.is_Integer:
                span = part + 1
            old = spans.setdefault((access.array, number), sympy.Integer(1))
            is_longer = (
                span > old
                if span.is_number and old.is_number
                else ((not span.is_number, span.count_ops()) > (not old.is_number, old.count_ops()))
            )
            if is_longer:
                spans[access.array, number] = span
    for number, (place, span) in enumerate(spans.items()):
        if span.is_Add:
            spans[place] = sympy.Symbol(f"span {number}", integer=True, positive=True)
            meaning[spans[place]] = span
    for access, parts in zip(accesses, indexes, strict=True):
        index, elements = sympy.Integer(0), sympy.Integer(1)
        for number, part in enumerate(reversed(parts)):
            index += part * elements
            elements *= spans.get((access.array, number), 1)
        yield access, expanded(index)


@lru_cache(100_000)
def _step(index: sympy.Expr, variable: sympy.Symbol) -> sympy.Expr:
    """By how much an index moves in a turn of a loop."""
    moving = [one for one in sympy.Add.make_args(index) if variable in symbols_of(one)]
    next_turn = {variable: variable + 1}
    return expanded(sympy.Add(*(one.xreplace(next_turn) - one for one in moving)))


def _moves(access: Access, variable: sympy.Symbol) -> bool:
    formulas = (part for part in access.path if isinstance(part, sympy.Basic))
    return any(variable in symbols_of(part) for part in formulas)


class _AccessStream(NamedTuple):
    """Accesses to an array that move alike: elements, from the first to the last of them."""

    array: str
    size: int  # Of an element; of fields that of the object
    lines: int  # Of cache, at most, that an element is in: one for each field
    steps: tuple[sympy.Expr, ...]  # By how many elements it moves in a turn of each loop
    offsets: tuple[sympy.Expr, ...]
    is_written: bool


def _streams(
    levels: Sequence[Nest],
) -> tuple[list[_AccessStream], dict[sympy.Symbol, sympy.Expr]]:
    """Streams of all accesses, and what the symbols in their steps and offsets stand for."""
    variables = [level.variable for level in levels]
    accesses = [
        access
        for level in levels
        for access in level.tally.accesses
        if any(_moves(access, variable) for variable in variables)
    ]
    found: dict[tuple[str, tuple[sympy.Expr, ...]], list[tuple[Access, sympy.Expr]]] = {}
    meaning: dict[sympy.Symbol, sympy.Expr] = {}
    for access, index in _places(levels, accesses, meaning):
        steps = tuple(_step(index, one) for one in variables)
        if any(step.free_symbols & set(variables) for step in steps):
            steps = tuple(
                sympy.Integer(LINE) if _moves(access, one) else sympy.Integer(0)
                for one in variables
            )
        found.setdefault((access.array, steps), []).append((access, index))
    made = []
    zero = dict.fromkeys(variables, sympy.Integer(0))
    for (array, steps), members in found.items():
        offsets = dict.fromkeys(expanded(index.xreplace(zero)) for _, index in members)
        made.append(
            _AccessStream(
                array,
                members[0][0].record or members[0][0].size,
                len({_fields(access) for access, _ in members if access.record}) or 1,
                steps,
                tuple(offsets),
                any(access.is_store for access, _ in members),
            )
        )
    return made, meaning


def _fields(access: Access) -> tuple[str, ...]:
    return tuple(part for part in access.path if isinstance(part, str))


def _layers(
    levels: Sequence[Nest], between: WorkingSet | None
) -> Iterator[tuple[WorkingSet | None, sympy.Expr, sympy.Expr]]:
    """Working sets, the largest first, with what passes the cache that holds them."""
    streams, meaning = _streams(levels)
    if not streams:
        yield None, sympy.Integer(0), sympy.Integer(0)
        return
    if between is not None:
        yield between, sympy.Integer(0), sympy.Integer(0)
    depth = len(levels)
    last = None
    for level in range(depth):  # a turn of this loop stays, and so of all inside
        read, written = _traffic(levels, streams, level)
        if (read, written) == last:
            continue
        last = read, written
        is_end = level == depth - 1
        size = None if is_end else _turn(levels, streams, level)
        yield (
            size and WorkingSet(*(expanded(part.xreplace(meaning)) for part in size)),
            read,
            written,
        )


def _groups(stream: _AccessStream, level: int) -> list[list[sympy.Expr]]:
    """Offsets that share what they load, if turns of a loop and of those inside of it stay."""
    groups: list[list[sympy.Expr]] = []
    for offset in stream.offsets:
        near = [
            group
            for group in groups
            if any(_is_near(offset - other, stream.steps[level:]) for other in group)
        ]
        joined = [offset, *(other for group in near for other in group)]
        groups = [group for group in groups if group not in near] + [joined]
    return groups


def _is_near(distance: sympy.Expr, steps: Sequence[sympy.Expr]) -> bool:
    distance = expanded(distance)
    if distance.is_number:
        return bool(abs(distance) < LINE)
    return any(_turns_between(distance, step) is not None for step in steps if not step.is_number)


@lru_cache(100_000)
def _turns_between(distance: sympy.Expr, step: sympy.Expr) -> int | None:
    """After how many turns, few of them, an access comes into the line that lies so far away."""
    parts, by_step = distance.as_coefficients_dict(), step.as_coefficients_dict()
    for turns in range(-_FARTHEST, _FARTHEST + 1):
        if all(parts[term] == turns * by_step[term] for term in by_step if not term.is_number):
            rest = expanded(distance - turns * step)
            if rest.is_number and abs(rest) < LINE:
                return turns
    return None


def _traffic(
    levels: Sequence[Nest], streams: Sequence[_AccessStream], level: int
) -> tuple[sympy.Expr, sympy.Expr]:
    """Bytes, and written ones, of an iteration, with a turn of a loop in the cache."""
    read, written = sympy.Integer(0), sympy.Integer(0)
    for stream in streams:
        step = stream.steps[-1]
        moved = sympy.Integer(stream.size)
        if step.is_number and step != 0:
            moved = sympy.Integer(min(stream.size * abs(step), LINE * stream.lines))
        elif step != 0:  # each element is in a line of its own
            moved = sympy.Integer(LINE * min(stream.lines, -(-stream.size // LINE)))
        share = sympy.Integer(1)
        for number in range(level, len(levels)):
            if stream.steps[number] == 0:
                share /= levels[number].trip
        groups = len(_groups(stream, level))
        read += groups * moved * share  # what is written is read before
        if stream.is_written:
            written += moved * share
    return expanded(read + written), expanded(written)


def _turn(levels: Sequence[Nest], streams: Sequence[_AccessStream], level: int) -> WorkingSet:
    """Bytes that have to stay for turns of a loop to find what those before have touched."""
    own = shared = sympy.Integer(0)
    for stream in streams:
        step = stream.steps[level]
        for group in _groups(stream, level):
            amount, turns = _length(levels, stream, level + 1), 1
            if step != 0:
                turns += _spread(group, step)
                if not step.is_number:
                    amount = step
            total = turns * amount * stream.size
            if stream.steps[0] == 0:
                shared += total
            else:
                own += total
    return WorkingSet(sympy.Integer(0), expanded(own), expanded(shared))


def _spread(offsets: Sequence[sympy.Expr], step: sympy.Expr) -> int:
    """Turns between the accesses at offsets that are the most turns apart."""
    pairs = ((a, b) for a in offsets for b in offsets if a != b or step.is_number)
    return max((abs(_turns_between(expanded(a - b), step) or 0) for a, b in pairs), default=0)


def _length(levels: Sequence[Nest], stream: _AccessStream, begin: int) -> sympy.Expr:
    """Elements that a stream touches in all turns of the loops from one on."""
    amount = sympy.Integer(1)
    for number in range(begin, len(levels)):
        if stream.steps[number] != 0:
            amount *= levels[number].trip
    return amount


def _array_sizes(levels: Sequence[Nest]) -> ArraySizes:
    streams, meaning = _streams(levels)
    sizes: ArraySizes = {}
    for stream in streams:
        outer = next((number for number, step in enumerate(stream.steps) if step != 0), None)
        if outer is None:
            continue
        step = stream.steps[outer]
        amount = _length(levels, stream, outer)
        if not step.is_number:
            amount = step * (levels[outer].trip + _spread(stream.offsets, step))
        amount = expanded((amount * stream.size).xreplace(meaning))
        if stream.array not in sizes or amount.count_ops() > sizes[stream.array][0].count_ops():
            sizes[stream.array] = amount, stream.steps[0] == 0
    return sizes
