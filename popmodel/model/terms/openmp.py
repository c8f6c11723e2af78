"""A loop shared by the threads of a process, and what OpenMP adds to it.

Sources: L. Adhianto and B. Chapman, ICPADS 2006, eq. 4-5 (efficiency of multithreading); J. M.
Bull, EWOMP 1999 (overheads per construct).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from popmodel.expressions.elementary import Value, ceiling, minimum, sqrt
from popmodel.model.terms.imbalance import expected_maximum

# how near to 1/T the efficiency must be to say that threads bring nothing
NO_SPEEDUP = 0.06

# constructs in which threads wait for each other; the rest is fork, join and scheduling
SYNCHRONISING = ("barrier", "critical", "lock", "atomic", "ordered", "single", "taskwait")


def multithreading_efficiency(serial: Value, threads: Value, parallel: Value) -> Value:
    """Return ``e_mt = sum t_ser / (T sum t_par)`` (Adhianto and Chapman eq. 4-5).

    Parameters
    ----------
    serial : value
        Time of the loops with one thread and without OpenMP, s.
    threads : value
        Threads per process.
    parallel : value
        Time of the same loops with all threads, s.
    """
    return serial / (threads * parallel)


def threads_bring_nothing(efficiency: float, threads: int) -> bool:
    """Tell whether ``e_mt T`` is so near to 1 that the threads seem to share a core."""
    return threads > 1 and abs(efficiency * threads - 1) <= NO_SPEEDUP


def static_stretch(
    trip: Value, threads: Value, chunk: Value | None = None, spread: Value = 0.0
) -> Value:
    """Return lambda_T: by how much the busiest thread exceeds the average under a static schedule.

    Whole iterations cannot be shared evenly, and random costs make one thread the slowest:
    ``ceil(trip/T)/(trip/T) - 1 + cv sqrt(T/trip) q(T)``.

    Parameters
    ----------
    trip : value
        Iterations that are shared.
    threads : value
        Threads.
    chunk : value, optional
        Chunk size of ``schedule(static, chunk)``; without it one block per thread.
    spread : value
        Coefficient of variation of the cost of an iteration.
    """
    even = trip / threads
    if chunk is None:
        largest = ceiling(even)
    else:
        # the last of the chunks may be short, but no thread has more than the iterations there are
        largest = ceiling(ceiling(trip / chunk) / threads) * chunk
        largest = minimum(largest, trip)
    quantisation = largest / even - 1
    return quantisation + spread * sqrt(threads / trip) * expected_maximum(threads)


def overhead_law(
    threads: int, a: Value, b: Value, d: Value, s: Value, *, across_sockets: bool
) -> Value:
    """Return the overhead of a construct for two threads or more, s.

    ``a + b log2 T + d T + s [threads on several sockets]``: a tree, a serial part, and the step
    across sockets.
    """
    across = s if across_sockets else 0
    return a + b * math.log2(threads) + d * threads + across


def interpolate_overhead(threads: int, counts: Sequence[int], seconds: Sequence[Value]) -> Value:
    """Return the overhead between measured thread counts, linear in log T.

    Beyond the largest count the last slope continues.

    Parameters
    ----------
    threads : int
        At least the smallest count.
    counts : sequence of int
        Rising thread counts, at least two unless ``threads`` is among them.
    seconds : sequence of value
        Overhead at each, s.
    """
    if threads in counts:
        return seconds[list(counts).index(threads)]
    if threads < counts[0] or len(counts) < 2:
        raise ValueError(f"no overhead known near {threads} threads")
    upper = next((i for i, count in enumerate(counts) if count > threads), len(counts) - 1)
    lower = upper - 1
    fraction = math.log(threads / counts[lower]) / math.log(counts[upper] / counts[lower])
    return seconds[lower] + fraction * (seconds[upper] - seconds[lower])
