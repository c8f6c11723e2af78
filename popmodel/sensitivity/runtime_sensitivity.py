"""What the runtime of a program on a network depends on: latency, bandwidth, computation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass, fields_of
from popmodel.sensitivity.piecewise_linear import LinearPieces, Planes, pieces
from popmodel.sensitivity.region_gains import Dependence, dependence
from popmodel.sensitivity.runtime_planes import (
    PlaneShares,
    RuntimeCurve,
    Runtimes,
    reaches,
    runtime_planes,
)
from popmodel.simulator.program import NONE_UNEVEN
from popmodel.simulator.replayer import Replayer

if TYPE_CHECKING:
    from popmodel.network.network import Network
    from popmodel.simulator.execution import CriticalPath
    from popmodel.simulator.program import Program
    from popmodel.traces import Trace

LATENCY = 100e-6  #: s: curves go so far, or farther
BANDWIDTH = 100e6  #: B/s: likewise
SLOWDOWNS = (0.01, 0.02, 0.05)
EFFICIENT = 0.95  #: a transfer efficiency that is worth keeping
SPEEDS = (0.25, 4.0)  #: of computing, against the traced one
NEAR = 1e-3  #: of the runtime: what the planes may be off
LARGEST = (
    "collectives whose members have different amounts (Alltoallv) cost what the largest of them "
    "do; at the cost of the member that arrives last, as in a scenario, the runtime would jump"
)


@dataclass(frozen=True)
class Tolerance:
    """How slow the network may be until the run takes a certain time."""

    runtime: float  # That time, s
    # The largest latency, at the bandwidth of the network, s; infinite: any; None: with no latency
    # at all the run takes longer.
    latency: float | None
    # The least bandwidth, at the latency of the network, B/s; 0: any; None: with infinite bandwidth
    # the run takes longer.
    bandwidth: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data: no number where there is no limit, or where none is enough."""
        latency, bandwidth = self.latency, self.bandwidth
        why = {}
        if latency is None:
            why["latency"] = "even without latency the run takes longer"
        elif latency == math.inf:
            latency, why["latency"] = None, "no latency makes the run take that long"
        if bandwidth is None:
            why["bandwidth"] = "even with infinite bandwidth the run takes longer"
        elif bandwidth == 0:
            why["bandwidth"] = "no bandwidth makes the run take that long"
        return {"runtime": self.runtime, "latency": latency, "bandwidth": bandwidth, "why": why}

    def limits(self, latency: float, gap: float) -> Iterator[tuple[float, float]]:
        """Latency and time per byte where it ends, along each of both from those given."""
        if self.latency is not None:
            yield self.latency, gap
        if self.bandwidth:
            yield latency, 1 / self.bandwidth


@dataclass(frozen=True)
class RuntimeSensitivity:
    """What the runtime of a program on a network depends on.

    The runtime on a network without shared resources is convex and piecewise linear in latency,
    1/bandwidth and the time of computation. Its derivatives are those of the critical path; all
    pieces follow from few replays.
    """

    network: Network
    operations: int  # MPI operations of the program
    ideal_runtime: float  # Runtime with no latency, infinite bandwidth and no overheads, s
    shares: PlaneShares  # What the runtime on the network is made of
    # Derivatives of the runtime by latency (how many are paid) and by 1/bandwidth, B.
    by_latency: float
    by_gap: float
    # Runtime without latency, and with infinite bandwidth, s; all else as on the network.
    without: tuple[float, float]
    # Runtime, s, over latency, s, at the bandwidth of the network, and over 1/bandwidth, s/B, at
    # its latency.
    over_latency: LinearPieces
    over_gap: LinearPieces
    # For each slowdown against the network: how slow the network may be.
    slower: Mapping[float, Tolerance]
    efficient: Tolerance  # The same for a transfer efficiency of 95 %
    planes: Planes  # Runtime over both, and over the speed of computing
    # What faster regions and ideal scenarios are worth, and the critical path in tables.
    dependence: Dependence
    notes: tuple[str, ...]  # What was assumed

    @property
    def runtime(self) -> float:
        """Runtime on the network, s."""
        return self.shares.runtime

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        found = self.shares
        return {
            "network": self.network.to_dict(),
            "operations": self.operations,
            "runtime": self.runtime,
            "ideal_runtime": self.ideal_runtime,
            "shares": {
                "computing": found.computing,
                "latency": found.latency,
                "bandwidth": found.bandwidth,
                "overhead": found.overhead,
            },
            "derivatives": {
                "latency": self.by_latency,
                "inverse_bandwidth": self.by_gap,
                "cpu": found.computing,
            },
            "tiers": found.distances,
            "without": {"latency": self.without[0], "bandwidth": self.without[1]},
            "latency": _curve(self.over_latency),
            "inverse_bandwidth": _curve(self.over_gap),
            "tolerance": [
                {"slowdown": slowdown, **one.to_dict()} for slowdown, one in self.slower.items()
            ],
            "efficient": {"transfer_efficiency": EFFICIENT, **self.efficient.to_dict()},
            "planes": self.planes.planes,
            "planes_error": self.planes.error,
            "planes_speed": {"least": SPEEDS[0], "most": SPEEDS[1]},
            **fields_of(self.dependence),
        }


def _curve(found: LinearPieces) -> dict[str, Any]:
    return {
        "breakpoints": found.points,
        "runtimes": found.values,
        "slopes": found.slopes,
        "error": found.error,
    }


def runtime_sensitivity(
    program: Program,
    network: Network,
    trace: Trace | None = None,
) -> RuntimeSensitivity:
    """Find what the runtime of a program on a network depends on, exactly.

    Which messages are sent eagerly (by size), which message meets which receive (as traced), and
    the algorithms of collectives stay as they are. `trace` is the program's own, for the names of
    regions and calls. The curves go up to 100 us or twice the latency of the network, and from 100
    MB/s or half its bandwidth. Raises `UsageError` where messages share links, as the
    runtime is not convex there, and of a run that takes no time.
    """
    if network.contended:
        raise UsageError(
            f"{network.name}: messages share links or buses, so that the runtime is not convex in "
            "latency and bandwidth and has no exact tolerances",
            "leave the links or --sensitivity out: a scenario of its own can have them",
        )
    program, notes = _convex(program, network)
    replayer = Replayer(program)
    runtimes = Runtimes(replayer, network)
    latency, gap = runtimes.latency, runtimes.gap
    high, most = max(LATENCY, 2 * latency), 1 / min(BANDWIDTH, network.bandwidth / 2)
    shares = runtimes.shares()
    if not shares.runtime:
        free = "messages cost nothing" if program.operations else "nothing is sent"
        raise UsageError(
            f"{network.name}: the run takes no time: nothing is computed, and {free}",
            "sensitivities need a run that takes time: another network, or more processes",
        )
    over_latency = RuntimeCurve(runtimes, "latency", gap)
    over_gap = RuntimeCurve(runtimes, "bytes", latency)
    by_latency, by_gap = pieces(over_latency, 0.0, high), pieces(over_gap, 0.0, most)

    def tolerance(time: float) -> Tolerance:
        limit = reaches(over_gap, time, by_gap)
        return Tolerance(
            time,
            reaches(over_latency, time, by_latency),
            None if limit is None else (1 / limit if limit else math.inf),
        )

    ideal = replayer.run(network.ideal()).runtime
    without = runtimes.heights([(0.0, gap), (latency, 0.0)])
    here = runtimes.touch(latency, gap)
    slower = {one: tolerance((1 + one) * shares.runtime) for one in SLOWDOWNS}
    return RuntimeSensitivity(
        network=network,
        operations=program.operations,
        ideal_runtime=ideal,
        shares=shares,
        by_latency=here.by_latency,
        by_gap=here.by_gap,
        without=(without[0], without[1]),
        over_latency=by_latency,
        over_gap=by_gap,
        slower=slower,
        efficient=tolerance(ideal / EFFICIENT),
        planes=runtime_planes(
            runtimes,
            (0.0, high),
            (0.0, most),
            (1 / SPEEDS[1], 1 / SPEEDS[0]),
            error=NEAR,
            exact=[
                (latency, gap),
                *(limit for one in slower.values() for limit in one.limits(latency, gap)),
            ],
        ),
        dependence=dependence(program, network, replayer.path(network), trace),
        notes=notes,
    )


def critical_path(program: Program, network: Network) -> CriticalPath:
    """The critical path that `runtime_sensitivity` sums up."""
    return Replayer(_convex(program, network)[0]).path(network)


def _convex(program: Program, network: Network) -> tuple[Program, tuple[str, ...]]:
    """The program without what makes its runtime jump, and what that changes."""
    if network.collectives != "dimemas" or not len(program.uneven.operation):
        return program, ()
    even = replace(program, uneven=NONE_UNEVEN)
    last, largest = (Replayer(one).run(network).runtime for one in (program, even))
    if math.isclose(last, largest, rel_tol=1e-9):
        return even, ()
    return even, (f"{LARGEST} (here the runtime is {100 * (largest / last - 1):+.2g} %)",)
