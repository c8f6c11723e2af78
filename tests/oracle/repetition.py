"""Nested loops of a sequence, found in the plainest way: the reference of `popmodel.structure`.

All repetitions are found by comparing the sequence with itself at every distance, items are nested
objects, and nothing is hashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from popmodel.structure.repetition import Repetition

LEAST = 3
LONGEST = 64


@dataclass
class Item:
    """A token, or a loop with all the items that it executes."""

    symbol: int
    children: list[Item] = field(default_factory=list)


@dataclass
class Slot:
    """A token or a loop of the nest."""

    symbol: int
    body: list[Slot]
    counts: list[int] = field(default_factory=list)
    unrolled: bool = False
    node: int = -1
    passed: int = 0


def repetition(tokens: Sequence[int], *, alone: bool = False, shortest: bool = False) -> Repetition:
    """Find the loops of a sequence."""
    items = [Item(int(token)) for token in tokens]
    symbols = max((item.symbol for item in items), default=-1) + 1
    bodies: list[list[int]] = []
    while True:
        level = [item.symbol for item in items]
        loops = _loops(level, [_size(each.symbol, bodies, symbols) for each in items])
        if not loops:
            break
        if shortest:
            least = min(period for _, period, _ in loops)
            loops = [loop for loop in loops if loop[1] == least]
        for begin, period, _ in loops:
            if level[begin : begin + period] not in bodies:
                bodies.append(level[begin : begin + period])
        known = [b for b in bodies if len(b) <= LONGEST] if alone else []
        items = _collapsed(items, level, loops, bodies, known, symbols)
    return _numbered(len(tokens), items, bodies, symbols)


def _worth(sizes: list[int], begin: int, length: int, period: int) -> bool:
    saved = (length // period - 1) * sum(sizes[begin : begin + period])
    return length >= 2 * period and saved >= LEAST


def _loops(level: list[int], sizes: list[int]) -> list[tuple[int, int, int]]:
    """Begin, period and count of loops, none inside another."""
    return sorted(_longest_first(0, len(level), _runs(level), sizes))


def _longest_first(
    begin: int, end: int, runs: list[tuple[int, int, int]], sizes: list[int]
) -> list[tuple[int, int, int]]:
    """The longest repetitions of a stretch, or the loops in their bodies."""
    chosen = []
    free = [begin <= at < end for at in range(end)]
    while True:
        pieces = [
            (start - stop, period, start)
            for first, last, period in runs
            for start, stop in _pieces(free, first, min(last, end))
            if _worth(sizes, start, stop - start, period)
        ]
        if not pieces:
            return chosen
        negative, period, first = min(pieces)
        count = -negative // period
        free[first : first + count * period] = [False] * (count * period)
        inner = _longest_first(
            first, first + period, [run for run in runs if run[2] < period], sizes
        )
        if inner:
            chosen += [(b + turn * period, p, c) for turn in range(count) for b, p, c in inner]
        else:
            chosen.append((first, period, count))


def _pieces(free: list[bool], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The free stretches between two places."""
    at = begin
    while at < end:
        stop = at
        while stop < end and free[stop]:
            stop += 1
        if stop > at:
            yield at, stop
        at = stop + 1


def _runs(level: list[int]) -> list[tuple[int, int, int]]:
    """Begin, end and period of all maximal repetitions."""
    found: dict[tuple[int, int], int] = {}
    for period in range(1, len(level) // 2 + 1):
        begin = 0
        while begin + period < len(level):
            end = begin
            while end + period < len(level) and level[end] == level[end + period]:
                end += 1
            if end - begin >= period:
                found.setdefault((begin, end + period), period)
            begin = end + 1
    return [(begin, end, period) for (begin, end), period in found.items()]


def _collapsed(
    items: list[Item],
    level: list[int],
    loops: list[tuple[int, int, int]],
    bodies: list[list[int]],
    known: list[list[int]],
    symbols: int,
) -> list[Item]:
    """The items above: loops, and single bodies of loops that are known."""
    loop_at = {begin: (period, period * count) for begin, period, count in loops}
    until = [min([b for b in loop_at if b >= at], default=len(level)) for at in range(len(level))]
    known = sorted(known, key=len, reverse=True)
    above, at = [], 0
    while at < len(level):
        body = None
        if at in loop_at:
            body = level[at : at + loop_at[at][0]]
        else:
            for each in known:
                if at + len(each) <= until[at] and level[at : at + len(each)] == each:
                    body = each
                    break
        if body is None:
            above.append(items[at])
            at += 1
            continue
        loop = Item(symbols + bodies.index(body))
        while at < len(level) and level[at : at + len(body)] == body:
            if at in loop_at and loop_at[at][0] == len(body):
                end = at + loop_at[at][1]
            elif at not in loop_at and at + len(body) <= until[at]:
                end = at + len(body)
            else:
                break
            loop.children += items[at:end]
            at = end
        above.append(loop)
    return above


def _numbered(size: int, items: list[Item], bodies: list[list[int]], symbols: int) -> Repetition:
    def slot(symbol: int) -> Slot:
        inner = bodies[symbol - symbols] if symbol >= symbols else []
        return Slot(symbol, [slot(each) for each in inner])

    def tally(item: Item, mine: Slot) -> None:
        if mine.body:
            mine.counts.append(len(item.children) // len(mine.body))
            for at, child in enumerate(item.children):
                tally(child, mine.body[at % len(mine.body)])

    def unroll(mine: Slot) -> None:
        for inner in mine.body:
            unroll(inner)
        constant = mine.body and len(set(mine.counts)) == 1
        if constant and (mine.counts[0] - 1) * _places(mine) < LEAST:
            mine.unrolled = True
            mine.body = [_copy(each) for _ in range(mine.counts[0]) for each in mine.body]

    token: list[int] = []
    parent: list[int] = []
    counts: list[list[int]] = []

    def number(mine: Slot, above: int) -> None:
        if not mine.unrolled:
            mine.node = len(token)
            token.append(mine.symbol if not mine.body and above >= 0 else -1)
            parent.append(above)
            counts.append([])
            above = mine.node
        for inner in mine.body:
            number(inner, above)

    node: list[int] = []
    iteration: list[int] = []

    def walk(item: Item, mine: Slot, turn: int) -> None:
        if not mine.body:
            node.append(mine.node)
            iteration.append(turn)
            return
        if not mine.unrolled:
            counts[mine.node].append(len(item.children) // len(mine.body))
        for at, child in enumerate(item.children):
            if not mine.unrolled and at % len(mine.body) == 0:
                mine.passed += 1
            walk(child, mine.body[at % len(mine.body)], turn if mine.unrolled else mine.passed - 1)

    root = Slot(-1, [slot(item.symbol) for item in items])
    for item, mine in zip(items, root.body, strict=True):
        tally(item, mine)
    for mine in root.body:
        unroll(mine)
    number(root, -1)
    counts[0].append(1)
    for item, mine in zip(items, root.body, strict=True):
        walk(item, mine, 0)
    assert len(node) == size
    return Repetition(
        np.array(token, np.int32),
        np.array(parent, np.int32),
        np.cumsum([0, *map(len, counts)]).astype(np.int64),
        np.array([count for each in counts for count in each], np.int32),
        np.array(node, np.int32),
        np.array(iteration, np.int32),
    )


def _copy(mine: Slot) -> Slot:
    return Slot(mine.symbol, [_copy(each) for each in mine.body], unrolled=mine.unrolled)


def _places(mine: Slot) -> int:
    return sum(map(_places, mine.body)) if mine.body else 1


def _size(symbol: int, bodies: list[list[int]], symbols: int) -> int:
    """Places of a token or a loop."""
    if symbol < symbols:
        return 1
    return sum(_size(each, bodies, symbols) for each in bodies[symbol - symbols])
