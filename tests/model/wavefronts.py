"""Sweeps through a grid of processes, event by event: what the model of pipelines is held to.

Nothing here is the package's: processes are generators, a heap orders what they do.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sweep:
    """One sweep: way along each dimension (1, -1, or 0 for not at all), blocks, times in s."""

    ways: tuple[int, ...]
    blocks: int
    seconds: float
    latency: float
    gap: float = 0.0
    overhead: float = 0.0
    waits: bool = False

    @property
    def message(self) -> float:
        return self.latency + self.gap


Where = tuple[int, ...]
Wait = tuple[str, object]


class Machine:
    """Processes that compute and send; times by key tell when something has happened."""

    def __init__(self) -> None:
        self.known: dict[object, float] = {}
        self.sleeping: dict[object, list[Iterator[Wait | float]]] = {}
        self.events: list[tuple[float, int, Iterator[Wait | float]]] = []
        self.ties = itertools.count()
        self.free: dict[object, float] = {}
        self.now = 0.0

    def start(self, process: Iterator[Wait | float]) -> None:
        heapq.heappush(self.events, (0.0, next(self.ties), process))

    def tell(self, key: object, time: float) -> None:
        """Let those go on, at a time, who wait for something."""
        self.known[key] = time
        for process in self.sleeping.pop(key, []):
            heapq.heappush(self.events, (max(time, self.now), next(self.ties), process))

    def run(self) -> float:
        last = 0.0
        while self.events:
            self.now, _, process = heapq.heappop(self.events)
            last = max(last, self.now)
            for step in process:
                if isinstance(step, float):
                    heapq.heappush(self.events, (self.now + step, next(self.ties), process))
                    break
                key = step[1]
                if key not in self.known:
                    self.sleeping.setdefault(key, []).append(process)
                    break
                if self.known[key] > self.now:
                    heapq.heappush(self.events, (self.known[key], next(self.ties), process))
                    break
        assert not self.sleeping
        return last


def runtime(extent: Where, sweeps: Sequence[Sweep]) -> float:
    """Time of sweeps that follow each other on a grid of processes, s.

    A process waits for a block from each process before it, computes, and sends to each after it,
    one after the other. It goes on after the overhead, or, where senders wait, when the message
    has arrived; its port carries one message after the other. Receives are posted one block ahead.
    """
    machine = Machine()
    places = list(itertools.product(*map(range, extent)))

    def neighbour(at: Where, dim: int, by: int) -> Where | None:
        there = (*at[:dim], at[dim] + by, *at[dim + 1 :])
        return there if 0 <= there[dim] < extent[dim] else None

    def process(at: Where) -> Iterator[Wait | float]:
        for number, sweep in enumerate(sweeps):
            crossed = [dim for dim, way in enumerate(sweep.ways) if way]
            sources = [neighbour(at, dim, -sweep.ways[dim]) for dim in crossed]
            targets = [neighbour(at, dim, sweep.ways[dim]) for dim in crossed]
            machine.tell(("posted", number, 0, at), machine.now)
            for block in range(sweep.blocks):
                for source in filter(None, sources):
                    yield "arrived", (number, block, source, at)
                yield sweep.seconds / sweep.blocks
                machine.tell(("posted", number, block + 1, at), machine.now)
                for target in targets:
                    if target is None:
                        continue
                    if sweep.waits:
                        yield "posted", ("posted", number, block, target)
                    else:
                        yield sweep.overhead
                    begin = max(machine.now, machine.free.get(at, 0.0))
                    machine.free[at] = begin + sweep.gap
                    rest = sweep.message - (0.0 if sweep.waits else sweep.overhead)
                    machine.tell((number, block, at, target), begin + rest)
                    if sweep.waits:
                        yield rest

    for place in places:
        machine.start(process(place))
    return machine.run()
