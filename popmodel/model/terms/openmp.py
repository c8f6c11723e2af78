"""A loop shared by the threads of a process, and what OpenMP adds to it.

Sources: L. Adhianto and B. Chapman, ICPADS 2006, eq. 4-5 (efficiency of multithreading); J. M.
Bull, EWOMP 1999 (overheads per construct).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from popmodel.base.expressions.elementary import (
    Value,
    ceiling,
    choose,
    floor,
    log,
    maximum,
    minimum,
    named,
    sqrt,
)
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


# Loops whose iterations are handed out in chunks while they run: schedules dynamic and guided.
#
# A thread that has finished takes the next chunk, so threads end within one chunk of each other;
# the price is an access to a shared counter per chunk. Sources: OpenMP Application Programming
# Interface 5.2, section 11.5 (schedules); the mean wait for the last chunk is that of residual life
# in renewal theory (D. R. Cox, Renewal Theory, 1962).


def dynamic_time(
    trip: Value,
    iteration: Value,
    threads: Value,
    chunk: Value = 1,
    *,
    spread: Value = 0.0,
    overhead: Value = 0.0,
) -> Value:
    """Return the time of a loop with ``schedule(dynamic, chunk)``.

    With equal iterations every thread has at most ``ceil(n_c/T)`` of the ``n_c = ceil(trip/c)``
    chunks. With random costs the threads end at random points of their last chunk: ``trip t/T +
    (T-1)/T (1+cv**2) c t/2``, cv that of a chunk. The larger of both holds.

    Parameters
    ----------
    trip, iteration : value
        Iterations that are shared, and the time of one, s.
    threads : value
        Threads.
    chunk : value
        Iterations of a chunk.
    spread : value
        Coefficient of variation of the cost of an iteration, independent between iterations.
    overhead : value
        Time of a thread to fetch a chunk, s.
    """
    size = minimum(chunk, trip)
    chunks = ceiling(trip / size)
    turns = ceiling(chunks / threads)
    equal = minimum(turns * size, trip) * iteration  # at most a chunk too much if one is short
    rest = (1 + spread**2 / size) * size * iteration / 2
    uneven = trip * iteration / threads + (threads - 1) / threads * rest
    return maximum(equal, choose(spread > 0, uneven, equal)) + turns * overhead


def guided_chunks(trip: Value, threads: Value, chunk: Value = 1) -> Value:
    """Return about how many chunks ``schedule(guided, chunk)`` makes: ``T log(trip/(T c)) + T``.

    Each chunk is the rest over the threads until that falls below ``chunk``.
    """
    return maximum(threads * (log(maximum(trip / (threads * chunk), 1)) + 1), 1)


def guided_time(
    trip: Value,
    iteration: Value,
    threads: Value,
    chunk: Value = 1,
    *,
    spread: Value = 0.0,
    overhead: Value = 0.0,
) -> Value:
    """Return the time of a loop with ``schedule(guided, chunk)``.

    The last chunks are as small as those of a dynamic schedule, so the threads end as evenly.
    Parameters as in `dynamic_time`.
    """
    chunks = guided_chunks(trip, threads, chunk)
    smooth = dynamic_time(trip, iteration, threads, chunk, spread=spread)
    return smooth + chunks / threads * overhead


# Threads that queue for a critical section or a lock.
#
# Source: M. Reiser and S. S. Lavenberg, J. ACM 27 (1980) 313 (mean value analysis of a closed
# queueing network).


def random_round(threads: int, outside: Value, inside: Value) -> Value:
    """Return the mean time between two entries of a thread if the times vary exponentially.

    ``R(n) = S (1 + Q(n-1)), X(n) = n/(Z + R(n)), Q(n) = X(n) R(n)``; the round is ``T/X(T)``.

    Parameters
    ----------
    threads : int
        Threads that enter, T.
    outside, inside : value
        Mean time of a thread outside (Z), and inside with the cost of the lock (S), s.
    """
    round_: Value = named("mva", _mean_value_analysis, threads, outside, inside)
    return round_


def _mean_value_analysis(threads: float, outside: Value, inside: Value) -> Value:
    queue: Value = 0.0
    residence = inside
    for n in range(1, int(threads) + 1):
        residence = inside * (1 + queue)
        queue = n * residence / (outside + residence)
    return outside + residence


# Explicit tasks: a greedy scheduler's time, limited by the thread that creates the tasks.
#
# Source: R. L. Graham, SIAM J. Appl. Math. 17 (1969) 416 (bound of greedy schedules); R. P. Brent,
# J. ACM 21 (1974) 201.


def task_time(
    count: Value, seconds: Value, span: Value, threads: Value, create: Value = 0.0
) -> Value:
    """Return ``max((t1 + n o)/T + t_inf (1 - 1/T), n o)``.

    Parameters
    ----------
    count, seconds : value
        Tasks n, and the time of one, s; together the work t1.
    span : value
        Longest chain of tasks that wait for each other, t_inf, s.
    threads : value
        Threads T.
    create : value
        Time to create and schedule one task, o, spent by one thread, s.
    """
    work = count * (seconds + create)
    return maximum(work / threads + span * (1 - 1 / threads), count * create)


# Cache lines that travel between cores because threads write to different parts of them.
#
# Source: counting of lines by static chunk, as in W. J. Bolosky and M. L. Scott, SEDMS IV (1993);
# the strength kappa is measured by threads that update packed and padded counters.


def false_sharing_time(
    writes: Value, threads: Value, chunk: Value, line_elements: Value, transfer: Value, kappa: Value
) -> Value:
    """Return ``kappa (W/T) p (1 - 1/s) lambda``: the time a thread loses to lines that travel.

    ``s = min(T, floor((g-2)/c) + 2)`` threads share a line of g elements under static chunks of c,
    and ``p = min(1, (g-1)/c)`` of the writes go to shared lines.

    Parameters
    ----------
    writes : value
        Elements that the process writes, W.
    threads : value
        Threads T.
    chunk : value
        Consecutive elements of a thread, c.
    line_elements : value
        Elements of a cache line, g, at least 1.
    transfer : value
        Time to move a line between two cores, lambda, s.
    kappa : value
        Share of these moves that is not hidden, 0 to 1.
    """
    wide = maximum(line_elements - 2, 0)
    sharers = maximum(minimum(threads, floor(wide / chunk) + 2), 1)
    shared = minimum(1, (line_elements - 1) / chunk)
    return kappa * (writes / threads) * shared * (1 - 1 / sharers) * transfer
