"""Why processes take different time for a phase: instructions, IPC or frequency.

Useful time is instructions over IPC and frequency. Of the busiest process against the mean,

    max(u) / mean(u) = [I / mean(I)] * [IPC' / IPC] * [f' / f]

with ``IPC' = sum(I)/sum(cycles)`` and inverse mean frequency ``1/f' = sum(u)/sum(cycles)`` over all
processes: the three factors multiply to the whole exactly, and their logarithms add up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
