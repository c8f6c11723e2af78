"""Explicit tasks: a greedy scheduler's time, limited by the thread that creates the tasks.

Source: R. L. Graham, SIAM J. Appl. Math. 17 (1969) 416 (bound of greedy schedules); R. P. Brent,
J. ACM 21 (1974) 201.
"""

from __future__ import annotations

from popmodel.expressions.elementary import Value, maximum


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
