"""What a collective operation costs, by named algorithm.

The network is one-port and full duplex, and a sender is busy for ``alpha + beta m``. Times are
seconds, ``gamma`` the seconds per byte of applying a reduction. The size m is what one process
contributes: its whole vector for bcast, reduce, allreduce, scan and reduce_scatter, its block for
gather, scatter and allgather, its block for one peer for alltoall. Every formula gives 0 for one
process, and takes numbers, arrays or traced numbers.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Int. J. High Perform. Comput. Appl. 19 (2005) 49;
E. Chan et al., Concurrency Computat. 19 (2007) 1749; J. Bruck et al., IEEE Trans. Parallel Distrib.
Syst. 8 (1997) 1143; P. Patarasuk, X. Yuan, J. Parallel Distrib. Comput. 69 (2009) 117 (ring
allreduce); D. Hensgen et al., Int. J. Parallel Program. 17 (1988) 1 (dissemination barrier).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.expressions.elementary import (
    Value,
    ceiling,
    ceiling_log2,
    choose,
    floor_log2,
    maximum,
    sqrt,
)
from popmodel.base.units import format_size, parse_size
from popmodel.base.values import dataclass

# keeps a division by a network without any cost defined; far below any time per byte
_TINY = 1e-300


@dataclass(frozen=True)
class Message:
    """What one process contributes to a collective, and what a message costs."""

    size: Value  # Bytes, m
    alpha: Value  # Time of an empty message, s
    beta: Value  # Time per byte of a message, s/B
    gamma: Value = 0.0  # Time per byte of applying a reduction, s/B

    @property
    def time(self) -> Value:
        """Time of one message of that size, s."""
        return self.alpha + self.beta * self.size

    @property
    def reduced(self) -> Value:
        """Time of a message of that size to which a reduction is applied, s."""
        return self.alpha + self.beta * self.size + self.gamma * self.size


# processes, message -> seconds
Cost = Callable[[Value, Message], Value]


def barrier_dissemination(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) alpha`` (Hensgen et al. 1988)."""
    return ceiling_log2(processes) * m.alpha


def barrier_recursive_doubling(processes: Value, m: Message) -> Value:
    """Return ``k alpha``, k = floor(log2 P); 2 alpha more if P is no power of two."""
    return floor_log2(processes) * m.alpha + _surplus(processes, 2 * m.alpha)


def barrier_linear(processes: Value, m: Message) -> Value:
    """Return ``2 (P-1) alpha``: one process hears of all others and answers one after the other."""
    return 2 * (processes - 1) * m.alpha


def bcast_binomial(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) (alpha + beta m)`` (Thakur et al. 2005)."""
    return ceiling_log2(processes) * m.time


def bcast_scatter_allgather(processes: Value, m: Message) -> Value:
    """Return ``(ceil(log2 P) + P - 1) alpha + 2 (P-1)/P beta m`` (Thakur et al. 2005).

    A binomial scatter of the P parts of the vector, then a ring that gathers them everywhere.
    """
    steps = ceiling_log2(processes) + processes - 1
    return steps * m.alpha + 2 * _others(processes) * m.beta * m.size


def bcast_chain(processes: Value, m: Message) -> Value:
    """Return ``(P - 2 + n) (alpha + beta m / n)``, the vector sent along a chain in n segments.

    n is near its optimum ``sqrt((P - 2) beta m / alpha)`` and at least 1 (Chan et al. 2007).
    """
    several = choose(processes > 1, 1, 0)
    inner = maximum(processes - 2, 0)
    segments = maximum(ceiling(sqrt(inner * m.beta * m.size / (m.alpha + m.beta + _TINY))), 1)
    return several * (inner + segments) * (m.alpha + m.beta * m.size / segments)


def reduce_binomial(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) (alpha + beta m + gamma m)`` (Thakur et al. 2005)."""
    return ceiling_log2(processes) * m.reduced


def reduce_linear(processes: Value, m: Message) -> Value:
    """Return ``(P-1) (alpha + beta m + gamma m)``: the root takes one vector after the other."""
    return (processes - 1) * m.reduced


def reduce_rabenseifner(processes: Value, m: Message) -> Value:
    """Return ``2 k alpha + (p-1)/p (2 beta + gamma) m``, p = 2**k <= P (Thakur et al. 2005).

    Recursive halving leaves every process a part of the result, which a binomial tree gathers.
    Processes beyond p hand their vector over before: one more message and reduction.
    """
    return _halving_and_back(processes, m) + _surplus(processes, m.reduced)


def allreduce_recursive_doubling(processes: Value, m: Message) -> Value:
    """Return ``k (alpha + beta m + gamma m)``, k = floor(log2 P) (Thakur et al. 2005).

    When P is no power of two, the surplus processes hand their data over before and receive the
    result after: two more messages and one more reduction.
    """
    fold = 2 * m.time + m.gamma * m.size
    return floor_log2(processes) * m.reduced + _surplus(processes, fold)


def allreduce_rabenseifner(processes: Value, m: Message) -> Value:
    """Return ``2 k alpha + (p-1)/p (2 beta + gamma) m``, p = 2**k <= P (Thakur et al. 2005).

    Recursive halving, then recursive doubling of the parts; the surplus of a P that is no power
    of two folds in and out as in recursive doubling.
    """
    return _halving_and_back(processes, m) + _surplus(processes, 2 * m.time + m.gamma * m.size)


def allreduce_ring(processes: Value, m: Message) -> Value:
    """Return ``2 (P-1) alpha + (P-1)/P (2 beta + gamma) m`` (Patarasuk and Yuan 2009)."""
    share = _others(processes)
    return 2 * (processes - 1) * m.alpha + share * (2 * m.beta + m.gamma) * m.size


def allreduce_reduce_bcast(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) (2 alpha + 2 beta m + gamma m)``: up a binomial tree and down again."""
    return ceiling_log2(processes) * (m.reduced + m.time)


def reduce_scatter_recursive_halving(processes: Value, m: Message) -> Value:
    """Return ``k alpha + (p-1)/p (beta + gamma) m``, p = 2**k <= P (Thakur et al. 2005).

    The surplus of a P that is no power of two hands its vector over before and receives its part
    after: ``2 alpha + (1 + 1/P) beta m + gamma m`` more.
    """
    k = floor_log2(processes)
    among = k * m.alpha + _others(2**k) * (m.beta + m.gamma) * m.size
    fold = 2 * m.alpha + (1 + 1 / processes) * m.beta * m.size + m.gamma * m.size
    return among + _surplus(processes, fold)


def reduce_scatter_pairwise(processes: Value, m: Message) -> Value:
    """Return ``(P-1) alpha + (P-1)/P (beta + gamma) m`` (Thakur et al. 2005)."""
    return (processes - 1) * m.alpha + _others(processes) * (m.beta + m.gamma) * m.size


def allgather_ring(processes: Value, m: Message) -> Value:
    """Return ``(P-1) (alpha + beta m)`` (Thakur et al. 2005)."""
    return (processes - 1) * m.time


def allgather_bruck(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) alpha + (P-1) beta m`` (Bruck et al. 1997)."""
    return ceiling_log2(processes) * m.alpha + (processes - 1) * m.beta * m.size


def allgather_recursive_doubling(processes: Value, m: Message) -> Value:
    """Return ``k alpha + (p-1)/p P beta m``, p = 2**k <= P (Thakur et al. 2005).

    When P is no power of two, the surplus processes hand their block over before and receive all
    blocks after: ``2 alpha + (1 + P) beta m`` more. MPI libraries take it for powers of two only.
    """
    k = floor_log2(processes)
    among = k * m.alpha + _others(2**k) * processes * m.beta * m.size
    return among + _surplus(processes, 2 * m.alpha + (1 + processes) * m.beta * m.size)


def rooted_binomial(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) alpha + (P-1) beta m``, of gather and scatter (Chan et al. 2007)."""
    return ceiling_log2(processes) * m.alpha + (processes - 1) * m.beta * m.size


def rooted_linear(processes: Value, m: Message) -> Value:
    """Return ``(P-1) (alpha + beta m)``: the root serves one process after the other."""
    return (processes - 1) * m.time


def alltoall_pairwise(processes: Value, m: Message) -> Value:
    """Return ``(P-1) (alpha + beta m)`` (Thakur et al. 2005)."""
    return (processes - 1) * m.time


def alltoall_bruck(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) (alpha + P/2 beta m)`` (Bruck et al. 1997).

    Exact when P is a power of two, else an upper bound. Copies inside a process are not counted.
    """
    return ceiling_log2(processes) * (m.alpha + processes / 2 * m.beta * m.size)


def scan_recursive_doubling(processes: Value, m: Message) -> Value:
    """Return ``ceil(log2 P) (alpha + beta m + gamma m)``."""
    return ceiling_log2(processes) * m.reduced


def scan_linear(processes: Value, m: Message) -> Value:
    """Return ``(P-1) (alpha + beta m + gamma m)``: from each process to the next."""
    return (processes - 1) * m.reduced


def _others(processes: Value) -> Value:
    """Share of a vector in P parts that the other processes hold."""
    return (processes - 1) / processes


def _halving_and_back(processes: Value, m: Message) -> Value:
    """Time to reduce parts of a vector by recursive halving and to bring the parts together."""
    k = floor_log2(processes)
    return 2 * k * m.alpha + _others(2**k) * (2 * m.beta + m.gamma) * m.size


def _surplus(processes: Value, cost: Value) -> Value:
    """Return the cost if the number of processes is no power of two, else 0."""
    return choose(2 ** floor_log2(processes) < processes, cost, 0 * cost)


@dataclass(frozen=True)
class Algorithm:
    """How a collective is carried out."""

    cost: Cost  # Its time, s, from the number of processes and a `Message`
    # Whether partners are 1, 2, 4, ... ranks apart and exchange the whole vector.
    by_distance: bool = False
    # Whether processes send to the next one only, so that a node exchanges with the next over one
    # message at a time.
    single_flow: bool = False


@dataclass(frozen=True)
class Operation:
    """What is known of a collective operation."""

    # By name; the first is assumed where no measurement tells which one an MPI library uses.
    algorithms: Mapping[str, Algorithm]
    rooted: bool = False  # Whether one process sends or receives everything
    reducing: bool = False  # Whether contributions are combined by an operation such as a sum

    @property
    def default(self) -> str:
        """Name of the algorithm that is assumed."""
        return next(iter(self.algorithms))


OPERATIONS: Mapping[str, Operation] = {
    "barrier": Operation(
        {
            "dissemination": Algorithm(barrier_dissemination, by_distance=True),
            "recursive_doubling": Algorithm(barrier_recursive_doubling, by_distance=True),
            "linear": Algorithm(barrier_linear),
        }
    ),
    "bcast": Operation(
        {
            "binomial": Algorithm(bcast_binomial, by_distance=True),
            "scatter_allgather": Algorithm(bcast_scatter_allgather),
            "chain": Algorithm(bcast_chain, single_flow=True),
            "linear": Algorithm(rooted_linear),
        },
        rooted=True,
    ),
    "reduce": Operation(
        {
            "binomial": Algorithm(reduce_binomial, by_distance=True),
            "rabenseifner": Algorithm(reduce_rabenseifner),
            "linear": Algorithm(reduce_linear),
        },
        rooted=True,
        reducing=True,
    ),
    "allreduce": Operation(
        {
            "recursive_doubling": Algorithm(allreduce_recursive_doubling, by_distance=True),
            "rabenseifner": Algorithm(allreduce_rabenseifner),
            "ring": Algorithm(allreduce_ring, single_flow=True),
            "reduce_bcast": Algorithm(allreduce_reduce_bcast, by_distance=True),
        },
        reducing=True,
    ),
    "reduce_scatter": Operation(
        {
            "recursive_halving": Algorithm(reduce_scatter_recursive_halving),
            "pairwise": Algorithm(reduce_scatter_pairwise),
        },
        reducing=True,
    ),
    "allgather": Operation(
        {
            "ring": Algorithm(allgather_ring, single_flow=True),
            "bruck": Algorithm(allgather_bruck),
            "recursive_doubling": Algorithm(allgather_recursive_doubling),
        }
    ),
    "gather": Operation(
        {"binomial": Algorithm(rooted_binomial), "linear": Algorithm(rooted_linear)}, rooted=True
    ),
    "scatter": Operation(
        {"binomial": Algorithm(rooted_binomial), "linear": Algorithm(rooted_linear)}, rooted=True
    ),
    "alltoall": Operation(
        {"pairwise": Algorithm(alltoall_pairwise), "bruck": Algorithm(alltoall_bruck)}
    ),
    "scan": Operation(
        {
            "recursive_doubling": Algorithm(scan_recursive_doubling, by_distance=True),
            "linear": Algorithm(scan_linear, single_flow=True),
        },
        reducing=True,
    ),
}

ROOTED = tuple(name for name, one in OPERATIONS.items() if one.rooted)
"""Operations in which one process sends or receives everything."""


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
    """
    cost = OPERATIONS[operation].algorithms[algorithm].cost
    # with a size of one byte alpha and gamma stand for the whole message and its reduction
    rounds = int(ceiling_log2(processes))
    folds = algorithm == "recursive_doubling" and operation in ("allreduce", "barrier")
    folded = folds and 2**rounds != processes
    if folded:
        rounds -= 1  # the doubling runs over the largest power of two; the rest is the fold
    total: Value = 0.0
    for j in range(rounds):
        message = within if 2**j < per_node else between
        total = total + cost(2, Message(1, message, 0, reduction))
    if folded:
        message = within if processes <= per_node else between
        total = (
            total
            + cost(3, Message(1, message, 0, reduction))
            - cost(2, Message(1, message, 0, reduction))
        )
    return total


# Which algorithm a collective operation takes, by its size: ``allreduce=ring``.
#
# Written ``OPERATION=NAME``, or with sizes up to which an algorithm is taken,
# ``allreduce=recursive_doubling:8KiB,ring``: recursive doubling up to 8 KiB, a ring above. The size
# is the m of the closed forms: the vector of a process for bcast, reduce, allreduce, scan and
# reduce_scatter, its block for gather, scatter and allgather, its block for one peer for alltoall.


# carried out in replays, without a closed form of their own
_REPLAYED = {
    "barrier": ("linear_posted",),
    "reduce": ("linear_posted",),
    "allreduce": ("linear_posted",),
}

NAMES: Mapping[str, tuple[str, ...]] = {
    name: (*one.algorithms, *_REPLAYED.get(name, ())) for name, one in OPERATIONS.items()
}
"""Names of algorithms that a replay carries out, by operation."""


@dataclass(frozen=True)
class Selection:
    """Algorithms of an operation by size."""

    operation: str  # One of `NAMES`
    # Largest size in bytes and the algorithm up to it, ascending; the last size is infinite.
    steps: tuple[tuple[float, str], ...]

    def __post_init__(self) -> None:
        """Refuse operations and algorithms that are not known, and sizes that do not ascend."""
        names = NAMES.get(self.operation)
        if names is None:
            raise UsageError(
                f"unknown collective operation {self.operation!r}",
                did_you_mean(self.operation, NAMES, f"choose one of {', '.join(NAMES)}"),
            )
        for _, name in self.steps:
            if name not in names:
                raise UsageError(
                    f"unknown algorithm {name!r} of {self.operation}",
                    did_you_mean(name, names, f"choose one of {', '.join(names)}"),
                )
        sizes = [size for size, _ in self.steps]
        if not sizes or sizes != sorted(set(sizes)) or not math.isinf(sizes[-1]):
            raise UsageError(
                f"algorithms of {self.operation}: sizes must ascend, and the last algorithm must "
                "have none",
                "write allreduce=recursive_doubling:8KiB,ring for a ring above 8 KiB",
            )

    def __str__(self) -> str:
        """Return what `parse_selection` reads."""
        steps = [
            name + ("" if math.isinf(size) else f":{_in_bytes(size)}") for size, name in self.steps
        ]
        return f"{self.operation}={','.join(steps)}"

    def at(self, size: float) -> str:
        """Return the name of the algorithm for a size in bytes."""
        return next(name for most, name in self.steps if size <= most)


def parse_selection(text: str) -> Selection:
    """Read a selection."""
    operation, equals, rest = text.partition("=")
    if not equals or not operation.strip() or not rest.strip():
        raise UsageError(
            f"must be OPERATION=ALGORITHM, not '{text}'",
            "write allreduce=ring, or allreduce=recursive_doubling:8KiB,ring to choose by size",
        )
    steps = []
    for step in rest.split(","):
        name, colon, size = step.partition(":")
        steps.append((parse_size(size) if colon else math.inf, name.strip()))
    return Selection(operation.strip(), tuple(steps))


def _in_bytes(size: float) -> str:
    short = format_size(size).replace(" ", "")
    return short if parse_size(short) == size else f"{size:.17g}"
