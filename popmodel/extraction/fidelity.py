"""Which times of a run its signature has to keep, so that its replay takes as long.

Means by process keep the work of everybody, quantiles how often somebody is late. Neither keeps who
is late together, and on what the runtime depends is found out by trying: the program with the times
as they would be written is replayed on the ideal network, beside the program with those that were
traced. As few points as will do, those that vary most first, keep their recorded times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.extraction.computing import Timing, retimed
from popmodel.extraction.spread import Description, describe, drawn
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from popmodel.extraction.computing import Computing
    from popmodel.simulator import Program
    from popmodel.structure.events import Events

GOAL = 0.005
"""By how much runtime (relative) and efficiencies (points) of the written times may be off."""
_SEEDS = (1, 2)


@dataclass(frozen=True)
class Figures:
    """Of a replay on the ideal network."""

    runtime: float  # Seconds
    # Mean over largest computing of a process, and that over the runtime; 1 for an empty run.
    load_balance: float
    communication: float

    @property
    def parallel(self) -> float:
        """Their product: the parallel efficiency."""
        return self.load_balance * self.communication

    def to_dict(self) -> dict[str, float]:
        """Return them by the names that metrics have."""
        return {
            "runtime": self.runtime,
            "parallel_efficiency": self.parallel,
            "load_balance": self.load_balance,
            "communication_efficiency": self.communication,
        }

    def off(self, other: Figures) -> float:
        """By how much they are off what another replay found, the most of all."""
        relative = abs(self.runtime / other.runtime - 1) if other.runtime else 0.0
        return max(
            relative,
            abs(self.load_balance - other.load_balance),
            abs(self.communication - other.communication),
            abs(self.parallel - other.parallel),
        )


@dataclass(frozen=True)
class Fidelity:
    """What of the times is kept, and what that gives."""

    descriptions: tuple[Description, ...]  # Of each point
    recorded: frozenset[int]  # Points whose recorded times are kept
    # Of the program as traced, and as it is written.
    traced: Figures
    written: Figures


def figures(program: Program) -> Figures:
    """Replay a program on the ideal network."""
    execution = replay(program, PRESETS["ideal"])
    compute, runtime = execution.compute, execution.runtime
    longest = float(compute.max(initial=0.0))
    if not longest or not runtime:
        return Figures(runtime, 1.0, 1.0)
    return Figures(runtime, float(compute.mean()) / longest, longest / runtime)


def kept(
    traced: Program, program: Program, events: Events, points: Sequence[Computing]
) -> Fidelity:
    """Choose what to keep of the times of a program."""
    all_of_them = sum(point.total for point in points) or 1.0
    descriptions = tuple(describe(point.seconds, point.total / all_of_them) for point in points)
    goal = figures(traced)

    def found(recorded: Collection[int], seed: int) -> Figures:
        rng = np.random.default_rng(seed)
        chosen = [
            (point, point.seconds if number in recorded else drawn(one, point.there, rng))
            for number, (point, one) in enumerate(zip(points, descriptions, strict=True))
        ]
        times = Timing.of(len(events), program.sequences, chosen)
        return figures(retimed(program, events, times))

    def off(recorded: Collection[int]) -> float:
        return max(found(recorded, seed).off(goal) for seed in _SEEDS)

    varying = _by_variation(points, descriptions)
    least, most = 0, len(varying)
    if off(()) > GOAL:
        least = 1
        while least < most:  # the fewest that will do, if more are never worse
            middle = (least + most) // 2
            if off(varying[:middle]) <= GOAL:
                most = middle
            else:
                least = middle + 1
    recorded = frozenset(varying[:least])
    return Fidelity(descriptions, recorded, goal, found(recorded, _SEEDS[0]))


def _by_variation(points: Sequence[Computing], descriptions: Sequence[Description]) -> list[int]:
    """Points whose times vary, by how many seconds they are beside their means."""
    beside = np.zeros(len(points))
    for number, (point, one) in enumerate(zip(points, descriptions, strict=True)):
        if one.transient_cv > 0:
            own = _means(point.seconds)
            beside[number] = float(np.nansum(np.abs(point.seconds - own[:, None])))
    order = np.argsort(-beside, kind="stable")
    return [int(number) for number in order if beside[number] > 0]


def _means(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    there = np.isfinite(seconds)
    total = np.where(there, seconds, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(there.sum(axis=1), 1), dtype=np.float64)
