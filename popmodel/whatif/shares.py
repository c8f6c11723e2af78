"""What the runtime is made of: the steps of the critical path, summed by what they are spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.path import Part
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.path import CriticalPath

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
class Shares:
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


def shares(path: CriticalPath, network: Network) -> Shares:
    """Sum a critical path up."""
    computes = path.part == Part.COMPUTE

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
    return Shares(
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
