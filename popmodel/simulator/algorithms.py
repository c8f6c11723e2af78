"""Algorithms of collectives as patterns of messages, one after the other.

The compiled engine knows the patterns (``popmodel/kernel/algorithms.hpp``); what an algorithm is
made of and how large its messages are is said here. The names are those of the closed forms
(`popmodel.network.collectives`), which give the same time where all members arrive at once on a
network whose senders are busy with their messages, for the sizes m that are named there.

Where the members are no power of two, the parts that halve and double are equal ones of the power
of two below, as in the closed forms. The chain, whose closed form takes the best number of segments
for the network, sends segments of 64 KiB at most, so that a replay does the same on every network.
``linear_posted`` is what SimGrid's SMPI does by default: the root posts all receives, then waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from popmodel.base.arrays import distinct
from popmodel.base.values import dataclass
from popmodel.network.collectives import ROOTED, Selection
from popmodel.simulator.costs import BETWEEN, WITHIN, MessageClasses
from popmodel.simulator.program import COLLECTIVES, Collectives, Op, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray


SEGMENT = 64 * 1024
"""Largest segment of a chain, bytes."""

PatternSizes: TypeAlias = "Callable[[int, float], NDArray[np.float64]]"
"""From the number of members and the bytes m of a collective to the sizes of its messages."""


class AlgorithmPattern(IntEnum):
    """Who sends to whom; the compiled engine uses the same numbers and explains them."""

    DISSEMINATION = 0
    TREE_DOWN = 1
    TREE_UP = 2
    PARTS_DOWN = 3
    PARTS_UP = 4
    POWER_PARTS_UP = 5
    LINE_DOWN = 6
    LINE_UP = 7
    POSTED_UP = 8
    FOLD_IN = 9
    FOLD_OUT = 10
    DOUBLING = 11
    DOUBLING_PARTS = 12
    HALVING = 13
    RING = 14
    PAIRWISE = 15
    SCAN = 16
    CHAIN = 17


def _one(_members: int, _size: float) -> int:
    return 1


@dataclass(frozen=True)
class Piece:
    """A pattern and the sizes of its messages."""

    pattern: AlgorithmPattern  # Who sends to whom
    # From members and bytes to the sizes of messages, bytes: one for each that the pattern knows.
    sizes: PatternSizes
    # From members and bytes to the segments of a chain.
    segments: Callable[[int, float], int] = _one


def _rounds(members: int) -> int:
    """Return ceil(log2 members)."""
    return (members - 1).bit_length()


def _power(members: int) -> int:
    """Return the largest power of two up to the members."""
    return 1 << (members.bit_length() - 1)


def _hops(members: int) -> NDArray[np.int64]:
    return 1 << np.arange(_rounds(members))


def _whole(_members: int, size: float) -> NDArray[np.float64]:
    return np.array([size])


def _share(members: int, size: float) -> NDArray[np.float64]:
    return np.array([size / members])


def _all(members: int, size: float) -> NDArray[np.float64]:
    return np.array([size * members])


def _empty(_members: int, _size: float) -> NDArray[np.float64]:
    return np.zeros(1)


def _blocks(members: int, size: float) -> NDArray[np.float64]:
    """Blocks of the subtree that a hop of 2**j leads to: 2**j, or as many as are left.

    A tree sends these two sizes over each hop.
    """
    hop = _hops(members)
    left = members - (members - 1) // hop * hop
    return size * np.stack([hop, left], axis=1).reshape(-1).astype(float)


def _shares(members: int, size: float) -> NDArray[np.float64]:
    return _blocks(members, size / members)


def _shares_of_power(members: int, size: float) -> NDArray[np.float64]:
    return _shares(_power(members), size)


def _halves(members: int, size: float) -> NDArray[np.float64]:
    steps = np.arange(1, members.bit_length(), dtype=np.float64)
    return np.asarray(size / 2.0**steps, dtype=np.float64)


def _doubles(members: int, size: float) -> NDArray[np.float64]:
    """Sizes of exchanges that end with everybody having the whole vector."""
    return _halves(members, size)[::-1].copy()


def _gathered(members: int, size: float) -> NDArray[np.float64]:
    """Blocks that a member has when it passes them on: 1, 2, 4 ..., at last those missing."""
    hop = _hops(members)
    return size * np.minimum(hop, members - hop).astype(float)


def _moved(members: int, size: float) -> NDArray[np.float64]:
    """Blocks whose distance to their goal has bit j, which move 2**j on."""
    bits = np.arange(members)[:, None] >> np.arange(_rounds(members)) & 1
    return np.asarray(size * bits.sum(axis=0), dtype=np.float64)


def _segments(_members: int, size: float) -> int:
    return max(math.ceil(size / SEGMENT), 1)


def _segment(members: int, size: float) -> NDArray[np.float64]:
    return np.array([size / _segments(members, size)])


_P = AlgorithmPattern
_FOLDED_DOUBLING = (
    Piece(_P.FOLD_IN, _whole),
    Piece(_P.DOUBLING, _whole),
    Piece(_P.FOLD_OUT, _whole),
)
_BINOMIAL_DOWN, _BINOMIAL_UP = Piece(_P.TREE_DOWN, _whole), Piece(_P.TREE_UP, _whole)

_BARRIER: Mapping[str, tuple[Piece, ...]] = {
    "dissemination": (Piece(_P.DISSEMINATION, lambda members, _: np.zeros(_rounds(members))),),
    "recursive_doubling": tuple(Piece(one.pattern, _empty) for one in _FOLDED_DOUBLING),
    "linear": (Piece(_P.LINE_UP, _empty), Piece(_P.LINE_DOWN, _empty)),
    "linear_posted": (Piece(_P.POSTED_UP, _empty), Piece(_P.LINE_DOWN, _empty)),
}

ALGORITHMS: Mapping[str, Mapping[str, tuple[Piece, ...]]] = {
    "init": _BARRIER,
    "barrier": _BARRIER,
    "bcast": {
        "binomial": (_BINOMIAL_DOWN,),
        "scatter_allgather": (Piece(_P.PARTS_DOWN, _shares), Piece(_P.RING, _share)),
        "chain": (Piece(_P.CHAIN, _segment, _segments),),
        "linear": (Piece(_P.LINE_DOWN, _whole),),
    },
    "reduce": {
        "binomial": (_BINOMIAL_UP,),
        "rabenseifner": (
            Piece(_P.FOLD_IN, _whole),
            Piece(_P.HALVING, _halves),
            Piece(_P.POWER_PARTS_UP, _shares_of_power),
        ),
        "linear": (Piece(_P.LINE_UP, _whole),),
        "linear_posted": (Piece(_P.POSTED_UP, _whole),),
    },
    "allreduce": {
        "recursive_doubling": _FOLDED_DOUBLING,
        "rabenseifner": (
            Piece(_P.FOLD_IN, _whole),
            Piece(_P.HALVING, _halves),
            Piece(_P.DOUBLING_PARTS, _doubles),
            Piece(_P.FOLD_OUT, _whole),
        ),
        "ring": (Piece(_P.RING, _share), Piece(_P.RING, _share)),
        "reduce_bcast": (_BINOMIAL_UP, _BINOMIAL_DOWN),
        "linear_posted": (Piece(_P.POSTED_UP, _whole), _BINOMIAL_DOWN),
    },
    "reduce_scatter": {
        "recursive_halving": (
            Piece(_P.FOLD_IN, _whole),
            Piece(_P.HALVING, _halves),
            Piece(_P.FOLD_OUT, _share),
        ),
        "pairwise": (Piece(_P.PAIRWISE, _share),),
    },
    "allgather": {
        "ring": (Piece(_P.RING, _whole),),
        "bruck": (Piece(_P.DISSEMINATION, _gathered),),
        "recursive_doubling": (
            Piece(_P.FOLD_IN, _whole),
            Piece(_P.DOUBLING_PARTS, lambda members, size: _doubles(members, size * members)),
            Piece(_P.FOLD_OUT, _all),
        ),
    },
    "gather": {"binomial": (Piece(_P.PARTS_UP, _blocks),), "linear": (Piece(_P.LINE_UP, _whole),)},
    "scatter": {
        "binomial": (Piece(_P.PARTS_DOWN, _blocks),),
        "linear": (Piece(_P.LINE_DOWN, _whole),),
    },
    "alltoall": {
        "pairwise": (Piece(_P.PAIRWISE, _whole),),
        "bruck": (Piece(_P.DISSEMINATION, _moved),),
    },
    "scan": {"recursive_doubling": (Piece(_P.SCAN, _whole),), "linear": (Piece(_P.CHAIN, _whole),)},
}
"""By operation and name; the first of an operation is carried out where none is asked for."""


# Collectives carried out as point-to-point messages.
#
# A network says which algorithm an operation takes, by size (`popmodel.network.collectives`). A
# nonblocking collective makes its exchanges in the call that waits for it.
#
# The compiled engine finds each step when a member comes to it: the messages of an all-to-all grow
# with the square of its members, so no program lists them. Here is what it needs to know: who is
# which rank, and what the messages cost, which only have a few sizes.


@dataclass(frozen=True)
class CarriedData:
    """Collectives as messages; the compiled engine takes the columns by these names."""

    # int32[C]: How each collective is carried out; those that are alike share one.
    algorithm: NDArray[np.int32]
    algorithm_offsets: NDArray[np.int64]  # int64[A + 1]: Rows of an algorithm in the next three
    # uint8[], int32[], int64[]: Its patterns in order (`AlgorithmPattern`), segments of a chain,
    # and the row of the charges of the first message size; the rows of the program's own messages
    # come before.
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


def carry_out(
    program: Program, first: int, selections: Iterable[Selection] = (), *, tiers: bool = False
) -> tuple[CarriedData, MessageClasses]:
    """Prepare the collectives of a program to be carried out as messages, of few classes."""
    collectives = program.collectives
    members, group = _members(program)
    lengths = np.array([len(m) for m in members], dtype=np.int64)
    sorted_by_process = [np.argsort(m, kind="stable").astype(np.int32) for m in members]
    nobody = np.empty(0, dtype=np.int32)
    nodes = len(distinct(program.nodes))
    distances = [WITHIN, BETWEEN]
    if not tiers or nodes in (1, program.processes):
        distances = [BETWEEN if nodes > 1 else WITHIN]
    which, parts = _algorithms(collectives, {one.operation: one for one in selections})
    flat = [part for algorithm in parts for part in algorithm]
    sizes = [np.rint(sizes).astype(np.int64) for _, _, sizes in flat]
    rows = first + np.cumsum([0, *map(len, sizes)])[:-1]
    carried = CarriedData(
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
    distance = np.repeat(np.array(distances, np.int8), len(sent))
    sent = np.concatenate([sent] * len(distances))
    return carried, MessageClasses(sent, np.zeros(len(sent), np.int8), distance)


def _algorithms(
    collectives: Collectives, selections: dict[str, Selection]
) -> tuple[NDArray[np.int32], list[list[tuple[Piece, int, NDArray[np.float64]]]]]:
    """Algorithm of each collective, and the parts of each with segments and sizes of messages."""
    alike = np.stack(
        [collectives.kind.astype(np.int64), collectives.members, collectives.part()], axis=1
    )
    rows, which = np.unique(alike, axis=0, return_inverse=True)
    algorithms = []
    for code, members, size in rows.tolist():
        kind = COLLECTIVES[code]
        by_name = ALGORITHMS[kind]
        selection = selections.get("barrier" if kind == "init" else kind)
        name = next(iter(by_name)) if selection is None else selection.at(size)
        algorithms.append(
            [
                (part, part.segments(members, size), part.sizes(members, size))
                for part in (by_name[name] if members > 1 else ())
            ]
        )
    return which.reshape(-1).astype(np.int32), algorithms


def _members(program: Program) -> tuple[list[NDArray[np.int32]], NDArray[np.int32]]:
    """Groups of processes, in the order of their ranks, and the group of each collective.

    Those that the trace lists; where it does not, or where fewer take part (in a window of a
    run), those that take part.
    """
    collectives = program.collectives
    everyone = np.arange(program.processes, dtype=np.int32)
    groups: list[NDArray[np.int32]] = []
    numbers: dict[tuple[int, int], int] = {}
    group = np.empty(len(collectives), dtype=np.int32)
    callers: list[NDArray[np.int64]] | None = None
    for c, (communicator, count) in enumerate(
        zip(collectives.communicator.tolist(), collectives.members.tolist(), strict=True)
    ):
        key = (communicator, count)
        if key not in numbers:
            listed = program.communicators.get(communicator)
            if listed is None or len(listed) != count:
                listed = everyone if count == program.processes else None
            if listed is None:
                callers = callers or _callers(program)
                group[c] = len(groups)
                groups.append(distinct(callers[c]).astype(np.int32))
                continue
            numbers[key] = len(groups)
            groups.append(listed.astype(np.int32))
        group[c] = numbers[key]
    return groups, group


def _callers(program: Program) -> list[NDArray[np.int64]]:
    """The sequences whose operations each collective is about."""
    sequence = np.repeat(np.arange(program.sequences), np.diff(program.offsets))
    about = np.flatnonzero(program.kind >= Op.COLLECTIVE)
    about = about[np.argsort(program.target[about], kind="stable")]
    begins = np.searchsorted(program.target[about], np.arange(1, len(program.collectives)))
    return np.split(sequence[about], begins)


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
    places = [np.flatnonzero(members[g] == root) for g, root in pairs.tolist()]
    rank_of = np.array([f[0] if len(f) else 0 for f in places], dtype=np.int32)
    ranks[rooted] = rank_of[which.reshape(-1)]
    return ranks
