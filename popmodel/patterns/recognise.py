"""Which pattern a set of messages is: found by generating the pattern and comparing.

A reading is kept only if it generates the same pairs of sender and receiver, each as often. Where
several do, all are told: of two ranks everything is an exchange of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.patterns.grid import Direction, GridMessages, directions, periods_of, strides_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEW = 64
"""Messages that tell most grids that they are not."""


@dataclass(frozen=True)
class PatternReading:
    """One way to understand a set of messages."""

    kind: str  # halo, shift, butterfly, transpose, root, pairwise or list
    facts: Mapping[str, Any]  # What generates the messages
    even: bool  # Whether messages that the pattern does not tell apart have equal sizes


def readings(
    messages: GridMessages, processes: int, grids: Sequence[Sequence[int]]
) -> list[PatternReading]:
    """All patterns that messages are, the most telling first; always ends with a list."""
    found = []
    for dims in grids:
        if (reading := on_grid(messages, dims)) is not None:
            found.append(reading)
            break
    for each in (_transpose, _butterfly, _root, _pairwise, _ring):
        found += each(messages, processes)
    return [*found, PatternReading("list", {}, even=True)]


def on_grid(messages: GridMessages, dims: Sequence[int]) -> PatternReading | None:
    """A halo, or a shift along one direction; None if messages go otherwise.

    Where every rank also sends as many messages to itself, the grid has a further, periodic
    dimension with one rank along it.
    """
    if not _near(messages, dims):
        return None
    processes = math.prod(dims)
    own = messages.sender == messages.receiver
    themselves = int(own.sum()) // processes
    if np.any(np.bincount(messages.sender[own], minlength=processes) != themselves):
        return None
    messages = messages.only(~own)
    times, alike = 1, True
    periodic, ways = _ways(messages, dims)
    if not ways and (times := _often(messages, processes)) > 1:
        every = messages.size.reshape(-1, times)  # of each pair as many, in order of their sizes
        alike = bool((every.min(axis=1) == every.max(axis=1)).all())
        messages = messages.only(np.arange(len(messages)) % times == 0)
        periodic, ways = _ways(messages, dims)
    if not ways or not _has_faces([way.move for way in ways]):
        return None
    slanted = any(sum(map(abs, way.move)) > 1 for way in ways)
    if slanted and _even(messages.size) and len(messages) == processes * (processes - 1):
        return None  # all pairs alike: the corners of a halo are smaller than its faces
    facts: dict[str, Any] = {"dims": tuple(dims), "periodic": periodic, "directions": []}
    if themselves:
        facts["with_itself"] = themselves
    if times > 1:
        facts["times"] = [times]
    even = alike
    for way in ways:
        sizes = messages.size[way.rows]
        even &= bool(sizes.min() == sizes.max())
        facts["directions"].append(
            {"move": way.move, "messages": len(sizes), "bytes": _size(sizes)}
        )
    if len(ways) == 1 and sum(map(abs, ways[0].move)) == 1 and not themselves:
        dim = int(np.flatnonzero(ways[0].move)[0])
        return PatternReading("shift", {**facts, "dim": dim, "by": ways[0].move[dim]}, even)
    return PatternReading("halo", facts, even)


def _near(messages: GridMessages, dims: Sequence[int]) -> bool:
    """Whether messages go one step along dimensions at most, a few messages asked first."""
    for some in (slice(0, _FEW), slice(_FEW, None)):
        sender, receiver = messages.sender[some], messages.receiver[some]
        for extent, stride in zip(dims, strides_of(dims), strict=True):
            step = np.abs(receiver // stride % extent - sender // stride % extent)
            if np.any((step > 1) & (step < extent - 1)):
                return False
    return True


def _ways(
    messages: GridMessages, dims: Sequence[int]
) -> tuple[tuple[bool, ...], list[Direction] | None]:
    """Directions of messages, and which dimensions they wrap around."""
    periodic = periods_of(messages, dims)
    ways = directions(messages, dims, periodic)
    if ways is None and any(periodic):  # an exchange of two, in one direction only
        periodic = tuple(wraps and extent > 2 for wraps, extent in zip(periodic, dims, strict=True))
        ways = directions(messages, dims, periodic)
    return periodic, ways


def _often(messages: GridMessages, processes: int) -> int:
    """How often every pair is there at least, if all are there a multiple of that."""
    _, often = np.unique(messages.sender * processes + messages.receiver, return_counts=True)
    return int(np.gcd.reduce(often)) if len(often) else 1


def _has_faces(moves: Sequence[tuple[int, ...]]) -> bool:
    """Whether there are messages straight along every dimension that others go along aslant."""
    straight = {move.index(step) for move in moves for step in (1, -1) if _faces(move, step)}
    return all(axis in straight for move in moves for axis, step in enumerate(move) if step)


def _faces(move: tuple[int, ...], step: int) -> bool:
    return sum(map(abs, move)) == 1 and step in move


def _size(sizes: NDArray[np.int64]) -> float:
    """What all messages have, else their mean."""
    mean = float(sizes.mean())
    return int(mean) if mean == int(mean) else mean


def _butterfly(messages: GridMessages, processes: int) -> Iterator[PatternReading]:
    """Ranks exchange with the rank XOR 1, 2, 4, ...: all ranks, each as often."""
    flips, often = np.unique(messages.sender ^ messages.receiver, return_counts=True)
    if not len(flips) or flips[0] == 0 or np.any(often % processes) or np.any(flips >= processes):
        return
    if any(int(flip) & (int(flip) - 1) for flip in flips) or processes & (processes - 1):
        return
    for flip, times in zip(flips, often // processes, strict=True):
        mine = messages.sender[(messages.sender ^ messages.receiver) == flip]
        if not np.array_equal(np.unique(mine, return_counts=True)[1], np.full(processes, times)):
            return
    sizes = _by_key(messages.sender ^ messages.receiver, messages.size)
    facts = {
        "flips": tuple(int(flip) for flip in flips),
        "times": tuple(int(times) for times in often // processes),
        "bytes": [_size(each) for each in sizes],
    }
    yield PatternReading("butterfly", facts, all(each.min() == each.max() for each in sizes))


def _transpose(messages: GridMessages, processes: int) -> Iterator[PatternReading]:
    """Rank (i, j, k) exchanges with (j, i, k), where these differ or also with itself."""
    rank = np.arange(processes)
    if len(messages) > processes or len(messages) < 2:
        return
    some, goals = messages.sender[:_FEW], messages.receiver[:_FEW]
    divisors = [extent for extent in range(1, processes // 2 + 1) if processes % extent == 0]
    for block in divisors:
        tiles = processes // block
        for columns in divisors[1:]:
            if tiles % columns or columns > tiles // 2:
                continue
            tile = some // block
            goal = (tile % columns * (tiles // columns) + tile // columns) * block + some % block
            if not np.array_equal(goal, goals):
                continue
            tile = rank // block
            goal = (tile % columns * (tiles // columns) + tile // columns) * block + rank % block
            for with_itself in (False, True):
                mine = rank if with_itself else rank[goal != rank]
                if np.array_equal(messages.sender, mine) and np.array_equal(
                    messages.receiver, goal[mine]
                ):
                    facts = {
                        "columns": columns,
                        "rows": tiles // columns,
                        "block": block,
                        "with_itself": int(with_itself),
                        "bytes": [_size(messages.size)],
                    }
                    yield PatternReading("transpose", facts, _even(messages.size))
                    return


def _root(messages: GridMessages, processes: int) -> Iterator[PatternReading]:
    """One rank sends to all others, or all others to it, each as often."""
    for way, ends, others in (
        ("to all", messages.sender, messages.receiver),
        ("from all", messages.receiver, messages.sender),
    ):
        if not len(ends) or ends.min() != ends.max():
            continue
        root = int(ends[0])
        who, often = np.unique(others, return_counts=True)
        every = np.delete(np.arange(processes), root)
        if np.array_equal(who, every) and often.min() == often.max():
            facts = {"root": root, "way": way, "times": [int(often[0])]}
            yield PatternReading(
                "root", {**facts, "bytes": [_size(messages.size)]}, _even(messages.size)
            )
            return


def _pairwise(messages: GridMessages, processes: int) -> Iterator[PatternReading]:
    """Every rank sends to every other, each as often."""
    pairs, often = np.unique(messages.sender * processes + messages.receiver, return_counts=True)
    if not len(pairs) or often.min() != often.max() or processes < 2:
        return
    with_itself = len(pairs) == processes**2
    themselves = np.any(pairs // processes == pairs % processes)
    if with_itself or (len(pairs) == processes * (processes - 1) and not themselves):
        facts = {"times": [int(often[0])], "with_itself": int(with_itself)}
        yield PatternReading(
            "pairwise", {**facts, "bytes": [_size(messages.size)]}, _even(messages.size)
        )


def _ring(messages: GridMessages, processes: int) -> Iterator[PatternReading]:
    """Every rank sends to the rank at the same offsets, modulo P."""
    offset = (messages.receiver - messages.sender) % processes
    steps, often = np.unique(offset, return_counts=True)
    if not len(steps) or len(steps) > max(processes // 2, 1) or np.any(often % processes):
        return
    for step, times in zip(steps, often // processes, strict=True):
        if np.any(np.bincount(messages.sender[offset == step], minlength=processes) != times):
            return
    sizes = _by_key(offset, messages.size)
    facts = {
        "offsets": tuple(
            int(step) - processes if 2 * step > processes else int(step) for step in steps
        ),
        "times": tuple(int(times) for times in often // processes),
        "bytes": [_size(each) for each in sizes],
    }
    yield PatternReading("ring", facts, all(_even(each) for each in sizes))


def _by_key(key: NDArray[np.int64], size: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Sizes of the messages with each key, in the order of the keys."""
    return [size[key == each] for each in np.unique(key)]


def _even(sizes: NDArray[np.int64]) -> bool:
    return bool(sizes.min(initial=2**62) == sizes.max(initial=0)) or not len(sizes)
