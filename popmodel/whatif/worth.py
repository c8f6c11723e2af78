"""What a faster region is worth: a causal profile, exact since the replay is.

The idea of causal profiling is Curtsinger and Berger's (Coz, SOSP 2015), who slow everything else
down in a running program. Here the program is replayed with other times of computing.

The runtime as a function of the factor c by which a region's time is multiplied is a maximum of
sums, so convex and piecewise linear. The time of the region on the critical path is a slope of it
at c = 1, which bounds every gain from above: a region that is not on the path gains nothing, and
where the gain of a region that takes no time reaches the bound, it does so for all factors between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass
from popmodel.whatif.durations import Durations, durations
from popmodel.whatif.regions import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.whatif.regions import Regions

    Run = Callable[[Program], float]

FASTER = (0.1, 0.25, 0.5, 1.0)
"""Shares of a region's time that are taken away; 1 leaves none."""

_NS = 1e9
_SAME = 1e-12
"""Relative difference of runtimes that rounding makes."""


@dataclass(frozen=True)
class Gain:
    """The runtime if a region took less time."""

    faster: float  # Share of its time that is taken away
    runtime: float  # s


@dataclass(frozen=True)
class Slowest:
    """What a region is worth on the process that computes longest in it."""

    rank: int
    gain: tuple[Gain, ...]


@dataclass(frozen=True)
class Worth:
    """What a faster region is worth."""

    # As of `popmodel.whatif.regions.Regions`.
    name: str
    kind: str
    time: float  # Computing in the region, mean over processes, s
    share: float  # The same as part of the runtime: what a profile shows
    # Its time on the critical path, s: the most that it can gain, and the derivative of the runtime
    # by its factor at 1.
    critical: float
    gain: tuple[Gain, ...]  # If it is faster on all processes
    slowest: Slowest  # If it is faster on the process that computes longest in it only
    balance: float  # Mean over longest time of the processes that compute in it
    balanced: float  # The runtime if each of these computed for their mean time in it, s
    ranks: Durations  # How long ranks compute in it


@dataclass(frozen=True)
class Rest:
    """Regions of which no replay was made."""

    regions: int  # How many there are
    share: float  # Their computing, mean over processes, as part of the runtime
    critical: float  # Their time on the critical path, s: the most that all of them together gain


def worth_of(
    program: Program,
    regions: Regions,
    critical: NDArray[np.float64],
    run: Run,
    *,
    cpu: float | NDArray[np.float64] = 1.0,
    faster: Sequence[float] = FASTER,
    most: int = 12,
) -> tuple[tuple[Worth, ...], Rest]:
    """Find what faster regions are worth, those with the highest gain first."""
    time = regions.by_process(program) * (cpu / _NS)
    runtime = run(program)
    on_path, mean = critical.sum(axis=1), time.mean(axis=1)
    chosen = _chosen(on_path, mean, most)
    cells = regions.cells(program)
    found = _Replays(program, regions, cells, critical, run, runtime, tuple(faster))
    worths = [_worth(found, int(one), time[one]) for one in chosen]
    others = np.ones(len(regions), dtype=bool)
    others[chosen] = False
    rest = Rest(
        int(others.sum()), _share(mean[others].sum(), runtime), float(on_path[others].sum())
    )
    worths.sort(key=lambda one: (one.gain[0].runtime, -one.critical, -one.time, one.name))
    return tuple(worths), rest


def _chosen(
    critical: NDArray[np.float64], time: NDArray[np.float64], most: int
) -> NDArray[np.int64]:
    """The regions with most time on the critical path, then those with most time."""
    if len(time) <= most:
        return np.arange(len(time))
    first = np.argsort(-critical, kind="stable")[: (most + 1) // 2]
    time = time.copy()
    time[first] = -1
    return np.concatenate([first, np.argsort(-time, kind="stable")[: most - len(first)]])


def _share(time: float, runtime: float) -> float:
    return float(time / runtime) if runtime else 0.0


@dataclass(frozen=True, eq=False)
class _Replays:
    """Replays of a program with other times of computing."""

    program: Program
    regions: Regions
    cells: NDArray[np.int64]
    critical: NDArray[np.float64]
    run: Run
    runtime: float
    faster: tuple[float, ...]

    def gains(self, region: int, processes: Sequence[int] | slice) -> tuple[Gain, ...]:
        """Runtimes if a region were faster on some processes."""
        bound = float(self.critical[region, processes].sum())
        if not bound:
            return tuple(Gain(share, self.runtime) for share in self.faster)
        least = self._without(region, processes, self.faster[-1])
        tangent = self.runtime - bound * self.faster[-1]
        if abs(least - tangent) <= _SAME * self.runtime:
            inner = [self.runtime - bound * share for share in self.faster[:-1]]
        else:
            inner = [self._without(region, processes, share) for share in self.faster[:-1]]
        return tuple(map(Gain, self.faster, [*inner, least]))

    def _without(self, region: int, processes: Sequence[int] | slice, share: float) -> float:
        factor = np.ones(self.critical.shape)
        factor[region, processes] = 1 - share
        return self.run(scaled(self.program, self.regions, factor, self.cells))

    def balanced(self, region: int, time: NDArray[np.float64]) -> float:
        """The runtime if all processes that compute in a region did so equally long."""
        some = np.flatnonzero(time)
        mean = time[some].mean()
        if np.all(time[some] == mean):
            return self.runtime
        factor = np.ones(self.critical.shape)
        factor[region, some] = mean / time[some]
        return self.run(scaled(self.program, self.regions, factor, self.cells))


def _worth(replays: _Replays, region: int, time: NDArray[np.float64]) -> Worth:
    slowest = int(time.argmax())
    some = time[time > 0]
    return Worth(
        name=replays.regions.names[region],
        kind=replays.regions.kinds[region],
        time=float(time.mean()),
        share=_share(time.mean(), replays.runtime),
        critical=float(replays.critical[region].sum()),
        gain=replays.gains(region, slice(None)),
        slowest=Slowest(int(replays.program.owner[slowest]), replays.gains(region, [slowest])),
        balance=float(some.mean() / some.max()) if len(some) else 1.0,
        balanced=replays.balanced(region, time),
        ranks=durations(time),
    )
