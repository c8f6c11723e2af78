"""Collectives carried out as point-to-point messages.

Which algorithms there are is said in `popmodel.simulator.patterns`; a network says which one an
operation takes, by size (`popmodel.network.selection`). A nonblocking collective makes its
exchanges in the call that waits for it.

The compiled engine finds each step when a member comes to it (``popmodel/kernel/algorithms.hpp``):
the messages of an all-to-all grow with the square of its members, so no program lists them. Here is
what it needs to know: who is which rank, and what the messages cost, which only have a few sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.network.collectives import ROOTED
from popmodel.network.selection import Selection
from popmodel.simulator.patterns import ALGORITHMS, Piece
from popmodel.simulator.program import COLLECTIVES, Collectives, Op, Program
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Carried:
    """Collectives as messages; the compiled engine takes the columns by these names."""

    # int32[C]: How each collective is carried out; those that are alike share one.
    algorithm: NDArray[np.int32]
    algorithm_offsets: NDArray[np.int64]  # int64[A + 1]: Rows of an algorithm in the next three
    # uint8[], int32[], int64[]: Its patterns in order (`popmodel.simulator.patterns.Pattern`), the
    # segments of a chain, and the row of the charges of the first message size; the rows of the
    # program's own messages come before.
    part_pattern: NDArray[np.uint8]
    part_segments: NDArray[np.int32]
    part_charge: NDArray[np.int64]
    # int32[C]: Rank of the root in the communicator; 0 where nobody is known to be the root.
    root_rank: NDArray[np.int32]
    group: NDArray[np.int32]  # int32[C]: Who takes part
    group_offsets: NDArray[np.int64]  # int64[G + 1]: Rows of a group in the next two
    # int32[]: Process indices of its members, ascending, and their ranks.
    group_process: NDArray[np.int32]
    group_rank: NDArray[np.int32]
    group_member: NDArray[np.int32]  # int32[]: The process indices in the order of the ranks
    # int32[P]: Node of each process; empty where messages inside nodes cost what others do.
    node: NDArray[np.int32]
    far: int  # Rows of the charges from those of messages inside a node to those between nodes


@dataclass(frozen=True)
class Sizes:
    """Messages that collectives send, of which there are few kinds."""

    size: NDArray[np.int64]  # int64[S]: Bytes
    far: NDArray[np.bool_]  # bool[S]: Whether they go between nodes


def carry_out(
    program: Program, first: int, selections: Iterable[Selection] = (), *, tiers: bool = False
) -> tuple[Carried, Sizes]:
    """Prepare the collectives of a program to be carried out as messages."""
    collectives = program.collectives
    members, group = _members(program)
    lengths = np.array([len(m) for m in members], dtype=np.int64)
    sorted_by_process = [np.argsort(m, kind="stable").astype(np.int32) for m in members]
    nobody = np.empty(0, dtype=np.int32)
    distances = _distances(program, tiers=tiers)
    which, parts = _algorithms(collectives, {one.operation: one for one in selections})
    flat = [part for algorithm in parts for part in algorithm]
    sizes = [np.rint(sizes).astype(np.int64) for _, _, sizes in flat]
    rows = first + np.cumsum([0, *map(len, sizes)])[:-1]
    carried = Carried(
        which,
        np.cumsum([0, *map(len, parts)]).astype(np.int64),
        np.array([part.pattern for part, _, _ in flat], dtype=np.uint8),
        np.array([segments for _, segments, _ in flat], dtype=np.int32),
        rows.astype(np.int64),
        _root_ranks(collectives, members, group),
        group,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(
            [nobody, *(m[order] for m, order in zip(members, sorted_by_process, strict=True))]
        ),
        np.concatenate([nobody, *sorted_by_process]),
        np.concatenate([nobody, *members]),
        program.nodes if len(distances) > 1 else nobody,
        sum(map(len, sizes)) if len(distances) > 1 else 0,
    )
    sent = np.concatenate([np.empty(0, dtype=np.int64), *sizes])
    return carried, Sizes(
        np.concatenate([sent] * len(distances)), np.repeat(distances, len(sent)).astype(bool)
    )


def _distances(program: Program, *, tiers: bool) -> list[bool]:
    """Whether messages go inside a node (False), between nodes (True), or both."""
    nodes = len(distinct(program.nodes))
    if not tiers or nodes in (1, program.processes):
        return [nodes > 1]
    return [False, True]


def _algorithms(
    collectives: Collectives, selections: dict[str, Selection]
) -> tuple[NDArray[np.int32], list[list[tuple[Piece, int, NDArray[np.float64]]]]]:
    """Algorithm of each collective, and the parts of each with segments and sizes of messages."""
    alike = np.stack(
        [collectives.kind.astype(np.int64), collectives.members, collectives.part()], axis=1
    )
    rows, which = np.unique(alike, axis=0, return_inverse=True)
    found = []
    for code, members, size in rows.tolist():
        kind = COLLECTIVES[code]
        known = ALGORITHMS[kind]
        selection = selections.get("barrier" if kind == "init" else kind)
        name = next(iter(known)) if selection is None else selection.at(size)
        found.append(
            [
                (part, part.segments(members, size), part.sizes(members, size))
                for part in (known[name] if members > 1 else ())
            ]
        )
    return which.reshape(-1).astype(np.int32), found


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
    kinds = [COLLECTIVES.index(kind) for kind in ROOTED]
    rooted = np.flatnonzero((collectives.root >= 0) & np.isin(collectives.kind, kinds))
    # Few distinct pairs of group and root: each is looked up once.
    pairs, which = np.unique(
        np.stack([group[rooted], collectives.root[rooted]], axis=1), axis=0, return_inverse=True
    )
    found = [np.flatnonzero(members[g] == root) for g, root in pairs.tolist()]
    rank_of = np.array([f[0] if len(f) else 0 for f in found], dtype=np.int32)
    ranks[rooted] = rank_of[which.reshape(-1)]
    return ranks
