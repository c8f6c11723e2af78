"""Time of a loop on one core, from what an iteration does and what the core can do per cycle.

Sources: L. Adhianto and B. Chapman, ICPADS 2006, eq. 2 (machine + loop overhead + cache);
H. Stengel et al., ICS 2015 (execution-cache-memory model); S. Williams et al., CACM 52 (2009) 65
(roofline).
Times are in seconds; all functions take numbers, NumPy arrays or traced numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from popmodel.base.expressions.elementary import Value, choose, maximum, minimum
from popmodel.base.values import NamedTuple


class CoreTime(NamedTuple):
    """Time inside a core, divided by whether data transfer can go on meanwhile.

    Attributes
    ----------
    arithmetic : value
        Floating-point work, which overlaps with transfer between caches where the core can, s.
    data : value
        Loads and stores of the first cache, which block its transfers, s.
    overhead : value
        Loop control, s.
    """

    arithmetic: Value
    data: Value
    overhead: Value


def core_time(
    iterations: Value,
    *,
    arithmetic_cycles: Value,
    data_cycles: Value,
    overhead_cycles: Value,
    frequency: Value,
) -> CoreTime:
    """Return the time of a number of iterations inside a core.

    Parameters
    ----------
    iterations : value
        Innermost iterations.
    arithmetic_cycles, data_cycles, overhead_cycles : value
        Cycles per iteration: the operations of an iteration over the peak rate of the core.
    frequency : value
        Clock, Hz.
    """
    scale = iterations / frequency
    return CoreTime(arithmetic_cycles * scale, data_cycles * scale, overhead_cycles * scale)


def loop_time(core: CoreTime, caches: Value, memory: Value, overlap: str | Value) -> Value:
    """Combine the time in the core with that of the data transfers.

    ``t = (1 - omega) t_none + omega t_full`` for a core between both forms.

    Parameters
    ----------
    core : CoreTime
        Time inside the core.
    caches, memory : value
        Time of the transfers between caches, and to and from memory, s.
    overlap : {'none', 'ecm', 'full'} or value
        omega, at most 1, or one of the exact forms. ``none``: everything adds up (Adhianto and
        Chapman eq. 2), an upper bound. ``full``: the slowest part hides the others (roofline), a
        lower bound. ``ecm``: arithmetic hides transfers, loads and stores do not.
    """
    busy = maximum(core.arithmetic, core.data) + core.overhead
    none, full = busy + caches + memory, maximum(busy, caches, memory)
    if not isinstance(overlap, str):
        return full + (1 - overlap) * (none - full)
    if overlap == "ecm":
        return maximum(busy, core.data + caches + memory)
    if overlap not in ("none", "full"):
        raise ValueError(f"unknown overlap {overlap!r}")
    return none if overlap == "none" else full


_SHARPER = 0.2  # exponent of the demand in the sharpness of the knee, see `shared_time`
_LEAST_SHARE = 1e-3  # of its time in transfers: below, the memory hardly matters to a loop


def lost_share(working_set: Value, capacity: Value) -> Value:
    """Return the part of a working set that a cache loses until it is used again, 0 to 1.

    A cache that replaced strictly by age would lose all of a working set that is used in the same
    order again and again as soon as it is a little too large. Those of today's processors do not
    quite, and what else lies in them differs. A set of r times that of which half is lost loses
    ``(64 r**6 - 1) / (63 (1 + r**6))``: nothing up to half of it, all from twice as much on. A
    share of the cache that stayed whatever the size of the set would be wrong.

    The exponent is from sweeps over arrays on two processors, whose times per line it meets to 6 %
    (a test has them): second caches of 2 MiB, half way at 2.7 and 2.2 MiB, and a last one, half way
    at 97 MiB. First caches lose all between two neighbouring sizes. A straight fall from 2/3 to 4/3
    ends too early: a tenth is still found of sets 1.4 times as large.

    Parameters
    ----------
    working_set : value
        Bytes that the threads of a process, or one thread, touch until they come back to the first.
    capacity : value
        Bytes of a working set of which half stays in the cache.
    """
    ratio = minimum(maximum(working_set / _divisor(capacity), 0.5), 2.0)
    lost = (64 * ratio**6 - 1) / (63 * (1 + ratio**6))
    return choose(capacity > 0, lost, choose(working_set > 0, 1.0, 0.0))  # else no cache at all


def cache_capacity(kappa: Value, size: Value, sharing: Value) -> Value:
    """Return the working set of a process or a thread of which half stays in a cache, bytes.

    Parameters
    ----------
    kappa : value
        That of one core alone over the size of the cache: replacement and other data take some.
    size : value
        Bytes of one cache.
    sharing : value
        Processes, or threads, that share it; below 1 for a process that is on several.
    """
    return kappa * size / sharing


def served(traffic: Mapping[str, Value]) -> dict[str, Value]:
    """Return what each level serves of the traffic of a loop, bytes.

    Rates are measured from a working set in a level to the core, so what comes from farther away
    is charged there, with all its way: ``q_l - q_(l+1)``.

    Parameters
    ----------
    traffic : mapping of str to value
        Bytes between a level and the one before it, by level from the core outwards; each has those
        of the next one in it.
    """
    pairs = pairwise([*traffic.values(), 0.0])
    return {
        level: maximum(through - beyond, 0.0)
        for level, (through, beyond) in zip(traffic, pairs, strict=True)
    }


def moved(served_bytes: Value, written: Value, write_back: Value) -> Value:
    """Return the bytes that take as long to be read from a level as some that are partly written.

    Parameters
    ----------
    served_bytes : value
        Bytes that a level serves, those that are written back to it among them.
    written : value
        These; at most all.
    write_back : value
        Time of writing a line back over that of reading one: 0 where write-backs pass beside the
        reads, as in a shared cache that waits for its reads; above 1 where the core waits for them.
    """
    return served_bytes + (write_back - 1) * minimum(written, served_bytes)


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


def sharpness(alone: Value, transfers: Value, q: Value) -> Value:
    """Return the sharpness of the knee for a loop, ``p = q (t_1 / a)**(1/5)``; see `shared_time`.

    Parameters
    ----------
    alone, transfers : value
        As of `shared_time`, s.
    q : value
        That of cores that only move data, as of `bandwidth`.
    """
    share = maximum(minimum(transfers / _divisor(alone), 1.0), _LEAST_SHARE)
    return q / share**_SHARPER


def shared_time(
    alone: Value, transfers: Value, contended: Value, p: Value, stretch: Value = 1
) -> Value:
    """Return the time of a loop on one core while others of its memory domain do the same, s.

    ``t**p = t_1**p - a**p + c**p``: the time alone t_1, whatever it consists of, in which the
    transfers a of one core become those c of a core among others. A loop that only moves data takes
    exactly c, one that leaves the memory idle exactly t_1, and none is faster than the memory.

    Parameters
    ----------
    alone : value
        Time on one core while the others are idle, s.
    transfers : value
        The part of it for which one core moves data to and from memory, s: its traffic over the
        bandwidth of one core.
    contended : value
        The same with all active cores at it, s: traffic of an average core times cores over
        `bandwidth`.
    p : value
        From `sharpness`: with less traffic per core more cores make the same load, and their waits
        average out, so that the knee is sharper.
    stretch : value, optional
        Work of this core over that of an average one. What it has more, it does while the memory is
        left to it: in the time alone.

    Notes
    -----
    Differences of the time from references, whose own bandwidth with streaming cores gave q, for
    loops whose time alone is 1 to 64 times that of their transfers in the full domain, on 1 to 64
    cores (largest, largest of the medians; without the root of the demand in p, largest):

    ================================================  =======  ====  ======  ==========
    reference                                               q   max  median  p = q, max
    ================================================  =======  ====  ======  ==========
    closed queue, one server shared by all (MVA)      3.0-3.6   5 %   0.8 %        16 %
    closed queue in order, random times, cv 0.5       3.9-4.5   5 %   0.7 %        12 %
    closed queue in order, random times, cv 0.25      4.8-7.0   6 %   0.6 %         9 %
    recursion of H. Stengel et al., up to 8 times     3.0-6.4  17 %   1.3 %        15 %
    recursion of H. Stengel et al., up to 64 times    3.0-6.4  22 %   1.8 %        18 %
    ================================================  =======  ====  ======  ==========

    Differences are largest where the demand just fills the domain. The recursion charges half a
    transfer per competing core, fitted to few cores of high demand; queues do not know such a
    penalty. The hard maximum of t_1 and c misses the queues by 12 to 21 %.
    """
    contended = maximum(contended, transfers)
    # relative to the largest, since powers of seconds underflow for large p
    largest = maximum(alone, contended)
    unit = _divisor(largest)
    powers = (alone / unit) ** p - (transfers / unit) ** p + (contended / unit) ** p
    return largest * powers ** (1 / p) + (stretch - 1) * alone


def _divisor(value: Value) -> Value:
    """The value, or 1 where there is nothing to be divided by it."""
    return choose(value > 0, value, 1.0)
