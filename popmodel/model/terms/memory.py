"""Traffic to memory: whether a working set stays in a cache, and bandwidth shared by cores.

Sources: H. Stengel et al., ICS 2015 (layer conditions, recursion for the saturation); the closed
form of the saturation is a power mean of the two bandwidths that it joins.
"""

from __future__ import annotations

from popmodel.expressions.elementary import Value, choose, maximum


def if_fits(working_set: Value, capacity: Value, hit: Value, miss: Value) -> Value:
    """Return the traffic of an iteration by a layer condition.

    Parameters
    ----------
    working_set : value
        Bytes that the threads of a process use again and again.
    capacity : value
        Bytes of cache that they may count on.
    hit, miss : value
        Bytes per iteration if the working set stays in the cache, and if not.
    """
    return choose(working_set <= capacity, hit, miss)


def cache_capacity(kappa: Value, size: Value, sharing: Value) -> Value:
    """Return the bytes of a cache that a process may count on.

    Parameters
    ----------
    kappa : value
        Usable fraction: replacement and other data take the rest.
    size : value
        Bytes of one cache.
    sharing : value
        Processes that share it.
    """
    return kappa * size / sharing


def bandwidth(cores: Value, b1: Value, bsat: Value, q: Value) -> Value:
    """Return the bandwidth of a memory domain with some active cores, B/s.

    ``b(A) = (A**-q (b1**-q - bsat**-q) + bsat**-q)**(-1/q)``: b1 for one core, linear at first,
    bsat for many; q is fitted to a bandwidth measurement with rising core counts.

    Parameters
    ----------
    cores : value
        Active cores of the domain.
    b1, bsat : value
        Bandwidth of one core and of all, B/s.
    q : value
        Sharpness of the knee; the hard minimum of both (q infinite) is up to a third too fast.
    """
    limit = maximum(bsat, b1)  # a domain is never slower than one core; draws may cross
    # relative to bsat, since b1**-q underflows for large q
    ratio = b1 / limit
    return limit * (cores ** (-q) * (ratio ** (-q) - 1) + 1) ** (-1 / q)


def transfer_time(
    traffic: Value, busiest_traffic: Value, cores: Value, alone: Value, together: Value
) -> Value:
    """Return the time that one core needs for its memory traffic while others do the same, s.

    A core with more traffic than the average takes longer only while its own connection is the
    bottleneck: in a saturated domain the cores that are done leave their bandwidth to it.

    Parameters
    ----------
    traffic, busiest_traffic : value
        Bytes of an average core, and of this one.
    cores : value
        Active cores of the memory domain.
    alone, together : value
        Bandwidth of one core, and of all active ones together, B/s.
    """
    return maximum(traffic * cores / together, busiest_traffic / alone)
