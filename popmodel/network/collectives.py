"""What a collective operation costs, by named algorithm.

The network is one-port and full duplex, and a sender is busy for ``alpha + beta m``. Sizes are
bytes per process, times seconds, ``gamma`` the seconds per byte of applying a reduction. Every
formula gives 0 for one process, and takes numbers, arrays or SymPy expressions.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Int. J. High Perform. Comput. Appl. 19 (2005) 49;
E. Chan et al., Concurrency Computat. 19 (2007) 1749; D. Hensgen et al., Int. J. Parallel Program.
17 (1988) 1 (dissemination barrier).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from popmodel.expressions.elementary import Value, ceiling_log2, choose, floor_log2

# (processes, size, alpha, beta, gamma) -> seconds
Cost = Callable[[Value, Value, Value, Value, Value], Value]


def barrier_dissemination(
    processes: Value,
    size: Value,  # noqa: ARG001 - all algorithms share one signature
    alpha: Value,
    beta: Value,  # noqa: ARG001
    gamma: Value,  # noqa: ARG001
) -> Value:
    """Give ``ceil(log2 P) alpha`` (Hensgen et al. 1988)."""
    return ceiling_log2(processes) * alpha


def bcast_binomial(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001
) -> Value:
    """Give ``ceil(log2 P) (alpha + beta m)`` (Thakur et al. 2005)."""
    return ceiling_log2(processes) * (alpha + beta * size)


def reduce_binomial(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Give ``ceil(log2 P) (alpha + beta m + gamma m)`` (Thakur et al. 2005)."""
    return ceiling_log2(processes) * (alpha + beta * size + gamma * size)


def allreduce_recursive_doubling(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Give ``k (alpha + beta m + gamma m)``, k = floor(log2 P) (Thakur et al. 2005).

    When P is no power of two, the surplus processes hand their data over before and receive the
    result after: two more messages and one more reduction.
    """
    k = floor_log2(processes)
    fold = 2 * (alpha + beta * size) + gamma * size
    surplus = choose(2**k < processes, fold, 0 * fold)
    return k * (alpha + beta * size + gamma * size) + surplus


ALGORITHMS: Mapping[str, Mapping[str, Cost]] = {
    "barrier": {"dissemination": barrier_dissemination},
    "bcast": {"binomial": bcast_binomial},
    "reduce": {"binomial": reduce_binomial},
    "allreduce": {"recursive_doubling": allreduce_recursive_doubling},
}

DEFAULT_ALGORITHM: Mapping[str, str] = {
    "barrier": "dissemination",
    "bcast": "binomial",
    "reduce": "binomial",
    "allreduce": "recursive_doubling",
}
"""What is assumed where no measurement tells which algorithm an MPI library uses."""


def over_nodes(
    operation: str,
    algorithm: str,
    processes: int,
    per_node: int,
    within: Value,
    between: Value,
    reduction: Value,
) -> Value:
    """Give the time of an algorithm whose partners are 1, 2, 4, ... ranks apart, over nodes.

    Ranks are placed in blocks, so partners nearer than ``per_node`` are taken to share a node.

    Parameters
    ----------
    operation, algorithm : str
        A pair of `ALGORITHMS`.
    processes, per_node : int
        All processes, and those of one node.
    within, between : value
        Time of one message of the operation's size inside a node, and between nodes while all
        processes of the node send one through its adapter, s.
    reduction : value
        Time to apply the reduction to one message, s.
    """
    cost = ALGORITHMS[operation][algorithm]
    # with a size of one byte alpha and gamma stand for the whole message and its reduction
    rounds = int(ceiling_log2(processes))
    folded = operation == "allreduce" and 2**rounds != processes
    if folded:
        rounds -= 1  # the doubling runs over the largest power of two; the rest is the fold
    total: Value = 0.0
    for j in range(rounds):
        message = within if 2**j < per_node else between
        total = total + cost(2, 1, message, 0, reduction)
    if folded:
        message = within if processes <= per_node else between
        total = total + cost(3, 1, message, 0, reduction) - cost(2, 1, message, 0, reduction)
    return total
