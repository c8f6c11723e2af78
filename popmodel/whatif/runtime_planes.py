"""The runtime over latency, 1/bandwidth and computing at once: the greatest of a few planes.

Each plane is a chain of computing, messages and overheads of the run, as long as the chain is: its
computing, the latencies and the bytes that it pays, and what depends on none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.values import dataclass
from popmodel.whatif.planes import planes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.whatif.evaluate import Runtimes


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
