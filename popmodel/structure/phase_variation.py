"""How the times of a phase differ, and why: imbalance, its causes, and bursts without a core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.arrays import alike
from popmodel.base.units import format_time, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.phases import Phase, Phases

_SWEEPS = 50
_CLOSE = 1e-12
"""Change of the effects, relative to the mean, from which on further sweeps change no figure."""
_SLICE = 1e-3
"""Seconds for which a scheduler lets another process run at least."""
_TIMES = 3.0
"""By how much an interrupted burst exceeds the median of its process."""
_ALIKE = 1.5
"""By how much the median process exceeds its own median where all are slow at once: by work."""
_SAME_WORK = 1.2
_ENOUGH = 8
"""Executions of a process from which on its median tells what is usual."""
_NOTEWORTHY = 0.02
_FORK = 1e-4
"""Seconds that fork and join of a region hardly ever take."""
_IDLE = 0.1
"""Part of a region in which even its busiest thread is idle that is worth a word."""


# For ever the same ranks, or other ones each time.
#
# The time of rank i in execution k is taken for ``m + a_i + b_k + e_ik`` (two-way analysis of
# variance without repetition, e.g. Scheffe, The Analysis of Variance, 1959, chapter 4): `a` is the
# persistent imbalance, `b` what all ranks have alike in an execution (no imbalance), `e` the
# transient one. ``Var(a)`` is that of the ranks' means less what the transient part adds to it.


class Imbalance(NamedTuple):
    """Differences between ranks, as coefficients of variation (standard deviation over mean)."""

    # Of the same ranks in every execution; of one execution all of it; None of one rank alone.
    persistent: float | None
    # Of other ranks in every execution; None where there is one rank or one execution only.
    transient: float | None
    common: float | None  # Of executions, which all ranks have alike; no imbalance
    # float64[S]: Mean of each rank's executions relative to the mean over ranks, freed from which
    # executions it has; NaN where it has none.
    by_rank: NDArray[np.float64]


def imbalance(
    rank: NDArray[np.int32],
    execution: NDArray[np.int64],
    values: NDArray[np.float64],
    ranks: int,
) -> Imbalance:
    """Tell persistent from transient imbalance."""
    by_rank = np.full(ranks, np.nan)
    if not len(values):
        return Imbalance(None, None, None, by_rank)
    if execution.min() == execution.max():
        return _of_one_execution(rank, values, by_rank)
    which = np.unique(execution, return_inverse=True)[1]
    rows, columns = np.bincount(rank, minlength=ranks), np.bincount(which)
    some = rows > 0
    own, common = _effects(rank, which, values, rows, columns)
    mean = float(own[some].mean())
    if mean <= 0:
        return Imbalance(None, None, None, by_rank)
    by_rank[some] = own[some] / mean
    many, often = int(some.sum()), len(columns)
    if many < 2:
        return Imbalance(None, None, float(np.std(values, ddof=1)) / mean, by_rank)
    between = float(np.var(own[some], ddof=1))
    free = len(values) - many - often + 1
    left = values - own[rank] - common[which]
    transient = float(left @ left) / free if free > 0 else 0.0
    persistent = max(between - transient * float(np.mean(1 / rows[some])), 0.0)
    alike = max(float(np.var(common, ddof=1)) - transient * float(np.mean(1 / columns)), 0.0)
    return Imbalance(
        float(np.sqrt(persistent)) / mean,
        float(np.sqrt(transient)) / mean if free > 0 else None,
        float(np.sqrt(alike)) / mean,
        by_rank,
    )


def _of_one_execution(
    rank: NDArray[np.int32], values: NDArray[np.float64], by_rank: NDArray[np.float64]
) -> Imbalance:
    """All of it counts as persistent; many phases are passed once."""
    mean = float(values.mean())
    if mean > 0:
        by_rank[rank] = values / mean
    if mean <= 0 or len(values) < 2:
        return Imbalance(None, None, None, by_rank)
    return Imbalance(float(values.std(ddof=1)) / mean, None, None, by_rank)


def _effects(
    rank: NDArray[np.int32],
    which: NDArray[np.int64],
    values: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of ranks, and what executions add to them (0 on average over values).

    Least squares by turns; where each rank has each execution, the first turn is exact.
    """
    ranks = len(rows)
    divisor = np.maximum(rows, 1)
    common = np.zeros(len(columns))
    own = np.bincount(rank, values, ranks) / divisor
    scale = abs(float(values.mean())) or 1.0
    for _ in range(_SWEEPS):
        before = common
        common = np.bincount(which, values - own[rank], len(columns)) / columns
        common -= float(common @ columns) / len(values)
        own = np.bincount(rank, values - common[which], ranks) / divisor
        if np.abs(common - before).max() <= _CLOSE * scale:
            break
    return own, common


# Why processes take different time for a phase: instructions, IPC or frequency.
#
# Useful time is instructions over IPC and frequency. Of the busiest process against the mean,
#
#     max(u) / mean(u) = [I / mean(I)] * [IPC' / IPC] * [f' / f]
#
# with ``IPC' = sum(I)/sum(cycles)`` and inverse mean frequency ``1/f' = sum(u)/sum(cycles)`` over
# all processes: the three factors multiply to the whole exactly, and their logarithms add up.


def causes(
    useful: NDArray[np.float64],
    instructions: NDArray[np.float64] | None = None,
    cycles: NDArray[np.float64] | None = None,
) -> dict[str, Any] | None:
    """Load balance of processes (mean over largest useful time), and why it is not 1.

    Factors by which the busiest process exceeds the mean are above 1 by more instructions, fewer of
    them per cycle, or fewer cycles per second than all processes have; None without these counters.
    Their product is 1 over the balance; the largest is the main cause.
    """
    if not useful.sum() > 0:
        return None
    busiest = int(useful.argmax())
    most, mean = float(useful[busiest]), float(useful.mean())
    factors: dict[str, float | None] = dict.fromkeys(("instructions", "ipc", "frequency"))
    if instructions is not None and instructions[busiest] > 0:
        factors["instructions"] = float(instructions[busiest] / instructions.mean())
        if cycles is not None and cycles[busiest] > 0:
            per_instruction = cycles[busiest] / instructions[busiest]
            factors["ipc"] = float(per_instruction / (cycles.sum() / instructions.sum()))
            per_cycle = most / cycles[busiest]
            factors["frequency"] = float(per_cycle / (useful.sum() / cycles.sum()))
    known = {name: factor for name, factor in factors.items() if factor is not None}
    main = max(known, key=lambda name: known[name], default=None)
    return {"value": mean / most, "process": busiest, **factors, "main": main}


# Bursts that took far longer than their work explains: the process had no core meanwhile.
#
# Where more processes than cores run, or other programs on the same cores, a burst now and then
# includes a time slice of somebody else. Such bursts are told by what equal work takes the same
# process at other times: at least a slice longer and a multiple, while the other processes were not
# slow in the same execution, and (where counters exist) with no more instructions.


def interruptions(found: Phases) -> tuple[dict[str, float], str | None]:
    """Look for interrupted bursts in the phases of a run.

    How many there are, their time beyond the median of the same process (s), and that as a part of
    all computing; and what to know of them before numbers are read, where they matter.
    """
    lost = np.concatenate([np.empty(0), *(_lost(phase) for phase in found.phases)])
    number, time = int(np.count_nonzero(lost)), float(lost.sum())
    share = time / found.seconds if found.seconds else 0.0
    told = {"bursts": number, "time": time, "share": share}
    if share < _NOTEWORTHY:
        return told, None
    counted = all(phase.instructions is not None for phase in found.phases)
    work = "with no more instructions" if counted else "of equal place in the program"
    return told, (
        f"{plural(number, 'burst')} {work} took up to "
        f"{format_time(float(lost.max()), digits=3)} longer than usual for their process, "
        f"{100 * share:.2g} % of all computing: processes were probably without a core "
        "meanwhile (more processes than cores, or other programs); medians tell more than means"
    )


def idle_regions(found: Phases) -> str | None:
    """Say in which region even the busiest thread has far more idle time than a fork costs."""
    idle = [
        (phase.overhead, float(phase.wall.mean()), phase)
        for phase in found.of("parallel")
        if not phase.small
    ]
    worst = max(
        ((each, wall, phase) for each, wall, phase in idle if each > max(_FORK, _IDLE * wall)),
        key=lambda one: one[0] * len(one[2].wall),
        default=None,
    )
    if worst is None:
        return None
    each, wall, phase = worst
    return (
        f"in region {phase.name} even the busiest thread does nothing useful for "
        f"{format_time(each, digits=3)} of {format_time(wall, digits=3)}, far more than fork and "
        "join cost: check that each thread has a core of its own"
    )


def _lost(phase: Phase) -> NDArray[np.float64]:
    """Time of each interrupted burst beyond what is usual, s; 0 for the others."""
    nothing = np.zeros(len(phase.wall))
    if phase.executions < _ENOUGH or phase.wall.max() < _SLICE:
        return nothing
    several = nothing if phase.places is None else phase.places
    place = several.astype(np.int64)
    process = alike(place, phase.sequence.astype(np.int64))[1]
    usual = _medians(process, phase.wall)
    excess = phase.wall - usual
    slow = (excess > _SLICE) & (phase.wall > _TIMES * usual)
    slow &= (np.bincount(process)[process] >= _ENOUGH) & ~phase.cut
    if not slow.any():
        return nothing
    if phase.instructions is not None:
        slow &= phase.instructions <= _SAME_WORK * _medians(process, phase.instructions)
    else:  # a process alone is its own median: it may as well have had more to do
        relative = phase.wall / np.maximum(usual, 1e-9)
        slow &= _medians(alike(place, phase.execution)[1], relative) < _ALIKE
    return np.where(slow, excess, 0.0)


def _medians(group: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lower median of the group of each value."""
    counts = np.bincount(group)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    medians: NDArray[np.float64] = values[np.lexsort((values, group))][middle][group]
    return medians
