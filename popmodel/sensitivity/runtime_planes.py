"""What the runtime is made of: the steps of the critical path, summed by what they are spent on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass
from popmodel.network.point_to_point import SizeClass
from popmodel.sensitivity.piecewise_linear import (
    SAME,
    LinearCurve,
    LinearPieces,
    Plane,
    Planes,
    Tangent,
    planes,
)
from popmodel.simulator.execution import PathPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.execution import CriticalPath
    from popmodel.simulator.replayer import Along, Replayer


_NS = 1e9


@dataclass(frozen=True)
class Distance:
    """What the critical path spends on messages over one distance."""

    name: str  # Inside a node, between nodes, or all messages on a network that makes no difference
    latencies: float  # How many latencies it pays: the derivative of the runtime by the latency
    bytes: float  # How many bytes: the derivative by the time per byte, B
    # Time of these, s.
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class PlaneShares:
    """What a runtime is made of, s; the parts add up to it."""

    computing: float  # Between MPI calls: the derivative by a factor on all times of computation
    overhead: float  # Of calls, which depends on neither latency nor size
    # Messages and collectives, by where they go; the longest distance is the last.
    distances: tuple[Distance, ...]

    @property
    def latency(self) -> float:
        """Latencies of messages, s."""
        return sum(one.latency for one in self.distances)

    @property
    def bandwidth(self) -> float:
        """What the sizes of messages cost, s."""
        return sum(one.bandwidth for one in self.distances)

    @property
    def runtime(self) -> float:
        """All together, s."""
        return self.computing + self.latency + self.bandwidth + self.overhead


def shares(path: CriticalPath, network: Network) -> PlaneShares:
    """Sum a critical path up."""
    computes = path.part == PathPart.COMPUTE

    def total(column: NDArray[np.float64], rows: NDArray[np.bool_]) -> float:
        return float(column[rows].sum())

    # Name of each distance by the number that it has in paths.
    names = {1: "all"}
    if (tiers := network.tiers) is not None:
        there = (("within", tiers.within), ("between", tiers.between))
        names = {number: name for number, (name, tier) in enumerate(there) if tier is not None}
    distances = [
        Distance(
            name,
            total(path.latency, mine),
            total(path.bytes, mine),
            total(path.latency_time, mine) / _NS,
            total(path.bytes_time, mine) / _NS,
        )
        for number, name in names.items()
        for mine in [path.tier == number]
    ]
    return PlaneShares(
        total(path.time, computes) / _NS,
        total(path.overhead, ~computes) / _NS,
        tuple(distances),
    )


# The runtime of a program over latency, time per byte and computing, with its derivatives.
#
# Latency and time per byte are those of the longest distance that messages go: between nodes, or
# inside the node of a run on one; a network without tiers has one latency and one bandwidth for
# all. Where they depend on the size of a message, another latency is added to that of all sizes,
# and another time per byte scales that of all sizes. Computing takes a factor of its time on the
# network itself. So the runtime is convex and piecewise linear in all three.


_NOTHING = 1e-12  # of the runtime: what rounding leaves of a path without overheads
_LEAST = 1e-12  # of the time per byte: what costs nothing at all cannot be told to be paid


def network_at(network: Network, latency: float, gap: float, slower: float = 1.0) -> Network:
    """Return a network with another latency and time per byte over its longest distance."""
    network, tiers = network.with_(cpu_factor=network.cpu_factor / slower), network.tiers
    if tiers is None:
        if gap == 1 / network.bandwidth:  # not the inverse of an inverse
            return network.with_(latency=latency)
        return network.with_(latency=latency, bandwidth=1 / gap if gap else np.inf)
    if network.rules == "dimemas":
        raise UsageError(
            f"{network.name}: the rules of Dimemas charge one latency for all distances",
            "use the rules alpha-beta, or a network without tiers",
        )
    tier = tiers.slowest
    if np.isinf(tier.bandwidth):
        raise UsageError(
            f"{network.name}: the sizes of messages cost nothing, so that no bandwidth can change",
            "use a profile with a time per byte (net.TIER.classes[].beta)",
        )
    factor, more = max(gap * tier.bandwidth, _LEAST), latency - tier.latency
    if gap == 1 / network.bandwidth:
        factor = 1.0
    classes = tuple(
        SizeClass(one.upto, one.alpha + more, one.beta * factor) for one in tier.classes
    )
    name = "within" if tiers.between is None else "between"
    changed = replace(tiers, **{name: replace(tier, classes=classes)})
    return network.with_(latency=latency, bandwidth=tier.bandwidth / factor, tiers=changed)


class _Touch(NamedTuple):
    """A runtime, s, and its derivatives by latency (1), time per byte (B) and computing (s)."""

    runtime: float
    by_latency: float
    by_gap: float
    by_slower: float


class Runtimes:
    """The runtime of a program over latency (s), time per byte (s/B) and a factor on computing.

    Each such point is replayed once. `latency` and `gap` are those of the network itself.
    """

    def __init__(self, replayer: Replayer, network: Network) -> None:
        self._replayer = replayer
        self._network = network
        self._touches: dict[tuple[tuple[float, ...], Along, bool], _Touch] = {}
        self._heights: dict[tuple[float, ...], float] = {}
        self.latency = network.latency
        self.gap = 1 / network.bandwidth

    @property
    def points(self) -> int:
        """How many points have been replayed."""
        return len(self._heights)

    def shares(self) -> PlaneShares:
        """What the runtime on the network itself is made of."""
        return shares(self._replayer.path(self._network), self._network)

    def heights(self, points: Sequence[tuple[float, ...]]) -> list[float]:
        """Runtime at some points, s."""
        asked = [(*point, 1.0)[:3] for point in points]
        new = [point for point in dict.fromkeys(asked) if point not in self._heights]
        if new:
            runs = self._replayer.scenarios([network_at(self._network, *point) for point in new])
            self._heights |= {point: run.runtime for point, run in zip(new, runs, strict=True)}
        return [self._heights[point] for point in asked]

    def slopes(
        self, points: Sequence[tuple[float, float]], along: Along
    ) -> list[tuple[float, float]]:
        """Runtime at some latencies and times per byte, s, and its derivative by one of both.

        Where distances differ in what they cost, from a critical path each: the derivative is that
        of the longest distance only.
        """
        if self._network.tiers is not None:
            touches = [self.touch(*point, along=along) for point in points]
            return [
                (touch.runtime, touch.by_latency if along == "latency" else touch.by_gap)
                for touch in touches
            ]
        networks = [network_at(self._network, *point) for point in points]
        slopes = self._replayer.slopes(networks, "right", along)
        runtimes = zip(points, slopes, strict=True)
        self._heights |= {(*point, 1.0): runtime for point, (runtime, _) in runtimes}
        return slopes

    def plane(self, point: tuple[float, ...]) -> Plane:
        """Of the critical path at a point: its latencies, bytes and computing."""
        runtime, *slopes = self.touch(*point)
        rest = runtime - sum(s * x for s, x in zip(slopes, point, strict=True))
        return Plane(0.0 if abs(rest) <= _NOTHING * runtime else rest, tuple(slopes))

    def touch(
        self,
        latency: float,
        gap: float,
        slower: float = 1.0,
        *,
        along: Along = "latency",
        from_right: bool = True,
    ) -> _Touch:
        """Runtime and its derivatives.

        Of several paths as long as each other those of the one that grows most along latency or
        bytes; from the left, least.
        """
        point = latency, gap, slower
        key = (point, along, from_right)
        if key not in self._touches:
            network = network_at(self._network, *point)
            path = self._replayer.path(network, "right" if from_right else "left", along)
            made_of = shares(path, network)
            far = made_of.distances[-1]
            sizes = far.bytes if network.tiers is None else far.bandwidth * network.bandwidth
            by_slower = made_of.computing / slower
            self._touches[key] = _Touch(path.runtime, far.latencies, sizes, by_slower)
            self._heights.setdefault(point, path.runtime)
        return self._touches[key]


@dataclass(frozen=True)
class RuntimeCurve:
    """The runtime over latency, s, or time per byte, s/B, at one value of the other of both."""

    runtimes: Runtimes
    along: Along
    other: float

    def tangents(self, points: Sequence[float]) -> list[Tangent]:
        """Runtime at some points and its derivatives there, to the right."""
        slopes = self.runtimes.slopes([self._at(x) for x in points], self.along)
        return [Tangent(x, *slope) for x, slope in zip(points, slopes, strict=True)]

    def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
        """Runtime at a point and its derivative."""
        touch = self.runtimes.touch(*self._at(point), along=self.along, from_right=from_right)
        slope = touch.by_latency if self.along == "latency" else touch.by_gap
        return Tangent(point, touch.runtime, slope)

    def _at(self, x: float) -> tuple[float, float]:
        return (x, self.other) if self.along == "latency" else (self.other, x)


# The runtime over latency, 1/bandwidth and computing at once: the greatest of a few planes.
#
# Each plane is a chain of computing, messages and overheads of the run, as long as the chain is:
# its computing, the latencies and the bytes that it pays, and what depends on none of them.


@dataclass(frozen=True)
class RuntimePlane:
    """How long a chain of the run is."""

    constant: float  # Its computing and overheads, s
    latency: float  # How many latencies it pays
    inverse_bandwidth: float  # How many bytes, B
    computing: float  # The part of the constant that is computing, s

    def __call__(self, latency: float, inverse_bandwidth: float, slower: float = 1.0) -> float:
        """Length of the chain, s, if computing takes a factor of its time."""
        return (
            self.constant
            + (slower - 1) * self.computing
            + self.latency * latency
            + self.inverse_bandwidth * inverse_bandwidth
        )


def runtime_planes(
    runtimes: Runtimes,
    latencies: tuple[float, float],
    gaps: tuple[float, float],
    slower: tuple[float, float],
    *,
    error: float,
    exact: Sequence[tuple[float, float]] = (),
) -> Planes:
    """Find planes whose greatest is the runtime at a latency, s, 1/bandwidth, s/B, and slowness."""
    inside = [
        (latency, gap, 1.0)
        for latency, gap in exact
        if latencies[0] <= latency <= latencies[1] and gaps[0] <= gap <= gaps[1]
    ]
    envelope = planes(runtimes, (latencies, gaps, slower), error=error, touching=inside)
    made = (RuntimePlane(one.constant + one.slopes[2], *one.slopes) for one in envelope.planes)
    return Planes(tuple(made), envelope.error)


# How much latency, or time per byte, a run tolerates before it takes a given time.


_MOST = 200  # steps; each ends on another piece, and pieces get longer with distance
_FAR = 1e3  # times the runtime: there, whatever waits for a message waits for nothing else


def reaches(curve: LinearCurve, target: float, pieces: LinearPieces | None = None) -> float | None:
    """Return where a convex function that does not fall reaches a value: exact, by its pieces.

    Newton's method, which needs a finite number of steps on a function of pieces: beyond the
    value tangents lead back to it and never past it.
    """
    start = 0.0
    if pieces is not None:
        if pieces.values[0] <= target < pieces.values[-1]:
            index = max(i for i, value in enumerate(pieces.values) if value <= target)
            above = target - pieces.values[index]
            return pieces.points[index] + above / pieces.slopes[index]
        start = pieces.points[-1 if pieces.values[-1] <= target else 0]
    tangent = curve.tangent(start)
    near = SAME * target
    for _ in range(_MOST):
        above = tangent.value - target
        if above > near and (tangent.at == 0 or tangent.slope == 0):
            return None
        if abs(above) <= near and tangent.slope > 0:
            return tangent.at - above / tangent.slope
        if tangent.slope > 0:
            following = max(tangent.at - above / tangent.slope, 0.0)
        elif tangent.at >= _FAR * target:
            return math.inf
        else:
            following = _FAR * target
        tangent = curve.tangent(following)
    raise ArithmeticError(f"no end of the pieces before {target}")
