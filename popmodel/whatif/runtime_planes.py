"""What the runtime is made of: the steps of the critical path, summed by what they are spent on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.errors import UsageError
from popmodel.network.point_to_point import SizeClass
from popmodel.simulator.path import PathPart
from popmodel.values import dataclass
from popmodel.whatif.piecewise_linear import SAME, LinearCurve, LinearPieces, Plane, Tangent, planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.path import CriticalPath
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

    distances = []
    for number, name in _distances(network).items():
        mine = path.tier == number
        distances.append(
            Distance(
                name,
                total(path.latency, mine),
                total(path.bytes, mine),
                total(path.latency_time, mine) / _NS,
                total(path.bytes_time, mine) / _NS,
            )
        )
    return PlaneShares(
        total(path.time, computes) / _NS,
        total(path.overhead, ~computes) / _NS,
        tuple(distances),
    )


def _distances(network: Network) -> dict[int, str]:
    """Name of each distance by the number that it has in paths."""
    if network.tiers is None:
        return {1: "all"}
    there = enumerate((network.tiers.within, network.tiers.between))
    return {number: ("within", "between")[number] for number, tier in there if tier is not None}


# The runtime of a program over latency, time per byte and computing, with its derivatives.
#
# Latency and time per byte are those of the longest distance that messages go: between nodes, or
# inside the node of a run on one; a network without tiers has one latency and one bandwidth for
# all.
# Where they depend on the size of a message, another latency is added to that of all sizes, and
# another time per byte scales that of all sizes. Computing takes a factor of its time on the
# network
# itself. So the runtime is convex and piecewise linear in all three.


_NOTHING = 1e-12  # of the runtime: what rounding leaves of a path without overheads
_LEAST = 1e-12  # of the time per byte: what costs nothing at all cannot be told to be paid


class PlaneSetting(NamedTuple):
    """Where a runtime is asked for."""

    latency: float  # s
    gap: float  # Time per byte, s/B
    slower: float = 1.0  # Factor on all times of computing


def moved(network: Network, latency: float, gap: float, slower: float = 1.0) -> Network:
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


@dataclass(frozen=True)
class _Touch:
    """A runtime, s, and its derivatives by latency (1), time per byte (B) and computing (s)."""

    runtime: float
    by_latency: float
    by_gap: float
    by_slower: float


class Runtimes:
    """The runtime of a program over what it depends on; each setting is replayed once.

    Attributes
    ----------
    latency, gap : float
        Those of the network itself, s and s/B.
    """

    def __init__(self, replayer: Replayer, network: Network) -> None:
        self._replayer = replayer
        self._network = network
        self._touches: dict[tuple[PlaneSetting, Along, bool], _Touch] = {}
        self._heights: dict[PlaneSetting, float] = {}
        self.latency = network.latency
        self.gap = 1 / network.bandwidth

    @property
    def points(self) -> int:
        """How many settings have been replayed."""
        return len(self._heights)

    def shares(self) -> PlaneShares:
        """What the runtime on the network itself is made of."""
        return shares(self._replayer.path(self._network), self._network)

    def heights(self, points: Sequence[tuple[float, ...]]) -> list[float]:
        """Runtime at some settings, s."""
        asked = [PlaneSetting(*point) for point in points]
        new = [one for one in dict.fromkeys(asked) if one not in self._heights]
        if new:
            found = self._replayer.scenarios([moved(self._network, *one) for one in new])
            self._heights |= {one: run.runtime for one, run in zip(new, found, strict=True)}
        return [self._heights[one] for one in asked]

    def slopes(
        self, points: Sequence[tuple[float, float]], along: Along
    ) -> list[tuple[float, float]]:
        """Runtime at some latencies and times per byte, s, and its derivative by one of both.

        Where distances differ in what they cost, from a critical path each: the derivative is that
        of the longest distance only.
        """
        if self._network.tiers is not None:
            touches = [self.touch(*point, along=along) for point in points]
            by = [one.by_latency if along == "latency" else one.by_gap for one in touches]
            return [(one.runtime, slope) for one, slope in zip(touches, by, strict=True)]
        found = self._replayer.slopes(
            [moved(self._network, *point) for point in points], "right", along
        )
        settings = [PlaneSetting(*point) for point in points]
        self._heights |= {one: runtime for one, (runtime, _) in zip(settings, found, strict=True)}
        return found

    def plane(self, point: tuple[float, ...]) -> Plane:
        """Of the critical path at a setting: its latencies, bytes and computing."""
        touch = self.touch(*point)
        slopes = touch.by_latency, touch.by_gap, touch.by_slower
        rest = touch.runtime - sum(s * x for s, x in zip(slopes, point, strict=True))
        return Plane(0.0 if abs(rest) <= _NOTHING * touch.runtime else rest, slopes)

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
        setting = PlaneSetting(latency, gap, slower)
        key = (setting, along, from_right)
        if key not in self._touches:
            network = moved(self._network, *setting)
            path = self._replayer.path(network, "right" if from_right else "left", along)
            made_of = shares(path, network)
            far = made_of.distances[-1]
            sizes = far.bytes if network.tiers is None else far.bandwidth * network.bandwidth
            self._touches[key] = _Touch(
                path.runtime, far.latencies, sizes, made_of.computing / slower
            )
            self._heights.setdefault(setting, path.runtime)
        return self._touches[key]


@dataclass(frozen=True)
class OverLatency:
    """The runtime over latency, s, at one time per byte, s/B."""

    runtimes: Runtimes
    gap: float

    def tangents(self, points: Sequence[float]) -> list[Tangent]:
        """Runtime at some latencies and its derivatives by them, to the right."""
        found = self.runtimes.slopes([(point, self.gap) for point in points], "latency")
        return [Tangent(point, *one) for point, one in zip(points, found, strict=True)]

    def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
        """Runtime at a latency and its derivative by it."""
        touch = self.runtimes.touch(point, self.gap, from_right=from_right)
        return Tangent(point, touch.runtime, touch.by_latency)


@dataclass(frozen=True)
class OverGap:
    """The runtime over the time per byte, s/B, at one latency, s."""

    runtimes: Runtimes
    latency: float

    def tangents(self, points: Sequence[float]) -> list[Tangent]:
        """Runtime at some times per byte and its derivatives by them, to the right."""
        found = self.runtimes.slopes([(self.latency, point) for point in points], "bytes")
        return [Tangent(point, *one) for point, one in zip(points, found, strict=True)]

    def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
        """Runtime at a time per byte and its derivative by it."""
        touch = self.runtimes.touch(self.latency, point, along="bytes", from_right=from_right)
        return Tangent(point, touch.runtime, touch.by_gap)


# The runtime over latency, 1/bandwidth and computing at once: the greatest of a few planes.
#
# Each plane is a chain of computing, messages and overheads of the run, as long as the chain is:
# its
# computing, the latencies and the bytes that it pays, and what depends on none of them.


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


@dataclass(frozen=True)
class RuntimePlanes:
    """The runtime as the greatest of some planes."""

    planes: tuple[RuntimePlane, ...]  # Each is the greatest somewhere
    error: float  # The largest part of the runtime by which it lies above them
    # Least and greatest factor on the time of computing for which this holds.
    slower: tuple[float, float]

    def __call__(self, latency: float, inverse_bandwidth: float, slower: float = 1.0) -> float:
        """Runtime, s, at a latency (s), 1/bandwidth (s/B) and factor on the time of computing."""
        return max(plane(latency, inverse_bandwidth, slower) for plane in self.planes)


def runtime_planes(
    runtimes: Runtimes,
    latencies: tuple[float, float],
    gaps: tuple[float, float],
    slower: tuple[float, float],
    *,
    error: float,
    exact: Sequence[tuple[float, float]] = (),
) -> RuntimePlanes:
    """Find the planes."""
    inside = [
        (latency, gap, 1.0)
        for latency, gap in exact
        if latencies[0] <= latency <= latencies[1] and gaps[0] <= gap <= gaps[1]
    ]
    found = planes(runtimes, (latencies, gaps, slower), error=error, touching=inside)
    return RuntimePlanes(
        tuple(
            RuntimePlane(plane.constant + plane.slopes[2], *plane.slopes) for plane in found.planes
        ),
        found.error,
        slower,
    )


# How much latency, or time per byte, a run tolerates before it takes a given time.


_MOST = 200  # steps; each ends on another piece, and pieces get longer with distance
_FAR = 1e3  # times the runtime: there, whatever waits for a message waits for nothing else


def reaches(curve: LinearCurve, target: float, pieces: LinearPieces | None = None) -> float | None:
    """Return where a convex function that does not fall reaches a value: exact, by its pieces.

    Newton's method, which needs a finite number of steps on a function of pieces: beyond the
    value tangents lead back to it and never past it.
    """
    if pieces is not None and pieces.values[0] <= target < pieces.values[-1]:
        return _inside(pieces, target)
    start = 0.0 if pieces is None else pieces.points[-1 if pieces.values[-1] <= target else 0]
    return _beyond(curve, target, curve.tangent(start))


def _inside(pieces: LinearPieces, target: float) -> float:
    """By the piece that goes through the value."""
    index = max(i for i, value in enumerate(pieces.values) if value <= target)
    return pieces.points[index] + (target - pieces.values[index]) / pieces.slopes[index]


def _beyond(curve: LinearCurve, target: float, tangent: Tangent) -> float | None:
    """By tangents, each of which leads to the next."""
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
