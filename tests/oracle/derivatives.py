"""Derivatives of the runtime, carried forward with every clock of the plain replay.

A clock is a number with the counts of latencies and bytes of the path that set it. A sum adds the
counts; the later of two clocks brings its own. The plain replay runs on such numbers as it does on
floats. Slow on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

from oracle import affine, algorithms, replay
from popmodel.network.network import Network
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


def runtime(program: Program, network: Network, side: int = 1) -> Derivatives:
    """Runtime on a network without tiers, and its derivatives to one side where they differ."""
    if network.collectives == "algorithm":
        program, network = algorithms.carry_out(program), network.with_(collectives="rooted")
    latency, gap = network.latency * 1e9, 1e9 / network.bandwidth

    def clocks(costs: list[affine.Cost]) -> list[Clock]:
        return [Clock(one.latency * latency + one.bytes * gap, *one, side) for one in costs]

    costs = {
        name: clocks(value) if _is_time(value) else value
        for name, value in affine.costs(program, network)._asdict().items()
    }
    ends, stuck, _ = replay.replay(
        program, 1 / network.cpu_factor, **costs, uneven_operation=[], uneven_cost=[]
    )
    assert stuck == program.offsets[1:].tolist(), "a deadlock"
    last = max(_clock(end, side) for end in ends)
    return Derivatives(last.time / 1e9, last.latency, last.bytes)


def _is_time(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], affine.Cost)
