"""What a collective operation costs, by named algorithm.

The network is one-port and full duplex, and a sender is busy for ``alpha + beta m``. Times are
seconds, ``gamma`` the seconds per byte of applying a reduction. The size m is what one process
contributes: its whole vector for bcast, reduce, allreduce, scan and reduce_scatter, its block for
gather, scatter and allgather, its block for one peer for alltoall. Every formula gives 0 for one
process, and takes numbers, arrays or SymPy expressions.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Int. J. High Perform. Comput. Appl. 19 (2005) 49;
E. Chan et al., Concurrency Computat. 19 (2007) 1749; J. Bruck et al., IEEE Trans. Parallel Distrib.
Syst. 8 (1997) 1143; P. Patarasuk, X. Yuan, J. Parallel Distrib. Comput. 69 (2009) 117 (ring
allreduce); D. Hensgen et al., Int. J. Parallel Program. 17 (1988) 1 (dissemination barrier).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from popmodel.expressions.elementary import (
    Value,
    ceiling,
    ceiling_log2,
    choose,
    floor_log2,
    maximum,
    sqrt,
)

# (processes, size, alpha, beta, gamma) -> seconds
Cost = Callable[[Value, Value, Value, Value, Value], Value]

# keeps a division by a network without any cost defined; far below any time per byte
_TINY = 1e-300


def barrier_dissemination(
    processes: Value,
    size: Value,  # noqa: ARG001 - all algorithms share one signature
    alpha: Value,
    beta: Value,  # noqa: ARG001
    gamma: Value,  # noqa: ARG001
) -> Value:
    """Return ``ceil(log2 P) alpha`` (Hensgen et al. 1988)."""
    return ceiling_log2(processes) * alpha


def bcast_binomial(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``ceil(log2 P) (alpha + beta m)`` (Thakur et al. 2005)."""
    return ceiling_log2(processes) * (alpha + beta * size)


def bcast_scatter_allgather(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``(ceil(log2 P) + P - 1) alpha + 2 (P-1)/P beta m`` (Thakur et al. 2005).

    A binomial scatter of the P parts of the vector, then a ring that gathers them everywhere.
    """
    steps = ceiling_log2(processes) + processes - 1
    return steps * alpha + 2 * _others(processes) * beta * size


def bcast_chain(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``(P - 2 + n) (alpha + beta m / n)``, the vector sent along a chain in n segments.

    n is near its optimum ``sqrt((P - 2) beta m / alpha)`` and at least 1 (Chan et al. 2007).
    """
    several = choose(processes > 1, 1, 0)
    inner = maximum(processes - 2, 0)
    segments = maximum(ceiling(sqrt(inner * beta * size / (alpha + beta + _TINY))), 1)
    return several * (inner + segments) * (alpha + beta * size / segments)


def reduce_binomial(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``ceil(log2 P) (alpha + beta m + gamma m)`` (Thakur et al. 2005)."""
    return ceiling_log2(processes) * (alpha + beta * size + gamma * size)


def reduce_rabenseifner(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``2 k alpha + (p-1)/p (2 beta + gamma) m``, p = 2**k <= P (Thakur et al. 2005).

    Recursive halving leaves every process a part of the result, which a binomial tree gathers.
    Processes beyond p hand their vector over before: one more message and reduction.
    """
    k = floor_log2(processes)
    among = 2 * k * alpha + _others(2**k) * (2 * beta + gamma) * size
    return among + _surplus(processes, alpha + beta * size + gamma * size)


def allreduce_recursive_doubling(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``k (alpha + beta m + gamma m)``, k = floor(log2 P) (Thakur et al. 2005).

    When P is no power of two, the surplus processes hand their data over before and receive the
    result after: two more messages and one more reduction.
    """
    k = floor_log2(processes)
    fold = 2 * (alpha + beta * size) + gamma * size
    return k * (alpha + beta * size + gamma * size) + _surplus(processes, fold)


def allreduce_rabenseifner(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``2 k alpha + (p-1)/p (2 beta + gamma) m``, p = 2**k <= P (Thakur et al. 2005).

    Recursive halving, then recursive doubling of the parts; the surplus of a P that is no power
    of two folds in and out as in recursive doubling.
    """
    k = floor_log2(processes)
    among = 2 * k * alpha + _others(2**k) * (2 * beta + gamma) * size
    return among + _surplus(processes, 2 * (alpha + beta * size) + gamma * size)


def allreduce_ring(processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value) -> Value:
    """Return ``2 (P-1) alpha + (P-1)/P (2 beta + gamma) m`` (Patarasuk and Yuan 2009)."""
    return 2 * (processes - 1) * alpha + _others(processes) * (2 * beta + gamma) * size


def reduce_scatter_recursive_halving(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``k alpha + (p-1)/p (beta + gamma) m``, p = 2**k <= P (Thakur et al. 2005).

    The surplus of a P that is no power of two hands its vector over before and receives its part
    after: ``2 alpha + (1 + 1/P) beta m + gamma m`` more.
    """
    k = floor_log2(processes)
    among = k * alpha + _others(2**k) * (beta + gamma) * size
    fold = 2 * alpha + (1 + 1 / processes) * beta * size + gamma * size
    return among + _surplus(processes, fold)


def reduce_scatter_pairwise(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``(P-1) alpha + (P-1)/P (beta + gamma) m`` (Thakur et al. 2005)."""
    return (processes - 1) * alpha + _others(processes) * (beta + gamma) * size


def allgather_ring(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``(P-1) (alpha + beta m)`` (Thakur et al. 2005)."""
    return (processes - 1) * (alpha + beta * size)


def allgather_bruck(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``ceil(log2 P) alpha + (P-1) beta m`` (Bruck et al. 1997)."""
    return ceiling_log2(processes) * alpha + (processes - 1) * beta * size


def rooted_binomial(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``ceil(log2 P) alpha + (P-1) beta m``, of gather and scatter (Chan et al. 2007)."""
    return ceiling_log2(processes) * alpha + (processes - 1) * beta * size


def rooted_linear(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``(P-1) (alpha + beta m)``: the root serves one process after the other."""
    return (processes - 1) * (alpha + beta * size)


def alltoall_pairwise(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``(P-1) (alpha + beta m)`` (Thakur et al. 2005)."""
    return (processes - 1) * (alpha + beta * size)


def alltoall_bruck(
    processes: Value,
    size: Value,
    alpha: Value,
    beta: Value,
    gamma: Value,  # noqa: ARG001 - all algorithms share one signature
) -> Value:
    """Return ``ceil(log2 P) (alpha + P/2 beta m)`` (Bruck et al. 1997).

    Exact when P is a power of two, else an upper bound. Copies inside a process are not counted.
    """
    return ceiling_log2(processes) * (alpha + processes / 2 * beta * size)


def scan_recursive_doubling(
    processes: Value, size: Value, alpha: Value, beta: Value, gamma: Value
) -> Value:
    """Return ``ceil(log2 P) (alpha + beta m + gamma m)``."""
    return ceiling_log2(processes) * (alpha + beta * size + gamma * size)


def _others(processes: Value) -> Value:
    """Share of a vector in P parts that the other processes hold."""
    return (processes - 1) / processes


def _surplus(processes: Value, cost: Value) -> Value:
    """Return the cost if the number of processes is no power of two, else 0."""
    return choose(2 ** floor_log2(processes) < processes, cost, 0 * cost)


ALGORITHMS: Mapping[str, Mapping[str, Cost]] = {
    "barrier": {"dissemination": barrier_dissemination},
    "bcast": {
        "binomial": bcast_binomial,
        "scatter_allgather": bcast_scatter_allgather,
        "chain": bcast_chain,
    },
    "reduce": {"binomial": reduce_binomial, "rabenseifner": reduce_rabenseifner},
    "allreduce": {
        "recursive_doubling": allreduce_recursive_doubling,
        "rabenseifner": allreduce_rabenseifner,
        "ring": allreduce_ring,
    },
    "reduce_scatter": {
        "recursive_halving": reduce_scatter_recursive_halving,
        "pairwise": reduce_scatter_pairwise,
    },
    "allgather": {"ring": allgather_ring, "bruck": allgather_bruck},
    "gather": {"binomial": rooted_binomial, "linear": rooted_linear},
    "scatter": {"binomial": rooted_binomial, "linear": rooted_linear},
    "alltoall": {"pairwise": alltoall_pairwise, "bruck": alltoall_bruck},
    "scan": {"recursive_doubling": scan_recursive_doubling},
}

BY_DISTANCE = frozenset(
    {
        ("barrier", "dissemination"),
        ("bcast", "binomial"),
        ("reduce", "binomial"),
        ("allreduce", "recursive_doubling"),
        ("scan", "recursive_doubling"),
    }
)
"""Algorithms whose partners are 1, 2, 4, ... ranks apart and exchange the whole vector."""

ROOTED = frozenset({"bcast", "reduce", "gather", "scatter"})
"""Operations in which one process has or gets the data."""

REDUCING = frozenset({"reduce", "allreduce", "reduce_scatter", "scan"})
"""Operations that combine the data of processes."""

SINGLE_FLOW = frozenset({"ring", "chain"})
"""Algorithms in which a node exchanges with the next one over a single message at a time."""

DEFAULT_ALGORITHM: Mapping[str, str] = {
    "barrier": "dissemination",
    "bcast": "binomial",
    "reduce": "binomial",
    "allreduce": "recursive_doubling",
    "reduce_scatter": "recursive_halving",
    "allgather": "ring",
    "gather": "binomial",
    "scatter": "binomial",
    "alltoall": "pairwise",
    "scan": "recursive_doubling",
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
    """Return the time of an algorithm whose partners are 1, 2, 4, ... ranks apart, over nodes.

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
