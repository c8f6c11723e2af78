"""Which pattern a set of messages is: found by generating the pattern and comparing.

A reading is kept only if it generates the same pairs of sender and receiver, each as often. Where
several do, all are told: of two ranks everything is an exchange of pairs. Ranks of grids are
numbered with the last dimension fastest, as those of MPI_Cart_create and of signatures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.structure.rank_formulas import transposes

if TYPE_CHECKING:
    from numpy.typing import NDArray

MESSAGES = np.dtype([("sender", np.int64), ("receiver", np.int64), ("size", np.int64)])
"""Messages: ranks, and bytes."""
MOST_DIMENSIONS = 3
_FEW = 64
"""Messages that tell most grids that they are not."""


class PatternReading(NamedTuple):
    """One way to understand a set of messages."""

    kind: str  # halo, shift, pipeline, butterfly, transpose, ring, root, pairwise or list
    facts: Mapping[str, Any]  # What generates the messages
    even: bool  # Whether messages that the pattern does not tell apart have equal sizes


def as_messages(
    sender: NDArray[np.integer[Any]],
    receiver: NDArray[np.integer[Any]],
    size: NDArray[np.integer[Any]],
) -> NDArray[np.void]:
    """Messages as rows: `MESSAGES`[m]."""
    messages = np.empty(len(size), MESSAGES)
    messages["sender"], messages["receiver"], messages["size"] = sender, receiver, size
    return messages


def joined(*parts: NDArray[np.void]) -> NDArray[np.void]:
    """Several sets of messages as one, ordered by sender, receiver and size."""
    every = np.concatenate(parts)
    return every[np.lexsort((every["size"], every["receiver"], every["sender"]))]


def readings(
    messages: NDArray[np.void], processes: int, grids: Sequence[tuple[int, ...]]
) -> list[PatternReading]:
    """All patterns that messages are, the most telling first; always ends with a list."""
    on_grids = (on_grid(messages, dims) for dims in grids)
    first = next((reading for reading in on_grids if reading is not None), None)
    others = (
        read(messages, processes) for read in (_transpose, _butterfly, _root, _pairwise, _ring)
    )
    found = [reading for reading in (first, *others) if reading is not None]
    return [*found, PatternReading("list", {}, even=True)]


# Cartesian grids of ranks.


def extents_of(processes: int, most: int = MOST_DIMENSIONS) -> Iterator[tuple[int, ...]]:
    """All grids of so many ranks, those with few dimensions first; none has an extent of 1."""

    def factors(rest: int, number: int) -> Iterator[tuple[int, ...]]:
        if number == 1:
            yield (rest,)
            return
        for first in range(2, rest // 2 + 1):
            if rest % first == 0:
                for others in factors(rest // first, number - 1):
                    yield first, *others

    for number in range(1, most + 1):
        yield from (dims for dims in factors(processes, number) if min(dims) > 1 or processes == 1)


def _strides(dims: Sequence[int]) -> list[int]:
    """By how much the rank grows with a step along each dimension."""
    return [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]


@lru_cache(maxsize=64)
def neighbours(
    dims: tuple[int, ...], periodic: tuple[bool, ...], move: tuple[int, ...]
) -> NDArray[np.int64]:
    """Rank one step along a move from each rank; -1 where the grid ends: int64[P]."""
    rank = np.arange(math.prod(dims))
    found = np.zeros(len(rank), np.int64)
    inside = np.ones(len(rank), bool)
    for extent, stride, wraps, step in zip(dims, _strides(dims), periodic, move, strict=True):
        to = rank // stride % extent + step
        if not wraps:
            inside &= (to >= 0) & (to < extent)
        found += to % extent * stride
    return np.where(inside, found, -1)


def on_grid(messages: NDArray[np.void], dims: tuple[int, ...]) -> PatternReading | None:
    """A halo, or a shift along one direction; None if messages go otherwise.

    Where every rank also sends as many messages to itself, the grid has a further, periodic
    dimension with one rank along it.
    """
    if not _near(messages, dims):
        return None
    processes = math.prod(dims)
    own = messages["sender"] == messages["receiver"]
    themselves = int(own.sum()) // processes
    if np.any(np.bincount(messages["sender"][own], minlength=processes) != themselves):
        return None
    messages = messages[~own]
    times, alike = 1, True
    periodic, ways = _ways(messages, dims)
    if not ways and (times := _often(messages, processes)) > 1:
        every = messages["size"].reshape(-1, times)  # of each pair as many, in order of their sizes
        alike = bool((every.min(axis=1) == every.max(axis=1)).all())
        messages = messages[::times]
        periodic, ways = _ways(messages, dims)
    if not ways:
        return None
    straight = {move for move in ways if sum(map(abs, move)) == 1}
    crossed = {axis for move in straight for axis, step in enumerate(move) if step}
    if any(step and axis not in crossed for move in ways for axis, step in enumerate(move)):
        return None  # aslant along a dimension that has no faces
    all_pairs = len(messages) == processes * (processes - 1)
    if len(straight) < len(ways) and all_pairs and _even(messages["size"]):
        return None  # the corners of a halo are smaller than its faces
    facts: dict[str, Any] = {"dims": dims, "periodic": periodic, "directions": []}
    if themselves:
        facts["with_itself"] = themselves
    if times > 1:
        facts["times"] = [times]
    for move, rows in ways.items():
        sizes = messages["size"][rows]
        alike &= _even(sizes)
        facts["directions"].append({"move": move, "messages": len(sizes), "bytes": _size(sizes)})
    if len(ways) == len(straight) == 1 and not themselves:
        (move,) = ways
        (dim,) = crossed
        return PatternReading("shift", {**facts, "dim": dim, "by": move[dim]}, alike)
    return PatternReading("halo", facts, alike)


def _near(messages: NDArray[np.void], dims: Sequence[int]) -> bool:
    """Whether messages go one step along dimensions at most, a few messages asked first."""
    for some in (messages[:_FEW], messages[_FEW:]):
        sender, receiver = some["sender"], some["receiver"]
        for extent, stride in zip(dims, _strides(dims), strict=True):
            step = np.abs(receiver // stride % extent - sender // stride % extent)
            if np.any((step > 1) & (step < extent - 1)):
                return False
    return True


def _ways(
    messages: NDArray[np.void], dims: tuple[int, ...]
) -> tuple[tuple[bool, ...], dict[tuple[int, ...], NDArray[np.int64]] | None]:
    """Rows of messages by the direction they go in, and which dimensions they wrap around."""
    periodic = _periods(messages, dims)
    ways = _directions(messages, dims, periodic)
    if ways is None and any(periodic):  # an exchange of two, in one direction only
        periodic = tuple(wraps and extent > 2 for wraps, extent in zip(periodic, dims, strict=True))
        ways = _directions(messages, dims, periodic)
    return periodic, ways


def _periods(messages: NDArray[np.void], dims: tuple[int, ...]) -> tuple[bool, ...]:
    """Along which dimensions messages go from the last to the first or back.

    With two ranks along a dimension both neighbours are the same: it is periodic if one sends the
    other two messages.
    """
    found = []
    pairs, often = np.unique(_pairs(messages, math.prod(dims)), return_counts=True)
    for axis, extent in enumerate(dims):
        move = tuple(int(other == axis) for other in range(len(dims)))
        around = neighbours(dims, (True,) * len(dims), move)
        straight = neighbours(dims, (False,) * len(dims), move)
        wrapping = np.flatnonzero(straight < 0)
        codes = np.concatenate(
            [wrapping * len(around) + around[wrapping], around[wrapping] * len(around) + wrapping]
        )
        here = np.searchsorted(pairs, codes)
        there = np.append(pairs, -1)[here] == codes
        least = 2 if extent == 2 else 1
        found.append(bool(np.any(there & (np.append(often, 0)[here] >= least))))
    return tuple(found)


def _directions(
    messages: NDArray[np.void], dims: tuple[int, ...], periodic: tuple[bool, ...]
) -> dict[tuple[int, ...], NDArray[np.int64]] | None:
    """Rows of messages by the move from sender to receiver; None if they are not all of one.

    Along each move that is there, every rank that has a neighbour sends to it.
    """
    codes = _pairs(messages, math.prod(dims))
    taken = np.zeros(len(codes), bool)
    found: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for move in _moves(len(dims)):
        to = neighbours(dims, periodic, move)
        senders = np.flatnonzero(to >= 0)
        if not len(senders):
            continue
        wanted = np.sort(senders * len(to) + to[senders])
        free = np.flatnonzero(~taken)
        at = np.searchsorted(codes[free], wanted)
        if len(free) < len(wanted) or at.max() >= len(free):
            continue
        if np.array_equal(codes[free[at]], wanted):
            found[move] = free[at]
            taken[free[at]] = True
            if taken.all():
                return found
    return None


@lru_cache
def _moves(dimensions: int) -> list[tuple[int, ...]]:
    """All moves to neighbours, straight ones first."""
    every = [move for move in product((1, 0, -1), repeat=dimensions) if any(move)]
    return sorted(every, key=lambda move: sum(map(abs, move)))


def _pairs(messages: NDArray[np.void], processes: int) -> NDArray[np.int64]:
    """A number for each pair, in the order of the messages, which rises."""
    codes: NDArray[np.int64] = messages["sender"] * processes + messages["receiver"]
    return codes


def _often(messages: NDArray[np.void], processes: int) -> int:
    """How often every pair is there at least, if all are there a multiple of that."""
    _, often = np.unique(_pairs(messages, processes), return_counts=True)
    return int(np.gcd.reduce(often)) if len(often) else 1


# Other patterns.


def _transpose(messages: NDArray[np.void], processes: int) -> PatternReading | None:
    """Rank (i, j, k) exchanges with (j, i, k), where these differ or also with itself."""
    if len(messages) > processes or len(messages) < 2:
        return None
    rank, sender, receiver = np.arange(processes), messages["sender"], messages["receiver"]
    for block, columns, rows, goal in transposes(processes):
        for with_itself, ranks in enumerate((rank[goal != rank], rank)):
            if np.array_equal(sender, ranks) and np.array_equal(receiver, goal[ranks]):
                sizes = messages["size"]
                facts: dict[str, Any] = {"columns": columns, "rows": rows, "block": block}
                facts |= {"with_itself": with_itself, "bytes": [_size(sizes)]}
                return PatternReading("transpose", facts, _even(sizes))
    return None


def _root(messages: NDArray[np.void], processes: int) -> PatternReading | None:
    """One rank sends to all others, or all others to it, each as often."""
    for way, end, other in (("to all", "sender", "receiver"), ("from all", "receiver", "sender")):
        ends = messages[end]
        if not len(ends) or ends.min() != ends.max():
            continue
        root = int(ends[0])
        who, often = np.unique(messages[other], return_counts=True)
        every = np.delete(np.arange(processes), root)
        if np.array_equal(who, every) and often.min() == often.max():
            sizes = messages["size"]
            facts = {"root": root, "way": way, "times": [int(often[0])], "bytes": [_size(sizes)]}
            return PatternReading("root", facts, _even(sizes))
    return None


def _pairwise(messages: NDArray[np.void], processes: int) -> PatternReading | None:
    """Every rank sends to every other, each as often."""
    pairs, often = np.unique(_pairs(messages, processes), return_counts=True)
    if not len(pairs) or often.min() != often.max() or processes < 2:
        return None
    with_itself = len(pairs) == processes**2
    themselves = np.any(pairs // processes == pairs % processes)
    if not with_itself and (len(pairs) != processes * (processes - 1) or themselves):
        return None
    sizes = messages["size"]
    facts = {"times": [int(often[0])], "with_itself": int(with_itself), "bytes": [_size(sizes)]}
    return PatternReading("pairwise", facts, _even(sizes))


def _butterfly(messages: NDArray[np.void], processes: int) -> PatternReading | None:
    """Ranks exchange with the rank XOR 1, 2, 4, ...: all ranks, each as often."""
    key = messages["sender"] ^ messages["receiver"]
    flips = np.unique(key).tolist()
    powers = all(0 < flip < processes and not flip & (flip - 1) for flip in flips)
    if not flips or not powers or processes & (processes - 1):
        return None
    by_flip = _alike(messages, key, processes)
    if by_flip is None:
        return None
    times, sizes = by_flip
    facts = {"flips": tuple(flips), "times": times, "bytes": [_size(each) for each in sizes]}
    return PatternReading("butterfly", facts, all(map(_even, sizes)))


def _ring(messages: NDArray[np.void], processes: int) -> PatternReading | None:
    """Every rank sends to the rank at the same offsets, modulo P."""
    key = (messages["receiver"] - messages["sender"]) % processes
    steps = np.unique(key).tolist()
    if not steps or len(steps) > max(processes // 2, 1):
        return None
    by_step = _alike(messages, key, processes)
    if by_step is None:
        return None
    times, sizes = by_step
    offsets = tuple(step - processes if 2 * step > processes else step for step in steps)
    facts = {"offsets": offsets, "times": times, "bytes": [_size(each) for each in sizes]}
    return PatternReading("ring", facts, all(map(_even, sizes)))


def _alike(
    messages: NDArray[np.void], key: NDArray[np.int64], processes: int
) -> tuple[tuple[int, ...], list[NDArray[np.int64]]] | None:
    """How often every rank sends with each key, and the sizes; None if not all do as often."""
    times, sizes = [], []
    for each in np.unique(key).tolist():
        mine = messages[key == each]
        often = np.bincount(mine["sender"], minlength=processes)
        if often.min() != often.max():
            return None
        times.append(int(often[0]))
        sizes.append(mine["size"])
    return tuple(times), sizes


def _size(sizes: NDArray[np.int64]) -> float:
    """What all messages have, else their mean."""
    mean = float(sizes.mean())
    return int(mean) if mean == int(mean) else mean


def _even(sizes: NDArray[np.int64]) -> bool:
    return not len(sizes) or bool(sizes.min() == sizes.max())
