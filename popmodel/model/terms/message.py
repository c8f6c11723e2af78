"""Messages of an application on a placement: who sends where, over which tier, at what cost.

The costs themselves are those of `popmodel.network`. Sources: design of the tiers as in Hockney's
model per distance; L. Adhianto and B. Chapman, ICPADS 2006, eq. 1 (efficiency of message passing).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Value
from popmodel.base.values import NamedTuple

Ranks = NDArray[np.int64]


class Traffic(NamedTuple):
    """Where the messages of one communication go.

    Attributes
    ----------
    staying : int
        Messages inside the node in which most stay; 0 if none does.
    leaving : int
        Messages that leave, or reach, the node of which that is most; 0 if none does.
    chain : int
        Longest chain of processes each of which sends to the next.
    """

    staying: int
    leaving: int
    chain: int


def grid_neighbours(extent: Sequence[int], dim: int, by: int, *, periodic: bool) -> Ranks:
    """Return the rank ``by`` steps along a dimension for every rank of a grid.

    Parameters
    ----------
    extent : sequence of int
        Processes along each dimension; the last one varies fastest with the rank.
    dim, by : int
        Dimension and distance.
    periodic : bool
        Whether the dimension wraps around.

    Returns
    -------
    ndarray of int64, shape (P,)
        The neighbour, or -1 where there is none.
    """
    ranks = np.arange(prod(extent)).reshape(extent)
    neighbours = np.roll(ranks, -by, axis=dim)
    if not periodic:
        target = np.arange(extent[dim]) + by
        np.moveaxis(neighbours, dim, 0)[(target < 0) | (target >= extent[dim])] = -1
    return neighbours.ravel()


def traffic(targets: Ranks, per_node: int) -> Traffic:
    """Describe a communication in which rank r sends to ``targets[r]``.

    Parameters
    ----------
    targets : ndarray of int64, shape (P,)
        Receivers; a number outside 0..P-1, or the rank itself, is no message.
    per_node : int
        Processes of a node, which has consecutive ranks.
    """
    ranks = np.arange(targets.size)
    sends = (targets >= 0) & (targets < targets.size) & (targets != ranks)
    source, target = ranks[sends] // per_node, targets[sends] // per_node
    staying, leaving, arriving = (
        int(np.bincount(nodes).max(initial=0))
        for nodes in (source[source == target], source[source != target], target[source != target])
    )
    return Traffic(staying, max(leaving, arriving), _longest_chain(targets, sends))


def _longest_chain(targets: Ranks, sends: NDArray[np.bool_]) -> int:
    """Count the processes of the longest chain of messages, a ring counting once around."""
    length = [0] * targets.size  # messages that follow from a rank on; 0 is not known yet
    for start in range(targets.size):
        path: dict[int, int] = {}
        rank = start
        while sends[rank] and not length[rank] and rank not in path:
            path[rank] = len(path)
            rank = int(targets[rank])
        walked = list(path)
        if rank in path:  # a ring: each of its processes has the whole ring ahead
            ring = len(path) - path[rank]
            for member in walked[path[rank] :]:
                length[member] = ring
            walked = walked[: path[rank]]
        for member in reversed(walked):
            length[member] = length[int(targets[member])] + 1
    return max(length, default=0)


def message_passing_ratio(hybrid: Value, pure: Value) -> Value:
    """Return ``e_mp``, communication of P processes over that of P T processes (eq. 1).

    Larger is worse; its inverse reads as an efficiency.

    Parameters
    ----------
    hybrid, pure : value
        Time of all communication with T threads per process, and with one process per core, s.
    """
    return hybrid / pure


def thread_slowdown(threads: int, factor: Value) -> Value:
    """Return ``1 + c (m - 1)``: the CPU time of a message while m threads send.

    Parameters
    ----------
    threads : int
        Threads of a process that send at the same time.
    factor : value
        Growth c by every further thread, measured.
    """
    return 1 + factor * (threads - 1)


# Exchange of the layers of cells around a process's part of a grid.
#
# Source: the surface of a block per dimension; messages as in R. Hockney, Parallel Computing 20
# (1994) 389.


def face_bytes(cells: Sequence[Value], width: Value, bytes_per_cell: Value) -> list[Value]:
    """Return the size of the message to a neighbour along each dimension, bytes.

    Parameters
    ----------
    cells : sequence of value
        Local extent along each dimension.
    width : value
        Layers of cells.
    bytes_per_cell : value
        Bytes of all the fields of a cell.
    """
    return [
        width * bytes_per_cell * prod(cells[:d]) * prod(cells[d + 1 :]) for d in range(len(cells))
    ]


def neighbours(extent: Sequence[int], periodic: Sequence[bool]) -> list[int]:
    """Return the messages that the busiest process sends along each dimension: 0, 1 or 2.

    A process is never its own neighbour; two processes of a periodic dimension meet twice.
    """
    return [
        0 if count == 1 else 2 if wraps else min(2, count - 1)
        for count, wraps in zip(extent, periodic, strict=True)
    ]
