"""Time of a loop on one core, from what an iteration does and what the core can do per cycle.

Sources: L. Adhianto and B. Chapman, ICPADS 2006, eq. 2 (machine + loop overhead + cache);
H. Stengel et al., ICS 2015 (execution-cache-memory model); S. Williams et al., CACM 52 (2009) 65
(roofline).
Times are in seconds; all functions take numbers, NumPy arrays or traced numbers.
"""

from __future__ import annotations

from popmodel.base.expressions.elementary import Value, maximum
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
