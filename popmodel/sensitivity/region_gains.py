"""How long ranks compute in a region: a histogram, small however many ranks there are."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import dataclass
from popmodel.network.point_to_point import SizeClass
from popmodel.sensitivity.critical_path import critical_times, path_tables
from popmodel.sensitivity.region_speeds import regions_of, scaled
from popmodel.simulator.program import at_once
from popmodel.simulator.replayer import Replayer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.sensitivity.critical_path import PathTables
    from popmodel.sensitivity.region_speeds import RegionGains
    from popmodel.simulator.execution import CriticalPath
    from popmodel.simulator.program import Program
    from popmodel.traces import Trace

    Run = Callable[[Program], float]
    RunOn = Callable[[Program, Network], float]


_MOST = 30
_LEAST = 5


@dataclass(frozen=True)
class Durations:
    """How long ranks compute in a region, each in all its occurrences together."""

    # Of ranks that do, s.
    least: float
    most: float
    # How many do for how long: bins of equal width from the least to the most.
    counts: tuple[int, ...]
    without: int  # How many do not


def durations(time: NDArray[np.float64]) -> Durations:
    """Count ranks by how long they compute in a region.

    The number of bins is twice the cube root of the number of ranks (the rule of Rice University),
    at least 5 and at most 30; one where all take equally long.
    """
    some = time[time > 0]
    without = int(len(time) - len(some))
    if not len(some):
        return Durations(0.0, 0.0, (), without)
    least, most = float(some.min()), float(some.max())
    bins = min(max(math.ceil(2 * len(some) ** (1 / 3)), _LEAST), _MOST)
    if most - least <= np.spacing(most) * bins:  # no bin would have a width
        return Durations(least, most, (len(some),), without)
    counts, _ = np.histogram(some, bins, (least, most))
    return Durations(least, most, tuple(counts.tolist()), without)


# What a faster region is worth: a causal profile, exact since the replay is.
#
# The idea of causal profiling is Curtsinger and Berger's (Coz, SOSP 2015), who slow everything else
# down in a running program. Here the program is replayed with other times of computing.
#
# The runtime as a function of the factor c by which a region's time is multiplied is a maximum of
# sums, so convex and piecewise linear. The time of the region on the critical path is a slope of it
# at c = 1, which bounds every gain from above: a region that is not on the path gains nothing, and
# where the gain of a region that takes no time reaches the bound, it does so for all factors
# between.


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

    # As of `popmodel.sensitivity.region_speeds.Regions`.
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
    regions: RegionGains,
    critical: NDArray[np.float64],
    run: Run,
    *,
    cpu: float | NDArray[np.float64] = 1.0,
    faster: Sequence[float] = FASTER,
    most: int = 12,
) -> tuple[tuple[Worth, ...], Rest]:
    """Find what faster regions are worth, those with the highest gain first."""
    times = regions.by_process(program) * (cpu / _NS)
    runtime = run(program)
    on_path, mean = critical.sum(axis=1), times.mean(axis=1)
    cells = regions.cells(program)

    def share(time: float) -> float:
        return float(time / runtime) if runtime else 0.0

    def rescaled(region: int, processes: Any, factors: Any) -> float:
        """The runtime with other times in a region on some processes."""
        factor = np.ones(critical.shape)
        factor[region, processes] = factors
        return run(scaled(program, regions, factor, cells))

    def gains(region: int, processes: Any) -> tuple[Gain, ...]:
        """Runtimes if a region were faster on some processes."""
        bound = float(critical[region, processes].sum())
        if not bound:
            return tuple(Gain(part, runtime) for part in faster)
        least = rescaled(region, processes, 1 - faster[-1])
        if abs(least - (runtime - bound * faster[-1])) <= _SAME * runtime:
            inner = [runtime - bound * part for part in faster[:-1]]
        else:
            inner = [rescaled(region, processes, 1 - part) for part in faster[:-1]]
        return tuple(map(Gain, faster, [*inner, least]))

    worths = []
    chosen = _chosen(on_path, mean, most)
    for region in chosen.tolist():
        time = times[region]
        slowest, computing = int(time.argmax()), np.flatnonzero(time)
        some = time[computing]
        even = not len(some) or bool(np.all(some == some.mean()))
        worths.append(
            Worth(
                name=regions.names[region],
                kind=regions.kinds[region],
                time=float(time.mean()),
                share=share(time.mean()),
                critical=float(critical[region].sum()),
                gain=gains(region, slice(None)),
                slowest=Slowest(int(program.owner[slowest]), gains(region, [slowest])),
                balance=float(some.mean() / some.max()) if len(some) else 1.0,
                balanced=runtime if even else rescaled(region, computing, some.mean() / some),
                ranks=durations(time),
            )
        )
    others = np.ones(len(regions), dtype=bool)
    others[chosen] = False
    rest = Rest(int(others.sum()), share(mean[others].sum()), float(on_path[others].sum()))
    worths.sort(key=lambda worth: (worth.gain[0].runtime, -worth.critical, -worth.time, worth.name))
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


# Ideal scenarios of a run: what each kind of loss costs, found by replay.
#
# They are the ideals behind the POP efficiencies (transfer, serialisation, load balance), here as
# runtimes on the network in question instead of factors of a product.


@dataclass(frozen=True)
class Scenario:
    """A run in which something is ideal."""

    name: str
    meaning: str  # What is ideal in it
    runtime: float  # s
    gain: float  # How much shorter than the run as it is, s; negative if longer


def scenarios(program: Program, network: Network, run: RunOn) -> tuple[Scenario, ...]:
    """Find the potential gains of a run, the highest first."""
    runtime = run(program, network)
    compute = program.compute() / (speeds(program, network) * _NS)
    even, ideal = balanced(program, network), network.ideal()
    runtimes = {
        "no transfer": ("no latency, infinite bandwidth", run(program, ideal)),
        "balanced": ("equal computing on all ranks", run(even, network)),
        "balanced, no transfer": ("equal computing, ideal network", run(even, ideal)),
        "no waiting": ("only the longest computing of a rank is left", compute.max(initial=0.0)),
        "all ideal": ("only the mean computing of the ranks is left", _mean(compute)),
    }
    if (exchanging := at_once(program)) is not None:
        meaning = "no blocking send holds up the receives beside it (MPI_Sendrecv)"
        runtimes["sends and receives at once"] = meaning, run(exchanging, network)
    if (tiers := network.tiers) is not None and tiers.within is not None and tiers.between:
        free = replace(tiers.within, classes=(SizeClass(None, 0.0, 0.0),))
        free = replace(free, send_overhead=0.0, receive_overhead=0.0)
        inside = network.with_(tiers=replace(tiers, within=free))
        runtimes["no transfer within nodes"] = (
            "messages inside a node for free",
            run(program, inside),
        )
    gains = [
        Scenario(name, meaning, float(time), float(runtime - time))
        for name, (meaning, time) in runtimes.items()
    ]
    return tuple(sorted(gains, key=lambda one: -one.gain))


def balanced(program: Program, network: Network) -> Program:
    """Return the program with its bursts scaled by process so that all compute equally long.

    Each takes the mean of all. One that computes nothing has no bursts to scale, and stays so.
    """
    compute = program.compute() / speeds(program, network)
    factor = np.ones_like(compute)
    some = compute > 0
    factor[some] = _mean(compute) / compute[some]
    burst = program.burst * np.repeat(factor, np.diff(program.offsets))
    return replace(program, burst=burst, tail=program.tail * factor)


def speeds(program: Program, network: Network) -> NDArray[np.float64]:
    """CPU speed of what is computed in each sequence of operations, against the traced run."""
    return network.cpu(program.processes)[program.owner]


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0


# What a run depends on besides its network: regions, ideals, the critical path of its replay.


@dataclass(frozen=True)
class Dependence:
    """What a run depends on."""

    regions: tuple[Worth, ...]  # What faster regions are worth, those with the highest gain first
    other_regions: Rest  # Regions of which no replay was made
    scenarios: tuple[Scenario, ...]  # Ideal scenarios, the highest gain first
    critical_path: PathTables


def dependence(
    program: Program, network: Network, path: CriticalPath, trace: Trace | None = None
) -> Dependence:
    """Find what a run depends on."""
    regions = regions_of(program, trace)
    critical = critical_times(path, program, regions)
    worth, rest = worth_of(
        program,
        regions,
        critical,
        partial(_runtime, network=network),
        cpu=1 / speeds(program, network),
    )
    return Dependence(
        worth,
        rest,
        scenarios(program, network, _runtime),
        path_tables(path, program, regions, trace),
    )


def _runtime(program: Program, network: Network) -> float:
    return Replayer(program).run(network).runtime
