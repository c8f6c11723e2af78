"""Loops whose iterations are handed out in chunks while they run: schedules dynamic and guided.

A thread that has finished takes the next chunk, so threads end within one chunk of each other; the
price is an access to a shared counter per chunk. Sources: OpenMP Application Programming Interface
5.2, section 11.5 (schedules); the mean wait for the last chunk is that of residual life in renewal
theory (D. R. Cox, Renewal Theory, 1962).
"""

from __future__ import annotations

from popmodel.expressions.elementary import Value, ceiling, choose, log, maximum, minimum


def dynamic_time(
    trip: Value,
    iteration: Value,
    threads: Value,
    chunk: Value = 1,
    *,
    spread: Value = 0.0,
    overhead: Value = 0.0,
    serial_overhead: Value = 0.0,
) -> Value:
    """Return the time of a loop with ``schedule(dynamic, chunk)``.

    With equal iterations every thread has at most ``ceil(n_c/T)`` of the ``n_c = ceil(trip/c)``
    chunks. With random costs the threads end at random points of their last chunk: ``trip t/T +
    (T-1)/T (1+cv**2) c t/2``, cv that of a chunk. The larger of both holds. All chunks come from
    one counter, hence at least ``n_c`` times its cost.

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
    overhead, serial_overhead : value
        Time of a thread to fetch a chunk, and the part of it during which nobody else can, s.
    """
    size = minimum(chunk, trip)
    chunks = ceiling(trip / size)
    turns = ceiling(chunks / threads)
    equal = minimum(turns * size, trip) * iteration  # at most a chunk too much if one is short
    rest = (1 + spread**2 / size) * size * iteration / 2
    uneven = trip * iteration / threads + (threads - 1) / threads * rest
    time = maximum(equal, choose(spread > 0, uneven, equal)) + turns * overhead
    return maximum(time, chunks * serial_overhead)


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
    serial_overhead: Value = 0.0,
) -> Value:
    """Return the time of a loop with ``schedule(guided, chunk)``.

    The last chunks are as small as those of a dynamic schedule, so the threads end as evenly.
    Parameters as in `dynamic_time`.
    """
    chunks = guided_chunks(trip, threads, chunk)
    smooth = dynamic_time(trip, iteration, threads, chunk, spread=spread)
    return maximum(smooth + chunks / threads * overhead, chunks * serial_overhead)
