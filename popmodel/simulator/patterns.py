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
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEGMENT = 64 * 1024
"""Largest segment of a chain, bytes."""

Sizes: TypeAlias = "Callable[[int, float], NDArray[np.float64]]"
"""From the number of members and the bytes m of a collective to the sizes of its messages."""


class Pattern(IntEnum):
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

    pattern: Pattern  # Who sends to whom
    # From members and bytes to the sizes of messages, bytes: one for each that the pattern knows.
    sizes: Sizes
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


def _empty_rounds(members: int, _size: float) -> NDArray[np.float64]:
    return np.zeros(_rounds(members))


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


_P = Pattern
_FOLDED_DOUBLING = (
    Piece(_P.FOLD_IN, _whole),
    Piece(_P.DOUBLING, _whole),
    Piece(_P.FOLD_OUT, _whole),
)
_BINOMIAL_DOWN, _BINOMIAL_UP = Piece(_P.TREE_DOWN, _whole), Piece(_P.TREE_UP, _whole)

_BARRIER: Mapping[str, tuple[Piece, ...]] = {
    "dissemination": (Piece(_P.DISSEMINATION, _empty_rounds),),
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
