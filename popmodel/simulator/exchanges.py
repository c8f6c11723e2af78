"""The messages of collectives as SimGrid SMPI sends them, as operations of each rank.

SMPI posts all messages of a linear algorithm at once, so that those that wait for their receiver
overlap. With its selector ``default``: Bcast by a binomial tree, Reduce, Gather and Scatter to and
from the root at once, Allreduce as Reduce and Bcast, Barrier over rank 0, Allgather and Scan to all
at once, Reduce_scatter as Reduce and Scatter, of different parts pairwise or by recursive doubling,
Alltoall by members and size as its selector ``ompi`` (all at once, pairwise, Bruck), Alltoallv at
once. With ``rdb``: Allreduce and Barrier by recursive doubling.

Source: SimGrid 3.32 to 4.1, ``src/smpi/colls`` (``smpi_default_selector.cpp``,
``smpi_nbc_impl.cpp``, ``smpi_openmpi_selector.cpp``); its runtimes are in
``tests/simulator/test_simgrid.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from popmodel.simulator.program import Op

Exchange: TypeAlias = tuple[Op, int, float]
"""An operation, the rank of its partner, and which part of the collective's bytes it moves."""

# Members below which a row holds, and the sizes, B for one peer, from and below which Alltoall is
# pairwise and Bruck's; else all messages are sent at once.
_ALLTOALL = (
    (8, (2**19, 2**20), (0, 0)),
    (16, (0, 0), (0, 0)),
    (32, (0, 0), (4, 512)),
    (64, (0, 0), (0, 512)),
    (256, (2**18, math.inf), (0, 1024)),
    (512, (2**15, math.inf), (0, 1024)),
    (1024, (2**18, math.inf), (0, 512)),
    (2048, (0, 0), (0, 512)),
    (4096, (0, 0), (0, 1024)),
    (math.inf, (0, 0), (0, 2048)),
)
_DOUBLED = 1 << 19  # B of a Reduce_scatter of different parts, up to which it doubles


def operations(
    kind: str,
    members: int,
    root: int,
    rank: int,
    size: int,
    recursive_doubling: bool,
    by_peer: bool = False,
    parts: Sequence[int] = (),
) -> Iterator[Exchange]:
    """Yield the operations of a member."""
    others = [other for other in range(members) if other != rank]
    if members < 2:
        return
    if kind in ("init", "allreduce", "barrier") and recursive_doubling:
        yield from _doubling(members, rank, 1.0, adjacent=kind == "allreduce")
    elif kind in ("init", "barrier"):
        yield from _to_root(0, rank, others, 0.0)
        yield from _from_root(0, rank, others, 0.0)
    elif kind == "bcast":
        yield from _down_the_tree(members, root, rank)
    elif kind in ("reduce", "gather"):
        yield from _to_root(root, rank, others, 1.0)
    elif kind == "scatter":
        yield from _from_root(root, rank, others, 1.0)
    elif kind == "allreduce":
        yield from _to_root(0, rank, others, 1.0)
        yield from _down_the_tree(members, 0, rank)
    elif kind == "reduce_scatter" and parts:
        yield from _reduce_scatter(rank, parts)
    elif kind == "reduce_scatter":
        yield from _to_root(0, rank, others, 1.0)
        yield from _from_root(0, rank, others, 1 / members)
    elif kind == "scan":
        yield from _at_once(range(rank), range(rank + 1, members), 1.0)
    elif kind == "allgather" or by_peer:
        yield from _at_once(others, others, 1.0)
    else:
        yield from _alltoall(members, rank, others, size)


def _alltoall(members: int, rank: int, others: list[int], size: int) -> Iterator[Exchange]:
    pairwise, bruck = next(row[1:] for row in _ALLTOALL if members < row[0])
    if bruck[0] <= size < bruck[1]:
        for log in range((members - 1).bit_length()):
            parts = sum(peer >> log & 1 for peer in range(members))
            yield from _shift(members, rank, 1 << log, float(parts))
    elif pairwise[0] <= size < pairwise[1]:
        for hop in range(1, members):
            if members & (members - 1):  # SMPI has none for these, and ends with an error
                yield from _shift(members, rank, hop, 1.0)
            else:
                yield from _swap(rank ^ hop, rank ^ hop, 1.0)
    else:
        yield from _at_once(others, others, 1.0)


def _to_root(root: int, rank: int, others: list[int], part: float) -> Iterator[Exchange]:
    if rank == root:
        yield from _at_once(others, (), part)
    else:
        yield Op.SEND, root, part


def _from_root(root: int, rank: int, others: list[int], part: float) -> Iterator[Exchange]:
    if rank == root:
        yield from _at_once((), others, part)
    else:
        yield Op.RECEIVE, root, part


def _at_once(
    sources: range | list[int] | tuple[()], goals: range | list[int] | tuple[()], part: float
) -> Iterator[Exchange]:
    """Post all receives, send all, wait for all."""
    for op, partners in (
        (Op.POST, sources),
        (Op.ISEND, goals),
        (Op.WAIT_RECEIVE, sources),
        (Op.WAIT_SEND, goals),
    ):
        for partner in partners:
            yield op, partner, part


def _down_the_tree(members: int, root: int, rank: int) -> Iterator[Exchange]:
    """A binomial tree: the farthest child first."""
    place = (rank - root) % members
    hop = 1
    while hop < members and not place & hop:
        hop <<= 1
    if place:
        yield Op.RECEIVE, (place - hop + root) % members, 1.0
    while hop := hop >> 1:
        if place + hop < members:
            yield Op.SEND, (place + hop + root) % members, 1.0


def _doubling(members: int, rank: int, part: float, adjacent: bool) -> Iterator[Exchange]:
    """Recursive doubling; the surplus over a power of two folds into the first places and out.

    The surplus is every other one of the first ranks, beside its partner (adjacent), or the last.
    """
    power = 1 << (members.bit_length() - 1)
    surplus = members - power
    places: Sequence[int] = range(power)
    folded = range(power, members)
    if adjacent:
        places = [*range(1, 2 * surplus, 2), *range(2 * surplus, members)]
        folded = range(0, 2 * surplus, 2)
    if rank in folded:
        partner = places[folded.index(rank)]
        yield Op.SEND, partner, part
        yield Op.RECEIVE, partner, part
        return
    place = places.index(rank)
    if place < surplus:
        yield Op.RECEIVE, folded[place], part
    hop = 1
    while hop < power:
        partner = places[place ^ hop]
        yield from _swap(partner, partner, part)
        hop <<= 1
    if place < surplus:
        yield Op.SEND, folded[place], part


def _reduce_scatter(rank: int, parts: Sequence[int]) -> Iterator[Exchange]:
    """Of different parts: to each its own, or all but their own by recursive doubling.

    SMPI counts elements where it decides; they are taken to have one byte.
    """
    members, whole = len(parts), sum(parts)
    if whole > _DOUBLED:
        for hop in range(1, members):
            to, source = (rank + hop) % members, (rank - hop) % members
            yield from _swap(to, source, parts[to] / whole, parts[rank] / whole)
        return
    mask = 1
    while mask < members:
        other = rank ^ mask
        mine, theirs = rank // mask * mask, other // mask * mask
        out, back = (1 - sum(parts[each : each + mask]) / whole for each in (mine, theirs))
        if other < members:
            yield from _swap(other, other, out, back)
        # Of a group without all of its partners, those that heard of theirs tell the rest.
        known, half = members - mine - mask, mask >> 1
        while theirs + mask > members and half:
            edge = rank // (2 * half) * (2 * half) + known
            if rank < edge <= rank ^ half:
                yield Op.SEND, rank ^ half, back
            elif rank ^ half < edge <= rank:
                yield Op.RECEIVE, rank ^ half, back
            half >>= 1
        mask <<= 1


def _shift(members: int, rank: int, hop: int, part: float) -> Iterator[Exchange]:
    return _swap((rank + hop) % members, (rank - hop) % members, part)


def _swap(to: int, source: int, part: float, back: float | None = None) -> Iterator[Exchange]:
    """A Sendrecv: the receive is posted, the send blocks."""
    back = part if back is None else back
    yield Op.POST, source, back
    yield Op.SEND, to, part
    yield Op.WAIT_RECEIVE, source, back
