"""Bursts that took far longer than their work explains: the process had no core meanwhile.

Where more processes than cores run, or other programs on the same cores, a burst now and then
includes a time slice of somebody else. Such bursts are told by what equal work takes the same
process at other times: at least a slice longer and a multiple, while the other processes were not
slow in the same execution, and (where counters exist) with no more instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike
from popmodel.units import format_time, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.phases.phase import Phase, Phases

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


@dataclass(frozen=True)
class Interruptions:
    """Bursts in which processes probably had no core."""

    bursts: int  # How many, of all phases
    lost: float  # Their time beyond the median of the same process, s
    share: float  # The same as a part of all computing
    longest: float  # Most that one of them lost, s
    by_work: bool  # Whether counters show that they did no more work


def interruptions(found: Phases) -> Interruptions:
    """Look for interrupted bursts in the phases of a run."""
    lost = [_lost(phase) for phase in found.phases]
    all_lost = np.concatenate([np.empty(0), *lost])
    return Interruptions(
        int(np.count_nonzero(all_lost)),
        float(all_lost.sum()),
        float(all_lost.sum()) / found.seconds if found.seconds else 0.0,
        float(all_lost.max(initial=0.0)),
        bool(found.phases) and all(phase.instructions is not None for phase in found.phases),
    )


def remark(found: Interruptions) -> str | None:
    """What to know of them before numbers are read; None where they do not matter."""
    if found.share < _NOTEWORTHY:
        return None
    work = "with no more instructions" if found.by_work else "of equal place in the program"
    return (
        f"{plural(found.bursts, 'burst')} {work} took up to "
        f"{format_time(found.longest, digits=3)} longer than usual for their process, "
        f"{100 * found.share:.2g} % of all computing: processes were probably without a core "
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
