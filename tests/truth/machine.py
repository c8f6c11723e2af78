"""Clusters: what they do, and what a benchmark has measured of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truth import memory
from truth.drawn import Stated, between, stated

NODES = 256
SOCKETS = 2
OPENMP_THREADS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Machine:
    """A cluster of nodes with two sockets, each one memory domain."""

    cores: int  # Of a node
    clock: tuple[Stated, Stated]  # Hz, with one busy core of a node and with all
    overlap: Stated  # Share of arithmetic and transfers that hide behind each other
    # Memory bandwidth of one core, and of a domain whose cores all ask for more, B/s.
    alone: Stated
    full: Stated
    saturation: str  # Law in between: ``power``, or a key of `memory.OTHERS`
    sharpness: float  # Of the law ``power``
    overheads: tuple[Stated, ...]  # Of a parallel loop, s, at `OPENMP_THREADS`
    # Of a message, s and s/B, by tier.
    latency: dict[str, Stated]
    per_byte: dict[str, Stated]
    adapter: Stated  # Seconds per byte through the network adapter of a node
    reduction: Stated  # Seconds per byte of applying a reduction
    eager: float  # Largest message, in bytes, that needs no receiver

    @property
    def domain(self) -> int:
        """Cores of a memory domain."""
        return self.cores // SOCKETS

    def frequency(self, busy: float) -> float:
        """Return the clock with so many busy cores of a node, Hz."""
        one, every = self.clock
        return one.true + (every.true - one.true) * (busy - 1) / (self.cores - 1)

    def shared(self, busy: int, alone: float, service: float) -> float:
        """Return the time of a unit of work beside others in its domain, s; see `memory`."""
        if self.saturation == "power":
            return memory.power(busy, alone, service, self.sharpness)
        return memory.OTHERS[self.saturation](busy, alone, service)

    def overhead(self, threads: int) -> float:
        """Return the time of OpenMP for a parallel loop, s."""
        return float(np.interp(threads, OPENMP_THREADS, [one.true for one in self.overheads]))

    def profile(self, name: str) -> dict[str, Any]:
        """What a benchmark has measured, as a document of schema ``popmodel/machine/1``."""
        sharpness, low, high = self._measured_sharpness()
        threads = [count for count in OPENMP_THREADS if count <= self.cores]
        one, every = self.clock
        return {
            "schema": "popmodel/machine/1",
            "name": name,
            "description": "simulated cluster",
            "host": {"cpu": "simulated", "mpi": "simulated", "load": 0.0},
            "topology": {
                "nodes": NODES,
                "cores_per_node": self.cores,
                "sockets": SOCKETS,
                "domains": SOCKETS,
                "caches": [
                    {"level": "L1", "bytes": 32768, "shared_by": 1},
                    {"level": "L2", "bytes": 1048576, "shared_by": 1},
                    {"level": "L3", "bytes": 2097152 * self.domain, "shared_by": self.domain},
                ],
                "memory_per_node": 1 << 38,
            },
            "core": {
                "freq": {
                    "1": one.measured("one-cycle additions"),
                    str(self.cores): every.measured("one-cycle additions"),
                },
                "flop_per_cycle": {"value": 16, "origin": "measured"},
                "load_per_cycle": {"value": 2, "origin": "measured"},
                "store_per_cycle": {"value": 1, "origin": "measured"},
                "overlap": {
                    **self.overlap.measured("loops with arithmetic and transfers"),
                    "value": min(self.overlap.value, 1.0),
                    "low": max(self.overlap.low, 0.0),
                    "high": min(self.overlap.high, 1.0),
                },
            },
            "memory": {
                "b1": self.alone.measured("STREAM triad"),
                "bsat": self.full.measured("STREAM triad"),
                "q": Stated(sharpness, low, high, sharpness).measured("STREAM triad, 1 to n cores"),
            },
            "openmp": {
                "parallel_for": {
                    "T": threads,
                    "seconds": [
                        each.measured("empty parallel loop")
                        for each in self.overheads[: len(threads)]
                    ],
                }
            },
            "net": {
                **{
                    tier: {
                        "classes": [
                            {
                                "upto": None,
                                "alpha": self.latency[tier].measured("ping-pong"),
                                "beta": self.per_byte[tier].measured("ping-pong"),
                            }
                        ],
                        "eager_threshold": {"value": self.eager, "origin": "measured"},
                    }
                    for tier in ("intra", "inter")
                },
                "nic_G": self.adapter.measured("many pairs of two nodes"),
                "reduce_gamma": self.reduction.measured("sum of two vectors"),
            },
            "noise": {"run_cv": 0.015},
        }

    def _measured_sharpness(self) -> tuple[float, float, float]:
        """What a benchmark reads as sharpness out of its sweep over the cores of a domain."""
        cores: NDArray[np.int64] = np.arange(1, self.domain + 1)
        service, whole = 1 / self.full.true, 1 / self.alone.true
        times = np.log([self.shared(int(n), whole, service) for n in cores])
        tried = np.geomspace(1.5, 10, 60)
        misses = np.array(
            [
                np.abs(np.log([memory.power(int(n), whole, service, q) for n in cores]) - times)
                for q in tried
            ]
        ).max(axis=1)
        best = int(misses.argmin())
        near = tried[misses <= misses[best] + 0.02]
        return float(tried[best]), float(near[0]) * 0.95, float(near[-1]) * 1.05


def draw(rng: np.random.Generator, saturation: str) -> Machine:
    """Draw a machine at random."""
    cores = int(rng.choice([16, 32]))
    clock = between(rng, 2.2e9, 3.8e9)
    lost = rng.uniform(0.02, 0.15)
    alone = between(rng, 8e9, 20e9)
    full = alone * rng.uniform(0.3, 0.75) * cores / SOCKETS
    overlap, reach = rng.uniform(0.3, 0.8), rng.uniform(0.1, 0.25)
    hidden = float(np.clip(overlap + rng.normal(0, reach / 1.8), 0, 1))
    constant, per_doubling, per_thread = (
        between(rng, 2e-7, 8e-7),
        between(rng, 1e-7, 6e-7),
        between(rng, 1e-8, 8e-8),
    )
    overheads = tuple(
        stated(
            rng,
            constant / 2 if n == 1 else constant + per_doubling * np.log2(n) + per_thread * n,
            1.15,
        )
        for n in OPENMP_THREADS
    )
    latency = {"intra": between(rng, 2e-7, 8e-7), "inter": between(rng, 1e-6, 4e-6)}
    per_byte = {"intra": 1 / between(rng, 4e9, 12e9), "inter": 1 / between(rng, 5e9, 12e9)}
    adapter = per_byte["inter"] * rng.uniform(0.6, 1.0)
    return Machine(
        cores,
        (stated(rng, clock, 1.02), stated(rng, clock * (1 - lost), 1.02)),
        Stated(overlap, overlap - reach, overlap + reach, hidden),
        stated(rng, alone, 1.03),
        stated(rng, full, 1.03),
        saturation,
        rng.uniform(2.5, 6),
        overheads,
        {tier: stated(rng, value, 1.2) for tier, value in latency.items()},
        {tier: stated(rng, value, 1.1) for tier, value in per_byte.items()},
        stated(rng, adapter, 1.1),
        stated(rng, between(rng, 5e-11, 3e-10), 1.5),
        16384.0,
    )
