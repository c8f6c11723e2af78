"""Threads that queue for a critical section or a lock.

Source: M. Reiser and S. S. Lavenberg, J. ACM 27 (1980) 313 (mean value analysis of a closed
queueing network).
"""

from __future__ import annotations

from popmodel.expressions.elementary import Value
from popmodel.expressions.traced import named


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
