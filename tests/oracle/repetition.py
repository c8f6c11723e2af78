"""Nested loops of a sequence, found in the plainest way: the reference of `popmodel.structure`.

All maximal repetitions of the sequence are found; the longest become loops, and those inside of a
body are found in the body. The innermost loops then become tokens of their own, whatever their
counts, and the search goes on in the shorter sequence: so loops around others whose counts drift
are found, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.structure.repetition import Repetition


def repetition(tokens: NDArray[np.int32]) -> Repetition:
    """Find the loops of a sequence.

    Parameters
    ----------
    tokens : int32[n]
        From 0.
    """
    level = tokens.tolist()
    symbols = int(tokens.max(initial=-1)) + 1
    bodies: dict[tuple[int, ...], int] = {}
    # Of each level above the tokens: where an item begins in the level below, and how many it has.
    levels: list[tuple[list[int], list[int]]] = []
    while True:
        found = list(_innermost(level))
        if not found:
            break
        for begin, period, _ in found:
            bodies.setdefault(tuple(level[begin : begin + period]), len(bodies))
        known = {body: symbols + number for body, number in bodies.items()}
        level, first = _collapsed(level, found, known)
        levels.append((first, [len(level)]))
    return _tree(tokens, symbols, list(bodies), levels, level)


def _worth(length: int, period: int) -> bool:
    """Whether a repetition saves enough to be a loop: calls made twice in a row are not."""
    return length >= 2 * period and (length // period - 1) * period >= 3


def _innermost(level: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Begin, period and count of the innermost loops of a level, in order."""
    runs = _runs(np.asarray(level, np.int64))
    chosen: list[tuple[int, int, int]] = []
    _choose(0, len(level), runs, chosen)
    yield from sorted(chosen)


def _choose(
    begin: int, end: int, runs: list[tuple[int, int, int]], chosen: list[tuple[int, int, int]]
) -> None:
    """Take the longest repetitions of a stretch first; add the innermost loops of each of them."""
    waiting = []
    for first, stop, period in runs:
        first, stop = max(first, begin), min(stop, end)
        if _worth(stop - first, period):
            waiting.append((first - stop, period, first, stop))
    heapq.heapify(waiting)
    free = [(begin, end)]
    while waiting:
        _, period, first, stop = heapq.heappop(waiting)
        parts = [(max(first, a), min(stop, b)) for a, b in free if a < stop and b > first]
        if parts != [(first, stop)]:
            for a, b in parts:
                if _worth(b - a, period):
                    heapq.heappush(waiting, (a - b, period, a, b))
            continue
        count = (stop - first) // period
        last = first + count * period
        within = [run for run in runs if run[0] < first + period and run[1] > first]
        inner: list[tuple[int, int, int]] = []
        _choose(first, first + period, [r for r in within if r[2] < period], inner)
        if inner:
            for turn in range(count):
                chosen += [(b + turn * period, p, c) for b, p, c in inner]
        else:
            chosen.append((first, period, count))
        free = [
            part
            for a, b in free
            for part in (((a, first), (last, b)) if a <= first < b else ((a, b),))
            if part[1] > part[0]
        ]


def _runs(level: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Begin, end and period of all maximal repetitions."""
    found = []
    for period in range(1, len(level) // 2 + 1):
        same = np.concatenate([[False], level[:-period] == level[period:], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1]).reshape(-1, 2)
        for begin, end in edges[edges[:, 1] - edges[:, 0] >= period].tolist():
            found.append((begin, end + period, period))
    primitive: dict[tuple[int, int], int] = {}
    for begin, end, period in found:
        primitive.setdefault((begin, end), period)
    return [(begin, end, period) for (begin, end), period in primitive.items()]


def _collapsed(
    level: list[int], found: list[tuple[int, int, int]], known: dict[tuple[int, ...], int]
) -> tuple[list[int], list[int]]:
    """The level above: loops as items, and where each item begins in this level."""
    above, first = [], []
    loops = {begin: (period, count) for begin, period, count in found}
    at = 0
    while at < len(level):
        first.append(at)
        if at in loops:
            period, count = loops[at]
            above.append(known[tuple(level[at : at + period])])
            at += period * count
        else:
            above.append(level[at])
            at += 1
    return above, first


def _tree(
    tokens: NDArray[np.int32],
    symbols: int,
    bodies: list[tuple[int, ...]],
    levels: list[tuple[list[int], list[int]]],
    top: list[int],
) -> Repetition:
    """Number the nodes of the nest and walk through the sequence."""
    token: list[int] = []
    parent: list[int] = []
    children: list[tuple[int, ...]] = []
    counts: list[list[int]] = []
    passed: list[int] = []

    def number(symbol: int, body: Sequence[int], above: int) -> int:
        mine = len(token)
        parent.append(above)
        token.append(symbol if symbol < symbols else -1)
        children.append(())
        counts.append([])
        passed.append(0)
        children[mine] = tuple(
            number(each, bodies[each - symbols] if each >= symbols else (), mine) for each in body
        )
        return mine

    number(symbols, top, -1)
    node = np.empty(len(tokens), np.int32)
    iteration = np.empty(len(tokens), np.int32)
    stops = [[*first[1:], 0] for first, _ in levels]
    for depth in range(len(levels)):
        below = levels[depth - 1][0] if depth else tokens
        stops[depth][-1] = len(below)

    def walk(depth: int, item: int, mine: int, turn: int) -> None:
        if depth < 0:
            node[item], iteration[item] = mine, turn
            return
        begin, end = levels[depth][0][item], stops[depth][item]
        if end - begin == 1:
            walk(depth - 1, begin, mine, turn)
            return
        body = children[mine]
        counts[mine].append((end - begin) // len(body))
        for at in range(begin, end):
            place = (at - begin) % len(body)
            if place == 0:
                passed[mine] += 1
            walk(depth - 1, at, body[place], passed[mine] - 1)

    for item, mine in enumerate(children[0]):
        walk(len(levels) - 1, item, mine, 0)
    counts[0].append(1)
    flat = [count for each in counts for count in each]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in counts])])
    return Repetition(
        np.array(token, np.int32),
        np.array(parent, np.int32),
        offsets.astype(np.int64),
        np.array(flat, np.int32),
        node,
        iteration,
    )
