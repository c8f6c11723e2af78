"""Collectives carried out as point-to-point messages.

The algorithms are the textbook ones (Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", 2005): dissemination for barriers, binomial trees for Bcast,
Reduce, Gather and Scatter, recursive doubling for Allreduce (processes beyond the largest power of
two fold in and out) and Scan, a ring for Allgather, pairwise exchange for Alltoall and
Reduce_scatter. A nonblocking collective makes its exchanges in the call that waits for it.

The compiled engine finds each step when a member comes to it (``popmodel/kernel/algorithms.hpp``):
the messages of an all-to-all grow with the square of its members, so no program lists them. Here is
what it needs to know: who is which rank, and what the messages cost, which only have a few sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.simulator.program import COLLECTIVES, Collectives, Op, Program
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Carried", "carry_out"]


@dataclass(frozen=True)
class Carried:
    """Collectives as messages; the compiled engine takes the columns by these names.

    Attributes
    ----------
    collective_kind : uint8[C]
        Index into `popmodel.simulator.program.COLLECTIVES`.
    collective_charge : int64[C]
        Row of the charges of the collective's first message size; those of the classes of the
        program's own messages come before.
    root_rank : int32[C]
        Rank of the root in the communicator; 0 where nobody is known to be the root.
    group : int32[C]
        Who takes part.
    group_offsets : int64[G + 1]
        Rows of a group in the next two.
    group_process, group_rank : int32[]
        Process indices of its members, ascending, and their ranks.
    """

    collective_kind: NDArray[np.uint8]
    collective_charge: NDArray[np.int64]
    root_rank: NDArray[np.int32]
    group: NDArray[np.int32]
    group_offsets: NDArray[np.int64]
    group_process: NDArray[np.int32]
    group_rank: NDArray[np.int32]


def carry_out(program: Program, first: int) -> tuple[Carried, NDArray[np.int64]]:
    """Prepare the collectives of a program to be carried out as messages.

    Parameters
    ----------
    program : Program
        With collectives.
    first : int
        Row of the charges that the first of the sizes gets.

    Returns
    -------
    Carried
        What the engine needs to know of them.
    int64[S]
        The sizes of messages that collectives send, bytes.
    """
    collectives = program.collectives
    members, group = _members(program)
    lengths = np.array([len(m) for m in members], dtype=np.int64)
    sorted_by_process = [np.argsort(m, kind="stable").astype(np.int32) for m in members]
    nobody = np.empty(0, dtype=np.int32)
    row, sizes = _sizes(collectives)
    carried = Carried(
        collectives.kind.astype(np.uint8),
        row + first,
        _root_ranks(collectives, members, group),
        group,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(
            [nobody, *(m[order] for m, order in zip(members, sorted_by_process, strict=True))]
        ),
        np.concatenate([nobody, *sorted_by_process]),
    )
    return carried, sizes


def _sizes(collectives: Collectives) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row of each collective's first message size, and the sizes (bytes); equal ones share them."""
    alike = np.stack(
        [collectives.kind.astype(np.int64), collectives.members, _whole(collectives)], axis=1
    )
    distinct, which = np.unique(alike, axis=0, return_inverse=True)
    sizes = [
        np.rint(_shares(COLLECTIVES[kind], members) * whole)
        for kind, members, whole in distinct.tolist()
    ]
    first = np.cumsum([0, *(len(s) for s in sizes)])[:-1].astype(np.int64)
    return (
        first[which.reshape(-1)],
        np.concatenate([np.empty(0), *sizes]).astype(np.int64),
    )


def _shares(kind: str, members: int) -> NDArray[np.float64]:
    """Parts of the bytes that `_whole` names in one message; for trees by the length of the hop.

    The subtree of the tree that a hop of 2**j leads to has 2**j members, or, where that passes the
    last one, as many as are left: a tree sends two sizes over each hop.
    """
    if kind in ("gather", "scatter"):
        hop = 1 << np.arange((members - 1).bit_length())
        return (
            np.stack([hop, members - (members - 1) // hop * hop], axis=1).reshape(-1).astype(float)
        )
    share = {"init": 0.0, "barrier": 0.0, "reduce_scatter": 1 / max(members, 1)}.get(kind, 1.0)
    return np.array([share])


def _whole(collectives: Collectives) -> NDArray[np.int64]:
    """Bytes that the shares of a collective's messages refer to.

    The whole buffer of Bcast, Reduce, Allreduce, Scan and Reduce_scatter, the part of one rank of
    Gather, Scatter and Allgather, the part for one peer of Alltoall.
    """
    largest = np.maximum(collectives.sent, collectives.received)
    smallest = np.minimum(collectives.sent, collectives.received)
    sizes = largest.copy()
    for kind, size in (
        ("gather", collectives.sent),
        ("scatter", collectives.received),
        ("allgather", collectives.sent),
        ("alltoall", smallest),
    ):
        mine = collectives.kind == COLLECTIVES.index(kind)
        sizes[mine] = size[mine]
    return sizes


def _members(program: Program) -> tuple[list[NDArray[np.int32]], NDArray[np.int32]]:
    """Groups of processes, in the order of their ranks, and the group of each collective.

    Those that the trace lists; where it does not, or where fewer take part (in a window of a
    run), those that take part.
    """
    collectives = program.collectives
    everyone = np.arange(program.processes, dtype=np.int32)
    found: list[NDArray[np.int32]] = []
    known: dict[tuple[int, int], int] = {}
    group = np.empty(len(collectives), dtype=np.int32)
    callers: _Callers | None = None
    for c, (communicator, count) in enumerate(
        zip(collectives.communicator.tolist(), collectives.members.tolist(), strict=True)
    ):
        key = (communicator, count)
        if key not in known:
            listed = program.communicators.get(communicator)
            if listed is None or len(listed) != count:
                listed = everyone if count == program.processes else None
            if listed is None:
                callers = callers or _Callers(program)
                group[c] = len(found)
                found.append(callers.of(c))
                continue
            known[key] = len(found)
            found.append(listed.astype(np.int32))
        group[c] = known[key]
    return found, group


class _Callers:
    """The processes that take part in each collective."""

    def __init__(self, program: Program) -> None:
        process = np.repeat(np.arange(program.sequences), np.diff(program.offsets))
        about = np.flatnonzero(program.kind >= Op.COLLECTIVE)
        about = about[np.argsort(program.target[about], kind="stable")]
        self._process = process[about]
        self._bound = np.searchsorted(
            program.target[about], np.arange(len(program.collectives) + 1)
        )

    def of(self, collective: int) -> NDArray[np.int32]:
        mine = self._process[self._bound[collective] : self._bound[collective + 1]]
        return distinct(mine).astype(np.int32)


def _root_ranks(
    collectives: Collectives, members: list[NDArray[np.int32]], group: NDArray[np.int32]
) -> NDArray[np.int32]:
    ranks = np.zeros(len(collectives), dtype=np.int32)
    rooted = np.flatnonzero(collectives.root >= 0)
    # Few distinct pairs of group and root: each is looked up once.
    pairs, which = np.unique(
        np.stack([group[rooted], collectives.root[rooted]], axis=1), axis=0, return_inverse=True
    )
    found = [np.flatnonzero(members[g] == root) for g, root in pairs.tolist()]
    rank_of = np.array([f[0] if len(f) else 0 for f in found], dtype=np.int32)
    ranks[rooted] = rank_of[which.reshape(-1)]
    return ranks
