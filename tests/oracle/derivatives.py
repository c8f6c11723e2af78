"""Derivatives of the runtime, carried forward with every clock of the plain replay.

A clock is a number with the counts of latencies and bytes of the path that set it. A sum adds the
counts; the later of two clocks brings its own. The plain replay runs on such numbers as it does on
floats. Slow on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import total_ordering
from typing import NamedTuple

import numpy as np

from oracle import algorithms, replay
from popmodel.network.network import Network
from popmodel.simulator.charges import Charges, charge
from popmodel.simulator.program import Program


@total_ordering
@dataclass(frozen=True, eq=False)
class Clock:
    """ns, how many latencies and how many bytes are in it; `side` is 1 or -1 at equal times."""

    time: float
    latency: float = 0.0
    bytes: float = 0.0
    side: int = 1

    def __add__(self, other: Clock | float) -> Clock:
        if not isinstance(other, Clock):
            return Clock(self.time + other, self.latency, self.bytes, self.side)
        return Clock(
            self.time + other.time,
            self.latency + other.latency,
            self.bytes + other.bytes,
            self.side,
        )

    __radd__ = __add__

    def __sub__(self, other: Clock | float) -> float:
        return self.time - _clock(other, self.side).time

    def __rsub__(self, other: float) -> float:
        return other - self.time

    def _key(self) -> tuple[float, float, float]:
        return self.time, self.side * self.latency, self.side * self.bytes

    def __lt__(self, other: Clock | float) -> bool:
        return self._key() < _clock(other, self.side)._key()

    def __eq__(self, other: object) -> bool:
        return self._key() == _clock(other, self.side)._key()

    __hash__ = None


def _clock(value: object, side: int) -> Clock:
    return value if isinstance(value, Clock) else Clock(float(value), side=side)


class Derivatives(NamedTuple):
    """The runtime, s, and its derivatives by latency (1) and by 1/bandwidth (B)."""

    runtime: float
    latency: float
    bytes: float


_COSTS = (
    *("transfer", "send_overhead", "receive_before", "collective_cost", "member_cost"),
    *("request_cost", "uneven_cost"),
)


def runtime(program: Program, network: Network, side: int = 1) -> Derivatives:
    """Runtime on a network without tiers, and its derivatives to one side where they differ."""
    if network.collectives == "algorithm":
        program, network = algorithms.carry_out(program), network.with_(collectives="rooted")
    costs = {one.name: getattr(charge(program, network), one.name) for one in fields(Charges)}
    latencies, sizes = unit_charges(program, network)
    for name in _COSTS:
        costs[name] = [
            Clock(*values, side=side)
            for values in zip(
                costs[name].tolist(), latencies[name].tolist(), sizes[name].tolist(), strict=True
            )
        ]
    ends, stuck, _ = replay.replay(program, 1 / network.cpu_factor, **costs)
    assert stuck == program.offsets[1:].tolist(), "a deadlock"
    last = max(_clock(end, side) for end in ends)
    return Derivatives(last.time / 1e9, last.latency, last.bytes)


def unit_charges(
    program: Program, network: Network
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """How many latencies and bytes every charge has: charges of a second, and of a second a byte.

    Charges are affine in both.
    """
    only_latency = charge(program, network.with_(latency=1.0, bandwidth=np.inf))
    only_bytes = charge(program, network.with_(latency=0.0, bandwidth=1.0))
    return (
        {name: getattr(only_latency, name) / 1e9 for name in _COSTS},
        {name: getattr(only_bytes, name) / 1e9 for name in _COSTS},
    )
