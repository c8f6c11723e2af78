"""Cache lines that travel between cores because threads write to different parts of them.

Source: counting of lines by static chunk, as in W. J. Bolosky and M. L. Scott, SEDMS IV (1993);
the strength kappa is measured by threads that update packed and padded counters.
"""

from __future__ import annotations

from popmodel.expressions.elementary import Value, floor, maximum, minimum


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
