"""The messages of collectives as SimGrid SMPI sends them, as operations of each rank.

SMPI posts all messages of a linear algorithm at once, so that those that wait for their receiver
overlap. With its selector ``default``: Bcast by a binomial tree, Reduce, Gather and Scatter to and
from the root at once, Allreduce as Reduce and Bcast, Barrier over rank 0, Allgather and Scan to all
at once, Reduce_scatter as Reduce and Scatter, Alltoall by size (Bruck, all at once, pairwise),
Alltoallv at once. With
``rdb``: Allreduce and Barrier by recursive doubling.

Source: SimGrid, ``src/smpi/colls`` (``smpi_default_selector.cpp``, ``smpi_nbc_impl.cpp``,
``smpi_openmpi_selector.cpp``); its runtimes are in ``tests/simulator/test_simgrid.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from popmodel.simulator.program import Op

__all__ = ["Exchange", "operations"]

Exchange: TypeAlias = tuple[Op, int, float]
"""An operation, the rank of its partner, and which part of the collective's bytes it moves."""

_BRUCK = 200  # B for one peer, and processes from which on Alltoall is Bruck's
_BRUCK_PROCESSES = 12
_AT_ONCE = 3000  # B for one peer, up to which Alltoall sends all at once


def operations(
    kind: str,
    members: int,
    root: int,
    rank: int,
    size: int,
    recursive_doubling: bool,
    by_peer: bool = False,
) -> Iterator[Exchange]:
    """Yield the operations of a member.

    Parameters
    ----------
    kind : str
        One of `popmodel.simulator.program.COLLECTIVES`.
    members : int
        Number of members.
    root, rank : int
        Ranks of the root and of the member.
    size : int
        Bytes: the whole vector, or the part of one rank or peer.
    recursive_doubling : bool
        Whether Allreduce and Barrier are carried out by recursive doubling (``rdb``).
    by_peer : bool
        Whether it is the form with amounts for each peer: Alltoallv sends all at once, of any size.
    """
    others = [other for other in range(members) if other != rank]
    if members < 2:
        return
    if kind in ("init", "allreduce", "barrier") and recursive_doubling:
        yield from _doubling(members, rank, 1.0)
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
    elif kind == "reduce_scatter":
        yield from _to_root(0, rank, others, 1.0)
        yield from _from_root(0, rank, others, 1 / members)
    elif kind == "scan":
        yield from _at_once(range(rank), range(rank + 1, members), 1.0)
    elif kind == "allgather" or by_peer or (size >= _BRUCK and size < _AT_ONCE):
        yield from _at_once(others, others, 1.0)
    elif size >= _AT_ONCE:
        for hop in range(1, members):
            yield from _shift(members, rank, hop, 1.0)
    elif members > _BRUCK_PROCESSES:
        for log in range((members - 1).bit_length()):
            parts = sum(peer >> log & 1 for peer in range(members))
            yield from _shift(members, rank, 1 << log, float(parts))
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


def _doubling(members: int, rank: int, part: float) -> Iterator[Exchange]:
    """Recursive doubling; ranks beyond the largest power of two fold in and out."""
    power = 1 << (members.bit_length() - 1)
    if rank >= power:
        yield Op.SEND, rank - power, part
        yield Op.RECEIVE, rank - power, part
        return
    folded = rank + power < members
    if folded:
        yield Op.RECEIVE, rank + power, part
    hop = 1
    while hop < power:
        yield from _swap(rank ^ hop, rank ^ hop, part)
        hop <<= 1
    if folded:
        yield Op.SEND, rank + power, part


def _shift(members: int, rank: int, hop: int, part: float) -> Iterator[Exchange]:
    return _swap((rank + hop) % members, (rank - hop) % members, part)


def _swap(to: int, source: int, part: float) -> Iterator[Exchange]:
    """A Sendrecv: the receive is posted, the send blocks."""
    yield Op.POST, source, part
    yield Op.SEND, to, part
    yield Op.WAIT_RECEIVE, source, part
