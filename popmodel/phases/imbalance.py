"""How the time of a phase differs: for ever the same ranks, or other ones each time.

The time of rank i in execution k is taken for ``m + a_i + b_k + e_ik`` (two-way analysis of
variance without repetition, e.g. Scheffe, The Analysis of Variance, 1959, chapter 4): `a` is the
persistent imbalance, `b` what all ranks have alike in an execution (no imbalance), `e` the
transient one. ``Var(a)`` is that of the ranks' means less what the transient part adds to it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SWEEPS = 50
_CLOSE = 1e-12
"""Change of the effects, relative to the mean, from which on further sweeps change no figure."""


@dataclass(frozen=True, eq=False)
class Imbalance:
    """Differences between ranks, as coefficients of variation (standard deviation over mean)."""

    # Of the same ranks in every execution; of one execution all of it; None of one rank alone.
    persistent: float | None
    # Of other ranks in every execution; None where there is one rank or one execution only.
    transient: float | None
    common: float | None  # Of executions, which all ranks have alike; no imbalance
    # float64[S]: Mean of each rank's executions relative to the mean over ranks, freed from which
    # executions it has; NaN where it has none.
    by_rank: NDArray[np.float64]


def split(
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


@dataclass(frozen=True)
class Causes:
    """Load balance of processes and why it is not 1."""

    balance: float  # Mean over largest useful time of the processes
    process: int  # The busiest one
    # Factors by which its useful time exceeds the mean; above 1 by more instructions, fewer of them
    # per cycle, or fewer cycles per second than all processes have. Their product is 1 / `balance`.
    # None without these counters.
    instructions: float | None = None
    ipc: float | None = None
    frequency: float | None = None

    @property
    def main(self) -> str | None:
        """The factor that explains most: instructions, ipc or frequency; None: not known."""
        factors = {
            "instructions": self.instructions,
            "ipc": self.ipc,
            "frequency": self.frequency,
        }
        known = {name: factor for name, factor in factors.items() if factor is not None}
        return max(known, key=lambda name: known[name]) if known else None

    def share(self, cause: str) -> float:
        """Part of the (logarithmic) imbalance that a factor explains; negative: it compensates."""
        factor = getattr(self, cause)
        return math.log(factor) / -math.log(self.balance) if self.balance < 1 else 0.0


def causes(
    useful: NDArray[np.float64],
    instructions: NDArray[np.float64] | None = None,
    cycles: NDArray[np.float64] | None = None,
) -> Causes | None:
    """Explain the load balance of processes."""
    if not useful.sum() > 0:
        return None
    busiest = int(useful.argmax())
    most, mean = float(useful[busiest]), float(useful.mean())
    found = Causes(mean / most, busiest)
    if instructions is None or not instructions[busiest] > 0:
        return found
    own = float(instructions[busiest] / instructions.mean())
    if cycles is None or not cycles[busiest] > 0:
        return Causes(found.balance, busiest, own)
    per_instruction = float(
        (cycles[busiest] / instructions[busiest]) / (cycles.sum() / instructions.sum())
    )
    per_cycle = float((most / cycles[busiest]) / (useful.sum() / cycles.sum()))
    return Causes(found.balance, busiest, own, per_instruction, per_cycle)
