"""What the runtime of a traced run depends on: latency, bandwidth, computation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import (
    ProfileLike,
    TraceLike,
    number,
    path_of,
    profile_of,
    several,
    trace_of,
)
from popmodel.api.networks import (
    NetworkLike,
    OnMachine,
    combinations,
    networks,
    nodes_of,
    refuse_idle_mapping,
    settled,
)
from popmodel.api.replay import without_mpi
from popmodel.api.tolerances import Tolerance, limits, told
from popmodel.base.errors import UsageError
from popmodel.base.plain import document, fields_of, plain
from popmodel.base.units import parse_bandwidth, parse_time
from popmodel.base.values import cut, dataclass
from popmodel.efficiency.measure import runtime
from popmodel.machines.profile_comparison import network_lacks, network_of
from popmodel.network.network import Network, describe
from popmodel.reports.result import Result
from popmodel.reports.sensitivity import VIEWS, conclusion
from popmodel.sensitivity.critical_path import write_path
from popmodel.sensitivity.piecewise_linear import LinearPieces, pieces
from popmodel.sensitivity.region_gains import Dependence, dependence
from popmodel.sensitivity.runtime_planes import (
    PlaneShares,
    RuntimeCurve,
    RuntimePlanes,
    Runtimes,
    reaches,
    runtime_planes,
)
from popmodel.simulator import from_trace, replay
from popmodel.simulator.program import NONE_UNEVEN, Program, unmodelled_calls
from popmodel.simulator.replayer import Replayer
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces.caveats import caveats
from popmodel.traces.selection import Foa, TraceFocus, TracePart, Window, focused

if TYPE_CHECKING:
    from popmodel.reports.views import Views

__all__ = ["Sensitivity", "Tolerance", "sensitivity"]

SCHEMA = "popmodel/sensitivity/1"

DEFAULT_NETWORK = "alpha-beta"
LATENCIES = (0.0, 100e-6)  #: s
BANDWIDTHS = (100e6, math.inf)  #: B/s
SLOWDOWNS = (0.01, 0.02, 0.05)
EFFICIENT = 0.95  #: a transfer efficiency that is worth keeping
SPEEDS = (0.25, 4.0)  #: of computing, against the traced one
NEAR = 1e-3  #: of the runtime: what the planes may be off
LARGEST = (
    "collectives whose members have different amounts (Alltoallv) cost what the largest of them "
    "do; at the cost of the member that arrives last, as in popmodel replay, the runtime would jump"
)


@dataclass(frozen=True)
class Sensitivity(Result):
    """What the runtime depends on, as returned by `sensitivity`."""

    trace: str  # The trace
    measured: float | None  # Its measured runtime, s; None where the trace has no measured times
    # Of the traced run.
    processes: int
    nodes: int
    operations: int
    network: Network  # The network that the run was replayed on
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
    slower: dict[float, Tolerance]
    efficient: Tolerance  # The same for a transfer efficiency of 95 %
    planes: RuntimePlanes  # Runtime over both, and over the speed of computing
    # What faster regions and ideal scenarios are worth, and the critical path.
    dependence: Dependence
    window: TraceFocus  # The part of the trace that was replayed
    # What limits the numbers; what was left out or assumed.
    caveats: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]  # The files that were read
    written: str | None = None  # The trace that the critical path was written to

    def __repr__(self) -> str:
        return cut(f"<Sensitivity of {self.trace}: {conclusion(self.to_dict())}>")

    @property
    def runtime(self) -> float:
        """Runtime on the network, s."""
        return self.shares.runtime

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/sensitivity/1``, without provenance."""
        found = self.shares
        return document(
            SCHEMA,
            trace=self.trace,
            caveats=self.caveats,
            window=self.window,
            processes=self.processes,
            nodes=self.nodes,
            operations=self.operations,
            measured_runtime=self.measured,
            network=self.network,
            runtime=self.runtime,
            ideal_runtime=self.ideal_runtime,
            shares={
                "computing": found.computing,
                "latency": found.latency,
                "bandwidth": found.bandwidth,
                "overhead": found.overhead,
            },
            derivatives={
                "latency": self.by_latency,
                "inverse_bandwidth": self.by_gap,
                "cpu": found.computing,
            },
            tiers=found.distances,
            without={"latency": self.without[0], "bandwidth": self.without[1]},
            latency=_curve(self.over_latency),
            inverse_bandwidth=_curve(self.over_gap),
            tolerance=[
                {"slowdown": slowdown, **told(one)} for slowdown, one in self.slower.items()
            ],
            efficient={"transfer_efficiency": EFFICIENT, **told(self.efficient)},
            planes=self.planes.planes,
            planes_error=self.planes.error,
            planes_speed={"least": 1 / self.planes.slower[1], "most": 1 / self.planes.slower[0]},
            **fields_of(self.dependence),
            **({} if self.written is None else {"written": self.written}),
            notes=self.notes,
        )

    @property
    def views(self) -> Views:
        return VIEWS


def _curve(found: LinearPieces) -> dict[str, Any]:
    return {
        "breakpoints": found.points,
        "runtimes": found.values,
        "slopes": found.slopes,
        "error": found.error,
    }


def sensitivity(
    trace: TraceLike,
    network: NetworkLike | None = None,
    *,
    machine: ProfileLike | None = None,
    latency: float | str | None = None,
    bandwidth: float | str | None = None,
    eager_threshold: float | str | None = None,
    send_is_detached_thresh: float | str | None = None,
    send_overhead: float | str | None = None,
    receive_overhead: float | str | None = None,
    collectives: str | None = None,
    collective_cost: str | None = None,
    algorithm: str | Sequence[str] | None = None,
    mapping: str | None = None,
    cpu_factor: float | None = None,
    rank_speed: str | None = None,
    latency_range: str | tuple[float | str, float | str] | None = None,
    bandwidth_range: str | tuple[float | str, float | str] | None = None,
    slowdowns: float | Sequence[float] = SLOWDOWNS,
    output: str | os.PathLike[str] | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
) -> Sensitivity:
    """Find what the runtime of a traced run depends on, exactly.

    The runtime on a network without shared resources is convex and piecewise linear in latency,
    1/bandwidth and the time of computation. Its derivatives are those of the critical path; all
    pieces follow from few replays.

    Parameters
    ----------
    trace : path or Trace
        The trace.
    network : str or Network, optional
        The network of the run; default, unless `machine` is given: alpha-beta, 2 us and 10 GB/s.
    machine : str or Profile, optional
        Machine profile (file, name of a preset) whose network to use, with the placement of
        processes on nodes as traced. Latency and bandwidth change between nodes, or inside the
        node of a run on one.
    latency, bandwidth, eager_threshold, send_overhead, receive_overhead : optional
    send_is_detached_thresh : optional
    collectives, collective_cost, algorithm, mapping, cpu_factor, rank_speed : optional
        What is different on the network, one value each; as for `popmodel.replay`.
    latency_range : pair or str, optional
        Latencies to look at, s, or text such as ``"0:100us"``, which is the default (twice the
        latency of the network if that is more).
    bandwidth_range : pair or str, optional
        Bandwidths, B/s, or text such as ``"100MB/s:inf"``, which is the default (half the
        bandwidth of the network if that is less).
    slowdowns : float or several
        Slowdowns against the network whose tolerances to find; 0.01 is 1 %.
    output : path, optional
        A Paraver trace (``.prv`` or ``.prv.gz``) to write: the trace with the critical path as
        events.
    window, region, from_start, foa, application, flop_rate
        The part of the trace; as for `popmodel.replay`.

    Raises
    ------
    FileError
        If the trace or the profile cannot be read.
    ReplayError
        If the replay stops, for instance in a deadlock.
    MissingQuantity
        If the machine profile lacks the network between the processes.
    UsageError
        If a value is invalid, a range is empty, or messages share links on the network.

    Notes
    -----
    Three things stay as they are: which messages are sent eagerly (by size), which message meets
    which receive (as traced), and the algorithms of collectives.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.sensitivity("tests/data/cg.S.2.prv.gz", latency="2us")
    >>> found.shares.latency > found.shares.bandwidth
    True
    >>> len(found.over_latency.breakpoints) > 100
    True
    """
    asked_part = TracePart.of(window, region, from_start, foa)
    path = path_of(trace)
    own: dict[str, Any] = {
        "latency": latency,
        "bandwidth": bandwidth,
        "eager_threshold": eager_threshold,
        "send_is_detached_thresh": send_is_detached_thresh,
        "send_overhead": send_overhead,
        "receive_overhead": receive_overhead,
    }
    chosen: dict[str, Any] = {
        "collectives": collectives,
        "collective_cost": collective_cost,
        "algorithm": algorithm,
        "mapping": mapping,
        "cpu_factor": cpu_factor,
        "rank_speed": rank_speed,
    }
    profile = None if machine is None else profile_of(machine)
    wanted = _slowdowns(slowdowns)
    if profile is not None:
        _refuse_beside_machine(network=network, **own)
    given = [] if profile is not None else networks(network or DEFAULT_NETWORK, **own, **chosen)
    changes = combinations(**chosen)
    if len(given) > 1 or len(changes) > 1:
        raise UsageError(
            f"one network at a time, not {max(len(given), len(changes))}",
            "give one value each; popmodel replay takes several",
        )
    refuse_idle_mapping(given)
    whole = trace_of(trace, application=application, flop_rate=flop_rate, rated=True)
    source, focus = focused(whole, part_of_run(asked_part, whole))
    program = from_trace(source)
    if profile is None:
        asked = settled(given, program.processes)[0]
    else:
        asked = network_of(profile, nodes_of(program, changes[0])).with_(**changes[0])
    _refuse_sharing(asked)
    program, notes = _convex(program, asked)
    critical = Replayer(program).path(asked)
    if output is not None:
        write_path(critical, program, source, Path(output), describe(asked))
    return Sensitivity(
        trace=path,
        measured=runtime(source) if source.timed else None,
        processes=program.processes,
        nodes=len(set(nodes_of(program, {"mapping": asked.mapping}).tolist())),
        operations=program.operations,
        network=asked,
        window=focus,
        caveats=(
            *([] if profile is None else network_lacks(profile, nodes_of(program, changes[0]))),
            *unmodelled_calls(program.unmodelled),
            *caveats(source, focus),
            *without_mpi(program),
        ),
        notes=(*notes, *program.notes),
        files=(
            path,
            *([] if profile is None else [profile.path]),
            *(one.machine.path for one in given if isinstance(one, OnMachine)),
        ),
        dependence=dependence(program, asked, critical, source),
        written=None if output is None else os.fspath(output),
        **_found(program, asked, latency_range, bandwidth_range, wanted),
    )


def _refuse_beside_machine(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"{name.replace('_', ' ')}: already set by the machine profile",
                "leave it out, or the machine",
            )


def _refuse_sharing(network: Network) -> None:
    """Where messages wait for each other, more latency can make a run faster: no convex pieces."""
    if network.contended:
        raise UsageError(
            f"{network.name}: messages share links or buses, so that the runtime is not convex in "
            "latency and bandwidth and has no exact tolerances",
            "leave the links out; popmodel replay shows single networks with them",
        )


def _convex(program: Program, network: Network) -> tuple[Program, list[str]]:
    """The program without what makes its runtime jump, and what that changes."""
    if network.collectives != "dimemas" or not len(program.uneven.operation):
        return program, []
    even = replace(program, uneven=NONE_UNEVEN)
    last, largest = (replay(one, network).runtime for one in (program, even))
    if math.isclose(last, largest, rel_tol=1e-9):
        return even, []
    return even, [f"{LARGEST} (here the runtime is {100 * (largest / last - 1):+.2g} %)"]


def _found(
    program: Program,
    network: Network,
    latency_range: Any,
    bandwidth_range: Any,
    slowdowns: Sequence[float],
) -> dict[str, Any]:
    """All figures of a program on a network."""
    replayer = Replayer(program)
    runtimes = Runtimes(replayer, network)
    latency, gap = runtimes.latency, runtimes.gap
    latencies = _range("latency", latency_range, parse_time, (0.0, max(LATENCIES[1], 2 * latency)))
    bandwidths = _range(
        "bandwidth",
        bandwidth_range,
        parse_bandwidth,
        (min(BANDWIDTHS[0], network.bandwidth / 2), BANDWIDTHS[1]),
    )
    gaps = (1 / bandwidths[1], 1 / bandwidths[0] if bandwidths[0] else math.inf)
    shares = runtimes.shares()
    over_latency = RuntimeCurve(runtimes, "latency", gap)
    over_gap = RuntimeCurve(runtimes, "bytes", latency)
    by_latency, by_gap = pieces(over_latency, *latencies), pieces(over_gap, *gaps)

    def tolerance(time: float) -> Tolerance:
        least = reaches(over_gap, time, by_gap)
        return Tolerance(
            time,
            reaches(over_latency, time, by_latency),
            None if least is None else (1 / least if least else math.inf),
        )

    ideal = replayer.run(network.ideal()).runtime
    without = runtimes.heights([(0.0, gap), (latency, 0.0)])
    here = runtimes.touch(latency, gap)
    slower = {one: tolerance((1 + one) * shares.runtime) for one in slowdowns}
    return {
        "ideal_runtime": ideal,
        "shares": shares,
        "by_latency": here.by_latency,
        "by_gap": here.by_gap,
        "without": (without[0], without[1]),
        "over_latency": by_latency,
        "over_gap": by_gap,
        "slower": slower,
        "efficient": tolerance(ideal / EFFICIENT),
        "planes": runtime_planes(
            runtimes,
            _with(latencies, latency),
            _with(gaps, gap),
            (1 / SPEEDS[1], 1 / SPEEDS[0]),
            error=NEAR,
            exact=[(latency, gap), *limits(slower.values(), latency, gap)],
        ),
    }


def _with(ends: tuple[float, float], value: float) -> tuple[float, float]:
    """A range made to hold a value."""
    return min(ends[0], value), max(ends[1], value)


def _range(
    what: str, given: Any, parse: Callable[[str], float], default: tuple[float, float]
) -> tuple[float, float]:
    if given is None:
        return default
    ends = given.split(":") if isinstance(given, str) else list(given)
    if len(ends) != 2:
        raise UsageError(f"range of {what}: must be LOW:HIGH, not '{given}'")
    low, high = (number(f"range of {what}", end, parse) for end in ends)
    if not 0 <= low < high:
        raise UsageError(f"range of {what}: must rise from at least 0, not '{given}'")
    return low, high


def _slowdowns(given: float | Sequence[float]) -> list[float]:
    found = sorted({float(one) for one in several(given)})
    if not found or not all(0 < one < math.inf for one in found):
        raise UsageError(
            f"slowdowns: must be numbers above 0, not {plain(several(given))}",
            "write 0.01 for a run that is 1 % slower",
        )
    return found
